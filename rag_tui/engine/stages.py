"""The stages of one pipeline: each list once, from the cache where nothing it needs has changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_tui.engine.errors import BadIndexError, Cancelled, ModelError, UsageError
from rag_tui.engine.events import CancelToken, StageError
from rag_tui.engine.filters import Mask, where_mask
from rag_tui.engine.fusion import reciprocal_rank_fusion, weighted_sum_fusion
from rag_tui.engine.knobs import column_request
from rag_tui.engine.lexical import search_lexically
from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.precision import precision_note
from rag_tui.engine.reranking import shown_scores, stream_reranking
from rag_tui.engine.retrievers.dense import retrieve_dense
from rag_tui.engine.stage_keys import StageKey, bm25_key, fusion_key, rerank_key, vector_key
from rag_tui.engine.types import Column, Method, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

_log = logging.getLogger("rag_tui.search")


class Stages:
    """The lists that the columns of one search are made of.

    What was computed before, for whatever search, comes from ``models.stages``; what failed is
    not tried again within this search.

    Args:
        index: What is searched.
        models: The models, and the lists that are known.
        cancel: Polled by every stage.
    """

    def __init__(self, index: Index, models: Models, cancel: CancelToken) -> None:
        self._index = index
        self._models = models
        self._cancel = cancel
        self._known: dict[StageKey, Ranking] = {}
        self._failed: dict[StageKey, Exception] = {}
        self._masks: dict[str, Mask | None] = {}

    def allowed(self, where: str) -> Mask | None:
        """Bool ``(n_chunks,)``: what a filter allows; None: everything.

        Raises:
            UsageError: When it cannot be read, or names a key that the index does not have.
        """
        if where not in self._masks:
            self._masks[where] = where_mask(where, self._index)
        return self._masks[where]

    def list_of(self, request: SearchRequest, method: Method) -> Iterator[Ranking]:
        """The list of a method with the knobs of the request itself.

        Only the reranked list comes several times, sharper each time; the last one is final.

        Raises:
            RagTuiError: When it cannot be made.
            Cancelled: Soon after the token was set.
        """
        match method:
            case "vector":
                yield self._vector(request)
            case "bm25":
                yield self._bm25(request)
            case "hybrid":
                yield self._hybrid(request)
            case "reranked":
                yield from self._reranked(request)

    def inputs(self, request: SearchRequest, method: Method) -> dict[Method, Ranking]:
        """The lists below a method's own: those it was made of that could be made."""
        below: tuple[Method, ...] = ()
        if method == "hybrid":
            below = ("vector", "bm25")
        elif method == "reranked":
            source = request.rerank_from
            below = ("vector", "bm25", "hybrid") if source == "hybrid" else (source,)
        found: dict[Method, Ranking] = {}
        for one in below:
            ranking = self.final_list(request, one)
            if ranking is not None:
                found[one] = ranking
        return found

    def final_list(self, request: SearchRequest, method: Method) -> Ranking | None:
        """The finished list of a method; None when it cannot be made, which is logged."""
        try:
            *_, ranking = self.list_of(request, method)
        except Cancelled:
            raise
        except Exception:
            return None
        return ranking

    def _vector(self, request: SearchRequest) -> Ranking:
        def make() -> Ranking:
            name, index = request.embedder, self._index
            if not name and index.vectors is not None:
                info = self._models.embedder().info
                check_model(index, info.name, info.fingerprint, info.dimensions)
            vectors = self._models.vectors(index, name, cancel=self._cancel)
            info = self._models.embedder(name).info
            ranking = retrieve_dense(
                self._models.embed_query(plain_question(request.query), name),
                vectors,
                index.chunk_ids,
                depth=request.depth,
                candidates=self.allowed(request.where),
                similarity=info.similarity,
            )
            return replace(ranking, note=precision_note(info.precision))

        return self._once(vector_key(request, self._index), make, request.where)

    def _bm25(self, request: SearchRequest) -> Ranking:
        def make() -> Ranking:
            return search_lexically(
                request.query,
                self._index,
                request.bm25,
                depth=request.depth,
                candidates=self.allowed(request.where),
                cancel=self._cancel,
            )

        return self._once(bm25_key(request, self._index), make, request.where)

    def _hybrid(self, request: SearchRequest) -> Ranking:
        lists: list[Ranking] = []
        reasons: dict[str, str] = {}
        for method, retrieve in (("vector", self._vector), ("bm25", self._bm25)):
            try:
                lists.append(retrieve(request))
            except Cancelled:
                raise
            except Exception as error:  # the other list is worth showing
                reasons[method] = StageError.from_exception(error).message
        if not lists:
            raise BadIndexError(
                "Neither the vector nor the BM25 list could be made.", "Mend one of them first."
            )
        if not reasons:
            return self._once(
                fusion_key(request, self._index), lambda: _fuse(lists, request), request.where
            )
        only = "vector" if "bm25" in reasons else "keyword"
        reason = "; ".join(reasons.values())
        fused = self._filtered(_fuse(lists, request), request.where)
        # Not remembered: what is missing may be there the next time.
        return replace(fused, note=f"{only} only: {reason}")

    def _reranked(self, request: SearchRequest) -> Iterator[Ranking]:
        source_method = request.rerank_from
        if source_method not in ("hybrid", "vector", "bm25"):
            raise UsageError(
                f"search.rerank_from must be hybrid, vector or bm25 (got {source_method!r}).",
                "Name the list whose first rows are reranked.",
            )
        try:
            *_, source = self.list_of(request, source_method)
        except Cancelled:
            raise
        except Exception as error:
            told = StageError.from_exception(error)
            raise BadIndexError(
                f"There are no candidates to rerank: {told.message}", told.hint
            ) from error
        key = rerank_key(request, self._index, source)
        known = self._find(key)
        if known is not None:
            yield shown_scores(known, source, request)
            return
        started = perf_counter()
        final: Ranking | None = None
        question = plain_question(request.query)
        try:
            for ranking in stream_reranking(
                question, source, request, self._index, self._models, cancel=self._cancel
            ):
                final = replace(
                    self._filtered(ranking, request.where), elapsed_s=perf_counter() - started
                )
                if final.n_waiting == 0:
                    self._keep(key, final)
                yield shown_scores(final, source, request)
        except Cancelled:
            raise
        except Exception as error:
            self._fail(key, error)
            raise
        if final is None or final.n_waiting:
            raise ModelError(
                "The reranker gave fewer scores than there were passages.",
                "Choose another reranker; `rag-tui doctor` tells which are found.",
            )

    def _once(self, key: StageKey, make: Callable[[], Ranking], where: str) -> Ranking:
        known = self._find(key)
        if known is not None:
            return known
        self._cancel.check()
        started = perf_counter()
        try:
            ranking = self._filtered(make(), where)
        except Cancelled:
            raise
        except Exception as error:
            self._fail(key, error)
            raise
        ranking = replace(ranking, elapsed_s=perf_counter() - started)
        self._keep(key, ranking)
        return ranking

    def _find(self, key: StageKey) -> Ranking | None:
        """What is known; an error that this search has met before is raised again."""
        if key in self._failed:
            raise self._failed[key]
        found = self._known.get(key)
        if found is None:
            found = self._models.stages.get(key)
            if found is not None:
                self._known[key] = found
        return found

    def _keep(self, key: StageKey, ranking: Ranking) -> None:
        # Held here as well: the shared memory may push it out before this search is done.
        self._known[key] = ranking
        self._models.stages.put(key, ranking)

    def _fail(self, key: StageKey, error: Exception) -> None:
        _log.warning("stage %s failed", key.stage, exc_info=error)
        self._failed[key] = error

    def _filtered(self, ranking: Ranking, where: str) -> Ranking:
        allowed = self.allowed(where)
        if allowed is None:
            return ranking
        note = ranking.note if allowed.any() else "the filter allows no chunk"
        params = MappingProxyType({**ranking.params, "where": where})
        return replace(ranking, note=note, params=params)


