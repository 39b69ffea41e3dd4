"""The exact request text, its sources, and about how many tokens each of them is."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from rag_tui.engine.types import Prompt
from rag_tui.tui import format as fmt


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """A prompt and what is shown about it."""

    prompt: Prompt
    n_tokens: int
    """Estimate for system and user text together."""
    source_tokens: tuple[int, ...]
    """Estimates, one a source."""
    origin: str
    """Which list the sources were taken from."""

    @property
    def text(self) -> str:
        """System and user text as they are sent, one after the other."""
        return f"{self.prompt.system}\n\n{self.prompt.user}"

    @property
    def header(self) -> str:
        """One line of numbers."""
        sources = "  ".join(
            f"[{source.number}] {n}"
            for source, n in zip(self.prompt.sources, self.source_tokens, strict=True)
        )
        return (
            f"about {self.n_tokens:,} tokens · {fmt.count(len(self.prompt.sources), 'source')} "
            f"from the {self.origin} list  {sources}"
        ).rstrip()


class PromptPreview(Vertical):
    """A read-only, selectable view; the text area is made when it is first needed."""

    DEFAULT_CSS = """
    PromptPreview {
        min-width: 4;
        & > Static { height: auto; max-height: 2; color: $text-muted; }
        & > TextArea { height: 1fr; min-width: 4; border: none; padding: 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="prompt-preview")
        self._header = Static("", markup=False)
        self.facts: PromptFacts | None = None

    def compose(self) -> ComposeResult:
        """The header; the text follows later."""
        yield self._header

    def clear(self, message: str) -> None:
        """Show no prompt, and why."""
        self.facts = None
        self._header.update(fmt.content(message))
        self.query("#prompt-text").remove()

    def show(self, facts: PromptFacts) -> None:
        """Show a prompt."""
        self.facts = facts
        self._header.update(fmt.content(facts.header))
        text = fmt.display(facts.text, newlines=True)
        # Imported here because it is expensive and the first frame does not need it.
        from textual.widgets import TextArea

        areas = self.query(TextArea)
        if areas:
            areas.first().text = text
        else:
            self.mount(
                TextArea(
                    text, id="prompt-text", read_only=True, soft_wrap=True, show_line_numbers=False
                )
            )
