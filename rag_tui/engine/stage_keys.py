"""What each stage of a search depends on: two requests with the same key have the same list."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import ref

from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.types import Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index


@dataclass(frozen=True, slots=True)
class StageKey:
    """What one stage's list depends on, and nothing else."""

    stage: str
    """``vector``, ``bm25``, ``fusion`` or ``rerank``."""
    index: ref[Index]
    """Indexes are compared by identity; the reference keeps none alive."""
    parts: tuple[Hashable, ...]
    """The parts of the request that matter, keys of the lists it is made from included."""


def vector_key(request: SearchRequest, index: Index) -> StageKey:
    """The vector list: question, embedder, depth, filter."""
    question = plain_question(request.query)
    return _key("vector", index, question, request.embedder, request.depth, request.where)


def bm25_key(request: SearchRequest, index: Index) -> StageKey:
    """The BM25 list: question with its operators, all parameters, depth, filter."""
    return _key("bm25", index, request.query, request.bm25, request.depth, request.where)


def fusion_key(request: SearchRequest, index: Index) -> StageKey:
    """The hybrid list of both others: kind, weights and, where it has one, k."""
    return _key(
        "fusion",
        index,
        request.fusion,
        request.rrf_k if request.fusion == "rrf" else None,
        (request.weight_vector, request.weight_bm25),
        vector_key(request, index),
        bm25_key(request, index),
    )


def rerank_key(request: SearchRequest, index: Index, source: Ranking) -> StageKey:
    """The reranked list: question, reranker, filter, and the very candidates that are read.

    Another k1 that leaves the candidates as they are changes nothing here.
    """
    candidates = tuple(hit.chunk_id for hit in source.hits[: request.rerank_depth])
    return _key(
        "rerank",
        index,
        plain_question(request.query),
        request.reranker,
        (source.method, request.rerank_depth),
        request.where,
        candidates,
    )


def _key(stage: str, index: Index, *parts: Hashable) -> StageKey:
    return StageKey(stage, ref(index), parts)
