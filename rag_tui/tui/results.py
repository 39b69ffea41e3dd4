"""What the Search screen knows about one question, as a value, and how it is shown in rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_tui.engine.events import StageError, StageResult
from rag_tui.engine.knobs import column_request
from rag_tui.engine.types import Chunk, Column, Method, Ranking, SearchRequest
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
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    """By column."""
    errors: Mapping[str, StageError] = field(default_factory=dict)
    """By column."""
    inputs: Mapping[str, Mapping[Method, Ranking]] = field(default_factory=dict)
    """By column: the lists its pipeline is made of."""

    def with_stage(self, result: StageResult) -> Results:
        """These results and one list more, or one list sharper."""
        if result.ranking is not None:
            return replace(
                self,
                rankings={**self.rankings, result.stage: result.ranking},
                inputs={**self.inputs, result.stage: result.inputs},
            )
        if result.error is not None:
            return replace(self, errors={**self.errors, result.stage: result.error})
        return self

    @property
    def best(self) -> Ranking | None:
        """The list that has come furthest in the pipeline and holds something."""
        found = (
            self.rankings.get(column.name)
            for method in BEST_FIRST
            for column in self.request.columns
            if column.method == method
        )
        return next((ranking for ranking in found if ranking is not None and ranking.hits), None)

    def column(self, name: str) -> Column | None:
        """The column of this name, if the search has it."""
        return next((column for column in self.request.columns if column.name == name), None)

    def request_of(self, name: str) -> SearchRequest:
        """The request with the knobs of one column."""
        column = self.column(name)
        return self.request if column is None else column_request(self.request, column)

    def stages(self, name: str) -> Mapping[Method, Ranking]:
        """The lists that belong to a column's pipeline, by method.

        Those it was made of, and what other columns with the same knobs make of them.
        """
        column = self.column(name)
        if column is None:
            return {}
        alike = [c for c in self.request.columns if c.knobs == column.knobs]
        found = {c.method: self.rankings[c.name] for c in alike if c.name in self.rankings}
        return {**found, **self.inputs.get(name, {})}

    def chunk(self, chunk_id: str | None) -> Chunk | None:
        """The chunk with this id, or None when this index does not hold it (any more)."""
        position = self.index.position_of.get(chunk_id) if chunk_id is not None else None
        return None if position is None else self.index.chunks[position]

    def source_column(self, wanted: str = "") -> str:
        """The column that a prompt's sources come from: the wanted one, else that of `best`."""
        if wanted in self.rankings and self.rankings[wanted].hits:
            return wanted
        best = self.best
        return next((name for name, ranking in self.rankings.items() if ranking is best), "")

    def candidates(self, column: str) -> tuple[Chunk, ...]:
        """The chunks of a list, best first; none for a column without a list."""
        ranking = self.rankings.get(column)
        hits = ranking.hits if ranking is not None else ()
        return tuple(self.index.chunks[hit.position] for hit in hits)


def model_of(column: str, results: Results) -> str:
    """The model that really made a list's scores; empty where there is none."""
    ranking = results.rankings.get(column)
    if ranking is not None and ranking.method == "vector":
        return results.request_of(column).embedder or results.index.manifest.embedder_name
    return str(ranking.params.get("model", "")) if ranking is not None else ""


def short_model_name(name: str) -> str:
    """A model's name without its organisation or folder."""
    return name.rstrip("/").rsplit("/", maxsplit=1)[-1]


def result_rows(
    column: str, results: Results, moved: Mapping[str, str] | None = None
) -> tuple[ResultRow, ...]:
    """The first ``top_k`` rows of one list, ready to be drawn.

    Args:
        column: Whose list.
        results: The search.
        moved: Chunk id to what the last turn of a knob did to its row; absent: nothing.
    """
    ranking = results.rankings.get(column)
    if ranking is None:
        return ()
    hits = ranking.hits[: results.request_of(column).top_k]
    scores = [hit.score for hit in hits]
    # Logits and cosines may be negative: the bar then spans the shown rows, lowest to highest.
    low = min(0.0, *scores) if scores else 0.0
    span = (max(scores) - low) if scores else 0.0
    badges = _badges(column, results)
    chunks = [results.index.chunks[hit.position] for hit in hits]
    labels = [chunk.label for chunk in chunks]
    limit = read_limit(column, results)
    n_tokens = results.index.n_tokens
    is_cut = [bool(limit) and int(n_tokens[hit.position]) > limit for hit in hits]
    n_same = [len(ranking.folded.get(hit.chunk_id, ())) + 1 for hit in hits]
    return tuple(
        ResultRow(
            chunk_id=hit.chunk_id,
            rank=hit.rank,
            score=fmt.score(hit.score, ranking.score_kind),
            fraction=(hit.score - low) / span if span > 0 else 0.0,
            label=("✂ " if cut else "")
            + fmt.one_line(_label(chunk, is_shared=labels.count(chunk.label) > 1)),
            badge=" ".join(
                part for part in (badges.get(hit.chunk_id, ""), f"×{n}" if n > 1 else "") if part
            ),
            place=(f"same text in {n} places · " if n > 1 else "") + fmt.display(chunk.location),
            moved=(moved or {}).get(hit.chunk_id, ""),
        )
        for hit, chunk, cut, n in zip(hits, chunks, is_cut, n_same, strict=True)
    )


def read_limit(column: str, results: Results) -> int:
    """Tokens that the model of a list reads; 0 where there is no model or none that is known.

    Tokens are counted as the index's own embedder does; another model may count somewhat others.
    """
    ranking = results.rankings.get(column)
    if ranking is None:
        return 0
    if ranking.method == "vector" and not results.request_of(column).embedder:
        return results.index.manifest.max_tokens
    return int(ranking.params.get("max_tokens", 0)) if ranking.method == "reranked" else 0


def note_below(ranking: Ranking) -> str:
    """What is said under the rows: the list's own note, and what steps after ranking did."""
    lines = [ranking.note, *(f"{step.name}: {step.note}" for step in ranking.steps)]
    return "\n".join(line for line in lines if line)


def _label(chunk: Chunk, *, is_shared: bool) -> str:
    """What a row is called; with the heading above behind it where rows share a name."""
    if is_shared and len(chunk.heading_path) > 1:
        return f"{chunk.label} · {chunk.heading_path[-2]}"
    return chunk.label


def standing(column: str, results: Results, chunk_id: str | None) -> str:
    """Where the selected chunk stands in a list; empty when nothing is selected or listed."""
    ranking = results.rankings.get(column)
    if ranking is None or chunk_id is None:
        return ""
    rank = ranking.rank_of(chunk_id)
    if rank is not None:
        return f"● at {rank}"
    if results.request.where:
        return "● not listed"  # by its rank or by the filter: both are possible
    if ranking.method == "reranked":
        return f"● not in the {len(ranking.hits)} read"
    if len(ranking.hits) < ranking.depth and ranking.method == "bm25":
        return "● no query word"
    return f"● not in the first {ranking.depth}"


def _badges(column: str, results: Results) -> dict[str, str]:
    ranking = results.rankings[column]
    stages = results.stages(column)
    shown = ranking.hits[: results.request_of(column).top_k]
    if ranking.method == "hybrid":
        vector = _ranks(stages.get("vector"))
        bm25 = _ranks(stages.get("bm25"))
        return {
            hit.chunk_id: f"v{vector.get(hit.chunk_id, '–')} b{bm25.get(hit.chunk_id, '–')}"
            for hit in shown
        }
    if ranking.method == "reranked":
        before = _ranks(stages.get(results.request_of(column).rerank_from))
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
