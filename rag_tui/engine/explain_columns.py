"""The explanation of a chunk in one column of a search, whose lists are found or made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_tui.engine.errors import ModelError, UsageError
from rag_tui.engine.explain import Explanation, explain
from rag_tui.engine.knobs import column_request
from rag_tui.engine.searching import final_results, search
from rag_tui.engine.types import Column, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models


def explain_column(
    chunk_id: str,
    request: SearchRequest,
    column: Column,
    index: Index,
    models: Models,
    *,
    cancel: CancelToken | None = None,
) -> Explanation:
    """`explain` for one column of a search, its lists found or made.

    Raises:
        UsageError: When the request makes no sense or the index has no such chunk.
        ModelError: When the column's own list cannot be made.
        Cancelled: Soon after the token was set.
    """
    alone = replace(request, columns=(column,), methods=(column.method,))
    own = column_request(request, column)
    result = next(final_results(search(alone, index, models, cancel=cancel)), None)
    if result is None:
        raise UsageError(
            f"Column {column.name!r} is switched off.", "Set search.rerank to true for it."
        )
    if result.ranking is None:
        error = result.error
        message, hint = (error.message, error.hint) if error else ("no list was made", "")
        raise ModelError(f"{column.name}: {message}", hint)
    found = explain(chunk_id, own, index, result.inputs, models=models, shown=result.ranking)
    return replace(found, column=column.name)
