"""What a sweep asks: the settings in force, and every combination that is possible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.evaluate import DEFAULT_DEPTH, check_evaluation
from rag_tui.engine.evaluation.fingerprints import can_change
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.sweep_scores import check_folds
from rag_tui.engine.evaluation.sweep_space import Setting, Space
from rag_tui.engine.knobs import KNOBS, column_request, knob
from rag_tui.engine.types import Column, KnobValue, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Try:
    """A setting, ready to be asked."""

    setting: Setting
    column: Column
    chunking: ChunkingSettings
    is_present: bool


def check_sweep(
    space: Space,
    request: SearchRequest,
    settings: EngineSettings,
    *,
    metric: str,
    column: str,
    folds: int = 5,
    depth: int = DEFAULT_DEPTH,
) -> int:
    """Refuse what `sweep` would refuse, before anything is indexed.

    Returns:
        How many settings it would measure, those in force among them.

    Raises:
        UsageError: Naming the knob, the value, the rule and the fix.
    """
    parse_measure(metric)
    check_folds(folds)
    return len(tries_of(space, request, settings, column, depth)[0])


def tries_of(
    space: Space, request: SearchRequest, settings: EngineSettings, column: str, depth: int
) -> tuple[list[Try], list[str]]:
    """What is asked, the settings in force first, and which combinations cannot be."""
    base = next((one for one in request.columns if one.name == column), None)
    if base is None:
        there = ", ".join(one.name for one in request.columns)
        raise UsageError(f"There is no column {column!r} to sweep.", f"There are: {there}.")
    for name in space.names:
        is_free = name.startswith("chunking.") or name == "post.neighbours"
        if not is_free and not can_change(base.method, name):
            raise UsageError(
                f"{name} changes nothing in the column {column!r} ({base.method}).",
                "Sweep a column that depends on it (--column), or leave it out.",
            )
    own = column_request(request, base)
    present = Setting(tuple((name, _present(name, own, settings, depth)) for name in space.names))
    found = [Try(present, base, settings.chunking, is_present=True)]
    notes = []
    for setting in space.settings():
        if setting == present:
            continue
        try:
            chunking = replace(settings.chunking, **setting.chunking)  # type: ignore[arg-type]
            knobs = {**dict(base.knobs), **setting.search}
            one = Try(setting, replace(base, knobs=tuple(knobs.items())), chunking, False)
            check_evaluation(alone(request, one.column), depth)
        except UsageError as error:
            notes.append(f"left out: {setting.name}: {error.message}")
            continue
        found.append(one)
    if len(found) == 1 and notes:
        raise UsageError(f"None of the settings is possible; {notes[0]}", "Give other values.")
    check_evaluation(alone(request, base), depth)
    return found, notes


def alone(request: SearchRequest, column: Column) -> SearchRequest:
    """A request of one column; the rows that are shown have no part in a sweep."""
    return replace(request, columns=(column,), methods=(column.method,), top_k=1)


def _present(name: str, own: SearchRequest, settings: EngineSettings, depth: int) -> KnobValue:
    section, _, field = name.partition(".")
    if section == "chunking":
        value: KnobValue = getattr(settings.chunking, field)
        return value
    return depth if name == "search.depth" else knob(own, name)


def fixed_knobs(
    space: Space, request: SearchRequest, settings: EngineSettings, column: Column
) -> dict[str, KnobValue]:
    """The settings in force that a sweep leaves as they are, by dotted name."""
    own = column_request(request, column)
    fields = ("strategy", "size", "overlap", "unit")
    values: dict[str, KnobValue] = {
        f"chunking.{field}": getattr(settings.chunking, field) for field in fields
    }
    values |= {spec.name: knob(own, spec.name) for spec in KNOBS if spec.name != "search.top_k"}
    values["models.embedder"] = settings.models.embedder
    if request.where.strip():
        values["where"] = request.where
    return {name: value for name, value in values.items() if name not in space.names}
