"""Two runs side by side: which questions were fixed, which were broken, what moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.evaluation.judging import judge_rows
from rag_tui.engine.evaluation.types import (
    ColumnRun,
    EvalRun,
    QuestionRun,
    Resolved,
    Retrieved,
    Unit,
)

ChangeKind = Literal["fixed", "broken", "better", "worse", "moved", "same", "unjudged"]


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """What became of one question from one run to another, in one column."""

    qid: str
    text: str
    kind: ChangeKind
    """``fixed`` and ``broken``: the first evidence came into the first k rows, or left them.
    ``better`` and ``worse``: it moved and crossed nothing. ``moved``: only other rows did."""
    before: int | None
    after: int | None
    """Rank of the first evidence, 1-based; None: it is not in the list."""
    promoted: tuple[str, ...]
    demoted: tuple[str, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]
    """Ids of rows among the first k of both lists, or of only the first or second run's list."""

    @property
    def change(self) -> float:
        """How far the first evidence moved, as a difference of reciprocal ranks, -1 to 1."""
        return _reciprocal(self.after) - _reciprocal(self.before)

    @property
    def n_moved(self) -> int:
        """Rows among the first k that are not where they were."""
        return len(self.promoted) + len(self.demoted) + len(self.dropped) + len(self.new)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column of two runs."""

    name: str
    """The first run's column."""
    other_name: str
    """The second run's."""
    changes: tuple[QuestionChange, ...]
    """Of questions with a list in both, most changed first."""
    n_not_compared: int
    """Questions that only one of the two has a list for."""
    is_identical: bool
    """Every list of both is the same from first row to last: ``no change``."""

    def of_kind(self, kind: ChangeKind) -> tuple[QuestionChange, ...]:
        """Those changes, most changed first."""
        return tuple(change for change in self.changes if change.kind == kind)


@dataclass(frozen=True, slots=True)
class RunChange:
    """Two runs compared."""

    before: str
    after: str
    """Names of the runs."""
    k: int
    columns: tuple[ColumnChange, ...]
    notes: tuple[str, ...]
    """In what the runs themselves differ: questions, index, depth, knobs, columns."""

    @property
    def is_identical(self) -> bool:
        """Whether nothing at all changed in the columns that both have."""
        return bool(self.columns) and all(
            column.is_identical and not column.n_not_compared for column in self.columns
        )


def compare_runs(
    before: EvalRun,
    after: EvalRun,
    resolved: Mapping[str, Resolved],
    *,
    k: int = 5,
    unit: Unit = "passage",
    pairs: tuple[tuple[str, str], ...] = (),
) -> RunChange:
    """What changed from one run to another.

    Args:
        before: The earlier run.
        after: The later run.
        resolved: Labels by question id; a question without them is compared by its rows only.
        k: Rows that count as found.
        unit: Whether evidence is passages or documents.
        pairs: Column names of the first and second run; empty: columns of the same name. Columns
            that were not chosen are no difference then.
    """
    wanted = pairs or tuple(
        (column.column.name, column.column.name)
        for column in before.columns
        if _column(after, column.column.name) is not None
    )
    columns = []
    for one, other in wanted:
        first, second = _column(before, one), _column(after, other)
        if first is not None and second is not None:
            columns.append(_compare_columns(first, second, resolved, k, unit))
    notes = _notes(before, after, wanted)
    if not pairs:
        notes += _alone(before, after, wanted)
    return RunChange(before.name, after.name, k, tuple(columns), notes)


def _column(run: EvalRun, name: str) -> ColumnRun | None:
    return next((column for column in run.columns if column.column.name == name), None)


def _compare_columns(
    before: ColumnRun, after: ColumnRun, resolved: Mapping[str, Resolved], k: int, unit: Unit
) -> ColumnChange:
    later = {run.qid: run for run in after.questions if not run.error}
    earlier = {run.qid: run for run in before.questions if not run.error}
    both = [qid for qid in earlier if qid in later]
    changes = [
        _change(earlier[qid], later[qid], resolved.get(qid), k, unit)
        for qid in both
    ]  # fmt: skip
    changes.sort(key=lambda c: (c.kind not in ("fixed", "broken"), -abs(c.change), -c.n_moved))
    return ColumnChange(
        name=before.column.name,
        other_name=after.column.name,
        changes=tuple(changes),
        n_not_compared=len(earlier.keys() ^ later.keys()),
        is_identical=bool(both) and all(_ids(earlier[q]) == _ids(later[q]) for q in both),
    )


