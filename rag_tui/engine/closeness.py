"""How close a claim is to the sentences of its sources, and what counts as close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.claims import content_words, normalised
from rag_tui.engine.sentences import sentences
from rag_tui.engine.types import Source

Verdict = Literal["supported", "weak", "unsupported"]
CheckedBy = Literal["quotation", "models", "reranker", "embedder", "words", "nothing"]

# tests/data/claims.jsonl: 61 sentences about the demo corpus, each against one section, with
# ms-marco-MiniLM-L-12-v2 (int8 weights; the logits here with integer arithmetic, the table also in
# float32) and all-MiniLM-L6-v2. Off-topic sentences got logits from -11.1 to
# -7.2 and cosines from 0.08 to 0.35; true ones logits from 6.4 up (close to the words) and from
# -9.8 to 6.9 (paraphrased; cosines from 0.39 up). Supported / weak / unsupported then were:
#   12 close to the words   12 /  0 /  0
#   17 paraphrased          15 /  2 /  0
#   13 with a wrong figure   0 / 13 /  0
#    6 negated               6 /  0 /  0
#   13 off topic             0 /  0 / 13
# The remark on negation stood at 4 of the 6 negated ones and at 6 of the 29 true ones.
# tests/engine/test_faithfulness.py holds this table to the code.
CLEAR_LOGIT = 0.0
"""Logit of claim and sentence that is enough alone."""
CLOSE_COSINE = 0.50
"""Cosine that is enough alone; by the scale of `COSINE_MODEL` only."""
FAINT_LOGIT = -4.0
FAINT_COSINE = 0.40
"""Below both of these a claim is unsupported."""
MOST_WORDS = 0.60
SOME_WORDS = 0.35
"""Without models: the share of the claim's content words that the nearest sentence holds."""
COSINE_MODEL = "all-MiniLM-L6-v2"

MAX_COMPARED = 12
"""Sentences of the sources that the reranker reads for one claim, the nearest by embedding and
shared words."""


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """The sentence of a source that is nearest to a claim."""

    number: int
    """The source's number."""
    start: int
    end: int
    """Character offsets into ``Source.text``, end-exclusive."""
    text: str
    """As one line."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a source, with what the models read."""

    at: EvidenceSentence
    normal: str
    words: frozenset[str]
    read: str
    """Heading and sentence, as search and extractive answers give it to the reranker."""


@dataclass(frozen=True, slots=True)
class Scores:
    """What the models say about one claim and one passage."""

    passage: Passage
    shared: float
    cosine: float | None = None
    logit: float | None = None


def judged(scores: Sequence[Scores]) -> tuple[Verdict, CheckedBy, Scores]:
    """Verdict, what decided, and the nearest passage, the first of equals."""
    has_logits = scores[0].logit is not None
    has_cosines = scores[0].cosine is not None
    if not has_logits and not has_cosines:
        best = max(scores, key=lambda s: s.shared)
        return _graded(best.shared, MOST_WORDS, SOME_WORDS), "words", best
    by_logit = max(scores, key=lambda s: s.logit if s.logit is not None else -99.0)
    by_cosine = max(scores, key=lambda s: s.cosine if s.cosine is not None else -1.0)
    verdicts: list[Verdict] = []
    if by_logit.logit is not None:
        verdicts.append(_graded(by_logit.logit, CLEAR_LOGIT, FAINT_LOGIT))
    if by_cosine.cosine is not None:
        verdicts.append(_graded(by_cosine.cosine, CLOSE_COSINE, FAINT_COSINE))
    order: tuple[Verdict, ...] = ("supported", "weak", "unsupported")
    verdict = min(verdicts, key=order.index)
    # A reranker that finds nothing gives every sentence about the same: the cosine knows better.
    is_read = by_logit.logit is not None and by_logit.logit >= FAINT_LOGIT
    best = by_logit if is_read or not has_cosines else by_cosine
    if has_logits and has_cosines:
        return verdict, "models", best
    return verdict, "reranker" if has_logits else "embedder", best


def _graded(score: float, clear: float, faint: float) -> Verdict:
    if score >= clear:
        return "supported"
    return "weak" if score >= faint else "unsupported"


def nearest_first(scores: Sequence[Scores]) -> list[Scores]:
    """By the better of two ranks, cosine and shared words, so that each brings its best."""
    by_words = sorted(range(len(scores)), key=lambda i: -scores[i].shared)
    by_cosine = sorted(range(len(scores)), key=lambda i: -(scores[i].cosine or 0.0))
    rank = dict.fromkeys(range(len(scores)), len(scores))
    for order in (by_words, by_cosine):
        for place, i in enumerate(order):
            rank[i] = min(rank[i], place)
    chosen = sorted(range(len(scores)), key=lambda i: (rank[i], i))
    return [scores[i] for i in chosen]


def passages_of(source: Source) -> list[Passage]:
    """The sentences of a source, in order."""
    return [
        Passage(
            EvidenceSentence(source.number, sentence.start, sentence.end, sentence.text),
            normalised(sentence.text),
            content_words(sentence.text),
            f"{source.heading}\n\n{sentence.text}" if source.heading else sentence.text,
        )
        for sentence in sentences(source.text)
    ]
