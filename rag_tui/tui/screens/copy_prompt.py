"""In which form the request is copied."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.style import Style
from textual.widgets import Static

from rag_tui.tui import format as fmt

FORMS: dict[str, tuple[str, str]] = {
    "text": ("t", "the text: system, then user"),
    "json": ("j", "JSON: the body of the request"),
    "curl": ("c", "curl: a command that sends it"),
    "python": ("p", "Python: a program that sends it"),
}
"""By name: the key and what is copied."""
KEY_NOTE = "The key is in none of them: curl and Python read it from ANTHROPIC_API_KEY."


class CopyPromptScreen(ModalScreen[str]):
    """Gives back one of `FORMS`; escape gives back nothing."""

    DEFAULT_CSS = """
    CopyPromptScreen {
        align: center middle;
        & > Vertical {
            width: 60; max-width: 95%; height: auto; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & Static { height: auto; min-width: 4; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", id="copying.close"),
        *(
            Binding(key, f"choose('{name}')", label, id=f"copying.{name}")
            for name, (key, label) in FORMS.items()
        ),
        Binding("y", "choose('text')", "As text", show=False, id="copying.again"),
    ]
    BINDING_GROUP_TITLE = "Copy the prompt"

    def compose(self) -> ComposeResult:
        """The forms with their keys; each can be clicked."""
        with Vertical() as frame:
            frame.border_title = "Copy the prompt as"
            frame.border_subtitle = "esc: close"
            for name, (key, label) in FORMS.items():
                link = Style.from_meta({"@click": f"screen.choose('{name}')"})
                yield Static(
                    Content.assemble((f" {key} ", "reverse bold"), f" {label}").stylize(link)
                )
            yield Static(fmt.content(KEY_NOTE, "dim"), markup=False)

    def action_choose(self, name: str) -> None:
        """Copy in this form."""
        if self.is_current:
            self.dismiss(name)

    def action_close(self) -> None:
        """Copy nothing."""
        if self.is_current:
            self.dismiss()
