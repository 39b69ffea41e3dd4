"""What the last turn of a knob moved: the lists before it, and how rows stand against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_tui.engine.knobs import column_request, differing_knobs
from rag_tui.engine.movement import Move, Movement, movement
from rag_tui.engine.types import SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.tui.results import Results

_ARROWS = str.maketrans({"▲": "↑", "▼": "↓", "═": ""})
"""The reranker's arrows mean something else: by how much it moved a row of another list."""


@dataclass(frozen=True, slots=True)
class Before:
    """The lists as they were when the knobs were turned."""

    query: str
    where: str
    index: Index
    ids: Mapping[str, tuple[str, ...]]
    """Column, by its name now, to its last finished list: chunk ids by rank."""
    turned: frozenset[str]
    """Columns whose pipeline has other knobs now; only these can have moved by it."""


def lists_before(
    results: Results, before: SearchRequest, now: SearchRequest, earlier: Before | None
) -> Before:
    """What lists that come with the new knobs are compared with.

    Args:
        results: The search that is on screen, finished or not.
        before: The knobs and columns it was made with.
        now: Those from now on.
        earlier: The lists before the turn before this one, for columns that were not done yet.
    """
    is_same = earlier is not None and _belongs(earlier, results)
    ids: dict[str, tuple[str, ...]] = {}
    turned = set()
    old_columns = {column.name: column for column in before.columns}
    for name, old_name in old_names(before, now).items():
        ranking = results.rankings.get(old_name)
        if ranking is not None and ranking.n_waiting == 0:
            ids[name] = tuple(hit.chunk_id for hit in ranking.hits)
        elif is_same and earlier is not None and old_name in earlier.ids:
            ids[name] = earlier.ids[old_name]
        column = next(one for one in now.columns if one.name == name)
        own, old = column_request(now, column), column_request(before, old_columns[old_name])
        if differing_knobs(own, old):
            turned.add(name)
    return Before(
        results.request.query, results.request.where, results.index, ids, frozenset(turned)
    )


def old_names(before: SearchRequest, now: SearchRequest) -> dict[str, str]:
    """Name of a column now to its name before; new columns are absent.

    A column is known by its name, or where that is new by its place and method.
    """
    old = {column.name: column for column in before.columns}
    new = {column.name for column in now.columns}
    found = {}
    for place, column in enumerate(now.columns):
        if column.name in old:
            if old[column.name].method == column.method:
                found[column.name] = column.name
        elif len(now.columns) == len(before.columns):
            there = before.columns[place]
            if there.method == column.method and there.name not in new:
                found[column.name] = there.name
    return found


def column_movement(before: Before | None, column: str, results: Results) -> Movement | None:
    """What moved in a list; None where nothing was turned or the list is not finished."""
    ranking = results.rankings.get(column)
    if before is None or ranking is None or ranking.n_waiting or not _belongs(before, results):
        return None
    if column not in before.turned or column not in before.ids:
        return None
    ids = [hit.chunk_id for hit in ranking.hits]
    return movement(before.ids[column], ids, rows=results.request_of(column).top_k)


def arrows(found: Movement | None) -> dict[str, str]:
    """Chunk id to ``↑2``, ``↓1`` or ``+new``; rows that stay where they are have none."""
    if found is None:
        return {}
    return {move.chunk_id: text for move in found.rows if (text := arrow(move))}


def arrow(move: Move) -> str:
    """How a row moved; empty when it did not."""
    return "+new" if move.rank_before is None else move.arrow.translate(_ARROWS)


def summaries(found: Movement | None) -> tuple[str, ...]:
    """What moved in words, the longest first: ``2 in, 2 out · RBO .81``, ``2 in, 2 out``."""
    if found is None:
        return ()
    counts, comma, alike = found.summary.rpartition(", RBO 0")
    return (f"{counts} · RBO {alike}", counts) if comma else (found.summary,)


def _belongs(before: Before, results: Results) -> bool:
    """Whether the lists are of the same question to the same index."""
    asked = results.request
    return (
        results.index is before.index
        and asked.query == before.query
        and asked.where == before.where
    )
