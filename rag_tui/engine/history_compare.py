"""What changed between two searches that were kept: "what is different since yesterday?"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_tui.engine.history_entries import N_ROWS, HistoryColumn, HistoryEntry
from rag_tui.engine.knobs import SPECS, knob
from rag_tui.engine.movement import Movement, movement
from rag_tui.engine.types import KnobValue, SearchRequest


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column of two searches."""

    name: str
    movement: Movement | None
    """None when only one of the searches has a list of this name."""
    score_changed: bool = False
    """Whether a chunk that both lists hold has another score."""


@dataclass(frozen=True, slots=True)
class EntryComparison:
    """What changed from one search to another."""

    columns: tuple[ColumnChange, ...]
    knobs: Mapping[str, tuple[KnobValue, KnobValue]]
    """Knobs that differ: the first search's value and the second's."""
    is_same_query: bool
    is_same_index: bool
    is_same_settings: bool

    @property
    def summary(self) -> str:
        """``settings differ; index changed`` … or ``same question, settings and index``."""
        told = [
            word
            for is_same, word in (
                (self.is_same_query, "another question"),
                (self.is_same_settings, "settings differ"),
                (self.is_same_index, "the index changed"),
            )
            if not is_same
        ]
        return "; ".join(told) or "same question, settings and index"


def compare_entries(a: HistoryEntry, b: HistoryEntry) -> EntryComparison:
    """What changed from search ``a`` to search ``b``, column by column of the same name.

    Movements are of the rows that both keep: the first of each list, as many as the shorter of
    two lists that were cut has.
    """
    before = {column.name: column for column in a.columns}
    now = {column.name: column for column in b.columns}
    changes = [
        _column_change(name, before.get(name), now.get(name))
        for name in dict.fromkeys(before | now)
    ]
    values = {name: (_value(a, name), _value(b, name)) for name in (*a.knobs, *b.knobs)}
    return EntryComparison(
        columns=tuple(changes),
        knobs={name: pair for name, pair in values.items() if pair[0] != pair[1]},
        is_same_query=a.query == b.query,
        is_same_index=a.index_fingerprint == b.index_fingerprint,
        is_same_settings=a.knob_fingerprint == b.knob_fingerprint,
    )


def _column_change(
    name: str, before: HistoryColumn | None, now: HistoryColumn | None
) -> ColumnChange:
    if before is None or now is None or before.error or now.error:
        return ColumnChange(name, None)
    n_cut = [len(column.rows) for column in (before, now) if len(column.rows) >= N_ROWS]
    rows = min(n_cut, default=None)
    old = {row.chunk_id: row.score for row in before.rows}
    return ColumnChange(
        name,
        movement(
            [row.chunk_id for row in before.rows], [row.chunk_id for row in now.rows], rows=rows
        ),
        any(old.get(row.chunk_id, row.score) != row.score for row in now.rows),
    )


def _value(entry: HistoryEntry, name: str) -> KnobValue:
    """A knob of a search: the package's default where it was not set, None for an unknown one."""
    if name in entry.knobs:
        return entry.knobs[name]
    return knob(SearchRequest(""), name) if name in SPECS else None
