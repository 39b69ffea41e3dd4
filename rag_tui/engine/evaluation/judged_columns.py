"""A column's lists with their labels looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_tui.engine.evaluation.judging import Judged, judge_rows
from rag_tui.engine.evaluation.measures import Measure
from rag_tui.engine.evaluation.types import ColumnRun, QuestionRun, Resolved, Unit


@dataclass(frozen=True, slots=True)
class JudgedColumn:
    """A column with its labels looked up."""

    run: ColumnRun
    lists: Mapping[str, QuestionRun]
    """By id: judged questions with a list."""
    judged: Mapping[str, Judged]
    values: Mapping[Measure, Mapping[str, float | None]]
    """By measure and id; only of questions with a list."""

    @property
    def name(self) -> str:
        """The column's."""
        return self.run.column.name


def judge_column(
    column: ColumnRun,
    resolved: Mapping[str, Resolved],
    judged_ids: Sequence[str],
    measures: Sequence[Measure],
    unit: Unit,
) -> JudgedColumn:
    """The labels of these questions held against a column's lists."""
    by_id = {run.qid: run for run in column.questions if not run.error}
    lists = {qid: by_id[qid] for qid in judged_ids if qid in by_id}
    judged = {qid: judge_rows(run.rows, resolved[qid], unit) for qid, run in lists.items()}
    values = {
        measure: {qid: measure.value(one) for qid, one in judged.items()} for measure in measures
    }
    return JudgedColumn(column, lists, judged, values)
