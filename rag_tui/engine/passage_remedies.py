"""Knobs that would bring a passage in: found by trying them, never by guessing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.chunkers.factory import make_chunker
from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.knobs import with_knobs
from rag_tui.engine.passage_places import PassageTarget
from rag_tui.engine.passage_verdict import Situation
from rag_tui.engine.searching import check_request
from rag_tui.engine.situations import leave_room
from rag_tui.engine.types import Column, KnobValue, Method, PostSteps, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

MAX_REMEDIES = 6
"""Of one column; trying ends with the last of them."""

RRF_KS = (0.0, 5.0, 20.0, 60.0, 200.0)
WEIGHTS = ((2.0, 1.0), (1.0, 2.0), (4.0, 1.0), (1.0, 4.0), (1.0, 0.0), (0.0, 1.0))
"""Of the vector list and the BM25 list."""
ANALYZERS = ("english", "code")
BM25_GRID = ((0.5, 0.75), (3.0, 0.75), (1.5, 0.0), (1.5, 1.0))
"""``k1`` and ``b``."""
MOST_TO_RERANK = 200
"""Rows that are read by the reranker for one trial, at most."""

Knobs = Mapping[str, KnobValue]
Search = Callable[[SearchRequest, Column], Ranking | None]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was tried and brings the passage in."""

    knobs: tuple[tuple[str, KnobValue], ...]
    """Dotted names and values: of a search, or ``chunking.size`` and its kin."""
    rank: int | None
    """The passage's rank with it; None for ways of cutting, which need the index made anew."""
    note: str = ""


def knob_remedies(
    wanted: tuple[tuple[str, ...], bool],
    own: SearchRequest,
    column: Column,
    situation: Situation,
    run: Search,
    cancel: CancelToken,
) -> tuple[Remedy, ...]:
    """Changes of single knobs, or of two that belong together, that show the passage.

    Each is a whole run of the column's pipeline. Filters and operators are left alone: they are
    part of the question.

    Args:
        wanted: Chunk ids, and whether all of them must be shown rather than one.
        own: The request of the column.
        column: Its name and method.
        situation: Where the passage stands now.
        run: The shown list of a column for a request; None when it cannot be made.
        cancel: Polled before every trial.
    """
    chunk_ids, needs_all = wanted
    found: list[Remedy] = []
    if not situation.is_allowed:
        return ()
    for knobs in _trials(own, column.method, situation):
        cancel.check()
        try:
            changed = with_knobs(own, knobs)
            check_request(changed)
            if not _is_worth_reranking(changed, column.method, chunk_ids, run):
                continue
            ranking = run(changed, column)
        except UsageError:
            continue  # e.g. an analyzer whose library is not installed
        if ranking is None:
            continue
        ranks = [ranking.rank_of(chunk_id) for chunk_id in chunk_ids]
        near = [r for r in ranks if r is not None and r <= changed.top_k]
        if len(near) == len(ranks) if needs_all else near:
            found.append(Remedy(tuple(knobs.items()), max(near) if needs_all else min(near)))
        if len(found) == MAX_REMEDIES:
            break
    return tuple(found)


def chunking_remedies(
    target: PassageTarget, index: Index, models: Models, cancel: CancelToken
) -> tuple[Remedy, ...]:
    """Sizes and overlaps with which one chunk holds a split passage, the nearest setting first.

    The passage's document is cut anew with each. Where the chunk would stand in a list is not
    said: that takes a new index.
    """
    if target.kind != "text" or not target.places:
        return ()
    if not all(place.is_split for place in target.places):
        return ()
    place = target.places[0]
    document = index.document_of[place.doc_id]
    counter = models.token_counter()
    found: list[Remedy] = []
    for knobs in _cuts(index.manifest.chunking):
        cancel.check()
        try:
            settings = replace(_chunking_of(index.manifest.chunking), **knobs)  # type: ignore[arg-type]
            chunker = make_chunker(
                leave_room(settings, counter.limit),
                counter,
                embed=lambda texts: models.embedder().embed_documents(texts, cancel=cancel),
            )
            chunks = chunker.chunk(document)
        except RagTuiError:
            continue
        if any(chunk.start <= place.start and place.end <= chunk.end for chunk in chunks):
            named = tuple((f"chunking.{name}", value) for name, value in knobs.items())
            note = "one chunk holds it whole; its rank shows after indexing again"
            found.append(Remedy(named, None, note))
        if len(found) == MAX_REMEDIES:
            break
    return tuple(found)


