"""What an evaluation says: columns by measures, with all that keeps a reader from being fooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.evaluation.thresholds import Separation
from rag_tui.engine.evaluation.types import Comparison, Interval, Unit

GroupKind = Literal["tag", "document", "length"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one column."""

    measure: str
    interval: Interval | None
    """Mean with its bootstrap confidence interval; None: not scored."""
    low: float | None = None
    high: float | None = None
    """The mean if no row without a label were relevant, and if all of them were: bounds of what
    more labels could make of it. Both are the mean where every row is judged."""
    comparison: Comparison | None = None
    """With the baseline, over the questions that both have a list for; None without one."""


@dataclass(frozen=True, slots=True)
class ColumnScores:
    """One column of the table."""

    name: str
    score_name: str
    cells: tuple[Cell, ...]
    """One per measure of the table, in its order."""
    n_scored: int
    """Questions that the means are of: judged ones with a list."""
    n_without_list: int
    """Judged questions without one: failed, or not asked. They are left out, never counted 0."""
    n_unjudged: int
    """Rows without a label among the first `ScoreTable.k` of the scored questions."""
    n_rows: int
    """All rows among those."""
    errors: tuple[tuple[str, str], ...] = ()
    """Question id and reason, of failed questions, also unjudged and unanswerable ones."""
    reason: str = ""
    """Why the column is not scored at all; empty when it is."""
    is_in_baseline: bool = False
    """Whether the baseline has scores to compare with."""
    separation: Separation | None = None
    """How well the best score tells unanswerable questions from others; None: it cannot be
    said, for instance because the set has no unanswerable question."""
    seconds: float = 0.0
    """What its lists took, together; 0 for imported ones."""
    imported_from: str = ""

    def cell(self, measure: str) -> Cell | None:
        """The cell of a measure."""
        return next((cell for cell in self.cells if cell.measure == measure), None)


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """One judged question in every column."""

    qid: str
    text: str
    tags: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """By column, then measure; None where the column has no list."""
    ranks: tuple[int | None, ...]
    """By column: rank of the first evidence; None: not in the list, or no list."""
    has_list: tuple[bool, ...]
    """By column."""
    baseline_rank: int | None = None
    """In the run that is the baseline, first column that both have."""

    @property
    def disagreement(self) -> float:
        """Largest less smallest reciprocal rank of the first evidence among the lists, 0 to 1."""
        found = [
            0.0 if rank is None else 1 / rank
            for rank, has_list in zip(self.ranks, self.has_list, strict=True)
            if has_list
        ]
        return max(found) - min(found) if found else 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that have something in common."""

    kind: GroupKind
    name: str
    """The tag, the document of the first evidence, or ``4 to 8 words``."""
    n: int
    means: tuple[tuple[float | None, ...], ...]
    """By column, then measure; None where no question of the group has a list."""


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """A run, scored."""

    run: str
    """Name of the run."""
    measures: tuple[str, ...]
    unit: Unit
    k: int
    """Rows in which unjudged ones are counted: the largest cut-off of the measures."""
    columns: tuple[ColumnScores, ...]
    questions: tuple[QuestionScores, ...]
    """Judged ones, in the order of the set."""
    groups: tuple[Group, ...]
    baseline: str
    """What is compared with: a column's name, or ``run NAME``; empty: nothing."""
    n_questions: int
    n_answerable: int
    n_unanswerable: int
    n_judged: int
    """Answerable questions with at least one label that was found in the documents."""
    unlabelled: tuple[str, ...]
    """Ids of answerable questions without any label of grade 1 or more."""
    unresolved: tuple[str, ...]
    """Labels that are nowhere, one sentence each: question, evidence, reason."""
    notes: tuple[str, ...] = ()
    """What else a reader must know, such as a baseline over other questions."""

    def column(self, name: str) -> ColumnScores | None:
        """A column by its name."""
        return next((column for column in self.columns if column.name == name), None)

    def noise_of(self, measure: str) -> dict[str, float]:
        """By column, the largest difference from the baseline that is still noise.

        Each pair of columns has its own: where few questions differ, a smaller difference is more
        than chance. A single figure for all of them would deny what ▲ and ▼ say.
        """
        found: dict[str, float] = {}
        for column in self.columns:
            for cell in column.cells:
                compared = cell.comparison if cell.measure == measure else None
                if compared is not None and not compared.is_identical and compared.noise > 0:
                    found[column.name] = compared.noise
        return found

    @property
    def noise(self) -> dict[str, float]:
        """Per measure the largest difference that is still noise, over all comparisons.

        Each pair of columns has its own (`noise_of`): this one is only the widest of them.
        """
        found: dict[str, float] = {}
        for column in self.columns:
            for cell in column.cells:
                if cell.comparison is not None and not cell.comparison.is_identical:
                    found[cell.measure] = max(found.get(cell.measure, 0.0), cell.comparison.noise)
        return found

    def disagreements(self) -> tuple[QuestionScores, ...]:
        """Questions on which the columns differ, most first; ties in the order of the set."""
        differing = [question for question in self.questions if question.disagreement > 0]
        return tuple(sorted(differing, key=lambda question: -question.disagreement))

    def worst(self, measure: str) -> tuple[QuestionScores, ...]:
        """Questions by their best value of a measure in any column, worst first."""
        place = self.measures.index(measure)

        def best(question: QuestionScores) -> float:
            found = [row[place] for row in question.values]
            return max((value for value in found if value is not None), default=0.0)

        return tuple(sorted(self.questions, key=best))
