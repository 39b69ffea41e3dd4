"""What the commands do; each returns its exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from rag_tui.cli.output import note, stdout_width, write_json, write_rich, write_text
from rag_tui.cli.session import Session, open_session
from rag_tui.cli.tables import search_json, search_table
from rag_tui.config import bundled_corpus, cache_dir, load_settings, user_file
from rag_tui.engine.answering import answer, make_answerer
from rag_tui.engine.citations import unknown_of
from rag_tui.engine.errors import UsageError
from rag_tui.engine.events import StageResult
from rag_tui.engine.filters import Mask, combine, split_query, where_mask
from rag_tui.engine.index import Index
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.searching import check_request, search
from rag_tui.engine.stores.local import index_dir
from rag_tui.engine.types import METHODS, Answer, Chunk, Method, Prompt
from rag_tui.logfile import log_place

EXIT_FAILED = 1
EXIT_NOT_FOUND = 3
SIDE_BY_SIDE = 120
"""Columns that four lists side by side need; in a narrower terminal they stand below each other."""
N_NAMED = 5
"""So many chunks over the limit are named."""

_PROBLEM = ("skipped", "failed", "partly")


def index_command(folder: Path | None, overrides: Mapping[str, object], *, as_json: bool) -> int:
    """``rag-tui index``: exit 1 when a file could not be read or no vectors could be made."""
    session = open_session(folder, overrides, rebuild=True)
    ready, index = session.ready, session.index
    states: dict[str, int] = {}
    for report in index.reports:
        states[report.state] = states.get(report.state, 0) + 1
    over = int((index.n_tokens > index.manifest.max_tokens).sum())
    failed = states.get("failed", 0) > 0 or index.vectors is None
    if as_json:
        write_json(
            {
                "folder": str(session.folder),
                "n_documents": len(index.documents),
                "n_chunks": len(index.chunks),
                "n_embedded": ready.n_embedded,
                "n_over_limit": over,
                "model": index.manifest.embedder_name,
                "dimensions": index.manifest.dimensions,
                "added": list(ready.added),
                "changed": list(ready.changed),
                "deleted": list(ready.deleted),
                "states": states,
                "files": [asdict(report) for report in index.reports],
                "notes": list(ready.notes),
            }
        )
        return EXIT_FAILED if failed else 0
    for report in index.reports:
        if report.state in _PROBLEM:
            note(f"{report.state}: {report.path}: {report.reason}")
    summary = ", ".join(f"{n} {state}" for state, n in sorted(states.items()))
    write_text(
        f"{session.folder}: {len(index.documents)} documents, {len(index.chunks)} chunks, "
        f"{ready.n_embedded} embedded now ({index.manifest.embedder_name})"
    )
    write_text(
        f"files: {summary}; new {len(ready.added)}, changed {len(ready.changed)}, "
        f"deleted {len(ready.deleted)}"
    )
    if over:
        _note_over_limit(index)
    return EXIT_FAILED if failed else 0


def _note_over_limit(index: Index) -> None:
    """Name the chunks whose end the model never reads, worst first."""
    limit = index.manifest.max_tokens
    over = [i for i, n in enumerate(index.n_tokens.tolist()) if n > limit]
    note(f"{len(over)} chunks are longer than the {limit} tokens the model reads:")
    for position in sorted(over, key=lambda i: -int(index.n_tokens[i]))[:N_NAMED]:
        lost = int(index.n_tokens[position]) - limit
        note(f"  {index.chunks[position].location}: the last {lost} tokens are not read")
    if len(over) > N_NAMED:
        note(f"  and {len(over) - N_NAMED} more")


def search_command(
    question: str,
    folder: Path | None,
    overrides: Mapping[str, object],
    methods: list[str],
    where: str = "",
    *,
    as_json: bool,
) -> int:
    """``rag-tui search``: exit 1 when a list that was asked for could not be made."""
    question, where = _question_and_filter(question, where)
    settings = load_settings(folder, overrides)
    wanted = cast("tuple[Method, ...]", tuple(m for m in METHODS if not methods or m in methods))
    request = replace(settings.request(question), methods=wanted, where=where)
    check_request(request)  # before minutes of indexing, not after
    session = open_session(folder, overrides)
    if request.top_k > len(session.index.chunks):
        note(
            f"top_k {request.top_k} is more than the {len(session.index.chunks)} chunks there are: "
            "all that match are shown"
        )
    _note_filter(where, session.index)
    results = list(search(request, session.index, session.models))
    results.sort(key=lambda result: METHODS.index(result.stage))
    for result in results:
        if result.error is not None:
            note(f"{result.stage}: {result.error.message}")
            if result.error.hint:
                note(f"  {result.error.hint}")
        elif result.ranking is not None and result.ranking.note:
            note(f"{result.stage}: {result.ranking.note}")
    if as_json:
        write_json(search_json(request, session.index, results, str(session.folder)))
    elif stdout_width() < SIDE_BY_SIDE:
        for result in results:
            single = replace(request, methods=(result.stage,))
            write_rich(search_table(single, session.index, results))
    else:
        write_rich(search_table(request, session.index, results))
    return EXIT_FAILED if any(result.error for result in results) else 0


def _question_and_filter(question: str, where: str) -> tuple[str, str]:
    """The question without its own ``where:``, and one filter of that and the flag's."""
    question, inline = split_query(question)
    return question, combine(where, inline)


