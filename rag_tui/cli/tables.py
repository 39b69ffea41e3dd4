"""The four lists as a table and as JSON, from the same rankings the screens show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from rag_tui.display import bar, clip, plain, score
from rag_tui.engine.events import StageResult
from rag_tui.engine.index import Index
from rag_tui.engine.types import Chunk, Document, Hit, Method, Ranking, SearchRequest


def search_json(
    request: SearchRequest, index: Index, results: Sequence[StageResult], corpus: str
) -> dict[str, Any]:
    """Every score, rank and span of a search; ``null`` where a list does not hold a chunk."""
    by_stage = {result.stage: result for result in results}
    return {
        "query": request.query,
        "corpus": corpus,
        "model": index.manifest.embedder_name,
        "n_documents": len(index.documents),
        "n_chunks": len(index.chunks),
        "request": {**asdict(request), "methods": list(request.methods)},
        "methods": {
            method: _method_json(by_stage[method], request, index)
            for method in request.methods
            if method in by_stage
        },
    }


def _method_json(result: StageResult, request: SearchRequest, index: Index) -> dict[str, Any]:
    if result.ranking is None:
        return {"error": asdict(result.error) if result.error else None, "hits": []}
    ranking = result.ranking
    return {
        "score": asdict(ranking.score_kind),
        "depth": ranking.depth,
        "n_found": len(ranking.hits),
        "elapsed_ms": round(result.elapsed_s * 1000, 3),
        "note": ranking.note,
        "hits": [_hit_json(hit, index) for hit in ranking.hits[: request.top_k]],
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
    """The lists side by side, one column a method."""
    by_stage = {result.stage: result for result in results}
    rankings = {m: r.ranking for m, r in by_stage.items() if r.ranking is not None}
    columns = [method for method in request.methods if method in by_stage]
    table = Table(expand=True, show_lines=False, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    for method in columns:
        table.add_column(_header(by_stage[method]), ratio=1, no_wrap=True, overflow="ellipsis")
    shown = min(request.top_k, max((len(r.hits) for r in rankings.values()), default=0))
    for row in range(shown):
        cells = [
            _cell(rankings.get(method), row, index, rankings) if method in rankings else Text("")
            for method in columns
        ]
        table.add_row(str(row + 1), *cells)
    for method in columns:
        result = by_stage[method]
        if result.error is not None:
            table.caption = Text.assemble(
                table.caption if isinstance(table.caption, Text) else "",
                plain(f"{method}: {result.error.message} {result.error.hint}\n"),
            )
    return table


def _header(result: StageResult) -> Text:
    name = result.stage.upper()
    if result.ranking is None:
        return plain(f"{name} – failed")
    kind = result.ranking.score_kind.name
    named = kind if kind.upper().startswith(name) else f"{name} {kind}"
    return plain(f"{named} · {result.elapsed_s * 1000:.0f} ms")


def _cell(
    ranking: Ranking | None,
    row: int,
    index: Index,
    rankings: Mapping[Method, Ranking],
) -> Text:
    if ranking is None or row >= len(ranking.hits):
        return Text("–" if ranking is not None and row == 0 else "")
    hit = ranking.hits[row]
    top = ranking.hits[0].score
    share = hit.score / top if top > 0 and ranking.method != "reranked" else 0.0
    text = Text(f"{score(hit.score, ranking.score_kind):>7} ")
    if ranking.method != "reranked":
        text.append(f"{bar(share, 4):4} ")
    moved = movement(ranking, hit, rankings)
    if moved:
        text.append(f"{moved} ", "dim")
    chunk = index.chunks[hit.position]
    text.append(clip(label(chunk), 40))
    text.append(f"\n{'':8}{clip(chunk.location, 60)}", "dim")
    return text


def movement(ranking: Ranking, hit: Hit, rankings: Mapping[Method, Ranking]) -> str:
    """``v3 b1``: the input ranks of a fused row; ``▲4``: how far a reranked row moved."""
    if ranking.method == "hybrid":
        parts = []
        for method, letter in (("vector", "v"), ("bm25", "b")):
            source = rankings.get(method)  # type: ignore[call-overload]
            rank = source.rank_of(hit.chunk_id) if source else None
            parts.append(f"{letter}{rank if rank is not None else '–'}")
        return f"{parts[0]:3} {parts[1]:3}"
    if ranking.method == "reranked" and "hybrid" in rankings:
        before = rankings["hybrid"].rank_of(hit.chunk_id)
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
