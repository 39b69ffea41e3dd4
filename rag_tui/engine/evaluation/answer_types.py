"""The values of an evaluation of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_tui.engine.evaluation.refusals import AnswerKind, Outcome
from rag_tui.engine.evaluation.types import EMPTY
from rag_tui.engine.types import NOT_FOUND, AnswerState

JudgeVerdict = Literal["correct", "partly", "wrong", "no verdict"]
VERDICTS: tuple[JudgeVerdict, ...] = ("correct", "partly", "wrong", "no verdict")


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where a source of a prompt stood in the documents."""

    number: int
    chunk_id: str
    document: str
    start: int
    end: int
    """Character span in the document, neighbours that were added to it included."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says about one answer."""

    verdict: JudgeVerdict
    reason: str
    """The judge's own words; for no verdict, why there is none."""
    rubric: str
    """Name and version of the rules it was judged by."""
    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """The claims of an answer by their support (`rag_tui.engine.faithfulness`)."""

    supported: int = 0
    weak: int = 0
    unsupported: int = 0
    n_missing: int = 0
    """Figures and names that stand in no source."""
    n_uncited: int = 0
    """Claims that cite no source."""
    note: str = ""
    """What the check had to do without."""

    @property
    def n_claims(self) -> int:
        """All claims."""
        return self.supported + self.weak + self.unsupported

    @property
    def support_share(self) -> float | None:
        """The share of supported claims; None without any claim."""
        return self.supported / self.n_claims if self.n_claims else None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One question's answer, as kept."""

    key: str
    """Hash of the question, the prompt's text, the answerer and its settings."""
    qid: str
    question: str
    is_answerable: bool
    text: str
    state: AnswerState
    kind: AnswerKind
    outcome: Outcome
    """By the labels and chunks at the time of the run."""
    answerer: str
    sources: tuple[SourceRef, ...] = ()
    cited: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    """Cited numbers that no source has."""
    detail: str = ""
    checks: CheckCounts = CheckCounts()
    elapsed_s: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    judgement: Judgement | None = None
    column: str = ""
    """The column its sources came from."""
    not_found: str = NOT_FOUND
    """The sentence that means not found in its prompt."""


@dataclass(frozen=True, slots=True)
class AnswerRun:
    """The answers to a set of questions."""

    name: str
    created: str
    """UTC, ISO 8601."""
    folder: str
    answerer: str
    index_fingerprint: str
    questions_fingerprint: str
    rows: tuple[AnswerRow, ...]
    """In the order of the question set; what is missing was not asked."""
    n_questions: int = 0
    n_known: int = 0
    """Rows that were in the store before."""
    spent: float = 0.0
    """What this pass cost, judging included; rows from before cost nothing again."""
    currency: str = "USD"
    stopped: str = ""
    """Why it ended before the last question; empty when it did not."""
    settings: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """Column, template, model, number of sources and the other settings by name."""


@dataclass(frozen=True, slots=True)
class AnswerProgress:
    """How far an evaluation of answers has come."""

    done: int
    total: int
    n_known: int
    spent: float
    currency: str
    row: AnswerRow | None = None
    """The one just finished."""
