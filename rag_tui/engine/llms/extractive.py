"""Answers without a language model: the sentences of the sources that answer best, quoted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.llms.sentences import split_sentences
from rag_tui.engine.types import Answer, Citation, Prompt, Source

if TYPE_CHECKING:
    from rag_tui.engine.loading import Models

# How these were found: 54 questions on the demo corpus, its own 22 and 32 more of the same kind
# (34 answerable, 20 not), five sources each, with the cross-encoder ms-marco-MiniLM-L-12-v2
# (int8) and all-MiniLM-L6-v2. No logit alone tells them apart: "What time is breakfast?", which
# nothing answers, gets -3.8, and "Can I bring my dog?", answered by a section on animals, -6.2.
# Either "logit at least 0" or "cosine at least 0.40" answers 31 of the 34 and 2 of the 20.
# That was with integer arithmetic; in float32 logits are about 0.2 lower, and the rule answers
# the demo's own 22 questions alike (README has the table).
CLEAR_LOGIT = 0.0
"""A cross-encoder's own border between relevant and not (a sigmoid of 0.5): enough alone."""
CLOSE_COSINE = 0.40
"""Cosine of question and best text that is enough alone; holds for `COSINE_MODEL` only."""
COSINE_MODEL = "all-MiniLM-L6-v2"
LONE_LOGIT = -3.5
"""Enough when no cosine by that scale can be had: answers 24 of the 34 and 2 of the 20."""
ENOUGH_WORDS = 0.5
"""Without models: the share of the question's content words that the best source must hold."""

MAX_SENTENCES = 3


class ExtractiveAnswerer:
    """Quotes one to three sentences that answer best, each with the number of its source.

    Needs no key and no network, and says the same every time. The reranker picks: first the
    sources (heading and text, as the search's own reranking reads them), then, in those close to
    the best, the sentences (each read with its heading). When nothing is relevant enough the
    answer is the not-found sentence. Without a reranker, shared words decide, and the answer's
    detail says so.

    Args:
        models: The session's reranker and embedder; loaded in a thread, on first use.
        not_found_below: The reranker's logit that the best source must reach; it takes the place
            of the rule of `CLEAR_LOGIT` and `CLOSE_COSINE`. None: that rule.
    """

    name = "extractive"

    def __init__(self, models: Models, *, not_found_below: float | None = None) -> None:
        self._models = models
        self._not_found_below = not_found_below

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """The answer after each sentence, then the finished one.

        Closing or cancelling stops the scoring. A sentence is quoted word for word, only line
        breaks become spaces. Where the numbers are is known without looking for them, so brackets
        inside a quote are never citations.
        """
        cancel = CancelToken()
        try:
            found = await asyncio.to_thread(self._find, prompt, cancel)
        finally:
            cancel.cancel()
        if not found.quotes:
            sentence = prompt.not_found
            yield Answer(sentence, "not found", self.name, detail=found.detail)
            return
        # A paragraph each: an unpaired backtick in one quote cannot swallow the next's number.
        text = ""
        citations: list[Citation] = []
        for quote in found.quotes:
            marker = f"[{quote.number}]"
            text += f"{quote.text} {marker}" if not text else f"\n\n{quote.text} {marker}"
            citations.append(Citation(len(text) - len(marker), len(text), (quote.number,)))
            growing = Answer(
                text, "streaming", self.name, citations=tuple(citations), knows_citations=True
            )
            yield growing
        yield replace(growing, state="complete", detail=found.detail)

    def _find(self, prompt: Prompt, cancel: CancelToken) -> _Found:
        if not prompt.sources:
            return _Found((), "There are no sources.")
        try:
            return self._find_by_reranker(prompt, cancel)
        except ModelError as error:
            found = _find_by_words(prompt)
            reason = " ".join(
                f"Chosen by shared words only, because the reranker is missing. {error}".split()
            )
            return replace(found, detail=f"{reason} {found.detail}".strip())

    def _find_by_reranker(self, prompt: Prompt, cancel: CancelToken) -> _Found:
        def score(texts: Sequence[str]) -> list[float]:
            return list(self._models.rerank_scores(prompt.question, texts, cancel=cancel))

        candidates = _ranked(prompt.sources, score, source_margin=2.0)
        if not candidates:
            return _Found((), "The sources hold no sentence.")
        shortfall = self._shortfall(prompt, candidates)
        if shortfall:
            return _Found((), f"Nothing is relevant enough. {shortfall}")
        return _Found(_best(candidates, margin=2.0), "")

    def _shortfall(self, prompt: Prompt, candidates: Sequence[_Candidate]) -> str:
        """Why the best sentence is not relevant enough, in numbers; empty when it is."""
        best = candidates[0]
        if self._not_found_below is not None:
            logit = max(candidate.source_score for candidate in candidates)
            needed = f"Best logit of a source {logit:.1f} (needs {self._not_found_below:g})."
            return "" if logit >= self._not_found_below else needed
        logit = max(best.score, best.source_score)
        if logit >= CLEAR_LOGIT:
            return ""
        cosine = self._cosine(prompt, best)
        if cosine is None:
            needed = f"Best logit of a sentence or section {logit:.1f} (needs {LONE_LOGIT:g})."
            return "" if logit >= LONE_LOGIT else needed
        needed = (
            f"Best logit of a sentence or section {logit:.1f} (needs {CLEAR_LOGIT:g}), "
            f"best cosine {cosine:.2f} (or {CLOSE_COSINE:.2f})."
        )
        return "" if cosine >= CLOSE_COSINE else needed

    def _cosine(self, prompt: Prompt, best: _Candidate) -> float | None:
        """The question's cosine with the best source or sentence, the higher; None: unknown."""
        try:
            embedder = self._models.embedder()
            if not embedder.info.name.rstrip("/").endswith(COSINE_MODEL):
                return None
            question = self._models.embed_query(prompt.question)
        except ModelError:
            return None
        texts = [_passage(best.source, best.source.text), _passage(best.source, best.text)]
        vectors = embedder.embed_documents(texts)
        return float((vectors @ question).max())


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: Source
    source_score: float
    ordinal: int
    """Position of the sentence in its source."""
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class _Quote:
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class _Found:
    quotes: tuple[_Quote, ...]
    detail: str


