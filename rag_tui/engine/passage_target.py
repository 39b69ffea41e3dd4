"""What a user names as a passage: a pasted sentence, a line, a heading, a file or a chunk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rag_tui.engine.errors import UsageError
from rag_tui.engine.passage_places import (
    MAX_PLACES,
    Match,
    PassagePlace,
    PassageTarget,
    TargetKind,
    place_of,
)
from rag_tui.engine.passage_search import LEAST_SIMILARITY, find_text
from rag_tui.engine.types import Chunk, Document

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

__all__ = [
    "LEAST_SIMILARITY",
    "MAX_PLACES",
    "Match",
    "PassagePlace",
    "PassageTarget",
    "TargetKind",
    "chunk_named",
    "find_passage",
]

_HEX = re.compile(r"[0-9a-f]{4,16}")
"""A prefix of a chunk's id; fewer characters would name a chunk by accident."""
_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_SIGNS = re.compile(r"\W+")


def find_passage(wanted: str, index: Index) -> PassageTarget:
    """The places of a passage.

    Args:
        wanted: A chunk's id or a prefix of it that is unique; ``path:line`` or ``path:first-last``;
            ``path#heading`` (the heading's text or its anchor); a path; else text of a document.
        index: The index that is looked through.

    Raises:
        UsageError: When it is blank, a prefix fits several chunks, or a file that is indexed has
            no such line or heading.
    """
    if not wanted.strip():
        raise UsageError(
            "The passage is empty.", "Paste a sentence, or name a path:line, path#heading or chunk."
        )
    named = wanted.strip()
    return (
        _as_chunk(named, index)
        or _as_path(named, index)
        or _as_lines(named, index)
        or _as_heading(named, index)
        or find_text(wanted, index)
    )


def chunk_named(named: str, index: Index) -> Chunk:
    """The one chunk that an id, a unique prefix of it or a place in a file names.

    Of several chunks at a place the first is meant that holds the whole of it.

    Raises:
        UsageError: When there is none.
    """
    target = find_passage(named, index)
    position = next((p for place in target.places for p in (*place.holders, *place.parts)), None)
    if position is None:
        raise UsageError(
            f"The index has no chunk {named!r}.",
            "Give an id (`rag-tui chunks` lists them), the beginning of one, or path:line.",
        )
    return index.chunks[position]


def _as_chunk(named: str, index: Index) -> PassageTarget | None:
    position = index.position_of.get(named)
    if position is None and _HEX.fullmatch(named):
        fitting = [i for i, chunk_id in enumerate(index.chunk_ids) if chunk_id.startswith(named)]
        if len(fitting) > 1:
            shown = ", ".join(index.chunk_ids[i] for i in fitting[:5])
            raise UsageError(
                f"{len(fitting)} chunks have ids that begin with {named}: {shown}.",
                "Give more characters of the id.",
            )
        position = fitting[0] if fitting else None
    if position is None:
        return None
    chunk = index.chunks[position]
    place = PassagePlace(
        chunk.doc_id,
        chunk.start,
        chunk.end,
        chunk.line_start,
        chunk.line_end,
        (position,),
        (position,),
    )
    return PassageTarget(named, "chunk", "exact", (place,), path=chunk.doc_id)


def _as_path(named: str, index: Index) -> PassageTarget | None:
    document = index.document_of.get(named)
    if document is not None:
        place = place_of(index, document, 0, len(document.text), any_part=True)
        return PassageTarget(named, "file", "exact", (place,), path=named)
    records = [d for d in index.documents if d.doc_id.rpartition("#")[0] == named]
    if records:
        places = tuple(place_of(index, d, 0, len(d.text), any_part=True) for d in records)
        return PassageTarget(
            named, "file", "exact", places[:MAX_PLACES], path=named,
            is_scanned=len(places) > MAX_PLACES,
        )  # fmt: skip
    if _is_file_of(named, index):
        return PassageTarget(named, "file", "", (), 0.0, path=named)
    return None


def _as_lines(named: str, index: Index) -> PassageTarget | None:
    match = _LINES.fullmatch(named)
    if match is None:
        return None
    path, first = match["path"], int(match["first"])
    last = int(match["last"] or first)
    document = index.document_of.get(path)
    if document is None:
        if _is_file_of(path, index):
            return PassageTarget(named, "line", "", (), 0.0, path=path)
        return None
    n_lines = document.text.count("\n") + (not document.text.endswith("\n"))
    if not 1 <= first <= last <= n_lines:
        raise UsageError(
            f"{path} has no line {match[0].rpartition(':')[2]}: its text has {n_lines} lines.",
            f"Give a line from 1 to {n_lines}, or first-last.",
        )
    starts = [0, *(m.end() for m in re.finditer("\n", document.text)), len(document.text) + 1]
    start, end = starts[first - 1], starts[last] - 1
    if not document.text[start:end].strip():
        # A blank line belongs to the chunk around it; a span without characters touches none.
        end = next((m.end() for m in re.compile(r"\S").finditer(document.text, start)), end)
    place = place_of(index, document, start, end, any_part=True)
    return PassageTarget(named, "line", "exact", (place,), path=path)


def _as_heading(named: str, index: Index) -> PassageTarget | None:
    path, sign, title = named.partition("#")
    document = index.document_of.get(path)
    if not sign or not title.strip():
        return None
    if document is None:
        if _is_file_of(path, index):
            return PassageTarget(named, "heading", "", (), 0.0, path=path)
        return None
    wanted = {_anchor(title), _anchor(title.lstrip("#"))}
    places = tuple(
        place_of(index, document, heading.start, _section_end(document, i), any_part=True)
        for i, heading in enumerate(document.headings)
        if _anchor(heading.title) in wanted
    )
    if not places:
        titles = ", ".join(heading.title for heading in document.headings[:8]) or "none"
        raise UsageError(
            f"{path} has no heading {title.strip()!r}.", f"Its headings begin with: {titles}."
        )
    return PassageTarget(named, "heading", "exact", places, path=path)


def _section_end(document: Document, at: int) -> int:
    here = document.headings[at]
    below = (h.start for h in document.headings[at + 1 :] if h.level <= here.level)
    return next(below, len(document.text))


def _anchor(title: str) -> str:
    return _SIGNS.sub("-", title.casefold()).strip("-")


def _is_file_of(path: str, index: Index) -> bool:
    """Whether the folder's reports or the folder itself know this path."""
    if any(report.path == path for report in index.reports):
        return True
    if "\0" in path or "\n" in path or len(path) > 1024:
        return False
    place = index.folder / path
    try:
        return place.resolve().is_relative_to(index.folder.resolve()) and place.is_file()
    except (OSError, ValueError):
        return False
