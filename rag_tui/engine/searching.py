"""One question, its columns: each as soon as it is ready."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.events import CancelToken, StageError, StageResult
from rag_tui.engine.filters import parse
from rag_tui.engine.knobs import column_request
from rag_tui.engine.post_steps import apply_post_steps
from rag_tui.engine.stages import Stages, check_model, stage_rankings
from rag_tui.engine.types import MAX_COLUMNS, METHODS, Column, Method, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

__all__ = ["check_model", "check_request", "final_results", "search", "stage_rankings"]

MAX_QUERY_WORDS = 1000
"""Longer questions are refused: every model here reads far less, and would cut them silently."""

_COST: tuple[Method, ...] = ("bm25", "vector", "hybrid", "reranked")


def check_request(request: SearchRequest) -> None:
    """Refuse a request that makes no sense.

    Raises:
        UsageError: Naming the value, the rule and the fix.
    """
    n_words = len(request.query.split())
    if n_words == 0:
        raise UsageError("The question is empty.", "Type a question or some words to search for.")
    if n_words > MAX_QUERY_WORDS:
        raise UsageError(
            f"The question has {n_words:,} words; at most {MAX_QUERY_WORDS:,} are accepted.",
            "Ask a shorter question: embedding models read only a few hundred tokens of it.",
        )
    _check_numbers(request)
    if request.where.strip():
        parse(request.where)
    _check_columns(request)


def search(
    request: SearchRequest, index: Index, models: Models, *, cancel: CancelToken | None = None
) -> Iterator[StageResult]:
    """The columns of the request whose method it asks for, each when it is done.

    They come in the order of their cost: bm25, vector, hybrid, reranked; of one method in the
    order of the columns. A reranked column comes again and again, at most about ten times a
    second, while ``ranking.n_waiting`` is above 0; `final_results` leaves those out. The numbers
    are the same whatever the order of the columns and whatever was computed before.

    A column that fails yields its error; the others stand. When one retriever fails the hybrid
    list is made of the other one and its ``note`` says so. ``request.where`` decides what may be
    ranked at all, before any list is made: each holds as many rows as it would over a corpus of
    only the allowed chunks, with the scores of the whole one. ``Ranking.params["where"]`` holds
    the filter. ``StageResult.elapsed_s`` is the time this search spent on the column: little,
    when its lists were known; ``Ranking.elapsed_s`` is what computing the last one has cost.

    Raises:
        UsageError: When the request makes no sense (empty question, top_k below 1, a filter that
            cannot be read or names an unknown key, ...).
        Cancelled: Soon after the token was set.
    """
    check_request(request)
    token = cancel if cancel is not None else CancelToken()
    stages = Stages(index, models, token)
    stages.allowed(request.where)
    for method in _COST:
        for column in request.columns:
            if column.method == method and method in request.methods:
                own = column_request(request, column)
                if method != "reranked" or own.rerank:
                    token.check()
                    yield from _column(column, own, index, stages)


def final_results(results: Iterable[StageResult]) -> Iterator[StageResult]:
    """The results of a search without those that come again, sharper."""
    return (r for r in results if r.ranking is None or r.ranking.n_waiting == 0)


def _column(
    column: Column, own: SearchRequest, index: Index, stages: Stages
) -> Iterator[StageResult]:
    started = perf_counter()
    try:
        for ranking in stages.list_of(own, column.method):
            inputs = {**stages.inputs(own, column.method), column.method: ranking}
            shown = apply_post_steps(ranking, own.post, index)
            result = StageResult(
                column.name,
                ranking=replace(shown, column=column.name),
                elapsed_s=perf_counter() - started,
                inputs=MappingProxyType(inputs),
            )
            yield result
    except Cancelled:
        raise
    except Exception as error:  # one failing column must never hide the others
        yield StageResult(
            column.name,
            error=StageError.from_exception(error),
            elapsed_s=perf_counter() - started,
        )


def _check_columns(request: SearchRequest) -> None:
    columns = request.columns
    if not 1 <= len(columns) <= MAX_COLUMNS:
        raise UsageError(
            f"A search has 1 to {MAX_COLUMNS} columns (got {len(columns)}).",
            "Leave some out: questions over more settings are what `rag-tui sweep` is for.",
        )
    seen: set[str] = set()
    for column in columns:
        if not column.name.strip():
            raise UsageError("A column has no name.", 'Give it one, such as "bm25 k1=0.9".')
        if column.name in seen:
            raise UsageError(
                f"Two columns are called {column.name!r}.", "Give each column its own name."
            )
        seen.add(column.name)
        if column.method not in METHODS:
            raise UsageError(
                f"The method of column {column.name!r} must be one of {', '.join(METHODS)} "
                f"(got {column.method!r}).",
                "Name the list that the column shows.",
            )
        try:
            _check_numbers(column_request(request, column))
        except UsageError as error:
            raise UsageError(f"Column {column.name!r}: {error.message}", error.hint) from error


def _check_numbers(request: SearchRequest) -> None:
    for name, value in (
        ("top_k", request.top_k),
        ("depth", request.depth),
        ("rerank_depth", request.rerank_depth),
    ):
        if value < 1:
            raise UsageError(
                f"{name} must be at least 1 (got {value}).", f"Set {name} to 1 or more."
            )
    if request.top_k > request.depth:
        raise UsageError(
            f"top_k must not be larger than depth (got top_k {request.top_k} > "
            f"depth {request.depth}).",
            f"Raise depth to {request.top_k} or more, or lower top_k.",
        )
    if not (math.isfinite(request.rrf_k) and request.rrf_k >= 0):
        raise UsageError(
            f"rrf_k must be a number of at least 0 (got {request.rrf_k}).",
            "Set rrf_k to 60, the value of the paper, or to another number from 0 up.",
        )
