"""Scoring a run: means with intervals, comparisons, and everything that was not scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.grouping import groups_of
from rag_tui.engine.evaluation.judged_columns import JudgedColumn, judge_column
from rag_tui.engine.evaluation.measures import Measure, bounds, mean, parse_measure
from rag_tui.engine.evaluation.score_table import Cell, ColumnScores, QuestionScores, ScoreTable
from rag_tui.engine.evaluation.statistics import (
    bootstrap_interval,
    compare,
    paired,
    same_rankings,
)
from rag_tui.engine.evaluation.thresholds import Separation, separation, top_scores
from rag_tui.engine.evaluation.types import (
    ColumnRun,
    Comparison,
    EvalRun,
    Evidence,
    Resolved,
    Unit,
)

DEFAULT_K = 10
"""Rows in which unjudged ones are counted when no measure has a cut-off."""


def score(
    run: EvalRun,
    resolved: Mapping[str, Resolved],
    measures: Sequence[str],
    unit: Unit,
    *,
    baseline: str | EvalRun | None = None,
) -> ScoreTable:
    """Score every column of a run against labels.

    Only questions with a relevant place in the documents are scored, each only in columns that
    have a list for it: an error, or a question that was not asked, is never a 0.

    Args:
        run: Own or imported columns.
        resolved: The labels of all questions of the set, unanswerable ones too, in its order.
        measures: Names, such as ``R@5``.
        unit: What is judged.
        baseline: What every other column is compared with: a column's name, or another run,
            whose column of the same name it is; None: the first column that can be scored.

    Raises:
        UsageError: For a measure or a baseline column that does not exist.
    """
    parsed = tuple(dict.fromkeys(parse_measure(name) for name in measures))
    judged_ids = tuple(qid for qid, one in resolved.items() if _is_scored(one))
    columns = [judge_column(column, resolved, judged_ids, parsed, unit) for column in run.columns]
    against, label, notes = _baseline(run, columns, baseline, resolved, judged_ids, parsed, unit)
    k = max((measure.k or 0 for measure in parsed), default=0) or DEFAULT_K
    is_answerable = {qid: one.question.answerable for qid, one in resolved.items()}
    questions = _questions(columns, resolved, judged_ids, parsed, against)
    return ScoreTable(
        run=run.name,
        measures=tuple(measure.name for measure in parsed),
        unit=unit,
        k=k,
        columns=tuple(
            _column_scores(column, against.get(column.name), parsed, judged_ids, k, is_answerable)
            for column in columns
        ),
        questions=questions,
        groups=groups_of(questions, resolved, len(columns), len(parsed)),
        baseline=label,
        n_questions=len(resolved),
        n_answerable=sum(is_answerable.values()),
        n_unanswerable=len(resolved) - sum(is_answerable.values()),
        n_judged=len(judged_ids),
        unlabelled=tuple(
            qid
            for qid, one in resolved.items()
            if one.question.answerable and not any(e.grade > 0 for e in one.question.evidence)
        ),
        unresolved=tuple(
            f"{qid}: {_described(evidence)}: {reason}"
            for qid, one in resolved.items()
            for evidence, reason in one.unresolved
        ),
        notes=notes,
    )


def _is_scored(one: Resolved) -> bool:
    return one.question.answerable and one.is_judged


def _described(evidence: Evidence) -> str:
    parts = [evidence.document]
    if evidence.heading:
        parts.append(f"under {evidence.heading!r}")
    if evidence.lines:
        parts.append(f"lines {evidence.lines[0]} to {evidence.lines[1]}")
    if evidence.quote:
        quote = " ".join(evidence.quote.split())
        parts.append(f'"{quote if len(quote) <= 60 else quote[:59] + "…"}"')
    return " ".join(parts)


def _baseline(
    run: EvalRun,
    columns: Sequence[JudgedColumn],
    baseline: str | EvalRun | None,
    resolved: Mapping[str, Resolved],
    judged_ids: Sequence[str],
    measures: Sequence[Measure],
    unit: Unit,
) -> tuple[dict[str, JudgedColumn], str, tuple[str, ...]]:
    """What each column is compared with by name, what that is called, and remarks."""
    if isinstance(baseline, EvalRun):
        others = {
            column.column.name: judge_column(column, resolved, judged_ids, measures, unit)
            for column in baseline.columns
        }
        against = {column.name: others[column.name] for column in columns if column.name in others}
        return against, f"run {baseline.name}", _run_notes(run, baseline, columns, against)
    named = next((column for column in columns if column.name == baseline), None)
    if baseline is not None and named is None:
        raise UsageError(
            f"There is no column {baseline!r} to compare with.",
            f"Columns are: {', '.join(column.name for column in columns)}.",
        )
    first = named or next((column for column in columns if column.lists), None)
    if first is None:
        return {}, "", ()
    against = {column.name: first for column in columns if column is not first}
    return against, first.name if against else "", ()


def _run_notes(
    run: EvalRun,
    baseline: EvalRun,
    columns: Sequence[JudgedColumn],
    against: Mapping[str, JudgedColumn],
) -> tuple[str, ...]:
    notes = []
    if run.questions_fingerprint != baseline.questions_fingerprint:
        notes.append(
            f"run {baseline.name} was made with other questions: compared are those that both "
            "asked, with the labels of now"
        )
    if run.index_fingerprint != baseline.index_fingerprint:
        notes.append(f"run {baseline.name} was made on another index")
    if run.depth != baseline.depth:
        notes.append(f"run {baseline.name} has depth {baseline.depth}, this one {run.depth}")
    notes.extend(
        f"run {baseline.name} has no column {column.name}"
        for column in columns
        if column.name not in against
    )
    return tuple(notes)


def _column_scores(
    column: JudgedColumn,
    against: JudgedColumn | None,
    measures: Sequence[Measure],
    judged_ids: Sequence[str],
    k: int,
    is_answerable: Mapping[str, bool],
) -> ColumnScores:
    is_same = against is not None and same_rankings(
        {qid: run.rows for qid, run in column.lists.items()},
        {qid: run.rows for qid, run in against.lists.items()},
    )
    rows = [one.is_known[:k] for one in column.judged.values()]
    return ColumnScores(
        name=column.name,
        score_name=column.run.score_name,
        cells=tuple(_cell(column, against, measure, is_same=is_same) for measure in measures),
        n_scored=len(column.lists),
        n_without_list=len(judged_ids) - len(column.lists),
        n_unjudged=sum(known.count(False) for known in rows),
        n_rows=sum(map(len, rows)),
        errors=tuple((run.qid, run.error) for run in column.run.questions if run.error),
        reason=_why_not(column, judged_ids),
        is_in_baseline=against is not None and bool(against.lists),
        separation=_separation(column.run, is_answerable),
        seconds=sum(run.elapsed_s for run in column.run.questions),
        imported_from=column.run.imported_from,
    )


def _cell(
    column: JudgedColumn, against: JudgedColumn | None, measure: Measure, *, is_same: bool
) -> Cell:
    values = column.values[measure]
    known = [value for value in values.values() if value is not None]
    if not known:
        return Cell(measure.name, None)
    open_ends = [found for one in column.judged.values() if (found := bounds(measure, one))]
    return Cell(
        measure=measure.name,
        interval=bootstrap_interval(known),
        low=mean([one.low for one in open_ends]),
        high=mean([one.high for one in open_ends]),
        comparison=_comparison(values, against, measure, is_same=is_same),
    )


def _comparison(
    values: Mapping[str, float | None],
    against: JudgedColumn | None,
    measure: Measure,
    *,
    is_same: bool,
) -> Comparison | None:
    if against is None:
        return None
    qids, mine, theirs = paired(values, against.values[measure])
    if not qids:
        return None
    return compare(
        measure.name,
        mine,
        theirs,
        higher_is_better=measure.higher_is_better,
        is_identical=is_same,
    )


def _why_not(column: JudgedColumn, judged_ids: Sequence[str]) -> str:
    """Why a column has no score at all; empty when it has one."""
    if column.lists:
        return ""
    if not judged_ids:
        return "no question has a label that was found in the documents"
    reasons = [run.error for run in column.run.questions if run.error]
    if reasons:
        return f"failed for every question: {reasons[0]}"
    return "none of the labelled questions was asked"


def _separation(column: ColumnRun, is_answerable: Mapping[str, bool]) -> Separation | None:
    yes, no = top_scores(column, is_answerable)
    return separation(yes, no) if yes and no else None


def _questions(
    columns: Sequence[JudgedColumn],
    resolved: Mapping[str, Resolved],
    judged_ids: Sequence[str],
    measures: Sequence[Measure],
    against: Mapping[str, JudgedColumn],
) -> tuple[QuestionScores, ...]:
    earlier = [
        against[column.name]
        for column in columns
        if column.name in against and not any(against[column.name] is c for c in columns)
    ]
    return tuple(
        QuestionScores(
            qid=qid,
            text=resolved[qid].question.text,
            tags=resolved[qid].question.tags,
            values=tuple(
                tuple(column.values[measure].get(qid) for measure in measures) for column in columns
            ),
            ranks=tuple(_rank(column, qid) for column in columns),
            has_list=tuple(qid in column.lists for column in columns),
            baseline_rank=_rank(earlier[0], qid) if earlier else None,
        )
        for qid in judged_ids
    )


def _rank(column: JudgedColumn, qid: str) -> int | None:
    judged = column.judged.get(qid)
    return judged.first_rank if judged is not None else None
