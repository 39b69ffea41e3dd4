"""A whole document with the borders of its chunks drawn on it, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rag_tui.tui import format as fmt
from rag_tui.tui.document_layout import DocumentLayout, Interval, Row

_MARGIN = 2
"""Rows kept above a border that is scrolled to, so that one sees where it comes from."""


class DocumentMap(ScrollView, can_focus=True):
    """Gutter with chunk numbers, a rule at each start; overlap shaded, unread text dimmed.

    The gutter says by symbol what the text says by colour: ``│`` one chunk, ``▒`` overlap, ``╎``
    not read by the model, ``·`` in no chunk, ``┃`` the chosen chunk.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "document-map--gutter",
        "document-map--rule",
        "document-map--warning",
        "document-map--overlap",
        "document-map--unread",
        "document-map--gap",
        "document-map--chosen",
        "document-map--chosen-rule",
    }

    DEFAULT_CSS = """
    DocumentMap {
        height: 1fr;
        min-width: 4;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        & > .document-map--gutter { color: $text-muted; }
        & > .document-map--rule { color: $text-muted; }
        & > .document-map--warning { color: $text-warning; text-style: bold; }
        & > .document-map--overlap { background: $primary 30%; }
        & > .document-map--unread { color: $text-disabled; text-style: dim; }
        & > .document-map--gap { color: $text-disabled; text-style: italic; }
        & > .document-map--chosen { background: $panel; }
        & > .document-map--chosen-rule { color: $text-primary; text-style: bold; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Scroll down", show=False, id="map.down"),
        Binding("k", "scroll_up", "Scroll up", show=False, id="map.up"),
        Binding("g", "scroll_home", "To the start", show=False, id="map.first"),
        Binding("G", "scroll_end", "To the end", show=False, id="map.last"),
        Binding("right_square_bracket", "step(1)", "Next chunk", show=False, id="map.next_chunk"),
        Binding(
            "left_square_bracket", "step(-1)", "Chunk before", show=False, id="map.previous_chunk"
        ),
    ]
    BINDING_GROUP_TITLE = "Document"

    @dataclass
    class Chosen(Message):
        """A chunk of the document was chosen by key or mouse."""

        document_map: DocumentMap
        piece: int
        """Its index among the layout's pieces."""

        @property
        def control(self) -> DocumentMap:
            """The map itself."""
            return self.document_map

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the name every Textual widget uses
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._layout_shown: DocumentLayout | None = None
        self._rows: list[Row] = []
        self._rule_of: list[int] = []
        self._width = -1
        self._digits = 1
        self._note = ""
        self._chosen = -1

    @property
    def chosen(self) -> int:
        """Index of the emphasised piece, -1 for none."""
        return self._chosen

    @property
    def shown(self) -> DocumentLayout | None:
        """What is drawn."""
        return self._layout_shown

    def show(self, layout: DocumentLayout | None, *, chosen: int = -1, note: str = "") -> None:
        """Draw a document, scrolled to the chosen piece.

        Args:
            layout: The document and its chunks; None for an empty pane.
            chosen: Index of the piece to emphasise, -1 for none.
            note: Shown while there is no document.
        """
        self._layout_shown = layout
        self._note = note
        pieces = layout.pieces if layout is not None else ()
        self._digits = len(str(max((piece.number for piece in pieces), default=1)))
        self._chosen = chosen
        self._width = -1
        self._rows, self._rule_of = [], []
        self._flow()

    def choose(self, piece: int) -> None:
        """Emphasise a piece and scroll to where it begins."""
        self._chosen = piece
        self.refresh()
        self._scroll_to_chosen()

    def render_line(self, y: int) -> Strip:
        """The strip of one line of the viewport."""
        width = self.scrollable_content_region.width
        base = self.rich_style
        if width <= 0:
            return Strip.blank(0)
        layout, row = self._layout_shown, y + round(self.scroll_y)
        if layout is None or not 0 <= row < len(self._rows):
            note = self._note if layout is None and row == 0 else ""
            return Strip([Segment(fmt.fit(note, width), base)], width)
        kind, start, end = self._rows[row]
        if kind == "text":
            segments = list(self._text_row(layout, start, end, base))
        else:
            segments = list(self._border_row(layout, self._rows[row], width, base))
        used = sum(cell_len(segment.text) for segment in segments)
        over = segments[-1].style if segments else base
        return Strip(segments, used).adjust_cell_length(width, over)

    def on_resize(self) -> None:
        """Wrap anew, keeping the text at the top in place."""
        self._flow()

    def on_click(self, event: events.Click) -> None:
        """Choose the chunk that was clicked."""
        row = event.y + round(self.scroll_y)
        layout = self._layout_shown
        if layout is None or not 0 <= row < len(self._rows):
            return
        kind, start, _ = self._rows[row]
        piece = layout.intervals[layout.first_interval(start)].owner if kind == "text" else start
        if kind != "gap" and piece >= 0:
            self._tell(piece)

    def action_step(self, by: int) -> None:
        """Choose the next chunk of the document, or the one before."""
        layout = self._layout_shown
        if layout is not None and layout.pieces:
            self._tell(max(0, min(self._chosen + by, len(layout.pieces) - 1)))

    def _tell(self, piece: int) -> None:
        self.choose(piece)
        self.post_message(self.Chosen(self, piece))

    @property
    def _gutter(self) -> int:
        return self._digits + 3

    def _flow(self) -> None:
        width = self.scrollable_content_region.width
        layout = self._layout_shown
        if width == self._width:
            return
        was_wrapped, top = self._width >= 0, self._offset_at(round(self.scroll_y))
        self._width = width
        self._rows, self._rule_of = (
            layout.rows(width - self._gutter) if layout is not None and width > 0 else ([], [])
        )
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()
        if was_wrapped and top is not None:
            self.call_after_refresh(self._scroll_to_offset, top)
        else:
            self._scroll_to_chosen()

    def _offset_at(self, row: int) -> int | None:
        for kind, start, _ in self._rows[row : row + 4]:
            if kind == "text":
                return start
        return None

    def _scroll_to_offset(self, offset: int) -> None:
        for row, (kind, start, _) in enumerate(self._rows):
            if kind == "text" and start >= offset:
                self.scroll_to(y=row, animate=False, force=True)
                return

    def _scroll_to_chosen(self) -> None:
        if 0 <= self._chosen < len(self._rule_of):
            row = max(0, self._rule_of[self._chosen] - _MARGIN)
            self.call_after_refresh(self.scroll_to, y=row, animate=False, force=True)
        elif self._layout_shown is not None:
            self.scroll_to(y=0, animate=False, force=True)

    def _is_chosen(self, layout: DocumentLayout, interval: Interval) -> bool:
        if not 0 <= self._chosen < len(layout.pieces):
            return False
        piece = layout.pieces[self._chosen]
        return piece.start <= interval.start < piece.end

    def _text_row(
        self, layout: DocumentLayout, start: int, end: int, base: Style
    ) -> Iterator[Segment]:
        at = layout.first_interval(start)
        yield self._gutter_of(layout, layout.intervals[at], base)
        while start < end:
            interval = layout.intervals[at]
            stop = min(end, interval.end)
            style = base
            if interval.owner < 0:
                style += self._style("gap")
            if self._is_chosen(layout, interval):
                style += self._style("chosen")
            if interval.is_shared:
                style += self._style("overlap")
            if interval.is_unread:
                style += self._style("unread")
            yield Segment(fmt.display(layout.text[start:stop]), style)
            start, at = stop, at + 1

    def _gutter_of(self, layout: DocumentLayout, interval: Interval, base: Style) -> Segment:
        chosen = self._is_chosen(layout, interval)
        if interval.owner < 0:
            number, mark = "", "·"
        else:
            number = str(layout.pieces[interval.owner].number)
            mark = "┃" if chosen else "│"
            if interval.is_unread:
                mark = "╎"
            elif interval.is_shared:
                mark = "▒"
        style = self._style("chosen-rule" if chosen else "gutter")
        return Segment(f"{number:>{self._digits}} {mark} ", base + style)

    def _border_row(
        self, layout: DocumentLayout, row: Row, width: int, base: Style
    ) -> Iterator[Segment]:
        kind, i, _ = row
        room = max(0, width - self._gutter)
        if kind == "gap":
            reason = layout.gaps[i].reason
            blank = " " * (self._digits + 1)
            yield Segment(f"{blank}· ", base + self._style("gutter"))
            yield Segment(fmt.clip(f"in no chunk: {reason}", room), base + self._style("warning"))
            return
        piece = layout.pieces[i]
        if kind == "unread":
            yield Segment(f"{piece.number:>{self._digits}} ╎ ", base + self._style("gutter"))
            n = fmt.count(piece.n_unread, "token") if piece.n_unread else "the rest"
            yield Segment(fmt.clip(f"… {n} not read", room), base + self._style("warning"))
            return
        chosen = i == self._chosen
        style = base + self._style("chosen-rule" if chosen else "rule")
        line, corner = ("━", "┏") if chosen else ("─", "┌")
        words = [] if piece.n_tokens is None else [fmt.count(piece.n_tokens, "token")]
        if i and (n_shared := layout.pieces[i - 1].end - piece.start) > 0:
            shared = fmt.count(n_shared, "character")
            words.append(f"{shared} shared with {layout.pieces[i - 1].number}")
        if piece.label:
            words.append(fmt.one_line(piece.label))
        text = fmt.clip(" · ".join(words), max(0, room - 2))
        head = f"{piece.number:>{self._digits}} {corner}{line} "
        yield Segment(head, style)
        yield Segment(f"{text} " if text else "", style)
        left = width - cell_len(head) - (cell_len(text) + 1 if text else 0)
        yield Segment(line * max(0, left), style)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"document-map--{name}", partial=True)
