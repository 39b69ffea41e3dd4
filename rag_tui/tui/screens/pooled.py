"""Judging blind: the best rows of all columns in one pile that does not tell whose each is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.evaluation.pooling import pool_lists
from rag_tui.engine.evaluation.types import Retrieved
from rag_tui.engine.events import CancelToken
from rag_tui.engine.knobs import column_request
from rag_tui.tui import format as fmt
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.labels import desk_of, retrieved, unjudged
from rag_tui.tui.screens.grade import action_line
from rag_tui.tui.widgets.chunk_view import ChunkView

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.backend import Session
    from rag_tui.tui.labels import Bench
    from rag_tui.tui.results import Results

ACTIONS = (
    ("r", "relevant", "screen.judge(1)"),
    ("2", "good", "screen.judge(2)"),
    ("3", "perfect", "screen.judge(3)"),
    ("x", "not relevant", "screen.judge(0)"),
    ("s", "skip", "screen.skip"),
    ("u", "undo", "screen.undo"),
    ("esc", "close", "screen.close"),
)


@dataclass(frozen=True, slots=True)
class Lists:
    """What the columns found for one question."""

    rows: tuple[tuple[Retrieved, ...], ...]
    problems: tuple[str, ...] = ()
    """Columns without a list, with the reason."""


ListsOf = Callable[[str, CancelToken], Lists]
"""Makes them; runs in a thread."""


@dataclass(frozen=True, slots=True)
class _Item:
    question: str
    position: int
    number: int
    """1-based among the question's passages."""
    n_passages: int
    question_number: int


class PooledScreen(ModalScreen[None]):
    """One passage at a time; every judgement is saved at once.

    Args:
        index: Where the passages are.
        questions: Judged for, in this order.
        lists_of: What the columns find for one of them.
    """

    DEFAULT_CSS = """
    PooledScreen {
        align: center middle;
        & > Vertical {
            width: 100%; height: 100%; max-width: 130; max-height: 44; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & #pool-question {
            height: auto; max-height: 4; min-width: 4; text-style: bold;
            border-bottom: solid $panel;
        }
        & #pool-state { height: auto; max-height: 3; min-width: 4; color: $text-muted; }
        & #pool-keys { height: auto; max-height: 3; min-width: 4; border-top: solid $panel; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r,1", "judge(1)", "Relevant", id="pooled.relevant"),
        Binding("2", "judge(2)", "Good", id="pooled.good"),
        Binding("3", "judge(3)", "Perfect", id="pooled.best"),
        Binding("x,0", "judge(0)", "Not relevant", id="pooled.not_relevant"),
        Binding("s,space", "skip", "Skip", id="pooled.skip"),
        Binding("u,U", "undo", "Back to the last passage, undone", id="pooled.undo"),
        Binding("escape,q", "close", "Close", id="pooled.close"),
        Binding("enter", "finish", "Close when all is judged", id="pooled.finish"),
    ]
    BINDING_GROUP_TITLE = "Judging blind"
    HELP = """\
