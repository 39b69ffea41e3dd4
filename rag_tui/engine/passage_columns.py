"""A passage in the columns of a search: its place in each list, and what lost it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_tui.engine.events import CancelToken, StageResult
from rag_tui.engine.explain_fusion import reranker_unread_from
from rag_tui.engine.explain_vector import unread_from
from rag_tui.engine.filters import Mask
from rag_tui.engine.knobs import column_request
from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.passage_places import PassagePlace, PassageTarget
from rag_tui.engine.passage_remedies import Remedy, knob_remedies
from rag_tui.engine.passage_verdict import ListPlace, Situation, Verdict, verdict
from rag_tui.engine.searching import final_results, search, stage_rankings
from rag_tui.engine.types import Column, Hit, Method, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

N_ABOVE = 5


@dataclass(frozen=True, slots=True)
class ColumnTrace:
    """The passage in one column."""

    column: str
    method: Method
    verdict: Verdict
    chunk_id: str = ""
    """Of the chunks that hold the passage the one that stands best here."""
    rank: int | None = None
    """In the list as it is shown, after all steps; None when it is not in it."""
    score: float | None = None
    """In this column's own list; None for a chunk that does not match or was not read."""
    places: tuple[ListPlace, ...] = ()
    """Where that chunk stands in each list of the pipeline, in its order."""
    above: tuple[Hit, ...] = ()
    """The first rows of the shown list that stand above it, at most `N_ABOVE`."""
    score_kind: str = ""
    remedies: tuple[Remedy, ...] = ()
    """Knobs that bring it among the shown rows; each was tried."""


