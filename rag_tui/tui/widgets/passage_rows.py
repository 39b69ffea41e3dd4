"""The parts of the dialog about a passage: its input, the columns, what brings it in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import events
from textual.widgets import Input

from rag_tui.display import without_hidden
from rag_tui.tui import format as fmt
from rag_tui.tui.passage_text import RemedyRow
from rag_tui.tui.widgets.virtual_list import CURSOR, Cell, VirtualList

if TYPE_CHECKING:
    from rag_tui.engine.passage_trace import ColumnTrace

WITH_SCORES = 34
"""Cells that must be left behind column and rank for rank and score over the whole corpus."""


class PassageInput(Input):
    """Takes all lines of what is pasted, and nothing that steers a terminal."""

    def validate_value(self, value: str) -> str:
        """An input draws its text as it is."""
        return without_hidden(value)

    def on_paste(self, event: events.Paste) -> None:
        """Take all lines, not the first one only."""
        self.replace(" ".join(event.text.split()), *self.selection)
        event.stop()
        event.prevent_default()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Whether a key is text; Textual does not find the character of ``slash``."""
        return key in ("slash", "full_stop") or super().check_consume_key(key, character)


class ColumnRows(VirtualList):
    """One row a column: where the passage stands there and over the whole corpus."""

    BINDING_GROUP_TITLE = "Columns"

    def __init__(self) -> None:
        super().__init__()
        self.id = "passage-columns"
        self.columns: tuple[ColumnTrace, ...] = ()

    def show(self, columns: tuple[ColumnTrace, ...]) -> None:
        """Replace the rows; the cursor stays on the same column."""
        name = self.columns[self.cursor].column if 0 <= self.cursor < len(self.columns) else ""
        self.columns = columns
        self.styles.height = max(1, len(columns))
        place = next((i for i, one in enumerate(columns) if one.column == name), -1)
        self.set_n_rows(len(columns), cursor=place if place >= 0 else _first_shown(columns))

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Mark, column, rank shown, rank and score over the corpus, what lost it."""
        one = self.columns[row]
        mark = "✓ " if one.verdict.is_present else "✗ "
        yield mark, "" if one.verdict.is_present else "virtual-list--warning"
        name_width = _name_width(width)
        yield fmt.fit(fmt.one_line(one.column), name_width) + " ", "virtual-list--strong"
        place = next((p for p in one.places if p.method == one.method), None)
        shown = f"rank {one.rank}" if one.rank is not None else "not listed"
        yield f"{shown:<11}", ""
        whole = "no rank"
        if place is not None and place.corpus_rank is not None:
            whole = f"{place.corpus_rank:,} of {place.n_ranked:,}"
        left = width - 2 - name_width - 1 - 11
        if left >= WITH_SCORES:
            score = fmt.score(one.score, one.score_kind) if one.score is not None else "–"
            yield f"{whole:<17} {score:>8}  ", "virtual-list--dim"
            left -= 28
        yield fmt.clip(one.verdict.step, max(0, left)), ""


class RemedyRows(VirtualList):
    """One row a change that was tried and brings the passage in."""

    BINDING_GROUP_TITLE = "What brings it in"

    def __init__(self) -> None:
        super().__init__()
        self.id = "passage-remedies"
        self.remedies: tuple[RemedyRow, ...] = ()

    def show(self, remedies: tuple[RemedyRow, ...], note: str) -> None:
        """Replace the rows, or say why there are none."""
        self.remedies = remedies
        self.empty_note = note
        self.styles.height = max(1, len(remedies))
        self.set_n_rows(len(remedies), cursor=0)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Column, change, outcome."""
        one = self.remedies[row]
        name_width = _name_width(width)
        yield fmt.fit(fmt.one_line(one.column or "cutting"), name_width) + " ", "virtual-list--dim"
        end = f"  ⇒ {one.outcome}"
        room = max(0, width - name_width - 1 - len(end))
        yield fmt.clip(one.change, max(room, 20)), "virtual-list--strong"
        yield end, ""


def column_titles(width: int) -> str:
    """What stands over the columns of `ColumnRows` in a list of this width."""
    inner = width - len(CURSOR)
    name_width = _name_width(inner)
    titles = f"{'':{len(CURSOR) + 2}}{'column':<{name_width}} {'shown':<11}"
    if inner - 2 - name_width - 1 - 11 >= WITH_SCORES:
        titles += f"{'whole corpus':<17} {'score':>8}  "
    return f"{titles}lost at"


def _name_width(width: int) -> int:
    return 12 if width >= 50 else 9


def _first_shown(columns: tuple[ColumnTrace, ...]) -> int:
    """The column that lost it, the one furthest in the pipeline; else the last."""
    lost = [i for i, one in enumerate(columns) if not one.verdict.is_present]
    return lost[-1] if lost else len(columns) - 1