The first rows of all columns for a question, each passage once, in random order. Which column found
a passage, at which rank and with which score is not shown, so that it cannot sway the judgement.
Passages that are judged already are left out."""

    def __init__(self, index: Index, questions: Sequence[str], lists_of: ListsOf) -> None:
        super().__init__()
        self.index = index
        self.questions = tuple(questions)
        self._lists_of = lists_of
        self._items: list[_Item] = []
        self._grades: dict[int, int] = {}
        self._steps: list[int] = []
        self._at = 0
        self._n_opened = 0
        self._n_known = 0
        self._problems: dict[str, None] = {}
        self._is_searching = False
        self._view = ChunkView(id="pool-chunk")

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to judge."""
        return (
            not self._is_searching
            and self._at >= len(self._items)
            and self._n_opened >= len(self.questions)
        )

    def compose(self) -> ComposeResult:
        """Question, how far it is, the passage, the keys."""
        with Vertical() as frame:
            frame.border_title = "Judging blind"
            yield Static(id="pool-question", markup=False)
            yield Static(id="pool-state", markup=False)
            yield self._view
            yield Static(action_line(ACTIONS), id="pool-keys", markup=False)

    def on_mount(self) -> None:
        """Begin with the first question."""
        self._view.focus()
        self._go_on()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    # -- actions -----------------------------------------------------------------------------

    def action_judge(self, grade: int) -> None:
        """Judge the passage on show and go on."""
        if (item := self._item) is None:
            return
        at = self._at
        self._grades[at] = grade
        self._steps.append(at)

        def judge(bench: Bench) -> str:
            bench.judge(item.question, item.position, grade)
            return ""

        def then(is_saved: bool) -> None:
            if not is_saved and self.is_attached:
                self._grades.pop(at, None)
                self._steps = [step for step in self._steps if step < at]
                self._at = at
                self._show()

        desk_of(self.workbench).change(self.index, judge, then)
        self._at += 1
        self._go_on()

    def action_skip(self) -> None:
        """Say nothing about the passage and go on."""
        if self._item is not None:
            self._steps.append(self._at)
            self._at += 1
            self._go_on()

    def action_undo(self) -> None:
        """Back to the last passage; what was said of it is taken back."""
        if self._is_searching or not self._steps:
            self.workbench.tell("There is nothing to undo here.")
            return
        self._at = self._steps.pop()
        if self._grades.pop(self._at, None) is not None:

            def undo(bench: Bench) -> str:
                bench.file.undo()
                return ""

            desk_of(self.workbench).change(self.index, undo)
        self._show()

    def action_finish(self) -> None:
        """Close, when all is judged."""
        if self.is_done:
            self.action_close()

    def action_close(self) -> None:
        """Close; all judgements are saved."""
        if self.is_current:
            self.dismiss()

    # -- the pile ----------------------------------------------------------------------------

    @property
    def _item(self) -> _Item | None:
        if self._is_searching or self._at >= len(self._items):
            return None
        return self._items[self._at]

    def _go_on(self) -> None:
        """The next passage, else the next question, else the end."""
        if self._at >= len(self._items) and self._n_opened < len(self.questions):
            self._is_searching = True
            start(self, partial(self._open, self.questions[self._n_opened]), "pool")
        self._show()

    async def _open(self, question: str) -> None:
        """Make the pile of one question; without anything to judge the next one follows."""
        marks = await desk_of(self.workbench).marks(question, self.index)
        try:
            found = await in_thread(lambda cancel: self._lists_of(question, cancel), "pool")
        except RagTuiError as error:
            found = Lists((), (error.message,))
        self._problems.update(dict.fromkeys(found.problems))
        k = max((len(rows) for rows in found.rows), default=0)
        pool = pool_lists({question: found.rows}, k) if k else ()
        left = [item for item in pool if item.chunk_id not in marks.grades]
        self._n_known += len(pool) - len(left)
        self._n_opened += 1
        self._items += [
            _Item(question, self.index.position_of[item.chunk_id], i, len(left), self._n_opened)
            for i, item in enumerate(left, start=1)
        ]
        self._is_searching = False
        self._go_on()

    def _show(self) -> None:
        item = self._item
        self.query_one("#pool-state", Static).update(self._state())
        if item is None:
            asked = self.questions[min(self._n_opened, len(self.questions) - 1)]
            self._show_question(asked)
            self._view.clear(self._ending() if self.is_done else "searching…")
            return
        self._show_question(item.question)
        chunk = self.index.chunks[item.position]
        self._view.show(
            chunk,
            self.index.document_of.get(chunk.doc_id),
            query_terms=self.workbench.backend.query_terms(item.question),
        )

    def _show_question(self, text: str) -> None:
        self.query_one("#pool-question", Static).update(fmt.content(fmt.one_line(text)))

    def _state(self) -> Content:
        item = self._item
        parts = []
        if item is not None:
            parts.append(f"passage {item.number} of {item.n_passages}")
        if len(self.questions) > 1:
            number = item.question_number if item is not None else self._n_opened
            parts.append(f"question {number} of {len(self.questions)}")
        relevant = sum(grade > 0 for grade in self._grades.values())
        parts.append(f"✓ {relevant} relevant  ✗ {len(self._grades) - relevant} not")
        if self._n_known:
            parts.append(f"{self._n_known} judged before, left out")
        parts += [f"⚠ {problem}" for problem in self._problems]
        return fmt.content(" · ".join(parts))

    def _ending(self) -> str:
        n_judged, n_shown = len(self._grades), len(self._items)
        if not n_shown:
            why = "all of it is judged already" if self._n_known else "the lists are empty"
            return f"There is nothing to judge: {why}. Enter closes."
        relevant = sum(grade > 0 for grade in self._grades.values())
        return (
            f"✓ All shown. {fmt.count(n_judged, 'passage')} judged, {relevant} of them relevant, "
            f"{n_shown - n_judged} skipped.\nEverything is saved. Enter closes."
        )


def open_pooled(app: RagTuiApp, *, all_unjudged: bool = False) -> None:
    """Judge blind for the question on the Search screen, or for all that have no judgement yet.

    Says in a toast what is missing where it cannot.
    """
    from rag_tui.tui.screens.search import SearchScreen

    screen = app.search_screen
    if app.session is None or app.index is None or not isinstance(screen, SearchScreen):
        app.warn("There is no index yet.\nPassages can be judged when it is there.")
    elif all_unjudged:
        start(app, partial(_open_all, app, app.session, app.index, screen.knobs), "pooled judging")
    elif screen.results is None or not screen.results.rankings or screen.is_searching:
        app.warn("There are no lists to judge yet.\nAsk a question first: / goes to the input.")
    else:
        results = screen.results
        lists = _lists_in(results)
        question = results.request.query
        app.push_screen(PooledScreen(results.index, [question], lambda *_: lists))


async def _open_all(app: RagTuiApp, session: Session, index: Index, knobs: SearchRequest) -> None:
    book = await desk_of(app).read()
    questions = [question.text for question in unjudged(book.questions)]
    if not questions:
        app.tell(
            f"Every question of {book.path} has a judgement."
            if book.questions
            else f"There are no questions in {book.path}.\nAsk one and press r, or draft some."
        )
        return
    app.push_screen(PooledScreen(index, questions, partial(_search, app, session, index, knobs)))


def _lists_in(results: Results) -> Lists:
    rows = tuple(
        retrieved(ranking, results.index, results.request_of(column).top_k)
        for column, ranking in results.rankings.items()
    )
    return Lists(rows, tuple(f"{name}: {e.message}" for name, e in results.errors.items()))


def _search(
    app: RagTuiApp,
    session: Session,
    index: Index,
    knobs: SearchRequest,
    question: str,
    cancel: CancelToken,
) -> Lists:
    """What all columns find for a question, with the knobs of the Search screen."""
    request = replace(knobs, query=question, where="")
    k_of = {one.name: column_request(request, one).top_k for one in request.columns}
    rows: dict[str, tuple[Retrieved, ...]] = {}
    problems: dict[str, str] = {}
    for result in app.backend.search(request, index, session.models, cancel=cancel):
        cancel.check()
        if result.ranking is not None:
            rows[result.stage] = retrieved(result.ranking, index, k_of[result.stage])
        elif result.error is not None:
            problems[result.stage] = f"{result.stage}: {result.error.message}"
    return Lists(tuple(rows.values()), tuple(problems.values()))
