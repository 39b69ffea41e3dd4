"""Two small dialogs: one line to type, and a question that must be answered with yes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rag_tui.display import without_hidden
from rag_tui.engine.errors import RagTuiError
from rag_tui.tui import format as fmt
from rag_tui.tui.screens.grade import action_line


class AskScreen(ModalScreen[str]):
    """One line of text; enter gives it back if it is accepted, escape gives nothing.

    Args:
        title: What is asked for.
        value: What stands there at first.
        hint: How to write it.
        check: Raises a `RagTuiError` for what cannot be taken; it is shown below the line.
    """

    DEFAULT_CSS = """
    AskScreen {
        align: center middle;
        & > Vertical {
            width: 90%; max-width: 90; min-width: 10; height: auto; max-height: 90%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & Static { height: auto; min-width: 4; color: $text-muted; }
        & #asking-problem { color: $text-warning; }
        & Input { min-width: 8; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", id="asking.close"),
    ]

    def __init__(
        self,
        title: str,
        *,
        value: str = "",
        hint: str = "",
        check: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__()
        self._title, self._value, self._hint = title, value, hint
        self._check = check

    def compose(self) -> ComposeResult:
        """Line, hint, and why it was not taken."""
        with Vertical() as frame:
            frame.border_title = fmt.content(self._title)
            frame.border_subtitle = "enter: take it   esc: close"
            yield Input(value=without_hidden(self._value))
            yield Static(fmt.content(self._hint, newlines=True), markup=False)
            yield Static(id="asking-problem", markup=False)

    def on_mount(self) -> None:
        """Typing goes into the line."""
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        try:
            self._check(text)
        except RagTuiError as error:
            why = f"✗ {error.message}\n{error.hint}".strip()
            self.query_one("#asking-problem", Static).update(fmt.content(why, newlines=True))
            return
        if self.is_current:
            self.dismiss(text)

    def action_close(self) -> None:
        """Close without an answer."""
        if self.is_current:
            self.dismiss()


class SureScreen(ModalScreen[bool]):
    """Asks whether something that cannot be undone is meant."""

    DEFAULT_CSS = """
    SureScreen {
        align: center middle;
        & > Vertical {
            width: auto; max-width: 90%; min-width: 10; height: auto;
            border: round $warning; background: $surface; padding: 0 1;
        }
        & Static { width: auto; max-width: 100%; height: auto; min-width: 4; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes", id="sure.yes"),
        Binding("escape,n,q,enter", "no", "No", id="sure.no"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question and its two keys."""
        keys = (("y", "yes", "screen.yes"), ("n", "no", "screen.no"))
        with Vertical():
            yield Static(fmt.content(self._question, newlines=True), markup=False)
            yield Static(action_line(keys), markup=False)

    def action_yes(self) -> None:
        """It is meant."""
        if self.is_current:
            self.dismiss(True)

    def action_no(self) -> None:
        """It is not."""
        if self.is_current:
            self.dismiss(False)
