"""Knobs as they are shown, turned and typed, and what columns are called after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import (
    KNOBS,
    SPECS,
    column_request,
    differing_knobs,
    knob,
    with_knobs,
)
from rag_tui.engine.types import Column, KnobValue, SearchRequest

OFF = "off"

SECTIONS: dict[str, tuple[str, ...]] = {
    "search": ("search.top_k", "search.depth", "search.embedder"),
    "fusion": ("search.fusion", "search.rrf_k", "search.weight_vector", "search.weight_bm25"),
    "reranking": (
        "search.rerank",
        "search.rerank_depth",
        "search.rerank_from",
        "search.reranker",
        "search.rerank_scale",
    ),
    "bm25": tuple(spec.name for spec in KNOBS if spec.name.startswith("bm25.")),
    "after ranking": tuple(spec.name for spec in KNOBS if spec.name.startswith("post.")),
}
"""All knobs, in the groups and the order of the panel."""

_STEPS: dict[str, float] = {
    "search.depth": 10,
    "search.rrf_k": 10,
    "search.weight_vector": 0.1,
    "search.weight_bm25": 0.1,
    "search.rerank_depth": 5,
    "bm25.k1": 0.1,
    "bm25.b": 0.05,
    "bm25.delta": 0.1,
    "bm25.epsilon": 0.05,
    "post.min_vector": 0.05,
    "post.min_bm25": 0.5,
    "post.min_reranked": 0.5,
    "post.mmr": 0.1,
}
"""What one turn adds; 1 for the rest. A step of a threshold suits the scores of its list."""

_STARTS: dict[str, float] = {"post.mmr": 0.7, "bm25.delta": 0.5}
"""Where a knob begins that was off; 0 for the rest."""

_MOST: dict[str, float] = {
    "search.top_k": 1_000,
    "search.depth": 10_000,
    "search.rerank_depth": 1_000,
    "post.neighbours": 20,
}
"""More than these could be searched but not be looked at."""

_CYCLES: dict[str, tuple[str, ...]] = {"bm25.analyzer": ("words", "english", "code", "cjk")}
"""Values of knobs with a text that can be gone through; other ones are typed."""

_EMPTY: dict[str, str] = {"search.embedder": "the index's", "search.reranker": "the setting's"}
"""What an empty text means."""


def shown(name: str, value: KnobValue) -> str:
    """A knob's value as text; foreign when it is one."""
    if value is None:
        return OFF
    if isinstance(value, bool):
        return "on" if value else OFF
    if isinstance(value, str):
        return value or _EMPTY.get(name, "")
    return f"{value:g}" if isinstance(value, float) else str(value)


def is_typed_only(name: str) -> bool:
    """Whether there is nothing to go through with the arrows."""
    return SPECS[name].type == "text" and name not in _CYCLES


def turned(request: SearchRequest, name: str, direction: int) -> KnobValue:
    """The value one step further; it stops at its ends, or is off there if it may be."""
    spec, value = SPECS[name], knob(request, name)
    if spec.type == "switch":
        return not value
    if spec.type in ("choice", "text"):
        choices = spec.choices or _CYCLES.get(name, ())
        if not choices:
            return value
        place = choices.index(str(value)) if value in choices else -1
        return choices[(place + direction) % len(choices)]
    if value is None:
        return _STARTS.get(name, 0.0)
    moved = round(float(value) + direction * _step(request, name), 6)
    most = min(_MOST.get(name, inf), inf if spec.most is None else spec.most)
    least = -inf if spec.least is None else spec.least
    if spec.may_be_off and not least <= moved <= most:
        return None
    return spec.checked(min(max(moved, least), most))


def typed(name: str, text: str) -> KnobValue:
    """A value that was typed.

    Raises:
        UsageError: When it is no value for this knob.
    """
    text = text.strip()
    if text == _EMPTY.get(name):
        return ""
    value = SPECS[name].checked(text)
    most = _MOST.get(name)
    if most is not None and isinstance(value, int | float) and value > most:
        raise UsageError(f"{name} must be {most:,g} or less here (got {text!r})")
    return value


def with_value(request: SearchRequest, name: str, value: KnobValue) -> SearchRequest:
    """The request with a knob set; depth and top_k make room for each other."""
    return with_knobs(request, {name: value, **_room(request, name, value)})


