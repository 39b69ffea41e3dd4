"""What decides whether a question has to be asked again: the index, the column, the filter."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from rag_tui.engine.errors import ModelError
from rag_tui.engine.filters import where_mask
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.knobs import KNOBS, column_request, knob
from rag_tui.engine.types import Column, Method, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

_VECTOR = ("search.depth", "search.embedder")
_BM25 = ("search.depth", "bm25.")
_HYBRID = (*_VECTOR, *_BM25, "search.fusion", "search.rrf_k", "search.weight_")
_RERANKED = (*_HYBRID, "search.rerank_", "search.reranker")
_STEPS = ("post.fold", "post.max_per_document", "post.mmr")
_MATTERS: dict[Method, tuple[str, ...]] = {
    "vector": (*_VECTOR, *_STEPS, "post.min_vector"),
    "bm25": (*_BM25, *_STEPS, "post.min_bm25"),
    "hybrid": (*_HYBRID, *_STEPS, "post.min_hybrid"),
    "reranked": (*_RERANKED, *_STEPS, "post.min_reranked"),
}
"""Beginnings of the knobs that can change a method's list."""


def can_change(method: Method, knob_name: str) -> bool:
    """Whether turning a knob can change a method's list."""
    return any(knob_name.startswith(beginning) for beginning in _MATTERS[method])


def index_fingerprint(index: Index) -> str:
    """Changes when a chunk's searched text, the order of chunks or the embedding model changes.

    Vectors are a function of those texts and that model, so they are not read: the same corpus
    has the same fingerprint on every machine. Neither times, nor settings that led to the same
    chunks, nor where the folder lies have a part in it.
    """
    digest = blake2b(digest_size=16)
    embedder = index.manifest.embedder_fingerprint if index.vectors is not None else ""
    digest.update(embedder.encode())
    for chunk in index.chunks:
        text = f"\0{chunk.chunk_id}\0{chunk.embedded_text}"
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def column_fingerprint(
    request: SearchRequest, column: Column, index: Index, models: Models
) -> str | None:
    """Changes with whatever can change the column's lists on one index; None: not to be reused.

    The column's name, the number of rows shown and the knobs of other methods have no part in
    it. A model that cannot be loaded has no fingerprint, so its failure is never remembered.
    """
    own = column_request(request, column)
    parts: dict[str, object] = {
        spec.name: knob(own, spec.name) for spec in KNOBS if can_change(column.method, spec.name)
    }
    parts["method"] = column.method
    try:
        if column.method != "bm25" and own.embedder:
            parts["embedder"] = models.embedder(own.embedder).info.fingerprint
        if column.method == "reranked":
            parts["reranker"] = models.reranker(own.reranker).info.fingerprint
    except ModelError:
        return None
    allowed = where_mask(own.where, index)
    if allowed is not None:
        # the same words may allow other chunks once metadata or times have changed
        parts["where"] = blake2b(allowed.tobytes(), digest_size=16).hexdigest()
    return fingerprint(parts)
