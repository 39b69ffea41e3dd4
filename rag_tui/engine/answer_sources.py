"""From a question to the chunks that its prompt is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_tui.engine.errors import UsageError
from rag_tui.engine.events import CancelToken, StageResult
from rag_tui.engine.filters import where_mask
from rag_tui.engine.knobs import column_request
from rag_tui.engine.searching import search
from rag_tui.engine.types import Chunk, Column, Method, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.filters import Mask
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

_BEST_FIRST: tuple[Method, ...] = ("reranked", "hybrid", "vector", "bm25")
Around = tuple[Sequence[Chunk], Sequence[Chunk]]


@dataclass(frozen=True, slots=True)
class PromptChunks:
    """What goes into a prompt."""

    chunks: tuple[Chunk, ...]
    """Best first; empty when nothing was found or no list could be made."""
    column: str
    """The column they are from; empty when none could be made."""
    around: Mapping[str, Around] = field(default_factory=lambda: MappingProxyType({}))
    """Chunk id to its neighbours before and after, where `PostSteps.neighbours` asks for some."""
    notes: tuple[str, ...] = ()
    """Which columns failed, and why."""


def prompt_columns(request: SearchRequest, name: str = "") -> tuple[Column, ...]:
    """The columns that sources may be taken from, the preferred one first.

    Without a name reranked ones go before hybrid, vector and BM25 ones; the next is for when one
    fails.

    Raises:
        UsageError: When no column has the name.
    """
    if name:
        named = tuple(column for column in request.columns if column.name == name)
        if not named:
            there = ", ".join(column.name for column in request.columns)
            raise UsageError(f"There is no column {name!r}.", f"There are: {there}.")
        return named
    usable = [
        column
        for column in request.columns
        if column.method != "reranked" or column_request(request, column).rerank
    ]
    return tuple(sorted(usable, key=lambda column: _BEST_FIRST.index(column.method)))


def chunks_for_prompt(
    request: SearchRequest,
    index: Index,
    models: Models,
    *,
    n_sources: int,
    column: str = "",
    cancel: CancelToken | None = None,
) -> PromptChunks:
    """The first rows of one column of the request, without depending on how many are shown.

    Args:
        request: The question with its knobs and filter.
        index: Where to search.
        models: What ranks.
        n_sources: So many chunks at most.
        column: Name of a column; empty: the best that can be made.
        cancel: Polled by every stage.

    Raises:
        UsageError: When there is no such column, or the request makes no sense.
        Cancelled: Soon after the token was set.
    """
    notes: list[str] = []
    for wanted in prompt_columns(request, column):
        deep = replace(
            request,
            columns=(wanted,),
            methods=(wanted.method,),
            depth=max(request.depth, n_sources),
            rerank_depth=max(request.rerank_depth, n_sources),
        )
        last: StageResult | None = None
        for result in search(deep, index, models, cancel=cancel):
            last = result
        if last is None or last.ranking is None:
            reason = last.error.message if last is not None and last.error else "no list"
            notes.append(f"{wanted.name}: {reason}")
            continue
        chunks = tuple(index.chunks[hit.position] for hit in last.ranking.hits[:n_sources])
        n_around = column_request(request, wanted).post.neighbours
        around = neighbours_of(chunks, index, n_around, where_mask(request.where, index))
        return PromptChunks(chunks, wanted.name, around, tuple(notes))
    return PromptChunks((), "", notes=tuple(notes))


def neighbours_of(
    chunks: Sequence[Chunk], index: Index, n: int, allowed: Mask | None
) -> Mapping[str, Around]:
    """The ``n`` chunks before and after each in its document; without what a filter forbids."""
    around: dict[str, Around] = {}
    for chunk in chunks if n else ():
        at = index.position_of[chunk.chunk_id]
        near = [
            index.chunks[position]
            for position in range(max(0, at - n), min(len(index.chunks), at + n + 1))
            if allowed is None or allowed[position]
        ]
        own = [c for c in near if c.doc_id == chunk.doc_id]
        around[chunk.chunk_id] = (
            tuple(c for c in own if c.ordinal < chunk.ordinal),
            tuple(c for c in own if c.ordinal > chunk.ordinal),
        )
    return MappingProxyType(around)
