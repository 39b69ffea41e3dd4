"""The claims of an answer with their verdicts, and the passages it quotes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

if TYPE_CHECKING:
    from rag_tui.tui.answer_text import Evidence


class ClaimsView(VirtualList):
    """One line a claim: ``✓`` supported, ``~`` weak, ``✗`` unsupported, ``⚠`` a figure missing."""

    BINDING_GROUP_TITLE = "Claims"

    def __init__(self) -> None:
        super().__init__(id="claims")
        self.rows: tuple[Evidence, ...] = ()

    def show(self, rows: tuple[Evidence, ...]) -> None:
        """Show these; nobody is told of the cursor's first place."""
        self.rows = rows
        with self.prevent(VirtualList.CursorMoved):
            self.set_n_rows(len(rows))
        self.display = bool(rows)

    @property
    def row(self) -> Evidence | None:
        """The one under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Mark and claim."""
        one = self.rows[row]
        is_bad = one.mark[0] != "✓" and one.mark[0] != "❝"
        yield f"{one.mark} ", "virtual-list--warning" if is_bad else "virtual-list--strong"
        yield fmt.clip(fmt.one_line(one.text), max(0, width - 3)), ""
