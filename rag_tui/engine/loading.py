"""Models, loaded at most once each, on first use, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.base import TokenCounter
from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.rerankers.base import Reranker
from rag_tui.engine.settings import ModelSettings

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors


class Models:
    """The embedder, the reranker and the token counter of one session."""

    def __init__(
        self,
        settings: ModelSettings,
        cache_dir: Path,
        *,
        report: Callable[[Progress], None] | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        raise NotImplementedError

    def embedder(self) -> Embedder:
        """The embedder, loading it if need be.

        Raises:
            ModelError: When it cannot be had; the same error again until `forget` is called.
        """
        raise NotImplementedError

    def reranker(self) -> Reranker:
        """The reranker, loading it if need be; raises `ModelError` as `embedder` does."""
        raise NotImplementedError

    def token_counter(self) -> TokenCounter:
        """The embedding model's own tokenizer, or a stated stand-in; never loads torch."""
        raise NotImplementedError

    def embed_query(self, text: str) -> Vectors:
        """The question's vector, float32 ``(dim,)``; remembered, so knobs cost no embedding."""
        raise NotImplementedError

    def rerank_scores(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """Scores in order; a (question, passage) pair is scored once a session."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget remembered failures, so that the next use tries again."""
        raise NotImplementedError
