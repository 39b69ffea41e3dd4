"""What a run of answers comes to, and what changed between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.evaluation.answer_types import VERDICTS, AnswerRow, AnswerRun, JudgeVerdict
from rag_tui.engine.evaluation.refusals import GOOD, Outcome, count_outcomes
from rag_tui.engine.evaluation.statistics import bootstrap_interval
from rag_tui.engine.evaluation.types import Interval

Change = Literal["fixed", "broken", "changed"]


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """The numbers of one run."""

    n: int
    """Answers that were given or tried."""
    n_missing: int
    """Questions that were not asked."""
    outcomes: Mapping[Outcome, int]
    support: Interval | None
    """Mean over answers of the share of supported claims; None when no claim was checked."""
    n_claims: int
    n_missing_figures: int
    n_uncited_claims: int
    n_unknown_citations: int
    """Answers that cite a source that does not exist."""
    mean_elapsed_s: float | None
    """Over answers that were asked for, failed ones left out."""
    input_tokens: int
    output_tokens: int
    cost: float | None
    """Of all answers and judgements in the run, whenever they were made; None: nothing known."""
    verdicts: Mapping[JudgeVerdict, int]
    """Empty when nothing was judged."""
    notes: tuple[str, ...] = ()


def summarise(run: AnswerRun) -> AnswerSummary:
    """The numbers of a run."""
    rows = run.rows
    shares = [share for row in rows if (share := row.checks.support_share) is not None]
    times = [row.elapsed_s for row in rows if row.kind != "no answer" and row.sources]
    judged = [row.judgement for row in rows if row.judgement is not None]
    costs = [c for row in rows if (c := row.cost) is not None]
    costs += [c for judgement in judged if (c := judgement.cost) is not None]
    verdicts = Counter(judgement.verdict for judgement in judged)
    return AnswerSummary(
        n=len(rows),
        n_missing=max(run.n_questions - len(rows), 0),
        outcomes=count_outcomes(row.outcome for row in rows),
        support=bootstrap_interval(shares) if shares else None,
        n_claims=sum(row.checks.n_claims for row in rows),
        n_missing_figures=sum(row.checks.n_missing for row in rows),
        n_uncited_claims=sum(row.checks.n_uncited for row in rows),
        n_unknown_citations=sum(bool(row.unknown) for row in rows),
        mean_elapsed_s=sum(times) / len(times) if times else None,
        input_tokens=sum(row.input_tokens or 0 for row in rows),
        output_tokens=sum(row.output_tokens or 0 for row in rows),
        cost=sum(costs) if costs else None,
        verdicts={verdict: verdicts[verdict] for verdict in VERDICTS} if judged else {},
        notes=tuple(sorted({row.checks.note for row in rows if row.checks.note})),
    )


@dataclass(frozen=True, slots=True)
class RowChange:
    """One question whose outcome or verdict differs between two runs."""

    qid: str
    question: str
    kind: Change
    """``fixed``: good now and not before; ``broken``: the other way round."""
    before: str
    after: str
    """Outcome, and the judge's verdict if there is one."""


@dataclass(frozen=True, slots=True)
class AnswerRunChange:
    """A run of answers against an earlier one."""

    changes: tuple[RowChange, ...]
    """Broken ones first, then fixed, then others; each in question order."""
    n_same: int
    n_same_text: int
    """Of these, with the very same text."""
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    """Ids of questions that only one of the runs has."""
    notes: tuple[str, ...] = ()
    """What else differs: the questions, the index, the answerer, settings."""

    def n(self, kind: Change) -> int:
        """Questions with this change."""
        return sum(change.kind == kind for change in self.changes)


def is_good(row: AnswerRow) -> bool:
    """Whether an answer is as it should be: its outcome, and not wrong to a judge."""
    is_wrong = row.judgement is not None and row.judgement.verdict == "wrong"
    return row.outcome in GOOD and not is_wrong


def compare_answer_runs(before: AnswerRun, after: AnswerRun) -> AnswerRunChange:
    """Which questions were fixed and which broken, by question id."""
    old = {row.qid: row for row in before.rows}
    new = {row.qid: row for row in after.rows}
    changes: list[RowChange] = []
    n_same = n_same_text = 0
    for qid, row in new.items():
        if qid not in old:
            continue
        was = old[qid]
        if _shown(was) == _shown(row):
            n_same += 1
            n_same_text += was.text == row.text
            continue
        kind: Change = "changed"
        if is_good(was) != is_good(row):
            kind = "fixed" if is_good(row) else "broken"
        changes.append(RowChange(qid, row.question, kind, _shown(was), _shown(row)))
    order: tuple[Change, ...] = ("broken", "fixed", "changed")
    return AnswerRunChange(
        changes=tuple(sorted(changes, key=lambda change: order.index(change.kind))),
        n_same=n_same,
        n_same_text=n_same_text,
        only_before=tuple(qid for qid in old if qid not in new),
        only_after=tuple(qid for qid in new if qid not in old),
        notes=tuple(_notes(before, after)),
    )


def _shown(row: AnswerRow) -> str:
    return f"{row.outcome}, {row.judgement.verdict}" if row.judgement else row.outcome


def _notes(before: AnswerRun, after: AnswerRun) -> Sequence[str]:
    notes = []
    if before.questions_fingerprint != after.questions_fingerprint:
        notes.append("the questions or labels differ")
    if before.index_fingerprint != after.index_fingerprint:
        notes.append("the index differs")
    if before.answerer != after.answerer:
        notes.append(f"answered by {before.answerer}, then by {after.answerer}")
    for name in sorted({*before.settings, *after.settings}):
        old, new = before.settings.get(name), after.settings.get(name)
        if old != new:
            notes.append(f"{name}: {old}, then {new}")
    return notes
