"""How long the chunks are, how large the corpus is, and whether retrieval is needed at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rag_tui.engine.chunkers.base import TokenCounter
from rag_tui.engine.errors import UsageError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index

CONTEXT_WINDOW = 200_000
"""Tokens an answering model may be given at once, as a rule of thumb: set your model's own."""
PROMPT_TOKENS = 500
"""Tokens kept free for question and instructions when asking whether a corpus fits."""
ANSWER_TOKENS = 300
"""Tokens of an answer when costs are told."""
BINS = 10
"""Classes of the histogram below the model's limit."""

_DOCUMENTS_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost. The defaults are an example to overwrite, not a price list.

    Raises:
        UsageError: When a price is negative or not a number.
    """

    input: float = 5.0
    """Per million tokens read without a cache."""
    cache_write: float = 6.25
    """Per million tokens read and put into the prompt cache."""
    cache_read: float = 0.5
    """Per million tokens taken from the prompt cache."""
    output: float = 25.0
    """Per million tokens written."""
    currency: str = "USD"

    def __post_init__(self) -> None:
        for name in ("input", "cache_write", "cache_read", "output"):
            price = getattr(self, name)
            if not (math.isfinite(price) and price >= 0):
                raise UsageError(
                    f"the {name} price must be 0 or more per million tokens (got {price})",
                    "Set the price your provider names.",
                )


@dataclass(frozen=True, slots=True)
class LengthBin:
    """One class of the length histogram."""

    low: int
    """Tokens, inclusive."""
    high: int | None
    """Tokens, inclusive; None: no upper end."""
    n_chunks: int
    is_over: bool
    """Whether its chunks are longer than the model reads."""


@dataclass(frozen=True, slots=True)
class Pasting:
    """What one question costs, in the prices' currency, with an answer of `ANSWER_TOKENS`."""

    uncached: float
    """The whole corpus, read anew."""
    first_cached: float
    """The whole corpus, read and put into the cache."""
    next_cached: float
    """The whole corpus, taken from the cache while that lasts."""
    retrieved: float
    """Only the ``n_sources`` chunks that retrieval gives, of mean length."""
    caching_pays_from: int | None
    """Questions within the life of the cache from which caching is cheaper; None: never."""


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """The numbers of one corpus. Tokens are the embedding model's; other models count others."""

    n_documents: int
    n_chunks: int
    n_characters: int
    n_tokens: int
    """Of the documents' text, each part once."""
    is_estimate: bool
    """Whether ``n_tokens`` was scaled from the chunks instead of counted."""
    n_chunk_tokens: int
    """Of all chunks as they are embedded: context, overlap and special tokens included."""
    shortest: int
    median: float
    longest: int
    """Tokens of a chunk."""
    max_tokens: int
    """Tokens the model reads of one chunk; 0 when unknown."""
    n_over_limit: int
    n_lost_tokens: int
    """Tokens beyond the limit, of all chunks together."""
    histogram: tuple[LengthBin, ...]
    """Ascending, without gaps; every chunk is in exactly one class."""
    context_window: int
    pasting: Pasting

    @property
    def share_over_limit(self) -> float:
        """0 to 1."""
        return self.n_over_limit / self.n_chunks if self.n_chunks else 0.0

    @property
    def fits(self) -> bool:
        """Whether the corpus, a question and an answer fit into the context window together."""
        return self.n_tokens + PROMPT_TOKENS + ANSWER_TOKENS <= self.context_window

    @property
    def verdict(self) -> str:
        """Whether retrieval is needed at all, in a sentence or two."""
        size = f"{'About ' if self.is_estimate else ''}{self.n_tokens:,} tokens"
        if not self.fits:
            if self.n_tokens <= self.context_window:
                return (
                    f"{size} leave no room for question and answer in a context window of "
                    f"{self.context_window:,}: retrieval is needed."
                )
            times = self.n_tokens / self.context_window
            return (
                f"{size} are {times:.1f} times a context window of {self.context_window:,}: "
                "retrieval is needed."
            )
        share = self.n_tokens / self.context_window
        return (
            f"{size} fit into a context window of {self.context_window:,} ({share:.0%} of it): "
            "pasting everything would do. Retrieval has to earn its place by cost, speed or "
            "better answers."
        )


