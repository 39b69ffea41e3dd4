"""What of a document no chunk holds, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.types import Chunk, Document

Reason = Literal["front matter", "heading without text below it", "nothing but rules", "lost"]


@dataclass(frozen=True, slots=True)
class Gap:
    """Text that is in no chunk; it begins and ends with a character that is not blank."""

    start: int
    end: int
    """Character offsets into the document's text, end-exclusive."""
    reason: Reason
    """``lost`` never happens: it would be a fault of the strategy."""


def gaps(document: Document, chunks: Iterable[Chunk]) -> tuple[Gap, ...]:
    """Every character that is not blank and that no chunk holds, as ascending gaps.

    Args:
        document: The document.
        chunks: Its chunks, in any order.
    """
    found: list[Gap] = []
    for start, end in _uncovered(document, chunks):
        for low, high in _parts(start, end, document.body_start):
            piece = document.text[low:high]
            if piece.strip():
                first = low + len(piece) - len(piece.lstrip())
                last = low + len(piece.rstrip())
                found.append(Gap(first, last, _reason(document, first, last)))
    return tuple(found)


def _uncovered(document: Document, chunks: Iterable[Chunk]) -> Iterator[tuple[int, int]]:
    covered = 0
    for start, end in sorted((chunk.start, chunk.end) for chunk in chunks):
        if start > covered:
            yield covered, start
        covered = max(covered, end)
    if covered < len(document.text):
        yield covered, len(document.text)


def _parts(start: int, end: int, border: int) -> list[tuple[int, int]]:
    return [(start, border), (border, end)] if start < border < end else [(start, end)]


def _reason(document: Document, start: int, end: int) -> Reason:
    if end <= document.body_start:
        return "front matter"
    inside = [h for h in document.headings if h.start < end and h.body_start > start]
    at, left = start, []
    for heading in inside:
        left.append(document.text[at : max(at, heading.start)])
        at = max(at, heading.body_start)
    left.append(document.text[at : max(at, end)])
    if "".join(left).strip("-*_ \t\n\r\f\v"):
        return "lost"
    return "heading without text below it" if inside else "nothing but rules"
