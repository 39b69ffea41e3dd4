"""The reranker protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rag_tui.engine.events import CancelToken
from rag_tui.engine.types import ScoreKind


@dataclass(frozen=True, slots=True)
class RerankerInfo:
    """What a reranker is."""

    name: str
    fingerprint: str
    max_tokens: int
    """Tokens read of question and passage together, special tokens included."""
    score_kind: ScoreKind
    backend: str = ""
    source: str = ""
    weights_sha256: str = ""
    precision: str = "float32"
    note: str = ""
    """What a user must know: a stand-in, no real model, why there is no fast path."""


class Reranker(Protocol):
    """Reads question and passage together and scores the pair."""

    @property
    def info(self) -> RerankerInfo:
        """What this reranker is."""
        ...

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One score per passage, in the given order, each as soon as it is known.

        A pair's score does not depend on the other passages. Higher is better.

        Raises:
            Cancelled: Soon after the token was set.
        """
        ...


@runtime_checkable
class BatchReranker(Reranker, Protocol):
    """A reranker that scores several pairs at once, or knows how far it reads."""

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        """Scores by index of the passage, each batch as soon as it is known, in any order.

        Every index comes once. A pair's score does not depend on the batch it was in.

        Raises:
            Cancelled: At most one batch after the token was set.
        """
        ...

    def read_part(self, query: str, passage: str) -> int:
        """Characters at the start of the passage that are read; its length when all of it is."""
        ...


def score_batches(
    reranker: Reranker, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
) -> Iterator[dict[int, float]]:
    """Scores by index of the passage, as `BatchReranker.score_batches`, with any reranker."""
    if isinstance(reranker, BatchReranker):
        yield from reranker.score_batches(query, passages, cancel=cancel)
        return
    for i, score in enumerate(reranker.score(query, passages, cancel=cancel)):
        yield {i: score}


def read_part(reranker: Reranker, query: str, passage: str) -> int:
    """Characters of the passage that are read; all of them where the reranker cannot tell."""
    if isinstance(reranker, BatchReranker):
        return reranker.read_part(query, passage)
    return len(passage)


def in_order(batches: Iterator[dict[int, float]], n: int) -> Iterator[float]:
    """The scores of ``n`` passages by rising index, each as soon as all before it are known."""
    known: dict[int, float] = {}
    for i in range(n):
        while i not in known:
            known.update(next(batches))
        yield known.pop(i)
