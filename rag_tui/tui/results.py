"""What the Search screen knows about one question, as a value, and how it is shown in rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_tui.engine.events import StageError, StageResult
from rag_tui.engine.types import METHODS, Chunk, Method, Ranking, SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.result_list import ResultRow

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

BEST_FIRST: tuple[Method, ...] = ("reranked", "hybrid", "vector", "bm25")
"""Where the prompt's sources and the first selection come from."""


@dataclass(frozen=True, slots=True)
class Results:
    """One search so far. Every change makes a new value."""

    request: SearchRequest
    index: Index
    generation: int
    rankings: Mapping[Method, Ranking] = field(default_factory=dict)
    errors: Mapping[Method, StageError] = field(default_factory=dict)

    def with_stage(self, result: StageResult) -> Results:
        """These results and one list more."""
        if result.ranking is not None:
            return replace(self, rankings={**self.rankings, result.stage: result.ranking})
        if result.error is not None:
            return replace(self, errors={**self.errors, result.stage: result.error})
        return self

    @property
    def best(self) -> Ranking | None:
        """The list that has come furthest in the pipeline and holds something."""
        found = (self.rankings.get(method) for method in BEST_FIRST)
        return next((ranking for ranking in found if ranking is not None and ranking.hits), None)

    def chunk(self, chunk_id: str | None) -> Chunk | None:
        """The chunk with this id, or None when this index does not hold it (any more)."""
        position = self.index.position_of.get(chunk_id) if chunk_id is not None else None
        return None if position is None else self.index.chunks[position]

    def sources(self, n_sources: int) -> tuple[Chunk, ...]:
        """The chunks that go into the prompt: the first of the best list."""
        hits = self.best.hits[:n_sources] if self.best else ()
        return tuple(self.index.chunks[hit.position] for hit in hits)


def model_of(method: Method, results: Results) -> str:
    """The model that really made a list's scores; empty where there is none."""
    if method == "vector":
        return results.index.manifest.embedder_name
    ranking = results.rankings.get(method)
    return str(ranking.params.get("model", "")) if ranking is not None else ""


def short_model_name(name: str) -> str:
    """A model's name without its organisation or folder."""
    return name.rstrip("/").rsplit("/", maxsplit=1)[-1]


def result_rows(method: Method, results: Results) -> tuple[ResultRow, ...]:
    """The first ``top_k`` rows of one list, ready to be drawn."""
    ranking = results.rankings.get(method)
    if ranking is None:
        return ()
    hits = ranking.hits[: results.request.top_k]
    scores = [hit.score for hit in hits]
    # Logits and cosines may be negative: the bar then spans the shown rows, lowest to highest.
    low = min(0.0, *scores) if scores else 0.0
    span = (max(scores) - low) if scores else 0.0
    badges = _badges(method, results)
    chunks = [results.index.chunks[hit.position] for hit in hits]
    labels = [chunk.label for chunk in chunks]
    return tuple(
        ResultRow(
            chunk_id=hit.chunk_id,
            rank=hit.rank,
            score=fmt.score(hit.score, ranking.score_kind),
            fraction=(hit.score - low) / span if span > 0 else 0.0,
            label=fmt.one_line(_label(chunk, is_shared=labels.count(chunk.label) > 1)),
            badge=badges.get(hit.chunk_id, ""),
            place=fmt.display(chunk.location),
        )
        for hit, chunk in zip(hits, chunks, strict=True)
    )


def _label(chunk: Chunk, *, is_shared: bool) -> str:
    """What a row is called; with the heading above behind it where rows share a name."""
    if is_shared and len(chunk.heading_path) > 1:
        return f"{chunk.label} · {chunk.heading_path[-2]}"
    return chunk.label


def standing(method: Method, results: Results, chunk_id: str | None) -> str:
    """Where the selected chunk stands in a list; empty when nothing is selected or listed."""
    ranking = results.rankings.get(method)
    if ranking is None or chunk_id is None:
        return ""
    rank = ranking.rank_of(chunk_id)
    if rank is not None:
        return f"● at {rank}"
    if results.request.where:
        return "● not listed"  # by its rank or by the filter: both are possible
    if method == "reranked":
        return f"● not in the {len(ranking.hits)} read"
    if len(ranking.hits) < ranking.depth and method == "bm25":
        return "● no query word"
    return f"● not in the first {ranking.depth}"


def input_ranks(results: Results, chunk_id: str) -> dict[Method, int | None]:
    """The ranks that the fusion read for a chunk."""
    return {
        method: ranking.rank_of(chunk_id)
        for method in METHODS[:2]
        if (ranking := results.rankings.get(method)) is not None
    }


def _badges(method: Method, results: Results) -> dict[str, str]:
    ranking = results.rankings[method]
    shown = ranking.hits[: results.request.top_k]
    if method == "hybrid":
        vector = _ranks(results.rankings.get("vector"))
        bm25 = _ranks(results.rankings.get("bm25"))
        return {
            hit.chunk_id: f"v{vector.get(hit.chunk_id, '–')} b{bm25.get(hit.chunk_id, '–')}"
            for hit in shown
        }
    if method == "reranked":
        before = _ranks(results.rankings.get("hybrid"))
        return {hit.chunk_id: _movement(before.get(hit.chunk_id), hit.rank) for hit in shown}
    return {}


def _ranks(ranking: Ranking | None) -> dict[str, int]:
    return {hit.chunk_id: hit.rank for hit in ranking.hits} if ranking is not None else {}


def _movement(before: int | None, after: int) -> str:
    if before is None:
        return ""
    if before == after:
        return "═"
    return f"▲{before - after}" if before > after else f"▼{after - before}"
