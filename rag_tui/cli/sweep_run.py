"""A sweep as it is run, shown, written down and put to use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rag_tui.cli.evaluation_run import (
    Asked,
    interruptible,
    make_request,
    note_problems,
    open_questions,
)
from rag_tui.cli.output import note, write_json, write_rich, write_text
from rag_tui.config import PROJECT_FILE, load_settings
from rag_tui.display import clip, count, display, plain
from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.report_sections import comparison_text
from rag_tui.engine.evaluation.report_sweep import best_toml, marks, verdict
from rag_tui.engine.evaluation.settings_file import write_settings
from rag_tui.engine.evaluation.sweep import sweep
from rag_tui.engine.evaluation.sweep_space import Space
from rag_tui.engine.evaluation.sweep_store import SweepStore
from rag_tui.engine.evaluation.sweep_tries import check_sweep
from rag_tui.engine.evaluation.sweep_types import SettingScore, SweepProgress, SweepResult
from rag_tui.engine.events import CancelToken
from rag_tui.engine.types import SearchRequest

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
N_SETTINGS = 20
"""Settings shown; all are in the JSON and in the reports."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What is tried, and what is to come of it."""

    space: Space
    metric: str = "nDCG@10"
    column: str = "hybrid"
    folds: int = 5
    is_applied: bool = False
    markdown: Path | None = None
    html: Path | None = None
    as_json: bool = False


def sweep_command(asked: Asked, wanted: Swept) -> int:
    """Exit 1 when no setting could be scored, 130 when stopped; what is finished is shown."""
    request, overrides = make_request(asked)
    settings = load_settings(asked.folder, overrides)
    n = check_sweep(
        wanted.space, request, settings.engine,
        metric=wanted.metric, column=wanted.column, folds=wanted.folds, depth=asked.depth,
    )  # fmt: skip
    if wanted.is_applied:
        _refuse_own_knobs(request, wanted)
    opened = open_questions(asked.folder, asked.questions, overrides)
    note_problems(opened.questions)
    note(f"{count(n, 'setting')} on {count(len(opened.questions.questions), 'question')}")
    engine = opened.session.settings.engine
    token = CancelToken()
    result: SweepResult | None = None
    with interruptible(token), _telling() as show:
        for item in sweep(
            wanted.space, opened.questions, request, engine,
            opened.session.index, opened.session.models,
            metric=wanted.metric, column=wanted.column, folds=wanted.folds, depth=asked.depth,
            store=SweepStore.of(engine.cache_dir, opened.session.folder), cancel=token,
        ):  # fmt: skip
            if isinstance(item, SweepResult):
                result = item
            else:
                show(item)
    if result is None:
        raise RagTuiError("The sweep ended without a result.", "Run it again.")
    n_known = sum(one.is_known for one in result.settings)
    if n_known:
        note(f"{count(n_known, 'setting')} known from earlier sweeps")
    _write(result, wanted)
    if not result.is_whole:
        note("interrupted: finished settings are kept, the same command goes on from there")
        return EXIT_INTERRUPTED
    if result.best is None:
        return EXIT_FAILED
    if wanted.is_applied:
        _apply(result, opened.session.folder)
    return 0


def _write(result: SweepResult, wanted: Swept) -> None:
    if wanted.markdown is not None or wanted.html is not None:
        from rag_tui.cli.evaluation_reports import write_sweep_reports

        write_sweep_reports(result, wanted.markdown, wanted.html)
    if wanted.as_json:
        write_json(sweep_json(result))
    elif wanted.markdown is None or str(wanted.markdown) != "-":
        _write_table(result)


