"""The values of an evaluation: questions, evidence, what it resolves to, runs, comparisons.

Labels point at places in documents, never at chunk ids: they are resolved to whatever chunks
hold the text now, so they survive another way of chunking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from rag_tui.engine.types import Column

EMPTY: Mapping[str, Any] = MappingProxyType({})

Unit = Literal["passage", "document"]
"""What is judged. ``document``: a ranking is reduced to documents, each at its best chunk."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place in the documents that answers a question (or, with grade 0, does not)."""

    document: str
    """The document's id: its path in the corpus, ``corpus.jsonl#4711`` for a BEIR record."""
    quote: str = ""
    """Words that stand there; blank space counts as one space when it is looked for."""
    heading: str = ""
    """A heading's text, or ``Heading > Subheading``: the whole section."""
    lines: tuple[int, int] | None = None
    """First and last line, 1-based, both inclusive."""
    grade: int = 1
    """0 not relevant, 1 to 3 relevant."""

    @property
    def is_document(self) -> bool:
        """Whether the whole document is meant."""
        return not self.quote and not self.heading and self.lines is None


@dataclass(frozen=True, slots=True)
class Question:
    """One labelled question."""

    qid: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    """All judgements, those of grade 0 among them."""
    answerable: bool = True
    """False: nothing in the documents answers it."""
    answer: str = ""
    """The expected answer, for judging answers."""
    tags: tuple[str, ...] = ()
    synthetic: bool = False
    """Drafted by a program and accepted by a person."""
    place: str = ""
    """``questions.jsonl:12``: where it was read."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of one file or folder, in file order, ids unique."""

    name: str
    questions: tuple[Question, ...]
    unit: Unit = "passage"
    problems: tuple[str, ...] = ()
    """What was left out or is doubtful, one sentence each, with file, line and reason."""
    fingerprint: str = ""
    """Changes when any question or label changes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Evidence that was found in the documents as they are now."""

    evidence: Evidence
    document: str
    start: int
    end: int
    """Character offsets into the document's text, end-exclusive."""
    positions: tuple[int, ...]
    """Positions of the chunks that hold enough of it, ascending; never empty."""
    chunk_ids: tuple[str, ...] = ()
    """Ids of the same chunks, in the same order."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A question's labels in one index."""

    question: Question
    places: tuple[Place, ...]
    """In the order of the evidence; grade 0 included."""
    unresolved: tuple[tuple[Evidence, str], ...] = ()
    """Evidence that is nowhere, with the reason: no such document, quote not in it, …"""

    @property
    def is_judged(self) -> bool:
        """Whether at least one relevant place was found: only then is the question scored."""
        return any(place.evidence.grade > 0 for place in self.places)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One row of a column's list for one question, as kept in a run."""

    chunk_id: str
    document: str
    start: int
    end: int
    """Span in the document, so that a run can be scored after re-chunking; 0, 0: unknown."""
    score: float


@dataclass(frozen=True, slots=True)
class QuestionRun:
    """What one column gave for one question."""

    qid: str
    rows: tuple[Retrieved, ...] = ()
    """By rank, at most the run's depth."""
    error: str = ""
    """Why there is no list; such a question is not scored, never counted as 0."""
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ColumnRun:
    """One column over all questions."""

    column: Column
    score_name: str
    questions: tuple[QuestionRun, ...]
    """In the order of the question set; missing ones were not run (cancelled, or added later)."""
    imported_from: str = ""
    """File name for a run of another system; empty for our own."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """Several columns over one question set, with all that made them."""

    name: str
    created: str
    """UTC, ISO 8601."""
    folder: str
    index_fingerprint: str
    questions_fingerprint: str
    depth: int
    columns: tuple[ColumnRun, ...]
    knobs: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """The knobs of the request by dotted name, those of single columns aside."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap confidence interval."""

    mean: float
    low: float
    high: float
    n: int
    """Questions it is the mean of."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure of a column against the same measure of a baseline, question by question."""

    measure: str
    delta: float
    """Mean difference, column minus baseline."""
    p_value: float
    """Two-sided, paired randomisation test (Fisher; Smucker, Allan, Carterette 2007)."""
    wins: int
    ties: int
    losses: int
    noise: float
    """Mean differences smaller than this are noise on this set (95 % of random relabellings)."""
    is_identical: bool = False
    """Both ranked every question alike: ``no change``."""
