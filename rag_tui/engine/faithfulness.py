"""Whether the sentences of an answer stand in the sources they cite: an aid to reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_tui.engine.claims import (
    Claim,
    claims_of,
    content_words,
    differs_in_negation,
    normalised,
)
from rag_tui.engine.closeness import (
    COSINE_MODEL,
    MAX_COMPARED,
    CheckedBy,
    EvidenceSentence,
    Passage,
    Scores,
    Verdict,
    judged,
    nearest_first,
    passages_of,
)
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.figures import FigureKind, FigureSet, figures_of
from rag_tui.engine.types import Answer, Prompt, Source

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.loading import Models

ABOUT = (
    "An aid, not a verdict. A sentence counts as supported when a sentence of its sources is close "
    "to it by reranker or embedding, and all its figures and names stand in them. The thresholds "
    "were found on 61 labelled sentences about the demo corpus. Closeness is no proof: a negated "
    "sentence looks supported, and so does one of which only a part is true."
)
"""To be shown with the checks."""


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A number, date, link or name of a claim that stands in none of the sources looked at."""

    kind: FigureKind
    text: str
    start: int
    end: int
    """Character offsets into the answer's text, end-exclusive."""
    elsewhere: tuple[int, ...] = ()
    """Sources that hold it, but are not cited by the claim."""
    in_question: bool = False
    """Whether the question has it."""


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """What was found for one claim."""

    claim: Claim
    verdict: Verdict
    compared: tuple[int, ...]
    """The sources it was compared with: those it cites, or all when it cites none."""
    nearest: EvidenceSentence | None
    """None when the sources hold no sentence."""
    by: CheckedBy
    logit: float | None = None
    """The reranker's score of claim and nearest sentence."""
    cosine: float | None = None
    """The cosine of claim and nearest sentence; None as well when its scale is not known."""
    shared_words: float = 0.0
    """Share of the claim's content words in the nearest sentence, 0 to 1."""
    missing: tuple[MissingFigure, ...] = ()
    note: str = ""
    """What a reader should know: nothing cited, a model missing, a negation that differs."""

    @property
    def cites(self) -> bool:
        """Whether the claim cites an existing source."""
        return bool(self.claim.numbers)


def support_share(checks: Sequence[ClaimCheck]) -> float | None:
    """The share of the claims that are supported; None when there are none."""
    return sum(c.verdict == "supported" for c in checks) / len(checks) if checks else None


def check_faithfulness(
    answer: Answer, prompt: Prompt, models: Models, *, cancel: CancelToken | None = None
) -> tuple[ClaimCheck, ...]:
    """Compare each claim of a finished answer with the sources of its prompt, in order.

    A claim is ``supported`` when its words stand in a source, or a sentence of the sources is
    close enough to it; ``unsupported`` when none is near; ``weak`` between the two, and whenever
    a figure or name of it is missing from its sources. Nothing is checked for the not-found
    sentence. Without models, shared words decide, and the checks say so. What it cannot see is
    said in `ABOUT`.

    Raises:
        Cancelled: Soon after the token was set.
    """
    token = cancel if cancel is not None else CancelToken()
    if answer.state == "not found":
        return ()
    claims = claims_of(answer)
    if not claims:
        return ()
    checker = _Checker(answer, prompt, models, token)
    return tuple(checker.check(claim) for claim in claims)


