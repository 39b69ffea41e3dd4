"""``rag-tui explain``: the arithmetic of one chunk's score in each list."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from rag_tui.cli.lab_output import write_explanation, write_sentences, write_words
from rag_tui.cli.lab_request import LabOptions, open_lab
from rag_tui.cli.output import note, write_json, write_text
from rag_tui.cli.session import Session
from rag_tui.cli.tables import chunk_json
from rag_tui.engine.errors import ModelError, RagTuiError
from rag_tui.engine.explain import (
    Explanation,
    explain_rerank_sentences,
    explain_sentences,
    heat_map,
)
from rag_tui.engine.explain_columns import explain_column
from rag_tui.engine.knobs import column_request
from rag_tui.engine.passage_target import chunk_named
from rag_tui.engine.passage_trace import BEST_FIRST
from rag_tui.engine.types import Column, SearchRequest

EXIT_FAILED = 1


def explain_command(
    asked: LabOptions, named: str, *, with_sentences: bool, with_words: bool, as_json: bool
) -> int:
    """``rag-tui explain``: exit 1 when no column could be explained, or a part could not be made.

    Columns that share their knobs are one pipeline and are explained once, by the one that has
    come furthest.
    """
    request, session = open_lab(asked)
    chunk = chunk_named(named, session.index)
    told: list[dict[str, Any]] = []
    failed = False
    for group in _pipelines(request):
        column, found = _explained(chunk.chunk_id, request, group, session)
        if column is None or found is None:
            failed = True
            continue
        if column.method in {"vector", "bm25"}:
            found = replace(found, hybrid=None)  # no fusion was asked for
        own = column_request(request, column)
        if not as_json:
            write_explanation(found, column, own, session.index)
        extra, is_whole = _extras(
            chunk.chunk_id, own, column, session, with_sentences, with_words, as_json=as_json
        )
        failed = failed or not is_whole
        told.append({"column": column.name, "method": column.method, **_json(found), **extra})
    if as_json:
        position = session.index.position_of[chunk.chunk_id]
        write_json(
            {
                "query": request.query,
                "where": request.where,
                "corpus": str(session.folder),
                "chunk": chunk_json(position, session.index),
                "columns": told,
            }
        )
    return EXIT_FAILED if failed else 0


def _pipelines(request: SearchRequest) -> list[list[Column]]:
    """Columns with the same knobs, the one furthest in the pipeline first."""
    groups: dict[tuple[object, ...], list[Column]] = {}
    for column in request.columns:
        groups.setdefault(column.knobs, []).append(column)
    return [sorted(g, key=lambda c: BEST_FIRST.index(c.method)) for g in groups.values()]


def _explained(
    chunk_id: str, request: SearchRequest, group: list[Column], session: Session
) -> tuple[Column | None, Explanation | None]:
    for column in group:
        if column.method == "reranked" and not column_request(request, column).rerank:
            continue
        try:
            return column, explain_column(chunk_id, request, column, session.index, session.models)
        except ModelError as error:
            note(error.message)
            if error.hint:
                note(f"  {error.hint}")
    return None, None


def _extras(
    chunk_id: str,
    own: SearchRequest,
    column: Column,
    session: Session,
    with_sentences: bool,
    with_words: bool,
    *,
    as_json: bool,
) -> tuple[dict[str, Any], bool]:
    extra: dict[str, Any] = {}
    is_whole = True
    index, models = session.index, session.models
    text = index.chunk(chunk_id).text
    parts = []
    if with_sentences:
        parts.append(("sentences", explain_sentences))
        if column.method == "reranked":
            parts.append(("reranked_sentences", explain_rerank_sentences))
    for name, make in parts:
        try:
            scores = make(chunk_id, own, index, models)
        except RagTuiError as error:
            note(f"{name.replace('_', ' ')}: {error.message}")
            is_whole = False
            continue
        extra[name] = [asdict(one) for one in scores]
        if not as_json:
            write_sentences(name.replace("_", " "), scores, text)
    if with_words:
        try:
            heat = heat_map(chunk_id, own, index, models)
        except RagTuiError as error:
            note(f"words: {error.message}")
            return extra, False
        extra["words"] = asdict(heat)
        if not as_json:
            write_words(heat)
    if not as_json:
        write_text("")
    return extra, is_whole


def _json(found: Explanation) -> dict[str, Any]:
    """The explanation as plain values; what is read-only becomes ordinary."""
    plain = asdict(replace(found, column=""))
    del plain["column"]
    return plain
