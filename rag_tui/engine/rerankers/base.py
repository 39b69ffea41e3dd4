"""The reranker protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

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