class PassageColumns:
    """One passage and one question; what all columns need to know.

    Args:
        target: A passage that some chunk holds, or parts of it.
        request: The question, the columns and the filter.
        index: What is searched.
        models: Their cache of lists makes the many searches cheap.
        allowed: Bool ``(n_chunks,)``: what the filter allows; None: everything.
        cancel: Polled between searches and by them.
    """

    def __init__(
        self,
        target: PassageTarget,
        request: SearchRequest,
        index: Index,
        models: Models,
        allowed: Mask | None,
        cancel: CancelToken,
    ) -> None:
        self._request = request
        self._index = index
        self._models = models
        self._allowed = allowed
        self._cancel = cancel
        self._target = target
        held = [place for place in target.places if place.holders]
        self._split = None if held else next(p for p in target.places if p.parts)
        places = held or [self._split] if self._split else held
        self._place_of = {
            index.chunk_ids[position]: place
            for place in reversed(places)
            for position in reversed(place.holders or place.parts)
        }
        self.candidates = tuple(reversed(self._place_of))

    def trace(self, column: Column, *, with_remedies: bool) -> ColumnTrace | None:
        """The passage in one column; None for a reranked one that is switched off."""
        own = column_request(self._request, column)
        if column.method == "reranked" and not own.rerank:
            return None
        self._cancel.check()
        found = self._run(own, column)
        if found is None or found.ranking is None:
            error = found.error if found is not None else None
            told = error.message if error is not None else "the list could not be made"
            return ColumnTrace(column.name, column.method, Verdict("no list", told))
        shown, before = found.ranking, found.inputs[column.method]
        full = self._full_lists(own, column.method)
        chunk_id = self._best([shown, before, *full.values()])
        places = self._places(chunk_id, own, found.inputs, full)
        situation = self._situation(chunk_id, own, column.method, places, before, shown)
        told_of = verdict(situation, self._index)
        if self._split is not None:
            told_of = self._split_verdict(self._split, shown, own, told_of)
        rank = shown.rank_of(chunk_id)
        place = places.get(column.method)
        remedies: tuple[Remedy, ...] = ()
        if with_remedies and not told_of.is_present:
            remedies = knob_remedies(
                self._wanted(chunk_id), own, column, situation, self._search, self._cancel
            )
        return ColumnTrace(
            column=column.name,
            method=column.method,
            verdict=told_of,
            chunk_id=chunk_id,
            rank=rank,
            score=place.score if place else None,
            places=tuple(places.values()),
            above=shown.hits[: N_ABOVE if rank is None else min(N_ABOVE, rank - 1)],
            score_kind=shown.score_kind.name,
            remedies=remedies,
        )

    def _wanted(self, chunk_id: str) -> tuple[tuple[str, ...], bool]:
        """The chunks that may bring the passage in, and whether all of them must."""
        if self._split is not None:
            return tuple(self._index.chunk_ids[p] for p in self._split.parts), True
        return self.candidates, False

    def _search(self, own: SearchRequest, column: Column) -> Ranking | None:
        found = self._run(own, column)
        return found.ranking if found is not None else None

    def _run(self, own: SearchRequest, column: Column) -> StageResult | None:
        alone = replace(own, columns=(Column(column.name, column.method),))
        found = search(alone, self._index, self._models, cancel=self._cancel)
        return next(final_results(found), None)

    def _full_lists(self, own: SearchRequest, method: Method) -> dict[Method, Ranking]:
        """The lists that the column's pipeline retrieves and fuses, over the whole corpus."""
        last: Method = own.rerank_from if method == "reranked" else method
        deep = replace(own, depth=max(len(self._index.chunks), own.depth))
        return stage_rankings(
            deep, Column("whole corpus", last), self._index, self._models, cancel=self._cancel
        )

    def _best(self, lists: Sequence[Ranking]) -> str:
        """The candidate that stands best in the first list that holds one."""
        wanted = frozenset(self.candidates)
        for ranking in lists:
            for hit in ranking.hits:
                if hit.chunk_id in wanted:
                    return hit.chunk_id
        return self.candidates[0]

    def _places(
        self,
        chunk_id: str,
        own: SearchRequest,
        lists: Mapping[Method, Ranking],
        full: Mapping[Method, Ranking],
    ) -> dict[Method, ListPlace]:
        places: dict[Method, ListPlace] = {}
        for method, ranking in full.items():
            hit = ranking.hit_of(chunk_id)
            near = lists[method].hit_of(chunk_id) if method in lists else None
            best = near or hit
            places[method] = ListPlace(
                method,
                best.score if best else None,
                near.rank if near else None,
                hit.rank if hit else None,
                len(ranking.hits),
            )
        if "reranked" in lists:
            places["reranked"] = self._reranked_place(chunk_id, own, lists["reranked"])
        return places

    def _reranked_place(self, chunk_id: str, own: SearchRequest, ranking: Ranking) -> ListPlace:
        n_read = len(ranking.hits)
        hit = ranking.hit_of(chunk_id)
        if hit is not None:
            return ListPlace("reranked", hit.score, hit.rank, hit.rank, n_read)
        if not self._is_allowed(chunk_id):
            return ListPlace("reranked", None, None, None, n_read)
        chunk = self._index.chunk(chunk_id)
        scores = self._models.rerank_scores(
            plain_question(own.query), [chunk.embedded_text], name=own.reranker, cancel=self._cancel
        )
        score = next(iter(scores))
        logits: Mapping[str, float] = ranking.params.get("logits", {})
        above = sum(logits.get(hit.chunk_id, hit.score) >= score for hit in ranking.hits)
        return ListPlace("reranked", score, None, above + 1, n_read + 1)

    def _situation(
        self,
        chunk_id: str,
        own: SearchRequest,
        method: Method,
        places: Mapping[Method, ListPlace],
        before: Ranking,
        shown: Ranking,
    ) -> Situation:
        is_text = self._target.kind == "text"
        chunk = self._index.chunk(chunk_id)
        return Situation(
            request=own,
            method=method,
            chunk=chunk,
            places=places,
            before=before,
            shown=shown,
            is_allowed=self._is_allowed(chunk_id),
            unread=self._unread(chunk_id, own),
            unread_by_reranker=self._unread_by_reranker(chunk_id, own, before),
            words=self._target.wanted if is_text else chunk.text,
        )

    def _is_allowed(self, chunk_id: str) -> bool:
        return self._allowed is None or bool(self._allowed[self._index.position_of[chunk_id]])

    def _unread(self, chunk_id: str, own: SearchRequest) -> str:
        """What of the passage the embedder does not read; empty: it reads all, or cannot tell."""
        position = self._index.position_of[chunk_id]
        end = unread_from(position, self._index, self._models, own.embedder)
        return self._told_unread(chunk_id, end, "the model")

    def _unread_by_reranker(self, chunk_id: str, own: SearchRequest, before: Ranking) -> str:
        if before.method != "reranked" or before.rank_of(chunk_id) is None:
            return ""
        end = reranker_unread_from(self._index.chunk(chunk_id), own, self._models)
        return self._told_unread(chunk_id, end, "the reranker")

    def _told_unread(self, chunk_id: str, end: int | None, who: str) -> str:
        chunk, place = self._index.chunk(chunk_id), self._place_of[chunk_id]
        if self._target.kind not in ("text", "line") or end is None:
            return ""
        if place.end - chunk.start <= end:
            return ""
        part = "none" if place.start - chunk.start >= end else "only the beginning"
        return (
            f"{who} reads {part} of the passage: it stops at character {end:,} of "
            f"{len(chunk.text):,} of the chunk"
        )

    def _split_verdict(
        self, split: PassagePlace, shown: Ranking, own: SearchRequest, of_best: Verdict
    ) -> Verdict:
        parts = [self._index.chunks[position] for position in split.parts]
        ranks = [shown.rank_of(part.chunk_id) for part in parts]
        told = ", ".join(
            f"{part.location} {f'rank {rank}' if rank is not None else 'not in the list'}"
            for part, rank in zip(parts, ranks, strict=True)
        )
        if all(rank is not None and rank <= own.top_k for rank in ranks):
            detail = f"in {len(parts)} chunks, all of which are shown: {told}"
            return Verdict("present", detail, of_best.chunk_id)
        return Verdict("split across chunks", f"{told}; {of_best.detail}", of_best.chunk_id)
