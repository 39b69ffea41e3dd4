"""What to judge next: the best rows of all columns in one pile that does not tell whose each is."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.types import ColumnRun, Retrieved


@dataclass(frozen=True, slots=True)
class PoolItem:
    """One passage to judge for one question; neither column, rank nor score is kept."""

    qid: str
    chunk_id: str
    document: str
    start: int
    end: int
    """Character offsets into the document's text, end-exclusive; 0, 0: unknown."""


def pool(columns: Sequence[ColumnRun], k: int, *, seed: int = 0) -> tuple[PoolItem, ...]:
    """The union of the first k rows of every column, question by question, shuffled within one.

    Pooling after Spärck Jones and van Rijsbergen 1975, as TREC does it. Questions come in the
    order of the first column that has them. The order within a question depends on the seed, the
    question and the passages alone, not on the columns, so it gives nothing away.

    Raises:
        UsageError: When k is below 1.
    """
    rows: dict[str, list[Sequence[Retrieved]]] = {}
    for column in columns:
        for run in column.questions:
            rows.setdefault(run.qid, []).append(() if run.error else run.rows)
    return pool_lists(rows, k, seed=seed)


def pool_lists(
    lists: Mapping[str, Iterable[Sequence[Retrieved]]], k: int, *, seed: int = 0
) -> tuple[PoolItem, ...]:
    """`pool` of plain lists: by question id, each column's rows by rank.

    Raises:
        UsageError: When k is below 1.
    """
    if k < 1:
        raise UsageError(f"a pool needs at least 1 row of each list (got {k})", "Ask for 10.")
    pooled: list[PoolItem] = []
    for qid, columns in lists.items():
        items = {
            PoolItem(qid, row.chunk_id, row.document, row.start, row.end)
            for rows in columns
            for row in rows[:k]
        }
        ordered = sorted(items, key=lambda i: (i.document, i.start, i.end, i.chunk_id))
        random.Random(f"{seed}\0{qid}").shuffle(ordered)  # noqa: S311 - an order, no secret
        pooled.extend(ordered)
    return tuple(pooled)
