"""What the commands of the ranking lab have in common: a question, its columns and its session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rag_tui.cli.knob_options import parse_column, with_options
from rag_tui.cli.output import note
from rag_tui.cli.session import Session, open_session
from rag_tui.config import load_settings
from rag_tui.engine.errors import UsageError
from rag_tui.engine.filters import combine, split_query, where_mask
from rag_tui.engine.searching import check_request
from rag_tui.engine.types import Column, SearchRequest


@dataclass(frozen=True, slots=True)
class LabOptions:
    """A question as it was typed, with everything that decides its columns."""

    question: str
    folder: Path | None = None
    where: str = ""
    preset: str = ""
    knobs: tuple[str, ...] = ()
    """``name=value``."""
    columns: tuple[str, ...] = ()
    """Names of columns, or ``name=method:knob=value,…``; empty: those of the settings."""
    overrides: Mapping[str, object] = field(default_factory=dict)


def open_lab(asked: LabOptions) -> tuple[SearchRequest, Session]:
    """The request and an index that is up to date.

    Raises:
        UsageError: When something that was typed makes no sense; before any indexing.
    """
    question, inline = split_query(asked.question)
    where = combine(asked.where, inline)
    settings = load_settings(asked.folder, asked.overrides)
    request = with_options(
        settings.request(question),
        settings.presets,
        preset=asked.preset,
        flags=asked.overrides,
        knobs=asked.knobs,
    )
    request = replace(request, where=where, columns=_columns(asked.columns, request))
    check_request(request)
    session = open_session(asked.folder, asked.overrides)
    allowed = where_mask(where, session.index)
    if allowed is not None:
        n_allowed, n_chunks = int(allowed.sum()), len(session.index.chunks)
        note(f"filter {where}: {n_allowed:,} of {n_chunks:,} chunks")
    return request, session


def _columns(named: tuple[str, ...], request: SearchRequest) -> tuple[Column, ...]:
    known = {column.name: column for column in request.columns}
    chosen: list[Column] = []
    for name in named:
        if name in known:
            chosen.append(known[name])
        elif "=" in name:
            chosen.append(parse_column(name))
        else:
            raise UsageError(
                f"There is no column {name!r}.",
                f'There are: {", ".join(known)}; or define one, such as "short=bm25:bm25.k1=0.9".',
            )
    return tuple(chosen) or request.columns
