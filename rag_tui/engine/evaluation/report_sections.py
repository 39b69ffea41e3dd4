"""What a report of an evaluation says, section by section, before it is Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rag_tui.engine.evaluation.compare import ColumnChange, RunChange
from rag_tui.engine.evaluation.conscience import conscience
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.report_plots import Bar, Rank, bar_chart, rank_matrix, roc_plot
from rag_tui.engine.evaluation.score_table import Cell, QuestionScores, ScoreTable
from rag_tui.engine.evaluation.sweep_space import shown
from rag_tui.engine.evaluation.types import Comparison, EvalRun

N_QUESTIONS = 60
"""Questions of the rank matrix, and of a column's changes; the rest is counted."""
_GROUPS = {
    "tag": "By tag",
    "document": "By document of the evidence",
    "length": "By length of the question",
}

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report. Its text is foreign: whoever writes it out escapes it."""

    title: str
    lines: tuple[str, ...] = ()
    """Sentences below the title."""
    head: Row = ()
    rows: tuple[Row, ...] = ()
    after: tuple[str, ...] = ()
    """Sentences below the table."""
    code: str = ""
    """Something to copy as it is."""
    plots: tuple[str, ...] = ()
    """Ready-made SVG, for HTML."""


def evaluation_sections(
    table: ScoreTable, run: EvalRun, change: RunChange | None = None
) -> Iterator[Section]:
    """The sections of an evaluation, those with nothing to say left out."""
    yield _scores(table)
    compared = _compared(table)
    if compared:
        yield compared
    if change is not None:
        yield from _changes(change)
    yield from _questions(table)
    yield from _unanswerable(table)
    yield from _groups(table)
    yield Section("What to keep in mind", lines=tuple(conscience(table)))
    yield Section(
        "What the measures say",
        head=("measure", "meaning"),
        rows=tuple((name, parse_measure(name).meaning) for name in table.measures),
    )
    yield _columns(run)
    yield Section("How it was made", head=("", ""), rows=tuple(_made(run)))


def comparison_text(compared: Comparison | None) -> str:
    """``+0.0500 3/4/1 p=0.250``, or ``no change``."""
    if compared is None:
        return "–"
    if compared.is_identical:
        return "no change"
    counts = f"{compared.wins}/{compared.ties}/{compared.losses}"
    return f"{compared.delta:+.4f} {counts} {chance(compared)}"


def chance(compared: Comparison) -> str:
    """``p=0.250`` or ``p<0.001``."""
    return "p<0.001" if compared.p_value < 0.0005 else f"p={compared.p_value:.3f}"


def _scores(table: ScoreTable) -> Section:
    rows = []
    for column in table.columns:
        cells = [_score(cell) for cell in column.cells]
        rows.append((column.name, *cells, column.reason or str(column.n_scored)))
    plots = []
    for at, measure in enumerate(table.measures):
        bars = [
            Bar(column.name, cell.interval.mean, cell.interval.low, cell.interval.high, i)
            for i, column in enumerate(table.columns)
            if (cell := column.cells[at]).interval is not None
        ]
        if bars:
            plots.append(bar_chart(measure, bars))
    return Section(
        "Scores",
        lines=(
            "Mean and 95 % bootstrap interval over the scored questions; labels are "
            f"{table.unit}s.",
        ),
        head=("column", *table.measures, "questions"),
        rows=tuple(rows),
        plots=tuple(plots),
    )


def _score(cell: Cell) -> str:
    if cell.interval is None:
        return "–"
    return f"{cell.interval.mean:.4f} ({cell.interval.low:.2f} to {cell.interval.high:.2f})"


def _compared(table: ScoreTable) -> Section | None:
    rows = tuple(
        (column.name, *(comparison_text(cell.comparison) for cell in column.cells))
        for column in table.columns
        if any(cell.comparison for cell in column.cells)
    )
    if not rows:
        return None
    return Section(
        f"Against {table.baseline}",
        lines=("Mean difference, questions won/tied/lost, p of a paired randomisation test.",),
        head=("column", *table.measures),
        rows=rows,
    )


def _changes(change: RunChange) -> Iterator[Section]:
    title = f"Changes from {change.before} to {change.after or 'this run'}"
    if change.is_identical:
        yield Section(title, lines=(*change.notes, "no change"))
        return
    yield Section(title, lines=change.notes or ("Question by question, by column.",))
    for column in change.columns:
        yield _column_changes(column, change.k)


def _column_changes(column: ColumnChange, k: int) -> Section:
    name = column.name
    if column.other_name != column.name:
        name = f"{column.name} → {column.other_name}"
    counts = ", ".join(
        f"{len(column.of_kind(kind))} {kind}" for kind in ("fixed", "broken", "better", "worse")
    )
    moved = [one for one in column.changes if one.kind != "same"]
    rows = tuple(
        (one.kind, f"{_rank(one.before)} → {_rank(one.after)}", one.qid, one.text)
        for one in moved[:N_QUESTIONS]
    )
    return Section(
        f"{name}: {counts} of {len(column.changes)} at {k}",
        head=("", "evidence", "question", "text") if rows else (),
        rows=rows,
        lines=() if rows else ("no change",),
        after=_left_out(len(moved)),
    )


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _left_out(n: int) -> tuple[str, ...]:
    return (f"and {n - N_QUESTIONS:,} more",) if n > N_QUESTIONS else ()


def _questions(table: ScoreTable) -> Iterator[Section]:
    if not table.questions:
        return
    apart = table.disagreements()
    names = [column.name for column in table.columns]
    in_order = [*apart, *(one for one in table.questions if one.disagreement == 0)]
    shown_rows = [(f"{one.qid}  {one.text}", _ranks(one)) for one in in_order[:N_QUESTIONS]]
    yield Section(
        "Rank of the first evidence",
        lines=(
            f"{len(apart)} of {len(table.questions)} questions: the columns disagree, most "
            "first. – is in no row of the list; a blank has no list.",
        ),
        head=("question", "text", *names) if apart else (),
        rows=tuple(
            (one.qid, one.text, *("" if r == "none" else _rank(r) for r in _ranks(one)))
            for one in apart[:N_QUESTIONS]
        ),
        after=_left_out(len(apart)),
        plots=(rank_matrix("Rank of the first evidence", names, shown_rows),),
    )


def _ranks(question: QuestionScores) -> list[Rank]:
    return [
        rank if has_list else "none"
        for rank, has_list in zip(question.ranks, question.has_list, strict=True)
    ]


def _unanswerable(table: ScoreTable) -> Iterator[Section]:
    found = [(column, one) for column in table.columns if (one := column.separation)]
    if not found:
        return
    rows = tuple(
        (
            f"{column.name} {column.score_name}",
            f"{one.answerable.median:.4g} ({one.answerable.n})",
            f"{one.unanswerable.median:.4g} ({one.unanswerable.n})",
            f"{one.auc.mean:.2f} ({one.auc.low:.2f} to {one.auc.high:.2f})",
            f"{one.threshold:.4g}",
            f"{one.balanced_accuracy:.2f}",
        )
        for column, one in found
    )
    curves = [
        (
            f"{column.name} {one.auc.mean:.2f}",
            [(point.wrongly_answered, point.answered) for point in one.roc],
        )
        for column, one in found
    ]
    yield Section(
        "Questions that nothing answers",
        lines=(
            "Medians of the best score (questions); AUC 0.5 is chance; the threshold and how "
            "often it is right were chosen on these questions.",
        ),
        head=("best score of a question", "answerable", "not", "AUC", "answer from", "right"),
        rows=rows,
        plots=(roc_plot("ROC of the best score, with AUC", curves),),
    )


def _groups(table: ScoreTable) -> Iterator[Section]:
    names = [column.name for column in table.columns]
    for kind, groups in groupby(table.groups, key=lambda group: group.kind):
        if table.measures:
            yield Section(
                f"{_GROUPS[kind]}: {table.measures[0]}",
                head=("", "questions", *names),
                rows=tuple(
                    (
                        group.name,
                        str(group.n),
                        *("–" if row[0] is None else f"{row[0]:.3f}" for row in group.means),
                    )
                    for group in groups
                ),
            )


def _columns(run: EvalRun) -> Section:
    rows = []
    for one in run.columns:
        knobs = ", ".join(f"{name}={shown(value)}" for name, value in one.column.knobs)
        where = f"run of another system: {one.imported_from}" if one.imported_from else knobs
        rows.append((one.column.name, one.column.method, one.score_name, where))
    return Section(
        "Columns", head=("column", "method", "score", "knobs of its own"), rows=tuple(rows)
    )


def _made(run: EvalRun) -> Iterator[Row]:
    yield ("folder", run.folder)
    yield ("made (UTC)", run.created)
    yield ("candidates a list", str(run.depth))
    yield ("index", run.index_fingerprint)
    yield ("questions", run.questions_fingerprint)
    yield from ((name, shown(value)) for name, value in run.knobs.items())
