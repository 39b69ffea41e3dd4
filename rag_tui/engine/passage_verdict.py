"""Which step of a column's pipeline lost a chunk, in one word and in a sentence with numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rag_tui.engine.analysis import make_analyzer
from rag_tui.engine.explain_bm25 import check_operators
from rag_tui.engine.lexical_query import parse_lexical
from rag_tui.engine.types import Chunk, Method, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

LostStep = Literal[
    "never loaded",
    "lost in extraction",
    "lost in cutting",
    "not found",
    "split across chunks",
    "excluded by the filter",
    "excluded by an operator",
    "no word in common",
    "beyond the model's limit",
    "below depth",
    "fused down",
    "below rerank_depth",
    "reranked down",
    "removed by a step",
    "cut by top_k",
    "no list",
    "not among the sources",
    "not cited",
]
"""In the order of the pipeline: where a passage was lost."""

PassageStep = LostStep | Literal["present"]

_N_WORDS = 8
"""Words of question and passage that are told when they have none in common."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the passage."""

    step: PassageStep
    detail: str
    """In words, with the numbers."""
    chunk_id: str = ""
    """The chunk it is about; empty when there is none."""

    @property
    def is_present(self) -> bool:
        """Whether nothing lost it."""
        return self.step == "present"


@dataclass(frozen=True, slots=True)
class ListPlace:
    """Where a chunk stands in one list of a pipeline."""

    method: Method
    score: float | None
    """As the list scores it, also below its depth; None for a chunk that does not match."""
    rank: int | None
    """In the list at its depth, before the steps after ranking; None when it does not hold it."""
    corpus_rank: int | None
    """1-based in the list over the whole corpus (what the filter allows of it). Of a reranked
    list: among the candidates that were read and this chunk. None for a chunk that does not
    match."""
    n_ranked: int
    """Rows of that longest list."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a verdict needs to know about one chunk in one column."""

    request: SearchRequest
    """With the column's own knobs."""
    method: Method
    chunk: Chunk
    places: Mapping[Method, ListPlace]
    before: Ranking
    """The column's list before the steps after ranking."""
    shown: Ranking
    is_allowed: bool
    """By the filter."""
    unread: str = ""
    """What of the passage the embedding model does not read, in words; empty: it reads all."""
    unread_by_reranker: str = ""
    """The same for the reranker, when it read the chunk."""
    words: str = ""
    """The passage as it was typed, or the chunk's text."""


def verdict(of: Situation, index: Index) -> Verdict:
    """The first step of the pipeline that lost the chunk, or that it is shown."""
    request, chunk_id = of.request, of.chunk.chunk_id
    if not of.is_allowed:
        return Verdict("excluded by the filter", f"the filter {request.where} forbids it", chunk_id)
    rank = of.shown.rank_of(chunk_id)
    if rank is not None and rank <= request.top_k:
        return Verdict("present", f"rank {rank} of the {request.top_k} that are shown", chunk_id)
    if of.before.rank_of(chunk_id) is None:
        return _not_listed(of, of.method, index)
    if rank is None:
        return _removed(of, index)
    before = of.before.rank_of(chunk_id) or rank
    if before <= request.top_k:
        steps = ", ".join(step.name for step in of.shown.steps) or "the steps after ranking"
        detail = f"{steps} moved it from rank {before} to {rank}; {request.top_k} are shown"
        return Verdict("removed by a step", detail, chunk_id)
    return _too_low(of, rank)


def _removed(of: Situation, index: Index) -> Verdict:
    chunk_id = of.chunk.chunk_id
    before = of.before.rank_of(chunk_id)
    head = next((head for head, ids in of.shown.folded.items() if chunk_id in ids), None)
    if head is not None:
        other = index.chunks[index.position_of[head]]
        place = f"into {other.location}, rank {of.shown.rank_of(head)}"
        return Verdict("removed by a step", f"folded {place}; it was rank {before}", chunk_id)
    step = next((step for step in of.shown.steps if chunk_id in step.removed), None)
    told = f"{step.name}: {step.note}" if step else "a step after ranking"
    return Verdict("removed by a step", f"{told}; it was rank {before}", chunk_id)


