"""The question: an input with a history, and what the last search took."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from rag_tui.display import without_hidden
from rag_tui.tui import format as fmt
from rag_tui.tui.keys import bindings

"""Control characters, and halves of characters that no terminal can be sent."""

PAUSE_S = 0.25
"""So long a pause in typing starts a search, when that is switched on."""


class QueryInput(Input):
    """An input that remembers what was asked; up and down go through it."""

    BINDINGS = bindings("query")
    BINDING_GROUP_TITLE = "Question"

    def __init__(self) -> None:
        super().__init__(placeholder="Ask the documents a question", id="query", compact=True)
        self._history: list[str] = []
        self._place = 0
        self._draft = ""

    def remember(self, question: str) -> None:
        """Add a question to the history; a repeated one moves to the end."""
        self._history = [old for old in self._history if old != question] + [question]
        self._place = len(self._history)

    def offer(self, questions: Sequence[str]) -> None:
        """Put sample questions before what has been asked, the first one nearest."""
        asked = [old for old in self._history if old not in questions]
        self._history = [*reversed(questions), *asked]
        self._place = len(self._history)

    def action_history(self, step: int) -> None:
        """Show an earlier or a later question; what was being typed is kept."""
        if self._place == len(self._history):
            self._draft = self.value
        self._place = min(max(self._place + step, 0), len(self._history))
        is_draft = self._place == len(self._history)
        self.value = self._draft if is_draft else self._history[self._place]
        self.cursor_position = len(self.value)

    def validate_value(self, value: str) -> str:
        """An input draws its text as it is, so nothing that steers a terminal may get in."""
        return without_hidden(value)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Whether a key is text; Textual does not find the character of ``slash``."""
        return key == "slash" or super().check_consume_key(key, character)

    def on_paste(self, event: events.Paste) -> None:
        """Take all lines of what is pasted, not the first one only."""
        self.replace(" ".join(event.text.split("\n")), *self.selection)
        event.stop()
        event.prevent_default()


class QueryBar(Horizontal):
    """The question and a short remark beside it."""

    DEFAULT_CSS = """
    QueryBar {
        height: 1; min-width: 1;
        #query-prompt { width: 3; min-width: 3; color: $accent; text-style: bold; padding: 0 1; }
        #query { width: 1fr; min-width: 4; }
        #query-info { width: auto; max-width: 50%; color: $text-muted; padding: 0 1; }
    }
    """

    class Asked(Message):
        """A question is to be searched.

        Args:
            question: As typed, without surrounding blanks.
            is_final: True for enter, False for a pause in typing.
        """

        def __init__(self, question: str, *, is_final: bool) -> None:
            super().__init__()
            self.question = question
            self.is_final = is_final

    def __init__(self) -> None:
        super().__init__()
        self.searches_as_you_type = False
        self.has_samples = False
        self._input = QueryInput()
        self._info = Static("", id="query-info", markup=False)
        self._pause: Timer | None = None

    def compose(self) -> ComposeResult:
        """The prompt sign, the input, the remark."""
        yield Static("❯", id="query-prompt", markup=False)
        yield self._input

    async def complete(self) -> None:
        """The remark can wait until the first frame is there."""
        await self.mount(self._info)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Start a search after a pause, when that is switched on."""
        event.stop()
        self._stop_pause()
        if self.searches_as_you_type and event.value.strip():
            self._pause = self.set_timer(PAUSE_S, self._ask_draft)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Start a search."""
        event.stop()
        self._stop_pause()
        question = event.value.strip()
        if question:
            self._input.remember(question)
        self.post_message(self.Asked(question, is_final=True))

    @property
    def question(self) -> str:
        """What stands in the input, without surrounding blanks."""
        return self._input.value.strip()

    @question.setter
    def question(self, question: str) -> None:
        self._input.value = question

    def put_back(self, question: str) -> None:
        """Show the question that was asked; another one that was being typed is remembered."""
        if self.question and self.question != question:
            self._input.remember(self.question)
        self._input.value = question

    def offer(self, questions: Sequence[str]) -> None:
        """Sample questions for the history."""
        self._input.offer(questions)
        self.has_samples = bool(questions)

    @property
    def is_typing(self) -> bool:
        """Whether the input has the focus."""
        return self._input.has_focus

    def focus_input(self) -> None:
        """Go to the input, everything selected so that typing replaces it."""
        self._input.focus()
        self._input.action_select_all()

    def say(self, remark: str) -> None:
        """Set the remark at the right."""
        self._info.update(fmt.content(fmt.one_line(remark)))

    def _ask_draft(self) -> None:
        if self.question:
            self.post_message(self.Asked(self.question, is_final=False))

    def _stop_pause(self) -> None:
        if self._pause is not None:
            self._pause.stop()
            self._pause = None
