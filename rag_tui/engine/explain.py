"""Why a chunk stands where it stands: the parts of its score in each list of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_tui.engine.errors import UsageError
from rag_tui.engine.explain_bm25 import explain_bm25
from rag_tui.engine.explain_fusion import (
    explain_hybrid,
    explain_rerank_sentences,
    explain_reranked,
    explain_steps,
    reranker_unread_from,
)
from rag_tui.engine.explain_vector import explain_sentences, explain_vector, unread_from
from rag_tui.engine.explain_words import HeatMap, HeatSpan, heat_map
from rag_tui.engine.explanations import (
    BM25Explanation,
    Explanation,
    FusionPart,
    Histogram,
    HybridExplanation,
    MatchedWord,
    OperatorCheck,
    QueryWord,
    RerankExplanation,
    SentenceScore,
    StepsExplanation,
    TermShare,
    VectorExplanation,
)
from rag_tui.engine.filters import where_mask
from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.types import Method, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Similarity, Vectors
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

__all__ = [
    "BM25Explanation",
    "Explanation",
    "FusionPart",
    "HeatMap",
    "HeatSpan",
    "Histogram",
    "HybridExplanation",
    "MatchedWord",
    "OperatorCheck",
    "QueryWord",
    "RerankExplanation",
    "SentenceScore",
    "StepsExplanation",
    "TermShare",
    "VectorExplanation",
    "explain",
    "explain_rerank_sentences",
    "explain_sentences",
    "heat_map",
]


def explain(
    chunk_id: str,
    request: SearchRequest,
    index: Index,
    rankings: Mapping[Method, Ranking],
    *,
    query_vector: Vectors | None = None,
    models: Models | None = None,
    shown: Ranking | None = None,
) -> Explanation:
    """The parts of one chunk's scores, for any chunk of the corpus, listed or not.

    Args:
        chunk_id: The chunk.
        request: The request that made the rankings, with the knobs of their column.
        index: The index that was searched.
        rankings: The lists of the pipeline before the steps after ranking; missing ones are left
            out of the explanation.
        query_vector: float32 ``(dim,)``: the similarity of a chunk that the vector list does not
            hold, and its place in the whole corpus, are computed from it.
        models: With them the vectors of another embedder are found, and where the models stop
            reading is told. Only models that the lists have used are asked.
        shown: The list after the steps after ranking.

    Raises:
        UsageError: When the index has no such chunk.
        ModelError: When the query vector does not fit the index.
    """
    position = index.position_of.get(chunk_id)
    if position is None:
        raise UsageError(
            f"the index has no chunk {chunk_id}", "The folder has changed: search again."
        )
    reranked_unread: int | None = None
    is_read = "reranked" in rankings and rankings["reranked"].rank_of(chunk_id) is not None
    if models is not None and is_read:
        reranked_unread = reranker_unread_from(index.chunks[position], request, models)
    return Explanation(
        chunk_id=chunk_id,
        bm25=explain_bm25(position, request, index, rankings.get("bm25")),
        vector=_vector(position, request, index, rankings.get("vector"), query_vector, models),
        hybrid=explain_hybrid(chunk_id, request, rankings),
        reranked=explain_reranked(chunk_id, request, rankings, unread_from=reranked_unread),
        steps=explain_steps(chunk_id, rankings.get(shown.method), shown) if shown else None,
        column=shown.column if shown else "",
    )


def _vector(
    position: int,
    request: SearchRequest,
    index: Index,
    ranking: Ranking | None,
    query_vector: Vectors | None,
    models: Models | None,
) -> VectorExplanation | None:
    vectors = index.vectors
    similarity: Similarity = index.manifest.similarity
    unread: int | None = None
    if models is not None:
        unread = unread_from(position, index, models, request.embedder)
        if ranking is not None:
            # The list was made with them, so that they are at hand.
            query_vector = models.embed_query(plain_question(request.query), request.embedder)
            vectors = models.vectors(index, request.embedder)
            similarity = models.embedder(request.embedder).info.similarity
    return explain_vector(
        position,
        index,
        ranking,
        query_vector,
        vectors,
        allowed=where_mask(request.where, index),
        similarity=similarity,
        unread_from=unread,
    )
