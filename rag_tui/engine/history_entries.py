"""Finished searches as they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rag_tui.engine.events import StageResult
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.knobs import (
    column_request,
    differing_knobs,
    make_column,
    with_knobs,
)
from rag_tui.engine.types import (
    DEFAULT_COLUMNS,
    METHODS,
    Column,
    KnobValue,
    Method,
    SearchRequest,
)

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

N_ROWS = 20
"""Rows of a list that are kept, or more when more are shown."""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One row of a list as it was."""

    chunk_id: str
    location: str
    score: float


@dataclass(frozen=True, slots=True)
class HistoryColumn:
    """One column as it was."""

    name: str
    method: str
    rows: tuple[HistoryRow, ...]
    """By rank; the first `N_ROWS`, or those shown."""
    score_name: str = ""
    elapsed_s: float = 0.0
    note: str = ""
    error: str = ""
    """Why there is no list; empty when there is one."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One finished search."""

    time: str
    """UTC, ISO 8601, to the second."""
    query: str
    where: str
    knobs: Mapping[str, KnobValue]
    """Those that differ from the package's defaults."""
    knob_fingerprint: str
    """Of all knobs and columns: equal for searches with the same settings."""
    index_fingerprint: str
    """Changes when chunks or the embedding model change."""
    folder: str
    model: str
    """The index's embedding model."""
    columns: tuple[HistoryColumn, ...]
    methods: tuple[str, ...] = METHODS
    asked: tuple[Column, ...] = DEFAULT_COLUMNS
    """The columns of the request, those too that were not shown."""

    def request(self) -> SearchRequest:
        """The search as it was asked.

        Raises:
            UsageError: When it has a knob or value that this version does not know.
        """
        asked = tuple(make_column(c.name, c.method, dict(c.knobs)) for c in self.asked)
        methods: tuple[Method, ...] = tuple(
            m for name in self.methods for m in METHODS if m == name
        )
        request = SearchRequest(self.query, where=self.where, methods=methods, columns=asked)
        return with_knobs(request, self.knobs)


def knob_fingerprint(request: SearchRequest) -> str:
    """Equal for requests with equal knobs, columns, methods and filter, whatever the question."""
    plain = replace(request, query="")
    return fingerprint(
        {
            "knobs": differing_knobs(plain, SearchRequest("")),
            "where": plain.where,
            "methods": list(plain.methods),
            "columns": [
                [c.name, c.method, differing_knobs(column_request(plain, c), SearchRequest(""))]
                for c in plain.columns
            ],
        }
    )


def make_entry(
    request: SearchRequest,
    index: Index,
    results: Iterable[StageResult],
    *,
    time: datetime,
    index_fingerprint: str,
) -> HistoryEntry:
    """A finished search as it is kept; of a column that came several times, the last."""
    last = {result.stage: result for result in results}
    columns = tuple(
        _kept_column(column, last[column.name], request, index)
        for column in request.columns
        if column.name in last
    )
    return HistoryEntry(
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        query=request.query,
        where=request.where,
        knobs=differing_knobs(request, SearchRequest("")),
        knob_fingerprint=knob_fingerprint(request),
        index_fingerprint=index_fingerprint,
        folder=str(index.folder),
        model=index.manifest.embedder_name,
        columns=columns,
        methods=request.methods,
        asked=request.columns,
    )


def entry_as_json(entry: HistoryEntry) -> dict[str, Any]:
    """The entry as plain values; `entry_from_json` is the way back."""
    return {
        "time": entry.time,
        "query": entry.query,
        "where": entry.where,
        "knobs": dict(entry.knobs),
        "knob_fingerprint": entry.knob_fingerprint,
        "index_fingerprint": entry.index_fingerprint,
        "folder": entry.folder,
        "model": entry.model,
        "methods": list(entry.methods),
        "asked": [[c.name, c.method, dict(c.knobs)] for c in entry.asked],
        "columns": [
            {
                "name": column.name,
                "method": column.method,
                "score": column.score_name,
                "elapsed_s": column.elapsed_s,
                "note": column.note,
                "error": column.error,
                "rows": [[row.chunk_id, row.location, row.score] for row in column.rows],
            }
            for column in entry.columns
        ],
    }


def entry_from_json(value: Any) -> HistoryEntry:
    """An entry from what `entry_as_json` gave.

    Raises:
        ValueError: When something is missing or of another type.
    """
    try:
        columns = tuple(
            HistoryColumn(
                name=_text(column["name"]),
                method=_text(column["method"]),
                rows=tuple(
                    HistoryRow(_text(chunk_id), _text(location), float(score))
                    for chunk_id, location, score in column["rows"]
                ),
                score_name=_text(column["score"]),
                elapsed_s=float(column["elapsed_s"]),
                note=_text(column["note"]),
                error=_text(column["error"]),
            )
            for column in value["columns"]
        )
        texts = {
            name: _text(value[name])
            for name in ("time", "query", "where", "knob_fingerprint", "index_fingerprint")
        }
        return HistoryEntry(
            **texts,
            folder=_text(value["folder"]),
            model=_text(value["model"]),
            knobs=dict(value["knobs"]),
            columns=columns,
            methods=tuple(_text(method) for method in value["methods"]),
            asked=tuple(
                Column(_text(name), method, tuple(dict(knobs).items()))
                for name, method, knobs in value["asked"]
            ),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no entry: {error}") from error


def _kept_column(
    column: Column, result: StageResult, request: SearchRequest, index: Index
) -> HistoryColumn:
    ranking = result.ranking
    elapsed_s = round(result.elapsed_s, 6)
    if ranking is None:
        error = result.error.message if result.error else "no list"
        return HistoryColumn(column.name, column.method, (), elapsed_s=elapsed_s, error=error)
    n_kept = max(N_ROWS, column_request(request, column).top_k)
    rows = tuple(
        HistoryRow(hit.chunk_id, index.chunks[hit.position].location, hit.score)
        for hit in ranking.hits[:n_kept]
    )
    kind = ranking.score_kind.name
    return HistoryColumn(column.name, column.method, rows, kind, elapsed_s, ranking.note)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text was expected (got {value!r})")
    return value
