"""Can a column's best score tell that nothing in the documents answers a question?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.engine.evaluation.score_table import ColumnScores
from rag_tui.engine.evaluation.thresholds import Separation, top_scores
from rag_tui.engine.types import Column
from rag_tui.tui import format as fmt
from rag_tui.tui.evaluation_jobs import Scored
from rag_tui.tui.evaluation_text import histogram, share, short_interval
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

LABEL = 18
"""Cells before a histogram."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A not-found rule that was chosen."""

    column: Column
    setting: str
    """``answer.not_found_below`` or ``post.min_<method>``."""
    value: float

    @property
    def toml(self) -> str:
        """The lines that keep it."""
        section, _, name = self.setting.partition(".")
        return f"[{section}]\n{name} = {self.value:.6g}"


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """One column with the scores of both kinds of questions."""

    column: Column
    scores: ColumnScores
    found: Separation
    answerable: tuple[float, ...]
    unanswerable: tuple[float, ...]

    @property
    def can_be_used(self) -> bool:
        """Whether the threshold is a score at all."""
        return math.isfinite(self.found.threshold)


def threshold_rows(scored: Scored) -> tuple[ThresholdRow, ...]:
    """The columns that can be held against each other, best first."""
    kinds = {qid: one.question.answerable for qid, one in scored.labelled.resolved.items()}
    rows = []
    for run in scored.run.columns:
        column = scored.table.column(run.column.name)
        if column is not None and column.separation is not None:
            yes, no = top_scores(run, kinds)
            rows.append(ThresholdRow(run.column, column, column.separation, yes, no))
    return tuple(sorted(rows, key=lambda row: -row.found.auc.mean))


class ThresholdList(VirtualList):
    """Column, AUC with interval, threshold, how often it is right."""

    BINDING_GROUP_TITLE = "Columns"

    def __init__(self, rows: Sequence[ThresholdRow], empty_note: str) -> None:
        super().__init__(id="thresholds")
        self.rows = tuple(rows)
        self.empty_note = empty_note

    def on_mount(self) -> None:
        """As high as there are rows, so that the histograms have the rest."""
        self.styles.height = max(1, min(6, len(self.rows)))
        self.set_n_rows(len(self.rows))

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One column."""
        one = self.rows[row]
        found = one.found
        name = fmt.one_line(one.column.name[:200])
        yield fmt.fit(name, max(8, min(26, width - 58))), "virtual-list--strong"
        yield f"  AUC {share(found.auc.mean):>5} {short_interval(found.auc):<9}", ""
        shown = fmt.score(found.threshold, one.scores.score_name)
        yield f"  answer from {shown:>8}", ""
        yield f"  right {share(found.balanced_accuracy):>5}", "virtual-list--dim"


class ThresholdsScreen(ModalScreen[Rule]):
    """Enter gives back the rule of a column, escape nothing."""

    DEFAULT_CSS = """
    ThresholdsScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: auto; max-height: 92%; max-width: 120; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & ThresholdList { min-height: 1; }
        & Static { height: auto; min-width: 4; }
        & #threshold-note { color: $text-muted; border-top: solid $panel; }
        & #histograms { border-top: solid $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "drop", "Drop rows below instead", id="thresholds.drop"),
        Binding("escape,q,u", "close", "Close", id="thresholds.close"),
    ]
    HELP = """\
The best score of each question, of those that the documents answer and of those they do not.
AUC is the chance that an answerable question scores higher than an unanswerable one; .5 is chance.
The threshold is chosen on these very questions, so that it looks better than it will be."""

    def __init__(self, scored: Scored) -> None:
        super().__init__()
        table = scored.table
        note = "No column can tell them apart: one kind of question has no list."
        if not table.n_unanswerable:
            note = 'No question is marked unanswerable: u in Search, or "answerable": false.'
        self._list = ThresholdList(threshold_rows(scored), note)

    def compose(self) -> ComposeResult:
        """Columns, the two histograms of the one at the cursor, what it means."""
        with Vertical() as frame:
            frame.border_title = "Unanswerable questions"
            frame.border_subtitle = "enter: use as not-found rule   d: drop rows below   esc: close"
            yield self._list
            yield Static(id="histograms", markup=False)
            yield Static(
                "AUC .5 is chance. Thresholds were chosen on these questions: expect less on "
                "others.",
                id="threshold-note",
                markup=False,
            )

    def on_resize(self) -> None:
        """Histograms are as wide as there is room."""
        self.call_after_refresh(self._show)

    @on(VirtualList.CursorMoved)
    def _take_cursor(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        self._show()

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        self._use(drops=False)

    def action_drop(self) -> None:
        """Use it as the least score of a row, also where the answerer has a rule of its own."""
        self._use(drops=True)

    def action_close(self) -> None:
        """Close without a choice."""
        if self.is_current:
            self.dismiss()

    def _use(self, *, drops: bool) -> None:
        if not 0 <= self._list.cursor < len(self._list.rows) or not self.is_current:
            return
        row = self._list.rows[self._list.cursor]
        if not row.can_be_used:
            self.notify("This column has no threshold: nothing separates them.", markup=False)
            return
        self.dismiss(Rule(row.column, setting_of(row, drops=drops), row.found.threshold))

    def _show(self) -> None:
        if not 0 <= self._list.cursor < len(self._list.rows):
            self.query_one("#histograms").display = False
            return
        row = self._list.rows[self._list.cursor]
        width = max(10, self._list.size.width - LABEL - 18)
        self.query_one("#histograms", Static).update(
            fmt.content("\n".join(histograms(row, width)), newlines=True)
        )


def setting_of(row: ThresholdRow, *, drops: bool) -> str:
    """The setting that a threshold belongs to: the answerer's own rule knows only logits."""
    is_logit = row.scores.score_name.split()[:1] == ["logit"]
    if row.column.method == "reranked" and is_logit and not drops:
        return "answer.not_found_below"
    return f"post.min_{row.column.method}"


def histograms(row: ThresholdRow, width: int) -> list[str]:
    """Both kinds of questions over the same axis, and where the threshold stands on it."""
    kind = row.scores.score_name
    finite = [v for v in (*row.answerable, *row.unanswerable) if math.isfinite(v)]
    lines = [f"best {fmt.one_line(kind)} of each question, {fmt.one_line(row.column.name[:80])}"]
    if not finite:
        return [*lines, "no question has a row"]
    low, high = min(finite), max(finite)
    for name, scores in (("answerable", row.answerable), ("unanswerable", row.unanswerable)):
        some = [value for value in scores if math.isfinite(value)]
        median = sorted(scores)[(len(scores) - 1) // 2]
        shown = fmt.score(median, kind) if math.isfinite(median) else "no row"
        label = fmt.fit(f"{name} {len(scores)}", LABEL - 2)
        lines.append(f"{label} │{histogram(some, low, high, width)}│ median {shown}")
    if row.can_be_used and high > low:
        place = int((row.found.threshold - low) / (high - low) * width)
        pointer = " " * (LABEL + max(0, min(width - 1, place))) + "▲"
        lines.append(f"{pointer} answer from {fmt.score(row.found.threshold, kind)}")
    ends = fmt.score(low, kind), fmt.score(high, kind)
    lines.append(" " * LABEL + ends[0] + " " * max(1, width - len("".join(ends))) + ends[1])
    return lines
