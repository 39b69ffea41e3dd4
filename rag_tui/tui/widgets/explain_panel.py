"""Why the selected chunk stands where it stands, with the arithmetic of each method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from rag_tui.tui import format as fmt

if TYPE_CHECKING:
    from rag_tui.tui.close_reading import Reading, SentenceTable
    from rag_tui.tui.widgets.explain_text import Explained


class ExplainPanel(VerticalScroll, can_focus=True):
    """One paragraph a method, and the sentences where they were asked for."""

    BINDING_GROUP_TITLE = "Explanation"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Scroll down", show=False, id="view.down"),
        Binding("k", "scroll_up", "Scroll up", show=False, id="view.up"),
        Binding("g", "scroll_home", "To the start", show=False, id="view.first"),
        Binding("G", "scroll_end", "To the end", show=False, id="view.last"),
    ]
    DEFAULT_CSS = """
    ExplainPanel { min-width: 4; & > Static { width: 1fr; min-width: 4; height: auto; } }
    """

    def __init__(self) -> None:
        super().__init__(id="explain-panel")
        self._body = Static("", markup=False)
        self._shown: Explained | None = None

    def compose(self) -> ComposeResult:
        """The text."""
        yield self._body

    @property
    def text(self) -> str:
        """What is shown."""
        return str(self._body.content)

    @property
    def chunk_id(self) -> str:
        """The chunk that is explained; empty when there is none."""
        return self._shown.chunk.chunk_id if self._shown is not None else ""

    def clear(self, message: str) -> None:
        """Show no explanation, and why."""
        self._shown = None
        self._body.update(fmt.content(message, newlines=True))

    def show(self, explained: Explained) -> None:
        """Show an explanation; the view stays where it is while it is about the same chunk."""
        is_same = self.chunk_id == explained.chunk.chunk_id
        self._shown = explained
        self._draw()
        if not is_same:
            self.scroll_home(animate=False)

    def show_reading(self, reading: Reading) -> None:
        """Add what the models see in the chunk, if it is still the one on show."""
        if self._shown is not None and self.chunk_id == reading.chunk_id:
            self._shown = replace(self._shown, reading=reading)
            self._draw()

    def show_sentences(self, chunk_id: str, table: SentenceTable | None, told: str = "") -> None:
        """Add the scores of the sentences, or what is to be said of them; both empty: neither."""
        if self._shown is None or self.chunk_id != chunk_id:
            return
        self._shown = replace(self._shown, table=table, is_told=told)
        self._draw()
        self.scroll_home(animate=False)

    def on_resize(self, event: events.Resize) -> None:
        """Columns follow the width."""
        if self._shown is not None:
            self._draw()

    def _draw(self) -> None:
        from rag_tui.tui.widgets.explain_text import lines_of

        if self._shown is not None:
            width = self._body.size.width or self.size.width
            self._body.update(Content("\n").join(lines_of(self._shown, width)))