def _write_table(result: SweepResult) -> None:
    order = result.ranked()
    if order:
        shown = Table(pad_edge=False, show_edge=False)
        shown.add_column("setting", overflow="fold")
        for title in ("", result.metric, "against now", "IoU", "ms", "prompt", "chunks"):
            shown.add_column(title, no_wrap=True)
        for place in order[:N_SETTINGS]:
            one = result.settings[place]
            name = plain(clip(one.setting.name, 90))
            shown.add_row(name, marks(result, place), *_figures(one))
        write_rich(shown)
        if len(order) > N_SETTINGS:
            write_text(f"and {len(order) - N_SETTINGS:,} more (--json has all)")
        write_text(
            "Mean with 95 % interval; difference, won/tied/lost and p against the settings in "
            f"force; token IoU and prompt tokens of the first {result.n_sources} rows. "
            "front: nothing is better, faster and shorter at once."
        )
        write_text("")
    for line in verdict(result):
        write_text(line)
    for one in result.settings:
        if one.reason:
            write_text(f"not compared: {one.setting.name}: {one.reason}")
    for line in result.notes:
        write_text(line)
    toml = best_toml(result)
    if toml:
        write_text(f"\n{toml}", end="")


def _figures(one: SettingScore) -> list[str]:
    found, mean = one.measured, one.interval
    interval = f"{mean.mean:.3f} {mean.low:.2f}–{mean.high:.2f}" if mean is not None else "–"
    return [
        interval,
        "" if one.is_present else comparison_text(one.comparison),
        "–" if found.spans is None else f"{found.spans.iou:.3f}",
        "–" if found.latency_ms is None else f"{found.latency_ms:.3g}",
        "–" if found.prompt_tokens is None else f"{found.prompt_tokens:.0f}",
        f"{found.n_chunks:,}",
    ]


def sweep_json(result: SweepResult) -> dict[str, Any]:
    """Everything a sweep knows; settings are named by their place in ``settings``."""
    plain_fields = {
        one.name: getattr(result, one.name)
        for one in fields(result)
        if one.name not in {"settings", "knobs", "cross_validation"}
    }
    held = result.cross_validation
    return {
        **plain_fields,
        "knobs": dict(result.knobs),
        "cross_validation": None if held is None else asdict(held),
        "settings": [_setting_json(result, place) for place in range(len(result.settings))],
        "ranked": list(result.ranked()),
        "verdict": list(verdict(result)),
    }


def _setting_json(result: SweepResult, place: int) -> dict[str, Any]:
    one = result.settings[place]
    found = one.measured
    return {
        "name": one.setting.name,
        "knobs": dict(one.setting.knobs),
        "is_present": one.is_present,
        "is_known": one.is_known,
        "is_on_front": place in result.front,
        "reason": one.reason,
        "interval": None if one.interval is None else asdict(one.interval),
        "comparison": None if one.comparison is None else asdict(one.comparison),
        "values": dict(found.values),
        "failed": dict(found.failed),
        "latency_ms": found.latency_ms,
        "prompt_tokens": found.prompt_tokens,
        "spans": None if found.spans is None else asdict(found.spans),
        "n_chunks": found.n_chunks,
    }


def _refuse_own_knobs(request: SearchRequest, wanted: Swept) -> None:
    """A section of the settings does not reach a knob that the column sets itself."""
    own = [name for c in request.columns if c.name == wanted.column for name, _ in c.knobs]
    shared = [name for name in own if name in wanted.space.names]
    if shared:
        raise UsageError(
            f"The column {wanted.column!r} sets {shared[0]} itself: --apply cannot change it.",
            "Leave --apply out, and change the knobs of that column below [[columns]].",
        )


def _apply(result: SweepResult, folder: Path) -> None:
    """Write the best setting down, unless it is the present one or would not be accepted."""
    best = result.settings[result.best if result.best is not None else 0]
    if best.is_present:
        note("the settings in force are the best of those tried: nothing was written")
        return
    knobs = dict(best.setting.knobs)
    load_settings(folder, {n: "off" if value is None else value for n, value in knobs.items()})
    path = (folder if folder.is_dir() else folder.parent) / PROJECT_FILE
    for line in write_settings(path, knobs):
        note(f"{path}: {line}")


@contextmanager
def _telling() -> Iterator[Callable[[SweepProgress], None]]:
    """A progress line on stderr when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with console.status("") as status:

        def show(progress: SweepProgress) -> None:
            part = f" {progress.part_done:,}/{progress.part_total:,}" * bool(progress.part_total)
            status.update(
                f"{progress.done:,}/{progress.total:,} settings · {progress.phase}{part} "
                f"{display(progress.setting)}"
            )

        yield show
