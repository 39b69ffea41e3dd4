"""The list of kept searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from rag_tui.tui import format as fmt
from rag_tui.tui.history_text import LONGEST, local_time, question_of, settings_of, top_of
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

if TYPE_CHECKING:
    from rag_tui.engine.history import HistoryEntry

TIME_WIDTH = 16
SHORT_TIME = 11
"""Cells of a time without its year, for narrow terminals."""
WITH_SETTINGS = 72
WITH_TOPS = 116
"""From these widths on, rows also say the settings and the first row found."""


class HistoryList(VirtualList):
    """Mark, time, question, settings, first row found."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Ask again", tooltip="With today's settings", id="list.open"),
    ]
    BINDING_GROUP_TITLE = "Searches"

    def __init__(self) -> None:
        super().__init__()
        self.entries: Sequence[HistoryEntry] = ()
        self.marked: HistoryEntry | None = None
        self.empty_note = "reading…"

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One search."""
        entry = self.entries[row]
        time = local_time(entry)
        time_width = TIME_WIDTH if width >= WITH_SETTINGS else SHORT_TIME
        yield ("● " if entry is self.marked else "  "), "virtual-list--warning"
        yield fmt.fit(time[-time_width:], time_width) + "  ", "virtual-list--dim"
        room = max(0, width - time_width - 4)
        question = fmt.one_line(question_of(entry)[:LONGEST])
        settings = fmt.one_line(settings_of(entry)[:LONGEST])
        if width < WITH_SETTINGS or (width < WITH_TOPS and not settings):
            yield fmt.clip(question, room), ""
            return
        shares = (50, 28) if width >= WITH_TOPS else (60, 100)
        n_question = room * shares[0] // 100
        n_settings = min(room * shares[1] // 100, room - n_question - 2)
        yield fmt.fit(question, n_question) + "  ", ""
        yield fmt.fit(settings, n_settings), "virtual-list--strong"
        if width >= WITH_TOPS:
            left = room - n_question - n_settings - 4
            yield "  " + fmt.clip(top_of(entry), left, keep_end=True), "virtual-list--dim"
