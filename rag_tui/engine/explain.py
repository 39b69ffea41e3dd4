"""Why a chunk stands where it stands: the parts of its score in each list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.errors import UsageError
from rag_tui.engine.fusion import fusion_ranks, rrf_addend
from rag_tui.engine.types import BM25Params, Method, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.index import Index

_FUSED: tuple[Method, ...] = ("vector", "bm25")


@dataclass(frozen=True, slots=True)
class TermShare:
    """What one query word gives to a chunk's BM25 score."""

    term: str
    tf: int
    """Times it stands in the chunk, its headings included."""
    df: int
    """Chunks of the corpus that hold it."""
    idf: float
    length_factor: float
    """``1 - b + b * length / mean length``: above 1 weakens the word in long chunks."""
    contribution: float
    """Its part of the score; the parts sum to the score."""
    share: float
    """``contribution / score``; 0 when the score is 0."""


@dataclass(frozen=True, slots=True)
class BM25Explanation:
    """The lexical score of a chunk. A score of 0 without terms means that nothing matched."""

    score: float
    terms: tuple[TermShare, ...]
    """Query words that the chunk holds, by contribution descending, then in query order."""
    unmatched: tuple[tuple[str, int], ...]
    """Query words that it lacks and how many chunks hold each (0: a word the corpus lacks)."""
    chunk_length: int
    """Words of the chunk, its headings included."""
    mean_length: float
    params: BM25Params


@dataclass(frozen=True, slots=True)
class VectorExplanation:
    """How similar a chunk is to the question."""

    similarity: float
    """Cosine, -1 to 1."""
    rank: int | None
    """None when the list does not hold it, or there is no list."""
    n_ranked: int
    """Rows of the list."""
    gap_to_next: float | None
    """Similarity minus that of the row below; None for the last row and outside the list."""


@dataclass(frozen=True, slots=True)
class FusionPart:
    """What one list gives to a fused score."""

    method: Method
    rank: int | None
    """None when the list does not hold the chunk within the depth."""
    weight: float
    addend: float
    """``weight / (k + rank)``; 0 without a rank."""


@dataclass(frozen=True, slots=True)
class HybridExplanation:
    """The fused score of a chunk, the sum of its parts' addends."""

    score: float
    k: float
    parts: tuple[FusionPart, ...]


@dataclass(frozen=True, slots=True)
class RerankExplanation:
    """What reading question and chunk together changed."""

    score: float
    sigmoid: float
    """``1 / (1 + exp(-score))``: another scale for the same order, not a probability of use."""
    rank_before: int | None
    """In the hybrid list."""
    rank_after: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """One chunk in each list; None where there is nothing to say."""

    chunk_id: str
    bm25: BM25Explanation | None
    vector: VectorExplanation | None
    hybrid: HybridExplanation | None
    reranked: RerankExplanation | None


def explain(
    chunk_id: str,
    request: SearchRequest,
    index: Index,
    rankings: Mapping[Method, Ranking],
    *,
    query_vector: Vectors | None = None,
) -> Explanation:
    """The parts of one chunk's scores, for any chunk of the corpus, listed or not.

    Args:
        chunk_id: The chunk.
        request: The request that made the rankings.
        index: The index that was searched.
        rankings: The lists there are; missing ones are left out of the explanation.
        query_vector: float32 ``(dim,)``, L2 norm 1: the similarity of a chunk that the vector
            list does not hold is computed from it.

    Raises:
        UsageError: When the index has no such chunk.
        ModelError: When the query vector does not fit the index.
    """
    position = index.position_of.get(chunk_id)
    if position is None:
        raise UsageError(
            f"the index has no chunk {chunk_id}", "The folder has changed: search again."
        )
    return Explanation(
        chunk_id=chunk_id,
        bm25=_bm25(position, request, index),
        vector=_vector(chunk_id, position, index, rankings.get("vector"), query_vector),
        hybrid=_hybrid(chunk_id, request, rankings),
        reranked=_reranked(chunk_id, rankings),
    )


def _bm25(position: int, request: SearchRequest, index: Index) -> BM25Explanation:
    query_terms = WORDS.tokens(request.query)
    parts = index.bm25.term_parts(query_terms, position, request.bm25)
    score = math.fsum(part.contribution for part in parts)
    shares = [
        TermShare(
            term=part.term,
            tf=part.tf,
            df=part.df,
            idf=part.idf,
            length_factor=part.length_factor,
            contribution=part.contribution,
            share=part.contribution / score if score else 0.0,
        )
        for part in parts
        if part.tf
    ]
    return BM25Explanation(
        score=score,
        terms=tuple(sorted(shares, key=lambda share: -share.contribution)),
        unmatched=tuple((part.term, part.df) for part in parts if not part.tf),
        chunk_length=int(index.bm25.lengths[position]),
        mean_length=index.bm25.mean_length,
        params=request.bm25,
    )


def _vector(
    chunk_id: str,
    position: int,
    index: Index,
    ranking: Ranking | None,
    query_vector: Vectors | None,
) -> VectorExplanation | None:
    n_ranked = len(ranking.hits) if ranking else 0
    hit = ranking.hit_of(chunk_id) if ranking else None
    if ranking and hit:
        below = ranking.hits[hit.rank] if hit.rank < n_ranked else None
        gap = hit.score - below.score if below else None
        return VectorExplanation(hit.score, hit.rank, n_ranked, gap)
    if query_vector is None or index.vectors is None:
        return None
    import numpy as np

    from rag_tui.engine.retrievers.dense import check_query_vector, similarities

    check_query_vector(query_vector, index.vectors)
    here = np.array([position], dtype=np.int64)
    similarity = float(similarities(query_vector, index.vectors, here)[0])
    return VectorExplanation(similarity, None, n_ranked, None)


def _hybrid(
    chunk_id: str, request: SearchRequest, rankings: Mapping[Method, Ranking]
) -> HybridExplanation | None:
    fused = rankings.get("hybrid")
    # What the shown list was made with; the request may have changed since.
    params = fused.params if fused else {}
    methods: tuple[Method, ...] = params.get("methods", _FUSED)
    weights: tuple[float, ...] = params.get("weights", (1.0,) * len(methods))
    k = float(params.get("k", request.rrf_k))
    depth = int(params.get("depth", request.depth))
    parts: list[FusionPart] = []
    for method, weight in zip(methods, weights, strict=True):
        if method not in rankings:
            continue
        ranked = fusion_ranks(rankings[method], depth=depth)
        rank = next((rank for rank, hit in ranked if hit.chunk_id == chunk_id), None)
        addend = rrf_addend(rank, k=k, weight=weight) if rank is not None else 0.0
        parts.append(FusionPart(method, rank, weight, addend))
    if not parts:
        return None
    return HybridExplanation(math.fsum(part.addend for part in parts), k, tuple(parts))


def _reranked(chunk_id: str, rankings: Mapping[Method, Ranking]) -> RerankExplanation | None:
    hit = rankings["reranked"].hit_of(chunk_id) if "reranked" in rankings else None
    if hit is None:
        return None
    hybrid = rankings.get("hybrid")
    return RerankExplanation(
        score=hit.score,
        sigmoid=_sigmoid(hit.score),
        rank_before=hybrid.rank_of(chunk_id) if hybrid else None,
        rank_after=hit.rank,
    )


def _sigmoid(x: float) -> float:
    # Two forms, so that exp never overflows.
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