def _trials(own: SearchRequest, method: Method, situation: Situation) -> Iterator[Knobs]:
    """Changes that are worth a try, the smallest first."""
    rank = situation.shown.rank_of(situation.chunk.chunk_id)
    if rank is not None and rank > own.top_k:
        yield {"search.top_k": rank}
    yield from _without_steps(own, method, situation)
    if method == "reranked":
        source = situation.places.get(own.rerank_from)
        if source and source.rank is not None and own.rerank_depth < source.rank <= MOST_TO_RERANK:
            yield {"search.rerank_depth": source.rank}
        for other in ("hybrid", "vector", "bm25"):
            if other != own.rerank_from:
                yield {"search.rerank_from": other}
    last: Method = own.rerank_from if method == "reranked" else method
    if last == "hybrid":
        yield from _fusion_trials(own)
    yield from _depth_trials(own, method, situation)
    if last in ("bm25", "hybrid"):
        yield from _bm25_trials(own)


def _without_steps(own: SearchRequest, method: Method, situation: Situation) -> Iterator[Knobs]:
    post = own.post
    if any(step.name == "threshold" for step in situation.shown.steps):
        yield {f"post.min_{method}": None}
    if post.fold:
        yield {"post.fold": False}
    if post.max_per_document:
        for n in (post.max_per_document + 1, post.max_per_document + 2, 0):
            yield {"post.max_per_document": n}
    if post.mmr is not None:
        yield {"post.mmr": None}


def _fusion_trials(own: SearchRequest) -> Iterator[Knobs]:
    if own.fusion == "rrf":
        yield from ({"search.rrf_k": k} for k in RRF_KS if k != own.rrf_k)
    for vector, bm25 in WEIGHTS:
        if (vector, bm25) != (own.weight_vector, own.weight_bm25):
            yield {"search.weight_vector": vector, "search.weight_bm25": bm25}
    for fusion in ("rrf", "minmax", "zscore"):
        if fusion != own.fusion:
            yield {"search.fusion": fusion}


def _depth_trials(own: SearchRequest, method: Method, situation: Situation) -> Iterator[Knobs]:
    """Depths at which a list first holds the chunk; with as many rows shown where need be."""
    places = situation.places
    deeper = sorted(
        {
            place.corpus_rank
            for name, place in places.items()
            if name != "reranked"
            and place.corpus_rank is not None
            and place.corpus_rank > own.depth
        }
    )
    for depth in deeper:
        yield {"search.depth": depth}
    if method != "reranked":
        own_place = places.get(method)
        for depth in deeper:
            if own_place and own_place.corpus_rank and own_place.corpus_rank <= depth:
                yield {"search.depth": depth, "search.top_k": own_place.corpus_rank}
    elif deeper and deeper[0] <= MOST_TO_RERANK:
        yield {"search.depth": deeper[0], "search.rerank_depth": deeper[0]}


def _bm25_trials(own: SearchRequest) -> Iterator[Knobs]:
    for k1, b in BM25_GRID:
        if (k1, b) != (own.bm25.k1, own.bm25.b):
            yield {"bm25.k1": k1, "bm25.b": b}
    for analyzer in ANALYZERS:
        if analyzer != own.bm25.analyzer:
            yield {"bm25.analyzer": analyzer}


def _is_worth_reranking(
    changed: SearchRequest,
    method: Method,
    chunk_ids: tuple[str, ...],
    run: Search,
) -> bool:
    """Whether a reranked column is worth its time: the reranker would read the passage."""
    if method != "reranked":
        return True
    source: Method = changed.rerank_from
    ranking = run(replace(changed, methods=(source,), post=PostSteps()), Column("source", source))
    if ranking is None:
        return False
    first = {hit.chunk_id for hit in ranking.hits[: changed.rerank_depth]}
    return any(chunk_id in first for chunk_id in chunk_ids)


def _chunking_of(stored: Mapping[str, object]) -> ChunkingSettings:
    known = ChunkingSettings.__dataclass_fields__
    return ChunkingSettings(**{k: v for k, v in stored.items() if k in known})  # type: ignore[arg-type]


def _cuts(stored: Mapping[str, object]) -> Iterator[dict[str, KnobValue]]:
    now = _chunking_of(stored)
    for overlap in (now.size // 8, now.size // 4, now.size // 2):
        if overlap > now.overlap:
            yield {"overlap": overlap}
    for factor in (1.5, 2.0, 3.0, 4.0):
        yield {"size": int(now.size * factor)}
    for factor in (0.5, 0.75):
        size = max(1, int(now.size * factor))
        if size > now.overlap:
            yield {"size": size}
    for strategy in ("headings", "recursive", "sentences"):
        if strategy != now.strategy and now.unit != "sentences":
            yield {"strategy": strategy}