def stage_rankings(
    request: SearchRequest,
    column: Column,
    index: Index,
    models: Models,
    *,
    cancel: CancelToken | None = None,
) -> dict[Method, Ranking]:
    """The lists a column's pipeline is made of and its own, before the steps after ranking.

    A list that cannot be made is left out. After a search they all come from the cache.

    Raises:
        UsageError: When a knob of the column or the filter is wrong.
        Cancelled: Soon after the token was set.
    """
    own = column_request(request, column)
    stages = Stages(index, models, cancel if cancel is not None else CancelToken())
    stages.allowed(own.where)
    found = stages.inputs(own, column.method)
    ranking = stages.final_list(own, column.method)
    return found if ranking is None else {**found, column.method: ranking}


def check_model(index: Index, name: str, fingerprint: str, dimensions: int) -> None:
    """Refuse to search vectors with another model than the one that made them.

    Raises:
        ModelError: Naming both models and both ways out.
    """
    made_by = index.manifest
    if fingerprint != made_by.embedder_fingerprint and name == made_by.embedder_name:
        raise ModelError(
            f"The index was made with other weights or settings of {name} "
            f"({made_by.dimensions} dimensions then, {dimensions} now).",
            f"Run `rag-tui index {index.folder} --embedder {name}` (or press f9 in the app) to "
            "rebuild it, or set models.precision and models.truncate_dim as they were.",
        )
    if fingerprint != made_by.embedder_fingerprint:
        raise ModelError(
            f"The index was made with {made_by.embedder_name} ({made_by.dimensions} dimensions), "
            f"but {name} ({dimensions} dimensions) is set.",
            f"Run `rag-tui index {index.folder} --embedder {name}` (or press f9 in the app) to "
            f"rebuild it with that model, or set models.embedder to {made_by.embedder_name}.",
        )


def _fuse(lists: list[Ranking], request: SearchRequest) -> Ranking:
    weight_of = {"vector": request.weight_vector, "bm25": request.weight_bm25}
    weights = [weight_of[one.method] for one in lists]
    if request.fusion == "rrf":
        fused = reciprocal_rank_fusion(lists, k=request.rrf_k, depth=request.depth, weights=weights)
    else:
        fused = weighted_sum_fusion(
            lists, kind=request.fusion, depth=request.depth, weights=weights
        )
    return fused if any(weights) else replace(fused, note="the lists it is made of weigh 0")
