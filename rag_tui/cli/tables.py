"""The columns of a search as a table and as JSON, from the same rankings the screens show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from rag_tui.display import bar, clip, plain, score
from rag_tui.engine.events import StageResult
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import column_request
from rag_tui.engine.types import (
    DEFAULT_COLUMNS,
    METHODS,
    Chunk,
    Column,
    Document,
    Hit,
    Method,
    Ranking,
    SearchRequest,
)

_LETTERS: tuple[tuple[Method, str], ...] = (("vector", "v"), ("bm25", "b"))


def search_json(
    request: SearchRequest, index: Index, results: Sequence[StageResult], corpus: str
) -> dict[str, Any]:
    """Every score, rank and span of a search; ``methods`` is by column.

    It is called after the four columns that there are by default.
    """
    by_stage = {result.stage: result for result in results}
    return {
        "query": request.query,
        "corpus": corpus,
        "model": index.manifest.embedder_name,
        "n_documents": len(index.documents),
        "n_chunks": len(index.chunks),
        "request": {**asdict(request), "methods": list(request.methods)},
        "methods": {
            column.name: _column_json(by_stage[column.name], column, request, index)
            for column in request.columns
            if column.name in by_stage
        },
    }


def _column_json(
    result: StageResult, column: Column, request: SearchRequest, index: Index
) -> dict[str, Any]:
    pipeline: dict[str, Any] = {}
    if column not in DEFAULT_COLUMNS:
        pipeline = {"method": column.method, "knobs": dict(column.knobs)}
    if result.ranking is None:
        return {**pipeline, "error": asdict(result.error) if result.error else None, "hits": []}
    ranking = result.ranking
    if ranking.steps:
        pipeline["steps"] = [asdict(step) for step in ranking.steps]
        pipeline["folded"] = {key: list(ids) for key, ids in ranking.folded.items()}
    return {
        **pipeline,
        "score": asdict(ranking.score_kind),
        "depth": ranking.depth,
        "n_found": len(ranking.hits),
        "elapsed_ms": round(result.elapsed_s * 1000, 3),
        "note": ranking.note,
        "hits": [
            _hit_json(hit, index) for hit in ranking.hits[: column_request(request, column).top_k]
        ],
    }


def _hit_json(hit: Hit, index: Index) -> dict[str, Any]:
    return {"rank": hit.rank, "score": hit.score, **chunk_json(hit.position, index)}


def chunk_json(position: int, index: Index) -> dict[str, Any]:
    """One chunk with its place in the file."""
    chunk = index.chunks[position]
    return {
        "chunk_id": chunk.chunk_id,
        "file": chunk.doc_id,
        "heading_path": list(chunk.heading_path),
        "start": chunk.start,
        "end": chunk.end,
        "line_start": chunk.line_start,
        "line_end": chunk.line_end,
        "n_tokens": int(index.n_tokens[position]),
        "max_tokens": index.manifest.max_tokens,
        "place": chunk.place,
        "page": chunk.page,
        "context": chunk.context,
        "situation": chunk.situation,
        "prefix": chunk.prefix,
        **_document_json(index.document_of[chunk.doc_id]),
        "text": chunk.text,
    }


def _document_json(document: Document) -> dict[str, Any]:
    """What is known of the chunk's document, and can be filtered on."""
    return {
        "title": document.title,
        "format": document.format,
        "modified": document.modified,
        "metadata": dict(document.metadata),
    }