def _ids(run: QuestionRun) -> list[str]:
    return [_id(row) for row in run.rows]


def _id(row: Retrieved) -> str:
    """What a row is known by: a row of another system may be a whole document."""
    return row.chunk_id or row.document


def _change(
    before: QuestionRun, after: QuestionRun, resolved: Resolved | None, k: int, unit: Unit
) -> QuestionChange:
    is_judged = resolved is not None and resolved.is_judged
    ranks: tuple[int | None, int | None] = (None, None)
    if resolved is not None and is_judged:
        ranks = (
            judge_rows(before.rows, resolved, unit).first_rank,
            judge_rows(after.rows, resolved, unit).first_rank,
        )
    old, new = _places(before.rows[:k]), _places(after.rows[:k])
    both = [chunk_id for chunk_id in new if chunk_id in old]
    promoted = tuple(c for c in both if new[c] < old[c])
    demoted = tuple(c for c in both if new[c] > old[c])
    dropped = tuple(c for c in old if c not in new)
    fresh = tuple(c for c in new if c not in old)
    return QuestionChange(
        qid=before.qid,
        text=resolved.question.text if resolved is not None else "",
        kind=_kind(*ranks, k, is_judged=is_judged, has_moved=bool(promoted or dropped or fresh)),
        before=ranks[0],
        after=ranks[1],
        promoted=promoted,
        demoted=demoted,
        dropped=dropped,
        new=fresh,
    )


def _places(rows: tuple[Retrieved, ...]) -> dict[str, int]:
    places: dict[str, int] = {}
    for rank, row in enumerate(rows, start=1):
        places.setdefault(_id(row), rank)
    return places


def _kind(
    before: int | None, after: int | None, k: int, *, is_judged: bool, has_moved: bool
) -> ChangeKind:
    if not is_judged:
        return "unjudged" if has_moved else "same"
    was_found = before is not None and before <= k
    is_found = after is not None and after <= k
    if was_found != is_found:
        return "fixed" if is_found else "broken"
    if before == after:
        return "moved" if has_moved else "same"
    return "better" if _reciprocal(after) > _reciprocal(before) else "worse"


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / rank


def _notes(before: EvalRun, after: EvalRun, pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    notes = []
    if before.questions_fingerprint != after.questions_fingerprint:
        asked = [
            {run.qid for column in one.columns for run in column.questions}
            for one in (before, after)
        ]
        gone, added = len(asked[0] - asked[1]), len(asked[1] - asked[0])
        what = f"{gone} only in {before.name}, {added} only in {after.name}"
        rest = what if gone or added else "other texts or labels under the same ids"
        notes.append(f"The question sets differ: {rest}.")
    if before.index_fingerprint != after.index_fingerprint:
        notes.append(
            "The indexes differ: other documents, chunks or embedding model. Chunks that were "
            "cut anew count as new rows; evidence is found by its place in the document."
        )
    if before.depth != after.depth:
        notes.append(f"The depths differ: {before.depth} and {after.depth} candidates.")
    for name in sorted(before.knobs.keys() | after.knobs.keys()):
        one, other = before.knobs.get(name), after.knobs.get(name)
        if one != other and name != "search.depth":
            notes.append(f"{name}: {_shown(one)} → {_shown(other)}")
    for one_name, other_name in pairs:
        old, new = _column(before, one_name), _column(after, other_name)
        if old is not None and new is not None and old.column.knobs != new.column.knobs:
            notes.append(f"Column {one_name} has other knobs than {other_name} had.")
    return tuple(notes)


def _alone(before: EvalRun, after: EvalRun, pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The columns that only one of the runs has."""
    notes = []
    for run, used in (
        (before, {pair[0] for pair in pairs}),
        (after, {pair[1] for pair in pairs}),
    ):
        alone = [c.column.name for c in run.columns if c.column.name not in used]
        if alone:
            notes.append(f"Only in {run.name}: {', '.join(alone)}.")
    return tuple(notes)


def _shown(value: object) -> str:
    return "off" if value is None or value == "" else str(value)