class _Checker:
    """The sources of one prompt, prepared once for all claims."""

    def __init__(self, answer: Answer, prompt: Prompt, models: Models, cancel: CancelToken) -> None:
        self._answer = answer
        self._prompt = prompt
        self._models = models
        self._cancel = cancel
        self._passages = [p for source in prompt.sources for p in passages_of(source)]
        self._figures = {s.number: FigureSet.of(_said(s)) for s in prompt.sources}
        self._asked = FigureSet.of(prompt.question)
        self._normal = {
            source.number: " ".join(
                p.normal for p in self._passages if p.at.number == source.number
            )
            for source in prompt.sources
        }
        self._vectors: Vectors | None = None
        self._problems: dict[str, str] = {}

    def check(self, claim: Claim) -> ClaimCheck:
        self._cancel.check()
        numbers = claim.numbers or tuple(source.number for source in self._prompt.sources)
        notes = [] if claim.numbers else ["cites no source: compared with all"]
        passages = [p for p in self._passages if p.at.number in numbers]
        if not passages:
            notes = ["the sources hold no sentence" if self._prompt.sources else "no sources"]
            checked = ClaimCheck(claim, "unsupported", numbers, None, "nothing")
        else:
            checked = self._quoted(claim, numbers, passages) or self._scored(
                claim, numbers, passages
            )
        missing = self._missing(claim, numbers)
        verdict: Verdict = checked.verdict
        if missing and verdict == "supported":
            verdict = "weak"
        if checked.by not in ("quotation", "nothing"):
            notes += self._problems.values()
            if checked.nearest and differs_in_negation(claim.text, checked.nearest.text):
                notes.append("negated in one of the two: read both")
        return replace(checked, verdict=verdict, missing=missing, note="; ".join(notes))

    def _quoted(
        self, claim: Claim, numbers: tuple[int, ...], passages: Sequence[Passage]
    ) -> ClaimCheck | None:
        """Supported by construction: the claim's words stand in a source as they are."""
        said = normalised(claim.text)
        words = content_words(claim.text)
        for number in numbers:
            if not _stands_in(said, self._normal.get(number, "")):
                continue
            own = [p for p in passages if p.at.number == number]
            nearest = max(own, key=lambda p: (said in p.normal, len(words & p.words)))
            return ClaimCheck(
                claim, "supported", numbers, nearest.at, "quotation", shared_words=1.0
            )
        return None

    def _scored(
        self, claim: Claim, numbers: tuple[int, ...], passages: Sequence[Passage]
    ) -> ClaimCheck:
        words = content_words(claim.text)
        scores = [Scores(p, len(words & p.words) / len(words)) for p in passages]
        scores = self._with_cosines(claim, scores)
        scores = self._with_logits(claim, nearest_first(scores)[:MAX_COMPARED])
        verdict, by, best = judged(scores)
        return ClaimCheck(
            claim,
            verdict,
            numbers,
            best.passage.at,
            by,
            logit=best.logit,
            cosine=best.cosine,
            shared_words=best.shared,
        )

    def _with_cosines(self, claim: Claim, scores: list[Scores]) -> list[Scores]:
        if "embedder" in self._problems:
            return scores
        try:
            embedder = self._models.embedder()
            if not embedder.info.name.rstrip("/").endswith(COSINE_MODEL):
                return scores
            if self._vectors is None:
                texts = [p.at.text for p in self._passages]
                self._vectors = embedder.embed_documents(texts, cancel=self._cancel)
            vector = embedder.embed_documents([claim.text], cancel=self._cancel)[0]
        except ModelError as error:
            self._problems["embedder"] = _one_line("without the embedder", error)
            return scores
        row_of = {id(passage): row for row, passage in enumerate(self._passages)}
        cosines = self._vectors @ vector
        return [replace(s, cosine=float(cosines[row_of[id(s.passage)]])) for s in scores]

    def _with_logits(self, claim: Claim, scores: list[Scores]) -> list[Scores]:
        if "reranker" in self._problems:
            return scores
        try:
            if not self._models.reranker().info.score_kind.name.startswith("logit"):
                self._problems["reranker"] = "the reranker's scale is not known: not used"
                return scores
            texts = [s.passage.read for s in scores]
            logits = list(self._models.rerank_scores(claim.text, texts, cancel=self._cancel))
        except ModelError as error:
            self._problems["reranker"] = _one_line("without the reranker", error)
            return scores
        return [replace(s, logit=logit) for s, logit in zip(scores, logits, strict=True)]

    def _missing(self, claim: Claim, numbers: tuple[int, ...]) -> tuple[MissingFigure, ...]:
        piece = self._answer.text[claim.start : claim.end]
        markers = [(a - claim.start, b - claim.start) for a, b in claim.markers]
        return tuple(
            MissingFigure(
                figure.kind,
                figure.text,
                claim.start + figure.start,
                claim.start + figure.end,
                elsewhere=tuple(n for n, held in self._figures.items() if held.holds(figure)),
                in_question=self._asked.holds(figure),
            )
            for figure in figures_of(piece, markers)
            if not any(self._figures[n].holds(figure) for n in numbers)
        )


def _stands_in(words: str, text: str) -> bool:
    """Whether words stand in a text, beginning and ending with whole words."""
    at = text.find(words)
    while at >= 0:
        before, behind = (
            text[at - 1 : at] if at else "",
            text[at + len(words) : at + len(words) + 1],
        )
        if not before.isalnum() and not behind.isalnum():
            return True
        at = text.find(words, at + 1)
    return False


def _said(source: Source) -> str:
    """All that the prompt says of a source."""
    return f"{source.path}\n{source.heading}\n{source.text}"


def _one_line(what: str, error: ModelError) -> str:
    return f"{what}: {' '.join(error.message.split())}"
