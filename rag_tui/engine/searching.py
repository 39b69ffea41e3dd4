"""One question, four ranked lists, each as soon as it is ready."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.errors import BadIndexError, Cancelled, ModelError, UsageError
from rag_tui.engine.events import CancelToken, StageError, StageResult
from rag_tui.engine.filters import Mask, parse, where_mask
from rag_tui.engine.fusion import reciprocal_rank_fusion
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.retrievers.bm25 import retrieve_bm25
from rag_tui.engine.retrievers.dense import retrieve_dense
from rag_tui.engine.types import Hit, Method, Ranking, SearchRequest

MAX_QUERY_WORDS = 1000
"""Longer questions are refused: every model here reads far less, and would cut them silently."""

_log = logging.getLogger("rag_tui.search")

_NEEDS: dict[Method, tuple[Method, ...]] = {
    "bm25": (),
    "vector": (),
    "hybrid": ("bm25", "vector"),
    "reranked": ("bm25", "vector", "hybrid"),
}
_ORDER: tuple[Method, ...] = ("bm25", "vector", "hybrid", "reranked")


def check_request(request: SearchRequest) -> None:
    """Refuse a request that makes no sense.

    Raises:
        UsageError: Naming the value, the rule and the fix.
    """
    n_words = len(request.query.split())
    if n_words == 0:
        raise UsageError("The question is empty.", "Type a question or some words to search for.")
    if n_words > MAX_QUERY_WORDS:
        raise UsageError(
            f"The question has {n_words:,} words; at most {MAX_QUERY_WORDS:,} are accepted.",
            "Ask a shorter question: embedding models read only a few hundred tokens of it.",
        )
    for name, value in (
        ("top_k", request.top_k),
        ("depth", request.depth),
        ("rerank_depth", request.rerank_depth),
    ):
        if value < 1:
            raise UsageError(
                f"{name} must be at least 1 (got {value}).", f"Set {name} to 1 or more."
            )
    if request.top_k > request.depth:
        raise UsageError(
            f"top_k must not be larger than depth (got top_k {request.top_k} > "
            f"depth {request.depth}).",
            f"Raise depth to {request.top_k} or more, or lower top_k.",
        )
    if not (math.isfinite(request.rrf_k) and request.rrf_k >= 0):
        raise UsageError(
            f"rrf_k must be a number of at least 0 (got {request.rrf_k}).",
            "Set rrf_k to 60, the value of the paper, or to another number from 0 up.",
        )
    if request.where.strip():
        parse(request.where)


def search(
    request: SearchRequest, index: Index, models: Models, *, cancel: CancelToken | None = None
) -> Iterator[StageResult]:
    """The lists asked for, in the order bm25, vector, hybrid, reranked, each when it is done.

    A stage that fails yields its error; the others stand. When one retriever fails the hybrid
    list is made of the other one and its ``note`` says so. ``request.where`` decides what may be
    ranked at all, before any list is made: each holds as many rows as it would over a corpus of
    only the allowed chunks, with the scores of the whole one. ``Ranking.params["where"]`` holds
    the filter.

    Raises:
        UsageError: When the request makes no sense (empty question, top_k below 1, a filter that
            cannot be read or names an unknown key, ...).
        Cancelled: Soon after the token was set.
    """
    check_request(request)
    token = cancel if cancel is not None else CancelToken()
    allowed = where_mask(request.where, index)
    wanted = {need for method in request.methods for need in (*_NEEDS[method], method)}
    if not request.rerank:
        wanted.discard("reranked")
    done: dict[Method, Ranking] = {}
    errors: dict[Method, StageError] = {}
    stages: dict[Method, Callable[[], Ranking]] = {
        "bm25": lambda: _bm25(request, index, allowed),
        "vector": lambda: _vector(request, index, models, allowed),
        "hybrid": lambda: _hybrid(request, done, errors),
        "reranked": lambda: _rerank(request, index, models, done, errors, token),
    }
    for stage in _ORDER:
        if stage not in wanted:
            continue
        token.check()
        started = time.perf_counter()
        result = _run(stage, stages[stage], started)
        if result.ranking is not None:
            ranking = result.ranking
            if allowed is not None:
                ranking = _with_filter(ranking, request.where, is_empty=not allowed.any())
                result = replace(result, ranking=ranking)
            done[stage] = ranking
        elif result.error is not None:
            errors[stage] = result.error
        if stage in request.methods:
            yield result


def _run(stage: Method, work: Callable[[], Ranking], started: float) -> StageResult:
    try:
        ranking = work()
    except Cancelled:
        raise
    except Exception as error:  # one failing stage must never hide the other lists
        _log.warning("stage %s failed", stage, exc_info=True)
        return StageResult(
            stage,
            error=StageError.from_exception(error),
            elapsed_s=time.perf_counter() - started,
        )
    elapsed = time.perf_counter() - started
    return StageResult(stage, ranking=replace(ranking, elapsed_s=elapsed), elapsed_s=elapsed)


def _with_filter(ranking: Ranking, where: str, *, is_empty: bool) -> Ranking:
    note = "the filter allows no chunk" if is_empty else ranking.note
    return replace(ranking, note=note, params=MappingProxyType({**ranking.params, "where": where}))


def _bm25(request: SearchRequest, index: Index, allowed: Mask | None) -> Ranking:
    return retrieve_bm25(
        request.query,
        index.bm25,
        index.chunk_ids,
        request.bm25,
        depth=request.depth,
        analyzer=WORDS,
        candidates=allowed,
    )


def _vector(request: SearchRequest, index: Index, models: Models, allowed: Mask | None) -> Ranking:
    if index.vectors is None:
        raise BadIndexError(
            "This index has no vectors yet.",
            "Index the folder again (ctrl+r in the app, or `rag-tui index`) to make them; "
            "`rag-tui doctor` tells which models are found.",
        )
    info = models.embedder().info
    check_model(index, info.name, info.fingerprint, info.dimensions)
    return retrieve_dense(
        models.embed_query(request.query),
        index.vectors,
        index.chunk_ids,
        depth=request.depth,
        candidates=allowed,
    )


def check_model(index: Index, name: str, fingerprint: str, dimensions: int) -> None:
    """Refuse to search vectors with another model than the one that made them.

    Raises:
        ModelError: Naming both models and both ways out.
    """
    made_by = index.manifest
    if fingerprint != made_by.embedder_fingerprint:
        raise ModelError(
            f"The index was made with {made_by.embedder_name} ({made_by.dimensions} dimensions), "
            f"but {name} ({dimensions} dimensions) is set.",
            f"Run `rag-tui index {index.folder} --embedder {name}` (or press f9 in the app) to "
            f"rebuild it with that model, or set models.embedder to {made_by.embedder_name}.",
        )


def _hybrid(
    request: SearchRequest, done: dict[Method, Ranking], errors: dict[Method, StageError]
) -> Ranking:
    lists = [done[method] for method in ("vector", "bm25") if method in done]
    if not lists:
        raise BadIndexError(
            "Neither the vector nor the BM25 list could be made.", "Mend one of them first."
        )
    fused = reciprocal_rank_fusion(lists, k=request.rrf_k, depth=request.depth)
    if len(lists) == 2:
        return fused
    only, missing = ("keyword", "vector") if "bm25" in done else ("vector", "bm25")
    reason = errors[missing].message if missing in errors else f"no {missing} list"
    return replace(fused, note=f"{only} only: {reason}")


def _rerank(
    request: SearchRequest,
    index: Index,
    models: Models,
    done: dict[Method, Ranking],
    errors: dict[Method, StageError],
    cancel: CancelToken,
) -> Ranking:
    if "hybrid" not in done:
        raise BadIndexError(
            f"There are no candidates to rerank: {errors['hybrid'].message}", errors["hybrid"].hint
        )
    hybrid = done["hybrid"]
    candidates = hybrid.hits[: request.rerank_depth]
    info = models.reranker().info
    passages = [index.chunks[hit.position].embedded_text for hit in candidates]
    scores = list(models.rerank_scores(request.query, passages, cancel=cancel))
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], candidates[i].position))
    hits = tuple(
        Hit(candidates[i].chunk_id, candidates[i].position, scores[i], rank)
        for rank, i in enumerate(order, start=1)
    )
    note = hybrid.note
    if request.top_k > request.rerank_depth < len(hybrid.hits):
        read = f"only the first {request.rerank_depth} of the hybrid list were read"
        note = f"{note}; {read}" if note else read
    return Ranking(
        method="reranked",
        hits=hits,
        depth=request.rerank_depth,
        score_kind=info.score_kind,
        params={"model": info.name, "rerank_depth": request.rerank_depth, "from": "hybrid"},
        note=note,
    )