def search_table(request: SearchRequest, index: Index, results: Iterable[StageResult]) -> Table:
    """The columns side by side; below them what failed, and what the steps after ranking did."""
    by_stage = {result.stage: result for result in results}
    columns = [column for column in request.columns if column.name in by_stage]
    shown = {c.name: _shown(by_stage[c.name], column_request(request, c).top_k) for c in columns}
    table = Table(expand=True, show_lines=False, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    for column in columns:
        header = _header(by_stage[column.name], column)
        table.add_column(header, ratio=1, no_wrap=True, overflow="ellipsis")
    for row in range(max(map(len, shown.values()), default=0)):
        cells = [_cell(by_stage[c.name], shown[c.name], row, index) for c in columns]
        table.add_row(str(row + 1), *cells)
    told = [line for column in columns for line in _below(by_stage[column.name])]
    if told:
        table.caption_justify = "left"
        table.caption = plain("".join(f"{line}\n" for line in told), newlines=True)
    return table


def _shown(result: StageResult, top_k: int) -> tuple[Hit, ...]:
    return result.ranking.hits[:top_k] if result.ranking is not None else ()


def _below(result: StageResult) -> Iterator[str]:
    if result.error is not None:
        yield f"{result.stage}: {result.error.message} {result.error.hint}"
    elif result.ranking is not None:
        for step in result.ranking.steps:
            yield f"{result.stage}: {step.name}: {step.note}"


def _header(result: StageResult, column: Column) -> Text:
    name = result.stage.upper() if column in DEFAULT_COLUMNS else result.stage
    if result.ranking is None:
        return plain(f"{name} – failed")
    kind = result.ranking.score_kind.name
    named = kind if kind.upper().startswith(name) else f"{name} {kind}"
    return plain(f"{named} · {result.elapsed_s * 1000:.0f} ms")


def _cell(result: StageResult, shown: Sequence[Hit], row: int, index: Index) -> Text:
    ranking = result.ranking
    if ranking is None or row >= len(shown):
        return Text("–" if ranking is not None and row == 0 else "")
    hit = shown[row]
    top = max(other.score for other in shown)
    share = hit.score / top if top > 0 and ranking.method != "reranked" else 0.0
    text = Text(f"{score(hit.score, ranking.score_kind):>7} ")
    if ranking.method != "reranked":
        text.append(f"{bar(share, 4):4} ")
    moved = movement(ranking, hit, result.inputs)
    if moved:
        text.append(f"{moved} ", "dim")
    chunk = index.chunks[hit.position]
    text.append(clip(label(chunk), 40))
    n_folded = len(ranking.folded.get(hit.chunk_id, ()))
    if n_folded:
        text.append(f" (same text in {n_folded + 1} places)", "dim")
    text.append(f"\n{'':8}{clip(chunk.location, 60)}", "dim")
    return text


def movement(ranking: Ranking, hit: Hit, inputs: Mapping[Method, Ranking]) -> str:
    """``v3 b1``: the input ranks of a fused row; ``▲4``: how far a reranked row moved."""
    if ranking.method == "hybrid":
        parts = []
        for method, letter in _LETTERS:
            rank = inputs[method].rank_of(hit.chunk_id) if method in inputs else None
            parts.append(f"{letter}{rank if rank is not None else '–'}")
        return f"{parts[0]:3} {parts[1]:3}"
    source = next((m for m in METHODS if m == ranking.params.get("from")), None)
    if ranking.method == "reranked" and source is not None and source in inputs:
        before = inputs[source].rank_of(hit.chunk_id)
        if before is None:
            return ""
        moved = before - hit.rank
        return "═  " if moved == 0 else f"{'▲' if moved > 0 else '▼'}{abs(moved):<2}"
    return ""


def label(chunk: Chunk) -> str:
    """What a row is called: its innermost heading, else its file and lines."""
    return chunk.heading_path[-1] if chunk.heading_path else chunk.location


def chunks_table(index: Index, positions: Sequence[int]) -> Table:
    """The chunk list."""
    table = Table(expand=True, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("where", no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column("heading", no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=4)
    limit = index.manifest.max_tokens
    for position in positions:
        chunk = index.chunks[position]
        n = int(index.n_tokens[position])
        over = " !" if limit and n > limit else ""
        table.add_row(
            str(position),
            f"{n}{over}",
            plain(chunk.location),
            plain(chunk.context),
            plain(clip(" ".join(chunk.body.split()), 80)),
        )
    return table
