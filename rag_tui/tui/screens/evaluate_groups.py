"""Where the misses are: means by tag, by document of the evidence, by length of the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.engine.evaluation.score_table import Group, GroupKind, ScoreTable
from rag_tui.tui import format as fmt
from rag_tui.tui.evaluation_text import share
from rag_tui.tui.widgets.metrics_table import CellList
from rag_tui.tui.widgets.rank_matrix import filter_word
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

TITLES: Mapping[GroupKind, str] = {
    "tag": "by tag",
    "document": "by document of the evidence",
    "length": "by length of the question",
}
LEAST_CELL, MOST_CELL = 7, 14
FILTERED: Mapping[GroupKind, str] = {"tag": "tag", "document": "file"}
"""The word of the filter that shows a group's questions."""


class GroupList(CellList):
    """A line above each kind of group, then one line a group; the cells are columns."""

    BINDING_GROUP_TITLE = "Groups"

    def __init__(self, table: ScoreTable, measure: str) -> None:
        super().__init__("groups")
        self.table = table
        self.measure = measure
        self.rows: list[Group | GroupKind] = []
        for kind in TITLES:
            members = [group for group in table.groups if group.kind == kind]
            self.rows += [kind, *members] if members else []
        self.empty_note = "All questions are of one kind: there are no groups to compare."

    def on_mount(self) -> None:
        """Show the rows; the cursor stands on the first group."""
        self.n_cells = len(self.table.columns)
        self.set_n_rows(len(self.rows), cursor=1)

    def head_text(self, width: int) -> str:
        """Names of the columns."""
        text, cell = self._widths(width)
        names = (
            " " + fmt.fit(fmt.one_line(column.name[:200]), cell - 1)
            for column in self.table.columns
        )
        return fmt.fit(f"{self.measure}, mean", text) + f"{'n':>4} " + "".join(names)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """A kind, or a group with its means; the best of a row is marked."""
        one = self.rows[row]
        if not isinstance(one, Group):
            yield fmt.fit(TITLES[one], width), "virtual-list--dim"
            return
        text, cell = self._widths(width)
        yield "  " + fmt.fit(fmt.one_line(one.name[:500]), text - 2), "virtual-list--strong"
        yield f"{one.n:>4} ", "virtual-list--dim"
        place = self.table.measures.index(self.measure)
        means = [values[place] for values in one.means]
        best = max((mean for mean in means if mean is not None), default=None)
        for mean in means:
            shown = "–" if mean is None else share(mean)
            is_best = mean is not None and mean == best and len(set(means)) > 1
            mark = "*" if is_best else " "
            yield fmt.fit(f" {shown}{mark}", cell), "virtual-list--strong" if is_best else ""

    def _widths(self, width: int) -> tuple[int, int]:
        n = max(1, len(self.table.columns))
        cell = max(LEAST_CELL, min(MOST_CELL, width // 2 // n))
        return max(8, width - n * cell - 5), cell


class GroupsScreen(ModalScreen[str]):
    """Enter gives back the filter that shows a group's questions, escape nothing."""

    DEFAULT_CSS = """
    GroupsScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: 90%; max-width: 140; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & #group-note { height: auto; max-height: 3; min-width: 4; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "measure", "Next measure", id="groups.measure"),
        Binding("escape,q,t", "close", "Close", id="groups.close"),
    ]
    HELP = "Means of one measure over groups of questions; a group of few questions says little."

    def __init__(self, table: ScoreTable, measure: str) -> None:
        super().__init__()
        self._list = GroupList(table, measure)

    def compose(self) -> ComposeResult:
        """Titles, groups, what the marks mean."""
        with Vertical() as frame:
            frame.border_title = "Breakdown"
            frame.border_subtitle = "enter: show its questions   m: next measure   esc: close"
            yield self._list.head
            yield self._list
            yield Static(
                "* the best of a row. Few questions in a group: chance decides.",
                id="group-note",
                markup=False,
            )

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        one = self._list.rows[event.row]
        if not isinstance(one, Group) or not self.is_current:
            return
        word = FILTERED.get(one.kind)
        if word is None:
            self.notify("Questions cannot be filtered by length.", markup=False)
            return
        self.dismiss(filter_word(word, one.name))

    @on(VirtualList.CursorMoved)
    @on(CellList.CellMoved)
    def _stop(self, event: VirtualList.CursorMoved | CellList.CellMoved) -> None:
        event.stop()

    def action_measure(self) -> None:
        """Means of the next measure."""
        measures = self._list.table.measures
        here = measures.index(self._list.measure)
        self._list.measure = measures[(here + 1) % len(measures)]
        self._list.refresh()
        self._list.head.refresh()

    def action_close(self) -> None:
        """Close without a choice."""
        if self.is_current:
            self.dismiss()