def with_column_value(
    request: SearchRequest, column: Column, name: str, value: KnobValue
) -> tuple[SearchRequest, str]:
    """The request with a knob of one column set, and what that column is called then.

    A value that all columns have anyway is no difference, so the column follows them again.
    """
    values = {name: value, **_room(column_request(request, column), name, value)}
    own = {**dict(column.knobs), **values}
    kept = {key: one for key, one in own.items() if one != knob(request, key)}
    changed = renamed(column, kept, [c.name for c in request.columns])
    columns = tuple(changed if one == column else one for one in request.columns)
    return replace(request, columns=columns), changed.name


def with_columns(request: SearchRequest, columns: tuple[Column, ...]) -> SearchRequest:
    """The request with other columns."""
    return replace(request, columns=columns)


def renamed(column: Column, knobs: Mapping[str, KnobValue], taken: Iterable[str]) -> Column:
    """The column with other knobs; a name that only told the old ones tells the new ones."""
    ordered = tuple((spec.name, knobs[spec.name]) for spec in KNOBS if spec.name in knobs)
    name = column.name
    if _is_telling(column):
        others = [one for one in taken if one != column.name]
        name = free_name(telling_name(column.method, dict(ordered)), others)
    return Column(name, column.method, ordered)


def telling_name(method: str, knobs: Mapping[str, KnobValue]) -> str:
    """``bm25 k1=0.9``: the method and its own knobs."""
    told = (f"{SPECS[name].field}={_short(name, value)}" for name, value in knobs.items())
    return " ".join([method, *told])


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of ``name 2``, ``name 3``… that no other column has."""
    others = set(taken)
    if name not in others:
        return name
    n = 2
    while f"{name} {n}" in others:
        n += 1
    return f"{name} {n}"


def copy_name(name: str, taken: Sequence[str]) -> str:
    """The name of another copy: after ``bm25 2``, itself a copy of ``bm25``, comes ``bm25 3``."""
    root, _, number = name.rpartition(" ")
    return free_name(root if root in taken and number.isdigit() else name, taken)


def column_knobs(column: Column) -> str:
    """The knobs in which a column differs, as text; foreign text may be in it."""
    return ", ".join(f"{SPECS[name].field} {shown(name, value)}" for name, value in column.knobs)


def told_change(before: SearchRequest, now: SearchRequest) -> str:
    """What is different now: ``bm25.k1 1.5 → 1.6; columns: vector, bm25``. Foreign text."""
    old = differing_knobs(before, now)
    parts = [
        f"{name} {shown(name, value)} → {shown(name, knob(now, name))}"
        for name, value in old.items()
    ]
    if before.columns != now.columns:
        parts.append(f"columns: {', '.join(column.name for column in now.columns)}")
    return "; ".join(parts)


def idle_reason(request: SearchRequest, name: str) -> str:
    """Why a knob changes nothing at present; empty when it does."""
    fusion, variant = request.fusion, request.bm25.variant
    if name == "search.rrf_k" and fusion != "rrf":
        return f"no effect: fusion is {fusion}"
    if name.startswith("search.rerank") and name != "search.rerank" and not request.rerank:
        return "no effect: reranking is off"
    if name == "bm25.epsilon" and variant != "okapi":
        return f"no effect: the variant is {variant}"
    if name == "bm25.delta" and variant not in ("bm25l", "bm25plus"):
        return f"no effect: the variant is {variant}"
    return ""


def own_elsewhere(request: SearchRequest, name: str) -> tuple[str, ...]:
    """The columns that have their own value of a knob, which a general one does not move."""
    return tuple(c.name for c in request.columns if name in dict(c.knobs))


def _step(request: SearchRequest, name: str) -> float:
    if name == "post.min_hybrid":
        return 0.002 if request.fusion == "rrf" else 0.05
    if name == "post.min_reranked" and request.rerank_scale == "sigmoid":
        return 0.05
    return _STEPS.get(name, 1)


def _room(request: SearchRequest, name: str, value: KnobValue) -> dict[str, KnobValue]:
    """What must move with a knob: no more rows are shown than candidates are fetched."""
    if isinstance(value, int):
        if name == "search.top_k" and value > request.depth:
            return {"search.depth": value}
        if name == "search.depth" and value < request.top_k:
            return {"search.top_k": value}
    return {}


def _is_telling(column: Column) -> bool:
    name = telling_name(column.method, dict(column.knobs))
    rest = column.name.removeprefix(name)
    return column.name.startswith(name) and (not rest or rest.strip().isdigit())


def _short(name: str, value: KnobValue) -> str:
    text = shown(name, value)
    return text.rstrip("/").rsplit("/", 1)[-1] if SPECS[name].type == "text" else text
