"""Why a chunk stands where it stands after its lists were fused, reranked and trimmed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rag_tui.engine.explain_vector import (
    in_chunk_text,
    sentence_scores,
    text_spans,
)
from rag_tui.engine.explanations import (
    HybridExplanation,
    RerankExplanation,
    SentenceScore,
    StepsExplanation,
)
from rag_tui.engine.fusion import fused_parts, reciprocal_rank_fusion, weighted_sum_fusion
from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.reranking import sigmoid
from rag_tui.engine.types import Chunk, Method, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

_FUSED: tuple[Method, ...] = ("vector", "bm25")


def explain_hybrid(
    chunk_id: str, request: SearchRequest, rankings: Mapping[Method, Ranking]
) -> HybridExplanation | None:
    """The parts of a fused score, for any chunk; None when there is nothing to fuse.

    Without a hybrid list the numbers are those it would have with the knobs of the request.
    """
    shown = rankings.get("hybrid")
    fused = shown if shown is not None else _fuse(request, rankings, _FUSED)
    if fused is None:
        return None
    parts = fused_parts(chunk_id, fused, rankings)
    if not parts:
        return None
    methods: tuple[Method, ...] = fused.params["methods"]
    without: list[tuple[Method, int | None]] = []
    for method in methods:
        others = tuple(other for other in methods if other != method)
        rest = _refuse(fused, rankings, others)
        if rest is not None:
            without.append((method, rest.rank_of(chunk_id)))
    hit = fused.hit_of(chunk_id)
    # A list that weighs nothing holds no chunk of its own: those only it holds are not fused.
    is_held = any(part.rank is not None and part.weight > 0 for part in parts)
    return HybridExplanation(
        score=math.fsum(part.addend for part in parts) if is_held else 0.0,
        k=float(fused.params.get("k", 0.0)),
        parts=parts,
        fusion=fused.params.get("fusion", "rrf"),
        rank=hit.rank if hit and shown is not None else None,
        rank_without=tuple(without),
    )


def explain_reranked(
    chunk_id: str,
    request: SearchRequest,
    rankings: Mapping[Method, Ranking],
    *,
    unread_from: int | None = None,
) -> RerankExplanation | None:
    """What the reranker did to a chunk that it read; None for any other."""
    ranking = rankings.get("reranked")
    hit = ranking.hit_of(chunk_id) if ranking else None
    if ranking is None or hit is None:
        return None
    source_method: Method = ranking.params.get("from", request.rerank_from)
    source = rankings.get(source_method)
    logits: Mapping[str, float] = ranking.params.get("logits", {})
    score = logits.get(chunk_id, hit.score)
    return RerankExplanation(
        score=score,
        sigmoid=sigmoid(score),
        rank_before=source.rank_of(chunk_id) if source else None,
        rank_after=hit.rank,
        rank_from=source_method,
        n_read=len(ranking.hits),
        unread_from=unread_from,
    )


def reranker_unread_from(chunk: Chunk, request: SearchRequest, models: Models) -> int | None:
    """Character offset in a chunk's text from which on the reranker reads nothing; None: none.

    Raises:
        ModelError: When the reranker cannot be had.
    """
    text = chunk.embedded_text
    read = models.read_part(plain_question(request.query), text, request.reranker)
    return in_chunk_text(chunk, read)


def explain_rerank_sentences(
    chunk_id: str,
    request: SearchRequest,
    index: Index,
    models: Models,
    *,
    report: Callable[[int, int], object] | None = None,
    cancel: CancelToken | None = None,
) -> tuple[SentenceScore, ...]:
    """The reranker's score of each sentence of a chunk alone, in the order of the text.

    Args:
        chunk_id: The chunk.
        request: With the question and the name of the reranker.
        index: The index that holds the chunk.
        models: The session's models.
        report: Told after each sentence how many of how many are done.
        cancel: Polled between sentences.

    Raises:
        ModelError: When the reranker cannot be had.
        Cancelled: Soon after the token was set.
    """
    chunk = index.chunks[index.position_of[chunk_id]]
    spans = text_spans(chunk.text)
    if not spans:
        return ()
    question = plain_question(request.query)
    texts = [chunk.text[start:end] for start, end in spans]
    scores: list[float] = []
    for score in models.rerank_scores(question, texts, name=request.reranker, cancel=cancel):
        scores.append(score)
        if report is not None:
            report(len(scores), len(texts))
    return sentence_scores(chunk.text, spans, scores, reranker_unread_from(chunk, request, models))


def explain_steps(chunk_id: str, before: Ranking | None, shown: Ranking) -> StepsExplanation | None:
    """What the steps after ranking did with a chunk; None when no step is on.

    Args:
        chunk_id: The chunk.
        before: The finished list before any step.
        shown: The list after them.
    """
    if not shown.steps:
        return None
    removed = next((step for step in shown.steps if chunk_id in step.removed), None)
    into = next((head for head, ids in shown.folded.items() if chunk_id in ids), "")
    return StepsExplanation(
        rank_before=before.rank_of(chunk_id) if before else None,
        rank_after=shown.rank_of(chunk_id),
        removed_by=removed.name if removed else "",
        note=removed.note if removed else "",
        folded_into=into,
        folded=shown.folded.get(chunk_id, ()),
    )


def _fuse(
    request: SearchRequest, rankings: Mapping[Method, Ranking], methods: tuple[Method, ...]
) -> Ranking | None:
    lists = [rankings[method] for method in methods if method in rankings]
    if not lists:
        return None
    weight_of: dict[str, float] = {"vector": request.weight_vector, "bm25": request.weight_bm25}
    weights = [weight_of[one.method] for one in lists]
    if request.fusion == "rrf":
        return reciprocal_rank_fusion(lists, k=request.rrf_k, depth=request.depth, weights=weights)
    return weighted_sum_fusion(lists, kind=request.fusion, depth=request.depth, weights=weights)


def _refuse(
    fused: Ranking, rankings: Mapping[Method, Ranking], methods: tuple[Method, ...]
) -> Ranking | None:
    """The fusion with only some of its lists, all else as it was."""
    params = fused.params
    weight_of = dict(zip(params["methods"], params["weights"], strict=True))
    lists = [rankings[method] for method in methods if method in rankings]
    weights = [weight_of[one.method] for one in lists]
    if not any(weights):
        return None
    depth = int(params["depth"])
    if params.get("fusion", "rrf") == "rrf":
        return reciprocal_rank_fusion(lists, k=params["k"], depth=depth, weights=weights)
    return weighted_sum_fusion(lists, kind=params["fusion"], depth=depth, weights=weights)
