"""The Evaluate screen: which setting is best on my questions, and by more than chance?"""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Footer, Input, Static

from rag_tui.engine.evaluation.measures import (
    DEFAULT_MEASURES,
    Measure,
    parse_measure,
    parse_measures,
)
from rag_tui.engine.index import Index
from rag_tui.tui import format as fmt
from rag_tui.tui.evaluation_text import cell_sentence, conscience
from rag_tui.tui.screens.evaluate_actions import EvaluateActions
from rag_tui.tui.screens.evaluate_bindings import EVALUATE_BINDINGS
from rag_tui.tui.screens.evaluate_words import intro, job_parts, set_line
from rag_tui.tui.widgets.metrics_table import CellList, MetricsTable
from rag_tui.tui.widgets.rank_matrix import SORT_NAMES, SORTS, RankMatrix
from rag_tui.tui.widgets.status_line import CorpusStatus, StatusLine
from rag_tui.tui.widgets.virtual_list import VirtualList


class EvaluateScreen(EvaluateActions):
    """Columns by measures above, questions by columns below."""

    TITLE = "Evaluate"
    CSS_PATH = "evaluate.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (96, "-medium"), (140, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-short"), (23, "-tall")]  # noqa: RUF012
    HELP = """\
The columns of the Search screen, asked all labelled questions and measured.

.722 .50–.89  mean and its 95 % bootstrap interval over the n scored questions
▲ ▼ =         better or worse than the baseline by more than chance (p < .05); no change
won/tied/lost questions against the baseline, in the measure marked ▾
1 3 – ✗       rank of the first evidence; – in no row of the list; ✗ no list, not scored

A column that failed is never scored 0: it is left out and said. What was asked once is not asked
again: only what a changed knob, model, document or question makes different."""

    BINDINGS = EVALUATE_BINDINGS
    BINDING_GROUP_TITLE = "Evaluate"

    def __init__(self) -> None:
        super().__init__()
        self.scores = MetricsTable()
        self.matrix = RankMatrix()
        self._shown: object = None

    def compose(self) -> ComposeResult:
        """What is evaluated, the scores, what to keep in mind, the questions."""
        yield StatusLine()
        yield Static(id="set-line", markup=False)
        yield Static(id="intro", markup=False)
        with Vertical(id="scored"):
            yield self.scores.head
            yield self.scores
            yield Static(id="cell-line", markup=False)
            yield Static(id="conscience", markup=False)
            yield Static(id="matrix-line", markup=False)
            yield Input(placeholder="words  tag:…  file:…", id="filter")
            yield self.matrix.head
            yield self.matrix
        yield Static(id="job-line", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Follow the app's index and the labels."""
        from rag_tui.tui.labels import desk_of

        app = self.workbench
        self.query_one("#job-line").display = False
        self.watch(app, "status", self._take_status)
        self.watch(app, "index", self._take_index)
        desk_of(app).changed.subscribe(self, lambda _: self.read_questions())
        self.show_state()

    def on_screen_resume(self) -> None:
        """Files may have been edited and knobs turned since."""
        self.read_questions()
        self.show_state()

    @property
    def chosen_measure(self) -> str:
        """The measure that a breakdown shows first."""
        return self.scores.measure

    # -- painting ----------------------------------------------------------------------------

    def show_state(self) -> None:
        """Paint what is known now."""
        if not self.is_mounted:
            return
        scored = self.scored
        self.set_class(scored is not None, "-scored")
        line = fmt.clip(set_line(self), self.size.width - 2)
        self.query_one("#set-line", Static).update(fmt.content(line))
        self._show_job()
        if scored is None:
            self.query_one("#intro", Static).update(fmt.content(intro(self), newlines=True))
            return
        if self._shown is not scored:
            with self.app.batch_update():
                self._shown = scored
                self.scores.show(scored.table)
                self.matrix.show(scored.table, scored.labelled.files)
                self._tell_cell()
                self._tell_matrix()
            if self.focused is None or not self.focused.is_on_screen:
                self.call_after_refresh(self.matrix.focus)

    def _show_job(self) -> None:
        line = self.query_one("#job-line", Static)
        line.display = self.is_asking
        if self.is_asking:
            line.update(fmt.content(fmt.clip(" · ".join(job_parts(self)), self.size.width - 2)))

    def _tell_cell(self) -> None:
        scored = self.scored
        column = self.scores.column
        if scored is None or column is None:
            return
        sentence = cell_sentence(scored.table, column, self.scores.measure)
        if self.has_class("-wide") and not column.reason:
            sentence += f" · {parse_measure(self.scores.measure).meaning}"
        self.query_one("#cell-line", Static).update(fmt.content(fmt.one_line(sentence[:2_000])))
        told = conscience(scored.table, self.scores.measure, column.name)
        self.query_one("#conscience", Static).update(fmt.content(fmt.one_line(told[:2_000])))

    def _tell_matrix(self) -> None:
        scored = self.scored
        if scored is None:
            return
        n, n_all = len(self.matrix.rows), len(scored.table.questions)
        name = fmt.one_line(self.matrix.column_name[:80])
        parts = [
            f"column {name}",
            f"{n:,} of {n_all:,} questions" if n != n_all else fmt.count(n, "question"),
            f"{len(scored.table.disagreements()):,} disagree",
            SORT_NAMES[self.matrix.sort].format(column=name) + " (s)",
        ]
        if self.matrix.needle.strip():
            parts.append(f"only {self.matrix.needle.strip()} (esc: all)")
        parts.append("enter opens in Search")
        self.query_one("#matrix-line", Static).update(fmt.content(" · ".join(parts)))

    # -- events ------------------------------------------------------------------------------

    def _take_status(self, status: CorpusStatus) -> None:
        self.query_one(StatusLine).status = status
        self.show_state()

    def _take_index(self, index: Index | None) -> None:
        if index is not None:
            self.read_questions()
        self.show_state()

    @on(VirtualList.CursorMoved, "#scores")
    @on(CellList.CellMoved, "#scores")
    def _take_cell(self) -> None:
        self._tell_cell()

    @on(events.DescendantFocus)
    def _follow_focus(self, event: events.DescendantFocus) -> None:
        """In a low terminal only the pane in use is shown."""
        if event.widget in (self.scores, self.matrix):
            self.set_class(event.widget is self.scores, "-on-scores")

    @on(CellList.CellMoved, "#matrix")
    def _take_column(self) -> None:
        self._tell_matrix()

    @on(VirtualList.RowChosen, "#scores")
    def _take_score(self) -> None:
        """The questions, sorted by what this column lost."""
        self.matrix.active = self.scores.cursor
        self.matrix.sort = "loss"
        self.matrix.reorder()
        self._tell_matrix()
        self.matrix.focus()

    @on(VirtualList.RowChosen, "#matrix")
    def _take_question(self) -> None:
        if (picked := self.matrix.picked) is not None:
            name = self.matrix.column_name
            self.open_in_search(picked.question.qid, picked.question.text, name, picked.rank)

    @on(Input.Changed, "#filter")
    def _take_needle(self, event: Input.Changed) -> None:
        self.matrix.needle = event.value
        self.matrix.reorder()
        self._tell_matrix()

    @on(Input.Submitted, "#filter")
    def _leave_filter(self) -> None:
        self.matrix.focus()

    # -- actions -----------------------------------------------------------------------------

    def action_run(self) -> None:
        """Ask what is not known yet."""
        self.run_all()

    def action_baseline(self) -> None:
        """Compare all columns with the one under the cursor of the scores."""
        column = self.scores.column
        if self.scored is None or column is None:
            self.say_no_run()
            return
        if self.focused is self.matrix:
            column = self.scored.table.columns[self.matrix.active]
        if column.reason:
            self.workbench.warn(f"{column.name} has no scores to compare with.\n{column.reason}")
            return
        self.baseline = column.name
        self.workbench.tell(f"Compared with {column.name} from now on.")
        self.rescore()

    def action_measures(self) -> None:
        """Choose what is measured."""
        from rag_tui.tui.screens.evaluate_asking import AskScreen

        def take(text: str | None) -> None:
            if text is not None:
                self.measures = tuple(measure.name for measure in _measures(text))
                self.rescore()
                self.show_state()

        hint = (
            "R@k Success@k P@k RR@k nDCG@k AP Failure@k, separated by commas; R@1 is recall in "
            "the first row.\nNumbers alone choose the cut-offs of recall: 1,3,20"
        )
        ask = AskScreen("Measures", value=", ".join(self.measures), hint=hint, check=_measures)
        self.app.push_screen(ask, take)

    def action_sort(self) -> None:
        """Order the questions in the next way."""
        if self.scored is None:
            self.say_no_run()
            return
        matrix = self.matrix
        matrix.sort = SORTS[(SORTS.index(matrix.sort) + 1) % len(SORTS)]
        matrix.reorder()
        matrix.cursor = 0
        self._tell_matrix()

    def action_filter(self) -> None:
        """Open the filter line."""
        if self.scored is None:
            self.say_no_run()
            return
        self.add_class("-filtering")
        self.call_after_refresh(self.query_one("#filter", Input).focus)

    def action_pane(self) -> None:
        """Go from the scores to the questions and back."""
        if self.scored is not None:
            is_below = not self.has_class("-on-scores")
            self.set_class(is_below, "-on-scores")
            self.call_after_refresh((self.scores if is_below else self.matrix).focus)

    def action_back(self) -> None:
        """Stop what is running, else leave the filter."""
        if self.stop_run():
            return
        if self.has_class("-filtering") or self.matrix.needle:
            self.remove_class("-filtering")
            self.query_one("#filter", Input).value = ""
            self.matrix.focus()
        else:
            self.workbench.cancel_index()

    def filter_questions(self, needle: str) -> None:
        """Show only some questions."""
        self.add_class("-filtering")
        self.query_one("#filter", Input).value = needle
        self.call_after_refresh(self.matrix.focus)


def _measures(text: str) -> tuple[Measure, ...]:
    """The measures of a line; numbers alone are cut-offs of recall, beside the usual others."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if parts and all(part.isdigit() for part in parts):
        rest = [name for name in DEFAULT_MEASURES if not name.startswith("R@")]
        parts = [*(f"R@{part}" for part in parts), *rest]
    return parse_measures(",".join(parts))
