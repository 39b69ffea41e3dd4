"""From places in a document to chunks: the last step of every strategy."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag_tui.engine.ids import chunk_id
from rag_tui.engine.types import Chunk, Document


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk to be. Offsets are into the document's text."""

    start: int
    end: int
    body_start: int
    """Behind the heading lines at the front that the path already says."""
    heading_path: tuple[str, ...]
    prefix: str = ""


def embedded_text(document: Document, piece: Piece) -> str:
    """What the model will read of it: the same as `Chunk.embedded_text`."""
    body = document.text[piece.body_start : piece.end].strip()
    body = f"{piece.prefix}\n{body}" if piece.prefix else body
    return f"{' > '.join(piece.heading_path)}\n\n{body}" if piece.heading_path else body


def as_chunks(document: Document, pieces: Sequence[Piece]) -> tuple[Chunk, ...]:
    """The chunks, numbered in the order of the pieces."""
    line_starts = [0]
    for line in document.text.split("\n"):
        line_starts.append(line_starts[-1] + len(line) + 1)
    page_starts = [page.start for page in document.pages]
    n_equal: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for ordinal, piece in enumerate(pieces):
        text = document.text[piece.start : piece.end]
        first = piece.start + len(text) - len(text.lstrip())
        last = piece.start + len(text.rstrip()) - 1
        page = bisect_right(page_starts, first)
        number, place = _place(document, page)
        chunks.append(
            Chunk(
                chunk_id=chunk_id(document.doc_id, text, n_equal[text]),
                doc_id=document.doc_id,
                ordinal=ordinal,
                start=piece.start,
                end=piece.end,
                text=text,
                heading_path=piece.heading_path,
                body_offset=piece.body_start - piece.start,
                line_start=bisect_right(line_starts, first),
                line_end=bisect_right(line_starts, last),
                prefix=piece.prefix,
                page=number,
                place=place,
            )
        )
        n_equal[text] += 1
    return tuple(chunks)


_PAGE_WORDS = {
    "pdf": "page",
    "pptx": "slide",
    "notebook": "cell",
    "xlsx": "sheet",
    "epub": "chapter",
    "subtitles": "minute",
}
_NUMBERED = frozenset({"pdf", "pptx"})
"""Formats whose page numbers are what a reader calls pages; records and cells are none."""


def _place(document: Document, page: int) -> tuple[int | None, str]:
    """Page number and place of what begins on the page with this 1-based index; 0: on none."""
    if not page:
        return None, ""
    found = document.pages[page - 1]
    word = _PAGE_WORDS.get(document.format, "part")
    number = found.number if document.format in _NUMBERED else None
    return number, f"{word} {found.number}" if number or not found.label else found.label
