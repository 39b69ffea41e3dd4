"""The answer as it grows, its state, its claims with their evidence, and its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static

from rag_tui.engine.types import Answer, Prompt
from rag_tui.tui import format as fmt
from rag_tui.tui.answer_text import (
    Evidence,
    annotated,
    evidence_of,
    state_line,
    summary,
)
from rag_tui.tui.keys import bindings
from rag_tui.tui.widgets.claims_view import ClaimsView
from rag_tui.tui.widgets.growing_text import GrowingText
from rag_tui.tui.widgets.source_list import SourceList
from rag_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from rag_tui.engine.faithfulness import ClaimCheck

STACKED_BELOW = 84
LOW_BELOW = 16
"""Rows below which claims take the place of the source list."""
AID = "an aid, not a verdict"
LABELLING = "+ correct = partly - wrong"
"""How the user says what an answer is."""


class AnswerView(Vertical):
    """State above; text; claims, the evidence of the one under the cursor, and sources."""

    DEFAULT_CSS = """
    AnswerView {
        min-width: 4;
        & > #answer-state { height: auto; max-height: 5; color: $text-muted; }
        & > #answer-thinking {
            height: auto; max-height: 50%; overflow-y: auto; color: $text-muted; display: none;
        }
        & > #answer-body {
            height: 1fr;
            & > GrowingText { width: 1fr; }
            & > #answer-side { width: 48%; min-width: 4; padding-left: 1; }
        }
        & ClaimsView {
            display: none; height: 1fr; min-height: 2; border-top: solid $foreground 40%;
        }
        & #evidence { height: auto; max-height: 6; min-width: 4; color: $text-muted; }
        & SourceList { height: 1; max-height: 40%; border-top: solid $foreground 40%; }
        &.-stacked > #answer-body {
            layout: vertical;
            & > GrowingText { height: 1fr; }
            & > #answer-side { width: 1fr; height: 50%; padding-left: 0; }
        }
        &.-stacked #evidence { max-height: 3; }
        &.-low.-checked SourceList { display: none; }
    }
    """
    BINDINGS = bindings("answer")
    BINDING_GROUP_TITLE = "Answer"

    class SourceChosen(Message):
        """The user follows a citation, or evidence.

        Args:
            chunk_id: Where it stands.
            passage: What to mark there; empty for nothing.
            is_opened: Whether to go to the chunk's text.
        """

        def __init__(self, chunk_id: str, passage: str = "", *, is_opened: bool = False) -> None:
            super().__init__()
            self.chunk_id = chunk_id
            self.passage = passage
            self.is_opened = is_opened

    class Labelled(Message):
        """The user says what the answer is: correct, partly or wrong."""

        def __init__(self, label: str) -> None:
            super().__init__()
            self.label = label

    def __init__(self) -> None:
        super().__init__(id="answer-view")
        self._state = Static("", id="answer-state", markup=False)
        self._thinking = Static("", id="answer-thinking", markup=False)
        self._evidence = Static("", id="evidence", markup=False)
        self.body = GrowingText(id="answer-text")
        self.claims = ClaimsView()
        self.sources = SourceList()
        self.answer: Answer | None = None
        self.checks: tuple[ClaimCheck, ...] = ()
        self.currency = "USD"
        self._label = ""
        self._notes: tuple[str, ...] = ()
        self._is_unfolded = False
        # What is drawn: laying out the screen anew for the same would cost each token the same.
        self._thinking_shown = ("", False)
        self._state_shown = ""

    def compose(self) -> ComposeResult:
        """State, thinking, text, evidence."""
        yield self._state
        yield self._thinking
        with Horizontal(id="answer-body"):
            yield self.body
            with Vertical(id="answer-side"):
                yield self.claims
                yield self._evidence
                yield self.sources

    def on_mount(self) -> None:
        """The text has all the room until there is something to put beside it."""
        self.query_one("#answer-side").display = self.sources.prompt is not None

    def on_resize(self, event: events.Resize) -> None:
        """One above the other where there is no room beside."""
        self.set_class(event.size.width < STACKED_BELOW, "-stacked")
        self.set_class(event.size.height < LOW_BELOW, "-low")

    @property
    def text(self) -> str:
        """What has been drawn so far, marked as on screen."""
        return self.body.shown

    @property
    def state_text(self) -> str:
        """The lines above the answer."""
        return str(self._state.content)

    @property
    def evidence_text(self) -> str:
        """What is told of the claim under the cursor."""
        return str(self._evidence.content)

    @property
    def prompt(self) -> Prompt | None:
        """What was answered, or is being answered."""
        return self.sources.prompt

    def clear(self, message: str, prompt: Prompt | None = None) -> None:
        """Show no answer, and why."""
        self.answer = None
        self._label, self._notes = "", ()
        self._is_unfolded = False
        self.body.clear()
        self._show_checks(())
        self._show_thinking()
        self._update_state(message)
        self.sources.show(prompt)
        for side in self.query("#answer-side"):
            side.display = prompt is not None and bool(prompt.sources)

    def show(self, answer: Answer) -> None:
        """Show more of an answer, or the finished one."""
        self.answer = answer
        self.body.show(answer.text)
        if answer.state != "streaming":
            self._annotate()
            self.sources.show(self.sources.prompt, answer.citations)
            if answer.quotes:
                self._show_checks(())
        self._show_thinking()
        self._show_state()

    def show_checks(self, checks: Sequence[ClaimCheck]) -> None:
        """Mark the verdicts in the text and list the claims."""
        self._show_checks(tuple(checks))
        self._annotate()
        self._show_state()

    def say(self, *notes: str) -> None:
        """Add lines below the state, in place of those said before."""
        self._notes = notes
        if self.answer is not None:
            self._show_state()

    def show_label(self, label: str) -> None:
        """Show what a person called the answer; empty for nothing."""
        self._label = label
        self._show_state()

    def action_follow(self, number: int) -> None:
        """Select the source with this number."""
        chunk_id = self.sources.source_chunk(number - 1)
        if chunk_id is not None:
            self.post_message(self.SourceChosen(chunk_id))

    def action_thinking(self) -> None:
        """Unfold what the model showed of its thinking, or fold it."""
        self._is_unfolded = not self._is_unfolded
        self._show_thinking()

    def action_label(self, label: str) -> None:
        """Call the finished answer correct, partly or wrong."""
        if self.answer is not None and self.answer.state != "streaming" and self.answer.text:
            self.post_message(self.Labelled(label))

    def on_virtual_list_row_chosen(self, event: VirtualList.RowChosen) -> None:
        """Enter on a source selects it everywhere; on a claim it goes to its evidence."""
        event.stop()
        if event.list is self.sources:
            self.action_follow(event.row + 1)
        else:
            self._choose_evidence(is_opened=True)

    def on_virtual_list_cursor_moved(self, event: VirtualList.CursorMoved) -> None:
        """A claim's evidence is told, and its chunk selected; moving among sources is silent."""
        event.stop()
        if event.list is self.claims:
            self._show_evidence()
            if self.claims.has_focus:
                self._choose_evidence(is_opened=False)

    def _choose_evidence(self, *, is_opened: bool) -> None:
        row = self.claims.row
        if row is not None and row.chunk_id:
            self.post_message(self.SourceChosen(row.chunk_id, row.passage, is_opened=is_opened))

    def _annotate(self) -> None:
        if (answer := self.answer) is not None:
            self.body.annotate(
                lambda text, start: annotated(text, start, answer.citations, self.checks)
            )

    def _show_checks(self, checks: tuple[ClaimCheck, ...]) -> None:
        self.checks = checks
        rows: tuple[Evidence, ...] = ()
        if self.answer is not None and self.prompt is not None:
            rows = evidence_of(self.answer, self.prompt, checks)
        self.claims.border_title = f"claims · {AID}" if checks else "passages the model names"
        self.claims.show(rows)
        self.set_class(bool(rows), "-checked")
        self._show_evidence()

    def _show_evidence(self) -> None:
        row = self.claims.row
        self._evidence.display = row is not None
        self._evidence.update(fmt.content("\n".join(row.lines) if row else "", newlines=True))

    def _show_thinking(self) -> None:
        thinking = self.answer.thinking if self.answer is not None else ""
        if (thinking, self._is_unfolded) == self._thinking_shown:
            return
        self._thinking_shown = (thinking, self._is_unfolded)
        self._thinking.display = bool(thinking)
        n_words = fmt.count(len(thinking.split()), "word")
        head = f"{'▾' if self._is_unfolded else '▸'} thinking, {n_words} (T)"
        body = f"\n{thinking}" if self._is_unfolded else ""
        self._thinking.update(fmt.content(head + body, newlines=True))

    def _show_state(self) -> None:
        if self.answer is None:
            return
        n_sources = len(self.prompt.sources) if self.prompt else 0
        lines = [state_line(self.answer, n_sources, currency=self.currency, label=self._label)]
        if self.checks:
            lines.append(f"{summary(self.checks)} · {LABELLING}")
        elif self.answer.state != "streaming" and self.answer.text:
            lines.append(LABELLING)
        self._update_state("\n".join((*lines, *self._notes)))

    def _update_state(self, text: str) -> None:
        if text != self._state_shown:
            self._state_shown = text
            self._state.update(fmt.content(text, newlines=True))
