"""Text that grows while it is read: only its last piece is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from rag_tui.tui import format as fmt

PIECE = 1_000
"""Characters from which the next line is a widget of its own, and half of what one holds at most:
wrapping costs by the length of a widget, laying out by their number."""


SCROLLING: list[BindingType] = [
    Binding("j", "scroll_down", "Scroll down", show=False, id="view.down"),
    Binding("k", "scroll_up", "Scroll up", show=False, id="view.up"),
    Binding("g", "scroll_home", "To the start", show=False, id="view.first"),
    Binding("G", "scroll_end", "To the end", show=False, id="view.last"),
]
"""The keys of a text that scrolls: those of the chunk's text."""


@dataclass(slots=True)
class _Piece:
    start: int
    """Character offset in the whole text."""
    text: str
    widget: Static
    is_line_start: bool


class GrowingText(VerticalScroll, can_focus=True):
    """Drawn in linear time; stays at the end while it grows, unless someone scrolled up."""

    DEFAULT_CSS = """
    GrowingText {
        height: 1fr; min-height: 1; min-width: 4;
        & > Static { width: 1fr; min-width: 4; height: auto; }
    }
    """
    BINDINGS = SCROLLING
    BINDING_GROUP_TITLE = "Answer text"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.raw = ""
        """The text as it came."""
        self._pieces: list[_Piece] = []

    @property
    def shown(self) -> str:
        """What has been drawn, marks included."""
        parts: list[str] = []
        for place, piece in enumerate(self._pieces):
            if place and piece.is_line_start:
                parts.append("\n")
            parts.append(str(piece.widget.content))
        return "".join(parts)

    def clear(self) -> None:
        """Show nothing."""
        self.raw = ""
        self._pieces = []
        self.remove_children()

    def show(self, text: str) -> None:
        """Show the whole text so far; what is drawn of it already stays."""
        if not text.startswith(self.raw):
            self.clear()
        added = text[len(self.raw) :]
        self.raw = text
        if added:
            self._append(added)

    def annotate(self, render: Callable[[str, int], Content]) -> None:
        """Draw every piece anew by a function of its raw text and offset."""
        for piece in self._pieces:
            piece.widget.update(render(piece.text, piece.start))

    def _append(self, added: str) -> None:
        is_at_end = self.scroll_y >= self.max_scroll_y - 1
        n_drawn = len(self._pieces)
        if not self._pieces:
            self._open(0, is_line_start=True)
        first_changed = max(n_drawn - 1, 0)
        width = self._pieces[-1].widget.size.width
        shape = _shape(self._pieces[-1].text, width)
        self._extend(added)
        # Laying out the whole screen costs more than all else: only for another line.
        is_higher = len(self._pieces) > n_drawn or _shape(self._pieces[-1].text, width) != shape
        for piece in self._pieces[first_changed:]:
            shown = fmt.content(piece.text, newlines=True)
            piece.widget.update(shown, layout=is_higher)
        if new := [piece.widget for piece in self._pieces[n_drawn:]]:
            self.mount_all(new)
        if is_at_end and is_higher:
            self.scroll_end(animate=False)

    def _extend(self, added: str) -> None:
        last = self._pieces[-1]
        text = last.text + added
        while len(text) > PIECE:
            line_end = text.find("\n", PIECE, 2 * PIECE)
            if line_end >= 0:
                cut, resume = line_end, line_end + 1
            elif len(text) <= 2 * PIECE:
                break  # the line may yet end
            else:
                cut = resume = text.rfind(" ", PIECE, 2 * PIECE) + 1 or 2 * PIECE
            last.text, text = text[:cut], text[resume:]
            last = self._open(last.start + resume, is_line_start=resume > cut)
        last.text = text

    def _open(self, start: int, *, is_line_start: bool) -> _Piece:
        piece = _Piece(start, "", Static("", markup=False), is_line_start)
        self._pieces.append(piece)
        return piece


def _shape(text: str, width: int) -> tuple[int, int]:
    """What changes when a text that grows at its end takes another line.

    Its line breaks, and the lines that its last one is wrapped to; (0, 0) while the width is not
    known.
    """
    if width <= 0:
        return 0, 0
    last = text.rpartition("\n")[2]
    return text.count("\n"), len(fmt.content(last).wrap(width))
