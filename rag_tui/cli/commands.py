"""What the commands do; each returns its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rag_tui.cli.knob_options import with_options
from rag_tui.cli.output import note, stdout_width, write_json, write_rich, write_text
from rag_tui.cli.session import open_session
from rag_tui.cli.tables import search_json, search_table
from rag_tui.config import bundled_corpus, cache_dir, load_settings, user_file
from rag_tui.display import count
from rag_tui.engine.errors import UsageError
from rag_tui.engine.filters import Mask, combine, split_query, where_mask
from rag_tui.engine.history import SearchLog
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import column_request
from rag_tui.engine.searching import check_request, final_results, search
from rag_tui.engine.stores.local import index_dir
from rag_tui.engine.types import METHODS, SearchRequest
from rag_tui.logfile import log_place

EXIT_FAILED = 1
EXIT_NOT_FOUND = 3
COLUMN_WIDTH = 30
"""Cells that a list needs beside others; in a narrower terminal they stand below each other."""
N_NAMED = 5
"""So many chunks over the limit are named."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What ``rag-tui search`` was asked for, beside settings."""

    methods: tuple[str, ...] = ()
    """Only these lists; empty: all."""
    where: str = ""
    preset: str = ""
    knobs: tuple[str, ...] = ()
    """``name=value``."""
    columns: tuple[str, ...] = ()
    """``name=method:knob=value,…``; empty: those of the settings."""


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
    asked: SearchOptions,
    *,
    as_json: bool,
) -> int:
    """``rag-tui search``: exit 1 when a list that was asked for could not be made."""
    question, where = _question_and_filter(question, asked.where)
    settings = load_settings(folder, overrides)
    request = with_options(
        settings.request(question),
        settings.presets,
        preset=asked.preset,
        flags=overrides,
        knobs=asked.knobs,
        columns=asked.columns,
    )
    wanted = tuple(m for m in METHODS if not asked.methods or m in asked.methods)
    request = replace(request, methods=wanted, where=where)
    check_request(request)  # before minutes of indexing, not after
    _check_any_list(request)
    session = open_session(folder, overrides)
    if request.top_k > len(session.index.chunks):
        note(
            f"top_k is {request.top_k}, the index has {count(len(session.index.chunks), 'chunk')}: "
            "all that match are shown"
        )
    _note_filter(where, session.index)
    results = list(final_results(search(request, session.index, session.models)))
    log = SearchLog(cache_dir(), is_enabled=settings.history.enabled)
    remark = log.record(request, session.index, results)
    if remark:
        note(remark)
    order = [column.name for column in request.columns]
    results.sort(key=lambda result: order.index(result.stage))
    for result in results:
        if result.error is not None:
            note(f"{result.stage}: {result.error.message}")
            if result.error.hint:
                note(f"  {result.error.hint}")
        elif result.ranking is not None and result.ranking.note:
            note(f"{result.stage}: {result.ranking.note}")
    if as_json:
        write_json(search_json(request, session.index, results, str(session.folder)))
    elif stdout_width() < COLUMN_WIDTH * max(len(results), 4):
        for result in results:
            write_rich(search_table(request, session.index, [result]))
    else:
        write_rich(search_table(request, session.index, results))
    return EXIT_FAILED if any(result.error for result in results) else 0


def _check_any_list(request: SearchRequest) -> None:
    """Refuse a search that would show nothing, where the engine just has nothing to do."""
    chosen = [column for column in request.columns if column.method in request.methods]
    if not chosen:
        there = ", ".join(f"{column.name} ({column.method})" for column in request.columns)
        raise UsageError(
            f"There is no column of the method {', '.join(request.methods)}.",
            f"Columns are: {there}. Leave --method out, or name another.",
        )
    if all(c.method == "reranked" and not column_request(request, c).rerank for c in chosen):
        raise UsageError(
            "Reranking is switched off, and only reranked lists were asked for.",
            "Give --knob search.rerank=true, or ask for other lists.",
        )


def _question_and_filter(question: str, where: str) -> tuple[str, str]:
    """The question without its own ``where:``, and one filter of that and the flag's."""
    question, inline = split_query(question)
    return question, combine(where, inline)


def _note_filter(where: str, index: Index) -> Mask | None:
    allowed = where_mask(where, index)
    if allowed is not None:
        note(f"filter {where}: {int(allowed.sum()):,} of {len(index.chunks):,} chunks")
    return allowed


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
