"""Another text for one source of a prompt: a what-if that touches nothing else."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from rag_tui.tui import format as fmt

ABOUT = "Only this prompt changes: index, lists and documents stay. ctrl+s takes it, esc does not."


class EditSourceScreen(ModalScreen[str]):
    """Gives back the new text, or nothing when it was left or is the old one.

    Args:
        title: Which source; foreign text.
        text: Its text now.
    """

    DEFAULT_CSS = """
    EditSourceScreen {
        align: center middle;
        & > Vertical {
            width: 90%; height: 80%; max-width: 120; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & Static { height: auto; min-width: 4; color: $text-muted; }
        & TextArea { height: 1fr; min-width: 4; border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Take this text", id="editing.save", priority=True),
        Binding("escape", "close", "Leave it", id="editing.close", priority=True),
    ]
    BINDING_GROUP_TITLE = "Edit a source"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        # What hides in a document is shown, as everywhere; saved as it was it changes nothing.
        self._before = fmt.display(text, newlines=True)

    def compose(self) -> ComposeResult:
        """The text in a frame."""
        with Vertical() as frame:
            frame.border_title = fmt.content(fmt.one_line(self._title))
            frame.border_subtitle = "ctrl+s: take it   esc: leave it"
            yield Static(ABOUT, markup=False)
            yield TextArea(self._before, soft_wrap=True, show_line_numbers=False)

    def on_mount(self) -> None:
        """Write at once."""
        self.query_one(TextArea).focus()

    def action_save(self) -> None:
        """Give the text back."""
        text = self.query_one(TextArea).text
        if self.is_current:
            self.dismiss(text if text != self._before else None)

    def action_close(self) -> None:
        """Change nothing."""
        if self.is_current:
            self.dismiss(None)