def corpus_facts(
    index: Index,
    *,
    counter: TokenCounter | None = None,
    context_window: int = CONTEXT_WINDOW,
    prices: Prices | None = None,
    n_sources: int = 5,
    cancel: CancelToken | None = None,
) -> CorpusFacts:
    """The facts of a corpus.

    Args:
        index: Not changed.
        counter: Counts the documents' own tokens; without one they are estimated from the tokens
            per character of the chunks, which costs nothing.
        context_window: Tokens.
        prices: Per million tokens; None: the example prices.
        n_sources: Chunks in a prompt when retrieval is used.
        cancel: Polled every few documents.

    Raises:
        UsageError: When the window or the number of sources is below 1.
        Cancelled: Soon after the token was set.
    """
    for name, value in (("context window", context_window), ("number of sources", n_sources)):
        if value < 1:
            raise UsageError(f"the {name} must be at least 1 (got {value})", "Give 1 or more.")
    token = cancel if cancel is not None else CancelToken()
    lengths, limit = index.n_tokens, index.manifest.max_tokens
    texts = [document.text[document.body_start :] for document in index.documents]
    n_tokens = _estimated(index, texts) if counter is None else _counted(texts, counter, token)
    over = lengths[lengths > limit] if limit > 0 else lengths[:0]
    n_chunk_tokens = int(lengths.sum())
    mean = n_chunk_tokens / len(lengths) if len(lengths) else 0.0
    return CorpusFacts(
        n_documents=len(index.documents),
        n_chunks=len(index.chunks),
        n_characters=sum(map(len, texts)),
        n_tokens=n_tokens,
        is_estimate=counter is None,
        n_chunk_tokens=n_chunk_tokens,
        shortest=int(lengths.min()) if len(lengths) else 0,
        median=float(np.median(lengths)) if len(lengths) else 0.0,
        longest=int(lengths.max()) if len(lengths) else 0,
        max_tokens=limit,
        n_over_limit=len(over),
        n_lost_tokens=int((over - limit).sum()),
        histogram=length_histogram(lengths, limit),
        context_window=context_window,
        pasting=_pasting(n_tokens, mean * n_sources, prices if prices is not None else Prices()),
    )


def length_histogram(lengths: npt.NDArray[np.int32], limit: int) -> tuple[LengthBin, ...]:
    """Chunks by length: `BINS` classes up to the limit, and one open class beyond it if needed.

    Args:
        lengths: int32 ``(n,)``: tokens a chunk.
        limit: Tokens the model reads; 0 when unknown. A limit far above the longest chunk makes
            no classes of its own: they then end at the longest.
    """
    if not len(lengths):
        return ()
    longest = int(lengths.max())
    is_limited = 0 < limit < BINS * longest
    top = max(limit if is_limited else longest, 1)
    edges = sorted({math.ceil(top * i / BINS) for i in range(BINS + 1)})
    bins = [
        _bin(lengths, low + 1 if low else 0, high, is_over=False) for low, high in pairwise(edges)
    ]
    return (*bins, _bin(lengths, top + 1, None, is_over=True)) if longest > top else tuple(bins)


def _bin(lengths: npt.NDArray[np.int32], low: int, high: int | None, *, is_over: bool) -> LengthBin:
    inside = lengths >= low if high is None else (lengths >= low) & (lengths <= high)
    return LengthBin(low, high, int(inside.sum()), is_over)


def _counted(texts: Sequence[str], counter: TokenCounter, token: CancelToken) -> int:
    n = 0
    for low in range(0, len(texts), _DOCUMENTS_AT_A_TIME):
        token.check()
        n += sum(counter.count(texts[low : low + _DOCUMENTS_AT_A_TIME]))
    return n


def _estimated(index: Index, texts: Sequence[str]) -> int:
    """Scaled from the chunks' tokens per character that is not blank."""
    n_solid = sum(map(_n_solid, (chunk.embedded_text for chunk in index.chunks)))
    if not n_solid:
        return 0
    # Two special tokens a chunk, as nearly all encoders add.
    n_chunk_tokens = max(int(index.n_tokens.sum()) - 2 * len(index.chunks), 0)
    return round(n_chunk_tokens * sum(map(_n_solid, texts)) / n_solid)


def _n_solid(text: str) -> int:
    return len("".join(text.split()))


def _pasting(n_tokens: int, n_retrieved: float, prices: Prices) -> Pasting:
    millionth = 1e-6
    answer = ANSWER_TOKENS * prices.output * millionth
    corpus = n_tokens * millionth
    saving = prices.input - prices.cache_read
    surcharge = prices.cache_write - prices.input
    # n questions cost n * input without a cache, and write + (n - 1) * read with one.
    pays_from = max(1, math.floor(surcharge / saving + 1) + 1) if saving > 0 else None
    return Pasting(
        uncached=corpus * prices.input + answer,
        first_cached=corpus * prices.cache_write + answer,
        next_cached=corpus * prices.cache_read + answer,
        retrieved=n_retrieved * millionth * prices.input + answer,
        caching_pays_from=pays_from,
    )
