"""Reranking of the first rows of a list, shown while it goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rag_tui.engine.events import CancelToken
from rag_tui.engine.types import Hit, Ranking, ScoreKind, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

INTERVAL_S = 0.1
"""The list is shown again at most this often while candidates wait."""

SIGMOID = ScoreKind(
    "sigmoid",
    "0 to 1",
    "1 / (1 + e^-logit): the order of the logits; not the probability of being relevant",
)


def stream_reranking(
    question: str,
    source: Ranking,
    request: SearchRequest,
    index: Index,
    models: Models,
    *,
    cancel: CancelToken,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[Ranking]:
    """The rows scored so far, best first, again and again until none is waiting.

    Candidates without a score are absent, ``n_waiting`` of them: their old scores are of another
    kind. Scores are the model's own; `shown_scores` puts them on the scale that was asked for.
    Equal scores are ordered by position.

    Args:
        question: What the reranker reads of the question.
        source: The list whose first ``request.rerank_depth`` rows are read.
        request: With the knobs of the column.
        index: Where the passages are.
        models: Whose reranker reads them.
        cancel: Polled after every batch.
        clock: Seconds; tests turn it themselves.

    Raises:
        ModelError: When the reranker cannot be had or fails.
        Cancelled: At most one batch after the token was set.
    """
    candidates = source.hits[: request.rerank_depth]
    info = models.reranker(request.reranker).info
    passages = [index.chunks[hit.position].embedded_text for hit in candidates]
    params: dict[str, Any] = {
        "model": info.name,
        "rerank_depth": request.rerank_depth,
        "from": source.method,
        "max_tokens": info.max_tokens,
        "scale": "logit",
    }
    empty = Ranking(
        "reranked", (), request.rerank_depth, info.score_kind, params=MappingProxyType(params)
    )
    scores: dict[int, float] = {}
    shown_at = clock()
    batches = models.rerank_batches(question, passages, name=request.reranker, cancel=cancel)
    for batch in batches:
        cancel.check()
        scores.update(batch)
        n_waiting = len(candidates) - len(scores)
        if n_waiting > 0 and clock() - shown_at >= INTERVAL_S:
            yield replace(empty, hits=_sorted(candidates, scores), n_waiting=n_waiting)
            shown_at = clock()
    n_waiting = len(candidates) - len(scores)
    yield replace(empty, hits=_sorted(candidates, scores), n_waiting=n_waiting)


def shown_scores(ranking: Ranking, source: Ranking, request: SearchRequest) -> Ranking:
    """A reranked list as it is shown: on the scale that was asked for, with its notes.

    The sigmoid does not decide the order: it gives 1.0 to logits that differ. The params then
    hold the ``logits`` by chunk id.
    """
    n_read = len(ranking.hits) + ranking.n_waiting
    notes = [ranking.note or source.note]
    if request.top_k > request.rerank_depth < len(source.hits):
        read = f"only the first {request.rerank_depth} of the {source.method} list were read"
        notes.append(read)
    if request.rerank_scale == "sigmoid":
        if not ranking.score_kind.name.startswith("logit"):
            notes.append(f"{ranking.score_kind.name} is no logit: shown as it is")
        else:
            ranking = _as_sigmoid(ranking)
    if ranking.n_waiting:
        notes.append(f"{len(ranking.hits)} of {n_read} scored")
    return replace(ranking, note="; ".join(note for note in notes if note))


def sigmoid(x: float) -> float:
    """``1 / (1 + e^-x)``, in two forms so that the exponential never overflows."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _as_sigmoid(ranking: Ranking) -> Ranking:
    logits = {hit.chunk_id: hit.score for hit in ranking.hits}
    params: dict[str, Any] = {
        **ranking.params,
        "scale": "sigmoid",
        "logits": MappingProxyType(logits),
    }
    return replace(
        ranking,
        hits=tuple(replace(hit, score=sigmoid(hit.score)) for hit in ranking.hits),
        score_kind=SIGMOID,
        params=MappingProxyType(params),
    )


def _sorted(candidates: Sequence[Hit], scores: Mapping[int, float]) -> tuple[Hit, ...]:
    order = sorted(scores, key=lambda i: (-scores[i], candidates[i].position))
    return tuple(
        Hit(candidates[i].chunk_id, candidates[i].position, scores[i], rank)
        for rank, i in enumerate(order, start=1)
    )
