"""One question, four ranked lists, each as soon as it is ready."""

from __future__ import annotations

from collections.abc import Iterator

from rag_tui.engine.events import CancelToken, StageResult
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.types import SearchRequest


def search(
    request: SearchRequest, index: Index, models: Models, *, cancel: CancelToken | None = None
) -> Iterator[StageResult]:
    """The lists asked for, in the order bm25, vector, hybrid, reranked, each when it is done.

    A stage that fails yields its error; the others stand. When one retriever fails the hybrid
    list is made of the other one and its ``note`` says so.

    Raises:
        UsageError: When the request makes no sense (empty question, top_k below 1, ...).
        Cancelled: Soon after the token was set.
    """
    raise NotImplementedError