def _note_filter(where: str, index: Index) -> Mask | None:
    allowed = where_mask(where, index)
    if allowed is not None:
        note(f"filter {where}: {int(allowed.sum()):,} of {len(index.chunks):,} chunks")
    return allowed


def retrieve_for_answer(session: Session, question: str, where: str = "") -> list[Chunk]:
    """The chunks a prompt is made of: the best list there is, reranked before hybrid."""
    n_sources = session.settings.answer.n_sources
    request = session.settings.request(question)
    request = replace(
        request,
        where=where,
        depth=max(request.depth, n_sources),
        rerank_depth=max(request.rerank_depth, n_sources),
    )
    results: dict[str, StageResult] = {}
    for result in search(request, session.index, session.models):
        results[result.stage] = result
        if result.error is not None:
            note(f"{result.stage}: {result.error.message}")
    for method in ("reranked", "hybrid"):
        ranking = results[method].ranking if method in results else None
        if ranking is not None:
            return [session.index.chunks[hit.position] for hit in ranking.hits[:n_sources]]
    return []


def ask_command(
    question: str,
    folder: Path | None,
    overrides: Mapping[str, object],
    where: str = "",
    *,
    show_prompt: bool,
    as_json: bool,
) -> int:
    """``rag-tui ask``: exit 3 for not found, 1 for a failed or incomplete answer."""
    question, where = _question_and_filter(question, where)
    check_request(replace(load_settings(folder, overrides).request(question), where=where))
    session = open_session(folder, overrides)
    _note_filter(where, session.index)
    chunks = retrieve_for_answer(session, question, where)
    prompt = build_prompt(question, chunks, max_sources=session.settings.answer.n_sources)
    if show_prompt:
        if as_json:
            write_json(asdict(prompt))
        else:
            write_text(f"{prompt.system}\n\n{prompt.user}")
        return 0
    final = asyncio.run(_stream(prompt, session, echo=not as_json))
    if as_json:
        write_json({**asdict(final), "cited": list(final.cited), "sources": _sources(prompt)})
    else:
        _write_sources(prompt, final)
    if final.state == "not found":
        return EXIT_NOT_FOUND
    return 0 if final.state == "complete" else EXIT_FAILED


async def _stream(prompt: Prompt, session: Session, *, echo: bool) -> Answer:
    answerer = make_answerer(session.settings.engine.answer, session.models, os.environ)
    written = 0
    final = Answer("", "empty answer", answerer.name)
    async for final in answer(prompt, answerer):
        if echo and len(final.text) > written:
            write_text(final.text[written:], end="")
            written = len(final.text)
    if echo:
        write_text("")
    return final


def _write_sources(prompt: Prompt, final: Answer) -> None:
    for source in prompt.sources:
        if source.number in final.cited:
            write_text(f"[{source.number}] {source.path} · {source.heading}")
    n_sources = len(prompt.sources)
    for label in unknown_of(final, n_sources):
        write_text(f"[{label}] does not exist: the prompt had sources 1 to {n_sources}")
    if final.state == "complete" and not final.citations:
        note("the answer cites no source")
    if final.state not in ("complete", "not found"):
        note(f"the answer is not complete: {final.state}. {final.detail}".strip())
    elif final.detail:
        note(final.detail)


def _sources(prompt: Prompt) -> list[dict[str, Any]]:
    return [asdict(source) for source in prompt.sources]


def locate_command(what: str, folder: Path | None) -> int:
    """``rag-tui locate``."""
    corpus = folder if folder is not None else bundled_corpus()
    places = {
        "cache": cache_dir(),
        "config": user_file(),
        "corpus": corpus,
        "index": index_dir(cache_dir(), corpus),
        "log": log_place(cache_dir()),
    }
    if what not in places:
        raise UsageError(f"{what} is not something to locate.", f"One of: {', '.join(places)}.")
    write_text(str(places[what]))
    return 0
