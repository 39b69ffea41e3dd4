"""Following a passage in a thread: ranks and verdicts first, then the knobs that bring it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message
from textual.screen import ModalScreen
from textual.worker import Worker

from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.tui.jobs import in_thread, log, start

if TYPE_CHECKING:
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.index import Index
    from rag_tui.engine.passage_trace import PassageTrace
    from rag_tui.engine.types import Answer, SearchRequest, Source
    from rag_tui.tui.backend import Backend, Session
    from rag_tui.tui.passage_text import Knobs


@dataclass(frozen=True, slots=True)
class PassageChoice:
    """What is to happen when the dialog has closed."""

    column: str = ""
    knobs: Knobs = ()
    reindex: Knobs = ()
    """Ways of cutting, with which the folder is indexed again."""
    pin: str = ""
    """Chunk id to keep marked."""


class FollowingScreen(ModalScreen[PassageChoice]):
    """Follows one passage at a time; subclasses show what is found.

    Every passage has a generation number: what comes of an older one is dropped.
    """

    class Traced(Message):
        """The ranks are there; knobs are still being tried."""

        def __init__(self, generation: int, trace: PassageTrace) -> None:
            super().__init__()
            self.generation = generation
            self.trace = trace

    class Told(Message):
        """How far the work is."""

        def __init__(self, generation: int, text: str) -> None:
            super().__init__()
            self.generation = generation
            self.text = text

        def can_replace(self, message: Message) -> bool:
            """Only the newest state is worth painting."""
            return isinstance(message, FollowingScreen.Told)

    def __init__(
        self,
        backend: Backend,
        session: Session,
        index: Index,
        request: SearchRequest,
        *,
        sources: tuple[Source, ...] | None,
        answer: Answer | None,
    ) -> None:
        super().__init__()
        self._backend, self._session = backend, session
        self._index, self._request = index, request
        self._sources, self._answer = sources, answer
        self._generation = 0
        self._is_busy = False
        self.trace: PassageTrace | None = None
        """What is shown; None while there is nothing."""

    def _show(self, trace: PassageTrace, *, is_final: bool) -> None:
        """Show a trace; when it is not final, knobs are still being tried."""
        raise NotImplementedError

    def _say(self, text: str) -> None:
        """Say how far the work is."""
        raise NotImplementedError

    def _refuse(self, text: str) -> None:
        """Say why the passage cannot be followed."""
        raise NotImplementedError

    def _begin(self, wanted: str) -> None:
        """Follow a passage; what came of another one is dropped."""
        self._generation += 1
        self._is_busy = True
        self.trace = None
        generation = self._generation
        start(self, lambda: self._follow(wanted, generation), "passage")

    async def _follow(self, wanted: str, generation: int) -> None:
        try:
            trace = await in_thread(lambda c: self._trace(wanted, generation, c), "passage")
        except Cancelled:
            return
        except Exception as error:
            if generation != self._generation:
                return
            hint = error.hint if isinstance(error, RagTuiError) else ""
            if not isinstance(error, RagTuiError):
                log.exception("following a passage failed")
            message = error.message if isinstance(error, RagTuiError) else repr(error)
            self._is_busy = False
            self._refuse(f"✗ {message} {hint}".rstrip())
            return
        if generation == self._generation:
            self._is_busy = False
            self._show(trace, is_final=True)

    def _trace(self, wanted: str, generation: int, cancel: CancelToken) -> PassageTrace:
        """In a thread: ranks and verdicts first, then the knobs that bring it in."""

        def report(what: str, told: str) -> None:
            self.post_message(self.Told(generation, f"{what}, {told}… (esc stops it)"))

        target = self._backend.find_passage(wanted, self._index)

        def follow(what: str, *, with_remedies: bool) -> PassageTrace:
            return self._backend.trace_passage(
                target,
                self._request,
                self._index,
                self._session.models,
                sources=self._sources,
                answer=self._answer,
                with_remedies=with_remedies,
                report=lambda told: report(what, told),
                cancel=cancel,
            )

        trace = follow("making every list over the whole corpus", with_remedies=False)
        is_split = bool(target.places) and all(place.is_split for place in target.places)
        if not is_split and all(column.verdict.is_present for column in trace.columns):
            return trace
        self.post_message(self.Traced(generation, trace))
        return follow("trying which knobs bring it in", with_remedies=True)

    @on(Traced)
    def _take_trace(self, event: Traced) -> None:
        if event.generation == self._generation and self._is_busy:
            self._show(event.trace, is_final=False)

    @on(Told)
    def _take_told(self, event: Told) -> None:
        if event.generation == self._generation and self._is_busy:
            self._say(event.text)

    def _stop(self) -> bool:
        """Stop following; returns whether that was under way."""
        if not self._is_busy:
            return False
        self._is_busy = False
        self._generation += 1
        self.workers.cancel_group(self, "passage")
        return True

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the dialog dies unseen."""
        report = getattr(self.app, "report_worker", None)
        if report is not None:
            report(event)
