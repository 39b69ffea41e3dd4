"""A list drawn line by line: its cost depends on the lines in view, not on its length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rag_tui.tui import format as fmt

Cell = tuple[str, str]
"""Displayed text and the component class that styles it; an empty class for none."""

CURSOR = "❯ "


class VirtualList(ScrollView, can_focus=True):
    """One-line rows behind a cursor. Subclasses say how many rows there are and what a row holds.

    The cursor is the 0-based number of a row, -1 while there are none. It is marked by a symbol as
    well as by colour.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "virtual-list--cursor",
        "virtual-list--dim",
        "virtual-list--strong",
        "virtual-list--warning",
    }

    DEFAULT_CSS = """
    VirtualList {
        height: 1fr;
        min-width: 4;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        & > .virtual-list--cursor { background: $panel; }
        & > .virtual-list--dim { color: $text-muted; }
        & > .virtual-list--strong { text-style: bold; }
        & > .virtual-list--warning { color: $text-warning; }
        &:focus > .virtual-list--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: bold;
        }
    }
    """

    # The ids are those of the result lists: remapping a key there remaps it here.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "cursor_by(1)", "Next row", show=False, id="list.down"),
        Binding("up,k", "cursor_by(-1)", "Previous row", show=False, id="list.up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("home,g", "cursor_to(0)", "First row", show=False, id="list.first"),
        Binding("end,G", "cursor_to(-1)", "Last row", show=False, id="list.last"),
        Binding("enter", "select", "Open", show=False, id="list.open"),
    ]
    BINDING_GROUP_TITLE = "List"

    cursor: var[int] = var(-1)
    n_rows: var[int] = var(0)

    @dataclass
    class CursorMoved(Message):
        """The cursor stands on another row."""

        list: VirtualList
        row: int

        @property
        def control(self) -> VirtualList:
            """The list itself."""
            return self.list

    @dataclass
    class RowChosen(Message):
        """A row was opened with enter or a double click."""

        list: VirtualList
        row: int

        @property
        def control(self) -> VirtualList:
            """The list itself."""
            return self.list

    empty_note: str = ""
    """Shown in place of rows while there are none."""

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """The cells of one row, at most ``width`` terminal cells in all; more is cut off."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """The strip of one line of the viewport."""
        width = self.scrollable_content_region.width
        row = y + round(self.scroll_y)
        base = self.rich_style
        if width <= 0:
            return Strip.blank(0)
        if not 0 <= row < self.n_rows:
            note = self.empty_note if row == 0 and not self.n_rows else ""
            dim = base + self._style_of("virtual-list--dim")
            return Strip([Segment(fmt.fit(note, width), dim if note else base)], width)
        at_cursor = row == self.cursor
        over = self._style_of("virtual-list--cursor") if at_cursor else Style.null()
        segments = [Segment(CURSOR if at_cursor else "  ", base + over)]
        for text, component in self.draw_row(row, max(0, width - len(CURSOR))):
            style = base + self._style_of(component) if component else base
            segments.append(Segment(text, style + over))
        used = sum(cell_len(segment.text) for segment in segments)
        return Strip(segments, used).adjust_cell_length(width, base + over)

    def watch_n_rows(self) -> None:
        """Make the scrollable height that of the rows."""
        self._measure()

    def validate_cursor(self, cursor: int) -> int:
        """Keep the cursor on an existing row; -1 only while there are none."""
        return max(0, min(cursor, self.n_rows - 1)) if self.n_rows else -1

    def watch_cursor(self, old: int, new: int) -> None:
        """Show the row and tell the parent."""
        self._refresh_row(old)
        self._refresh_row(new)
        if new >= 0:
            self._scroll_to_row(new)
            self.post_message(self.CursorMoved(self, new))

    def on_resize(self) -> None:
        """Keep the row of the cursor in view."""
        self._measure()
        # The cursor may have moved on by the time the new size is in force.
        self.call_after_refresh(self._scroll_to_cursor)

    async def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; a second click opens it."""
        row = event.y + round(self.scroll_y)
        if 0 <= row < self.n_rows:
            self.cursor = row
            if event.chain == 2:
                self.post_message(self.RowChosen(self, row))

    def action_cursor_by(self, rows: int) -> None:
        """Move the cursor by some rows."""
        self.cursor += rows

    def action_cursor_to(self, row: int) -> None:
        """Move the cursor to a row; -1 is the last."""
        self.cursor = row if row >= 0 else self.n_rows - 1

    def action_page(self, pages: int) -> None:
        """Move the cursor by whole views."""
        self.cursor += pages * max(1, self.scrollable_content_region.height - 1)

    def action_select(self) -> None:
        """Open the row of the cursor."""
        if self.cursor >= 0:
            self.post_message(self.RowChosen(self, self.cursor))

    def set_n_rows(self, n_rows: int, *, cursor: int = 0) -> None:
        """Say that the rows are others now, and where the cursor stands among them."""
        before = self.cursor
        self.n_rows = n_rows
        self._measure()
        self.cursor = cursor
        if self.cursor == before and before >= 0:
            # The same place holds another row: whoever follows the cursor must hear of it.
            self._scroll_to_row(before)
            self.post_message(self.CursorMoved(self, before))
        self.refresh()

    def _measure(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.n_rows)

    def _style_of(self, component: str) -> Style:
        return self.get_component_rich_style(component, partial=True)

    def _refresh_row(self, row: int) -> None:
        if row >= 0:
            self.refresh_line(row)

    def _scroll_to_cursor(self) -> None:
        if self.cursor >= 0:
            self._scroll_to_row(self.cursor)

    def _scroll_to_row(self, row: int) -> None:
        height = self.scrollable_content_region.height
        top = round(self.scroll_y)
        if height <= 0 or top <= row < top + height:
            return
        self.scroll_to(y=row if row < top else row - height + 1, animate=False, force=True)
