"""One of two answers that are compared, and how it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from rag_tui.tui import format as fmt
from rag_tui.tui.answer_text import annotated, state_line
from rag_tui.tui.widgets.growing_text import GrowingText

if TYPE_CHECKING:
    from rag_tui.engine.types import Answer, Prompt

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
NO_RETRIEVAL = "no retrieval"
NEEDS_A_MODEL = (
    "No retrieval needs a language model, and none is set: set ANTHROPIC_API_KEY, or choose a list "
    "(c)."
)


@dataclass(frozen=True, slots=True)
class Way:
    """How one answer is made."""

    column: str
    """The list that its sources come from, or `NO_RETRIEVAL`."""
    n_sources: int
    template: str

    @property
    def is_closed_book(self) -> bool:
        """Whether the model answers from what it knows."""
        return self.column == NO_RETRIEVAL


class AnswerSide(Vertical):
    """One answer and how it is made."""

    DEFAULT_CSS = """
    AnswerSide {
        width: 1fr; height: 1fr; min-width: 4; border: round $foreground 40%; padding: 0 1;
        &:focus-within { border: heavy $primary; }
        & > .side--way { height: auto; min-width: 4; }
        & > .side--state { height: auto; max-height: 3; min-width: 4; color: $text-muted; }
    }
    """

    def __init__(self, side: Side, way: Way) -> None:
        super().__init__(id=side)
        self.side = side
        self.way = way
        self.body = GrowingText()
        self.prompt: Prompt | None = None
        self.answer: Answer | None = None
        self._way = Static("", classes="side--way", markup=False)
        self._state = Static("enter asks both", classes="side--state", markup=False)

    def compose(self) -> ComposeResult:
        """How, state, text."""
        yield self._way
        yield self._state
        yield self.body

    def on_mount(self) -> None:
        """Say how it would be made."""
        self.border_title = self.side
        self.set_way(self.way)

    @property
    def state_text(self) -> str:
        """The line above the text."""
        return str(self._state.content)

    @property
    def is_finished(self) -> bool:
        """Whether its answer has come to an end."""
        return self.answer is not None and self.answer.state != "streaming"

    def set_way(self, way: Way) -> None:
        """Make it in another way from the next time on."""
        self.way = way
        parts = [_link(f"{fmt.one_line(way.column)} (c)", f"choose('{self.side}', 'column')")]
        if not way.is_closed_book:
            n = fmt.count(way.n_sources, "source")
            parts.append(_link(f"{n} (+ -)", f"choose('{self.side}', 'more')"))
            shown = f"template {fmt.one_line(way.template)} (t)"
            parts.append(_link(shown, f"choose('{self.side}', 'template')"))
        self._way.update(Content(" · ").join(parts))

    def begin(self, prompt: Prompt | None, message: str) -> None:
        """Show nothing of an older answer."""
        self.prompt, self.answer = prompt, None
        self.body.clear()
        self._state.update(fmt.content(message, newlines=True))

    def show(self, answer: Answer, currency: str) -> None:
        """Show more of an answer, or the finished one."""
        self.answer = answer
        self.body.show(answer.text)
        n_sources = len(self.prompt.sources) if self.prompt else 0
        self._state.update(
            fmt.content(
                state_line(answer, n_sources, currency=currency, again="enter asks again"),
                newlines=True,
            )
        )

    def mark(self, spans: list[tuple[int, int]]) -> None:
        """Mark the words that only this answer has, by their offsets in it."""
        answer = self.answer
        if answer is None:
            return

        self.body.annotate(
            lambda text, start: annotated(text, start, answer.citations, differing=spans)
        )


def _link(text: str, action: str) -> Content:
    return Content(text).stylize(Style.from_meta({"@click": f"screen.{action}"}))
