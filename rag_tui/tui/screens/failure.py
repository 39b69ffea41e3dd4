"""A job failed in a way nobody expected: what happened, and where the details are."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.tui import format as fmt


class FailureScreen(ModalScreen[None]):
    """Title, message, hint; the text can be copied."""

    DEFAULT_CSS = """
    FailureScreen {
        align: center middle;
        & > VerticalScroll {
            width: 90%; max-width: 90; min-width: 10; height: auto; max-height: 80%;
            border: heavy $error; background: $surface; padding: 0 1;
        }
        & Static { width: 1fr; min-width: 4; height: auto; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close", id="failure.close"),
        Binding("y", "copy", "Copy", id="failure.copy"),
    ]

    def __init__(self, title: str, message: str, hint: str = "") -> None:
        super().__init__()
        self._title = title
        self.text = "\n\n".join(part for part in (title, message, hint) if part)

    def compose(self) -> ComposeResult:
        """The text in a box."""
        with VerticalScroll() as box:
            box.border_title = fmt.content(self._title)
            yield Static(fmt.content(self.text, newlines=True), markup=False)
            yield Static("\nesc closes · y copies this text", markup=False)

    def action_close(self) -> None:
        """Back to work."""
        if self.is_current:
            self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the text."""
        self.app.copy_to_clipboard(self.text)
        self.notify("Copied the message (OSC 52).", markup=False)