def _too_low(of: Situation, rank: int) -> Verdict:
    request, chunk_id = of.request, of.chunk.chunk_id
    if of.method == "reranked":
        source = of.places.get(request.rerank_from)
        if source and source.rank is not None and source.rank <= request.top_k:
            detail = f"rank {source.rank} in the {source.method} list, {rank} after the reranker"
            unread = f"; {of.unread_by_reranker}" if of.unread_by_reranker else ""
            detail = f"{detail}; {request.top_k} are shown{unread}"
            return Verdict("reranked down", detail, chunk_id)
    if of.method == "hybrid":
        best = min((p.rank for p in _retrieved(of) if p.rank is not None), default=rank)
        if best <= request.top_k:
            told = ", ".join(_rank_in(place, request) for place in _retrieved(of))
            detail = f"{told}; together rank {rank}, {request.top_k} are shown"
            return Verdict("fused down", detail, chunk_id)
    unread = of.unread_by_reranker if of.method == "reranked" else of.unread
    told = f"; {unread}" if unread and of.method != "bm25" else ""
    detail = f"rank {rank}, but only {request.top_k} are shown{told}"
    return Verdict("cut by top_k", detail, chunk_id)


def _not_listed(of: Situation, method: Method, index: Index) -> Verdict:
    """Why the list of a method does not hold the chunk, before any step after ranking."""
    request, chunk_id = of.request, of.chunk.chunk_id
    if method == "reranked":
        source = of.places.get(request.rerank_from)
        if source is None or source.rank is None:
            return _not_listed(of, request.rerank_from, index)
        detail = (
            f"rank {source.rank} in the {source.method} list, of which the reranker reads "
            f"{request.rerank_depth}"
        )
        return Verdict("below rerank_depth", detail, chunk_id)
    if method == "vector":
        return _below_depth_in_vector(of)
    if method == "bm25":
        return _not_in_bm25(of)
    held = [place for place in _retrieved(of) if place.rank is not None]
    if held:
        told = ", ".join(_rank_in(place, request) for place in _retrieved(of))
        return Verdict(
            "fused down", f"{told}; not in the first {request.depth} of the fused list", chunk_id
        )
    lost = [
        _below_depth_in_vector(of) if place.method == "vector" else _not_in_bm25(of)
        for place in _retrieved(of)
    ]
    if not lost:
        return Verdict("no list", "there is no list to fuse", chunk_id)
    detail = "; ".join(
        f"{place.method}: {one.step}, {one.detail}"
        for place, one in zip(_retrieved(of), lost, strict=True)
    )
    return Verdict(lost[0].step, detail, chunk_id)


def _below_depth_in_vector(of: Situation) -> Verdict:
    chunk_id = of.chunk.chunk_id
    place = of.places.get("vector")
    if place is None or place.corpus_rank is None:
        return Verdict("no list", "there is no vector list", chunk_id)
    detail = f"rank {place.corpus_rank:,} of {place.n_ranked:,}, depth {of.request.depth}"
    if of.unread:
        return Verdict("beyond the model's limit", f"{of.unread}; {detail}", chunk_id)
    return Verdict("below depth", detail, chunk_id)


def _not_in_bm25(of: Situation) -> Verdict:
    request, chunk_id = of.request, of.chunk.chunk_id
    place = of.places.get("bm25")
    if place is not None and place.corpus_rank is not None:
        detail = f"rank {place.corpus_rank:,} of {place.n_ranked:,}, depth {request.depth}"
        return Verdict("below depth", detail, chunk_id)
    analyzer = make_analyzer(request.bm25.analyzer)
    query = parse_lexical(request.query, analyzer)
    text = of.chunk.embedded_text
    common = frozenset(query.terms) & frozenset(analyzer.tokens(text))
    if not common:
        asked, held = _some(query.terms), _some(analyzer.tokens(of.words))
        detail = f"the question has {asked}; the passage has {held}"
        return Verdict("no word in common", detail, chunk_id)
    failed = [check for check in check_operators(query, text, analyzer) if not check.holds]
    if failed:
        told = "; ".join(
            f'{"it holds" if check.kind == "must not" else "it lacks"} "{" ".join(check.tokens)}"'
            for check in failed
        )
        return Verdict("excluded by an operator", told, chunk_id)
    return Verdict("no list", "there is no BM25 list", chunk_id)


def _retrieved(of: Situation) -> Sequence[ListPlace]:
    """The places in the lists that were fused, vector first."""
    found = (of.places.get(method) for method in ("vector", "bm25"))
    return [place for place in found if place is not None]


def _rank_in(place: ListPlace, request: SearchRequest) -> str:
    weight = request.weight_vector if place.method == "vector" else request.weight_bm25
    if place.rank is not None:
        return f"{place.method} rank {place.rank}{' (a list that weighs 0)' if not weight else ''}"
    far = f" (rank {place.corpus_rank:,} of all)" if place.corpus_rank is not None else ""
    return f"not in the {place.method} list{far}"


def _some(words: Sequence[str]) -> str:
    unique = list(dict.fromkeys(words))
    if not unique:
        return "none"
    more = f" and {len(unique) - _N_WORDS} more" if len(unique) > _N_WORDS else ""
    return ", ".join(unique[:_N_WORDS]) + more
