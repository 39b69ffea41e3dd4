"""What the Evaluate screen knows: the questions, the run on show, its table."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from textual import on
from textual.screen import Screen
from textual.worker import Worker

from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.evaluate import check_evaluation, columns_of
from rag_tui.engine.evaluation.measures import DEFAULT_MEASURES
from rag_tui.engine.evaluation.types import ColumnRun, EvalRun
from rag_tui.engine.events import StageError
from rag_tui.tui.evaluation_jobs import (
    EvaluationAdvanced,
    EvaluationFailed,
    EvaluationFinished,
    Labelled,
    Scored,
    read_labelled,
    run_evaluation,
    score_run,
)
from rag_tui.tui.jobs import in_thread, start

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.evaluate import EvalProgress
    from rag_tui.engine.evaluation.run_store import RunStore
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.screens.search import SearchScreen

DEPTH = 100
"""Candidates for each list, as `rag-tui eval` takes them."""


class EvaluateState(Screen[None]):
    """Everything of the screen but its widgets.

    A run stays on show until the next one is there. Labels may change meanwhile, on the Search
    screen or in an editor: the run is then scored anew with the labels of now.
    """

    def __init__(self) -> None:
        super().__init__()
        self.labelled: Labelled | None = None
        self.problem: StageError | None = None
        """Why there are no questions."""
        self.scored: Scored | None = None
        self.measures: tuple[str, ...] = DEFAULT_MEASURES
        self.baseline: str | EvalRun | None = None
        """A column's name, or a kept run; None: the first column."""
        self.imported: tuple[ColumnRun, ...] = ()
        self.generation = 0
        self.is_asking = False
        self.is_stopping = False
        self.progress: EvalProgress | None = None
        self.run_request: SearchRequest | None = None
        """What the run on show was made with; None for one that was opened."""
        self._asked_request: SearchRequest | None = None
        self._part_began = (0.0, 0)
        """When the columns that are asked now were begun with, and with how many lists done."""

    # -- for the widgets, in the screen itself -------------------------------------------------

    def show_state(self) -> None:
        """Paint what is known now."""
        raise NotImplementedError

    # -- what is at hand ---------------------------------------------------------------------

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def search_screen(self) -> SearchScreen | None:
        """The Search screen, whose columns are evaluated."""
        from rag_tui.tui.screens.search import SearchScreen

        screen = self.workbench.search_screen
        return screen if isinstance(screen, SearchScreen) else None

    @property
    def request(self) -> SearchRequest | None:
        """The columns and knobs of the Search screen; None until the settings are read."""
        screen, session = self.search_screen, self.workbench.session
        if session is None:
            return None
        knobs: SearchRequest | None = getattr(screen, "knobs", None)
        return knobs if knobs is not None else session.settings.request("")

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that a run would ask."""
        request = self.request
        return tuple(column.name for column in columns_of(request)) if request is not None else ()

    @property
    def has_other_knobs(self) -> bool:
        """Whether knobs or columns have changed since the run on show was made."""
        return self.run_request is not None and self.run_request != self.request

    @property
    def store(self) -> RunStore | None:
        """The kept runs; None until the settings are read."""
        session = self.workbench.session
        if session is None:
            return None
        return self.workbench.backend.run_store(session.settings, self.workbench.folder)

    @property
    def seconds_left(self) -> tuple[float, bool] | None:
        """About how long it goes on, and whether slower columns are still to come."""
        progress, request = self.progress, self.request
        if progress is None or request is None:
            return None
        began, done_then = self._part_began
        n_new, elapsed = progress.done - done_then, monotonic() - began
        if n_new < 1 or elapsed < 0.5:
            return None
        dear = {c.name for c in columns_of(request) if c.method == "reranked"}
        is_least = bool(dear) and not dear.intersection(progress.columns)
        return elapsed / n_new * (progress.total - progress.done), is_least

    # -- questions ---------------------------------------------------------------------------

    def read_questions(self) -> None:
        """Read the questions again; a run is scored anew when they, or the index, have changed."""
        index = self.workbench.index
        if index is not None:
            start(self, partial(self._read, index), "questions")

    async def _read(self, index: Index) -> None:
        app = self.workbench
        found = await in_thread(
            lambda _: read_labelled(app.backend, app.folder, index), "questions"
        )
        if isinstance(found, StageError):
            self.labelled, self.problem = None, found
            self.show_state()
            return
        before, self.labelled, self.problem = self.labelled, found, None
        if (
            before is None
            or before.index is not found.index
            or before.questions.fingerprint != found.questions.fingerprint
        ):
            self.rescore()
        self.show_state()

    # -- running -----------------------------------------------------------------------------

    def run_all(self) -> None:
        """Ask all questions in all columns of the Search screen; what is known is not asked."""
        app = self.workbench
        request, labelled, session = self.request, self.labelled, app.session
        if self.is_asking:
            app.tell("The questions are being asked already; esc stops it.")
            return
        if request is None or session is None or app.index is None:
            app.warn("There is no index yet.\nThe questions can be asked when it is there.")
            return
        if app.status.is_busy:
            app.warn(
                "The index is still being made: half of it would be measured.\n"
                "Press r again when it is there."
            )
            return
        if labelled is None:
            why = self.problem.message if self.problem else "They are still being read."
            app.warn(f"There are no questions to ask.\n{why}")
            return
        try:
            check_evaluation(request, DEPTH)
        except UsageError as error:
            app.warn(f"{error.message}\n{error.hint}")
            return
        self.generation += 1
        self.is_asking, self.is_stopping = True, False
        self.progress = None
        self._asked_request = request
        work = partial(
            run_evaluation,
            app.backend,
            session,
            app.folder,
            labelled,
            request,
            self.imported,
            generation=self.generation,
            post=self.post_message,
        )
        start(
            self, lambda: in_thread(lambda cancel: work(cancel=cancel), "evaluation"), "evaluation"
        )
        self.show_state()

    def stop_run(self) -> bool:
        """Stop asking; what was asked is kept. Returns whether there was anything to stop."""
        if not self.is_asking or self.is_stopping:
            return False
        self.is_stopping = True
        self.workers.cancel_group(self, "evaluation")
        self.show_state()
        return True

    @on(EvaluationAdvanced)
    def _take_progress(self, event: EvaluationAdvanced) -> None:
        if event.generation != self.generation or not self.is_asking:
            return
        if self.progress is None or self.progress.columns != event.progress.columns:
            done = self.progress.done if self.progress is not None else event.progress.done
            self._part_began = (monotonic(), done)
        self.progress = event.progress
        self.show_state()

    @on(EvaluationFinished)
    def _take_run(self, event: EvaluationFinished) -> None:
        if event.generation != self.generation:
            return
        self._end()
        self.run_request = self._asked_request
        app = self.workbench
        app.warn(event.problem)
        if not event.is_whole:
            app.tell("Stopped. What was asked is kept: r goes on from there.")
        self.show_run(
            event.run,
            is_whole=event.is_whole,
            is_kept=event.is_whole and not event.problem,
            n_known=event.n_known,
        )

    @on(EvaluationFailed)
    def _take_failure(self, event: EvaluationFailed) -> None:
        if event.generation == self.generation:
            self._end()
            self.workbench.warn(f"{event.error.message}\n{event.error.hint}")
            self.show_state()

    def _end(self) -> None:
        self.is_asking = self.is_stopping = False
        self.progress = None
        if not self.workbench.status.is_busy:
            self.workbench.progress = None  # loading a model may have set it

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    # -- scoring -----------------------------------------------------------------------------

    def show_run(
        self, run: EvalRun, *, is_whole: bool = True, is_kept: bool = False, n_known: int = 0
    ) -> None:
        """Score a run and put it on show."""
        start(self, partial(self._score, run, is_whole, is_kept, n_known), "scoring")

    def rescore(self) -> None:
        """Score the run on show anew: other labels, measures or baseline."""
        if (now := self.scored) is not None:
            self.show_run(now.run, is_whole=now.is_whole, is_kept=now.is_kept, n_known=now.n_known)

    async def _score(self, run: EvalRun, is_whole: bool, is_kept: bool, n_known: int) -> None:
        labelled, measures, baseline = self.labelled, self.measures, self.baseline
        if labelled is None:
            return
        try:
            table = await in_thread(
                lambda _: score_run(labelled, run, measures, baseline), "scoring"
            )
        except RagTuiError as error:
            self.workbench.warn(f"{error.message}\n{error.hint}")
            return
        self.scored = Scored(run, table, labelled, is_whole, is_kept, n_known)
        self.show_state()

    # -- helpers ----------------------------------------------------------------------------

    def do(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Work in a worker; expected trouble becomes a toast."""

        async def guarded() -> None:
            try:
                await work()
            except RagTuiError as error:
                self.workbench.warn(f"{error.message}\n{error.hint}")

        start(self, guarded, name)
