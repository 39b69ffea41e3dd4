"""Everything to keep in mind about an evaluation, as text that scrolls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

READ = 4_000
"""So many characters of a remark are shown at most."""


class RemarkList(VirtualList):
    """Titles and remarks, wrapped to the width."""

    BINDING_GROUP_TITLE = "Remarks"

    def __init__(self, remarks: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        super().__init__(id="remarks")
        self._remarks = tuple(remarks)
        self._lines: list[tuple[str, bool]] = []
        self.empty_note = "Nothing to remark: every label was found and every list was made."

    def on_resize(self) -> None:
        """Wrap to the new width."""
        from rich.text import Text

        width = max(8, self.scrollable_content_region.width - 4)
        self._lines = []
        for title, lines in self._remarks:
            self._lines.append((f"{title} ({len(lines):,})", True))
            for line in lines:
                shown = Text(fmt.one_line(line[:READ]))
                wrapped = shown.wrap(self.app.console, width)
                self._lines += [
                    (("· " if i == 0 else "  ") + part.plain.rstrip(), False)
                    for i, part in enumerate(wrapped)
                ]
        self.set_n_rows(len(self._lines), cursor=max(0, self.cursor))
        super().on_resize()

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One line."""
        text, is_title = self._lines[row]
        yield fmt.clip(text, width), "virtual-list--strong" if is_title else ""


class RemarksScreen(ModalScreen[None]):
    """Unresolved labels, problems of the file, failures, bounds, noise."""

    DEFAULT_CSS = """
    RemarksScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: 90%; max-width: 140; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i", "close", "Close", id="remarks.close"),
    ]

    def __init__(self, remarks: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        super().__init__()
        self._list = RemarkList(remarks)

    def compose(self) -> ComposeResult:
        """The list in a frame."""
        with Vertical() as frame:
            frame.border_title = "What to keep in mind"
            frame.border_subtitle = "esc: close"
            yield self._list

    def action_close(self) -> None:
        """Close."""
        if self.is_current:
            self.dismiss()