def _passage(source: Source, text: str) -> str:
    """What is scored: as a chunk's embedded text, so that search and answer share one score."""
    return f"{source.heading}\n\n{text}" if source.heading else text


def _ranked(
    sources: Sequence[Source],
    score: Callable[[Sequence[str]], list[float]],
    *,
    source_margin: float,
) -> list[_Candidate]:
    """Sentences of the sources close to the best one, best first, ties in reading order."""
    source_scores = score([_passage(source, source.text) for source in sources])
    floor = max(source_scores) - source_margin
    unscored = [
        _Candidate(source, source_score, ordinal, sentence, 0.0)
        for source, source_score in zip(sources, source_scores, strict=True)
        if source_score >= floor
        for ordinal, sentence in enumerate(split_sentences(source.text))
    ]
    scores = score([_passage(candidate.source, candidate.text) for candidate in unscored])
    scored = [replace(c, score=s) for c, s in zip(unscored, scores, strict=True)]
    return sorted(scored, key=lambda c: (-c.score, c.source.number, c.ordinal))


def _best(candidates: Sequence[_Candidate], *, margin: float) -> tuple[_Quote, ...]:
    """The first few candidates close to the best, in reading order, each text once."""
    close = [c for c in candidates if c.score >= candidates[0].score - margin]
    unique = list({c.text: c for c in reversed(close)}.values())[::-1][:MAX_SENTENCES]
    unique.sort(key=lambda c: (c.source.number, c.ordinal))
    return tuple(_Quote(c.source.number, c.text) for c in unique)


_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a am an and any are as at be been by can could did do does for from get had has have how "
        "i if in is it its may me must my no not of on or our shall should so some that the their "
        "them there these they this those to up us was we were what when where which who why will "
        "with would you your"
    )
)


def _find_by_words(prompt: Prompt) -> _Found:
    wanted = _content_words(prompt.question)
    if not wanted:
        return _Found((), "The question holds no content word.")

    def score(texts: Sequence[str]) -> list[float]:
        return [len(wanted & _content_words(text)) / len(wanted) for text in texts]

    candidates = _ranked(prompt.sources, score, source_margin=0.25)
    share = max((c.source_score for c in candidates), default=0.0)
    if share < ENOUGH_WORDS:
        return _Found((), f"The best source holds {share:.0%} of the question's words.")
    return _Found(_best(candidates, margin=0.0), "")


def _content_words(text: str) -> frozenset[str]:
    words = {word.casefold() for word in _WORD.findall(text)} - _STOP_WORDS
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words)
