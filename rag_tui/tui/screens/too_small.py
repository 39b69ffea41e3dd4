"""What is shown while the terminal is smaller than the app can use."""

from __future__ import annotations

from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget

from rag_tui.tui import format as fmt

MIN_WIDTH = 40
MIN_HEIGHT = 10


class SizeNotice(Widget):
    """One plain line, cut to the width."""

    DEFAULT_CSS = "SizeNotice { width: 1fr; height: 1fr; }"

    def render(self) -> Content:
        """The line."""
        needed = f"terminal too small: {MIN_WIDTH}x{MIN_HEIGHT} needed"
        return fmt.content(fmt.clip(needed, max(0, self.size.width)))


class TooSmallScreen(ModalScreen[None]):
    """Opaque, so that nothing beneath is laid out; focus and selection stay with what is beneath.

    A modal screen also keeps the app's keys away: nothing happens that cannot be seen.
    """

    DEFAULT_CSS = "TooSmallScreen { background: $background; }"

    def compose(self) -> list[Widget]:
        """The notice."""
        return [SizeNotice()]


def is_too_small(width: int, height: int) -> bool:
    """Whether the app cannot be used at this size."""
    return width < MIN_WIDTH or height < MIN_HEIGHT
