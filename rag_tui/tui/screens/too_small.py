"""What is shown while the terminal is smaller than the app can use."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget

from rag_tui.tui import format as fmt


class SizeNotice(Widget):
    """One plain line, cut to the width."""

    DEFAULT_CSS = "SizeNotice { width: 1fr; height: 1fr; }"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def render(self) -> Content:
        """The line."""
        return fmt.content(fmt.clip(self._text, max(0, self.size.width)))


class TooSmallScreen(ModalScreen[None]):
    """Opaque, so that nothing beneath is laid out; focus and selection stay with what is beneath.

    A modal screen also keeps the app's keys away: nothing happens that cannot be seen.
    """

    DEFAULT_CSS = "TooSmallScreen { background: $background; }"

    def __init__(self, width: int, height: int) -> None:
        super().__init__(classes="-too-small")
        self._least = (width, height)
        self._needed = f"terminal too small: {width}x{height} needed"

    def on_screen_resume(self) -> None:
        """Something lay above the notice; the terminal may have grown meanwhile."""
        width, height = self._least
        if self.app.size.width >= width and self.app.size.height >= height:
            self.dismiss()

    def compose(self) -> ComposeResult:
        """The notice."""
        yield SizeNotice(self._needed)
