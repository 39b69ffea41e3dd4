"""What a passage is looked for as, and the places it has in documents and chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rag_tui.engine.types import Document

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

TargetKind = Literal["chunk", "line", "heading", "file", "text"]
Match = Literal["exact", "white space", "capitals", "fuzzy", ""]

MAX_PLACES = 50


@dataclass(frozen=True, slots=True)
class PassagePlace:
    """One place where the passage stands, and the chunks there by position."""

    doc_id: str
    start: int
    end: int
    """Character offsets into the document's text, end-exclusive, no blank space at the ends."""
    line_start: int
    line_end: int
    """1-based, both inclusive."""
    holders: tuple[int, ...]
    """Positions of the chunks that hold it; for lines, headings and files any part is enough."""
    parts: tuple[int, ...]
    """Positions of the chunks that hold at least one character of it."""

    @property
    def is_split(self) -> bool:
        """Whether no chunk holds the whole of it, though some hold parts."""
        return bool(self.parts) and not self.holders


@dataclass(frozen=True, slots=True)
class PassageTarget:
    """What is looked for, and all the places it has."""

    wanted: str
    """As it was given."""
    kind: TargetKind
    match: Match
    """How the text was found; empty when it was not."""
    places: tuple[PassagePlace, ...]
    """By document and offset, at most `MAX_PLACES`; empty when no document holds it."""
    similarity: float = 1.0
    """0 to 1; of the nearest text when nothing was found, 0 when nothing is near."""
    path: str = ""
    """The file that was named, for every kind but ``text``."""
    nearest: PassagePlace | None = None
    """The most similar text, when it is too different to count as found."""
    is_scanned: bool = False
    """Whether there were more places than are told."""


def place_of(
    index: Index, document: Document, start: int, end: int, *, any_part: bool = False
) -> PassagePlace:
    """The place of a span of a document's text, its blank ends cut off, and the chunks there.

    Args:
        index: The index that the document is of.
        document: One of its documents.
        start: Character offset into the document's text.
        end: End of the span, exclusive.
        any_part: Whether a chunk that holds a part of the span counts as holding it.
    """
    text = document.text[start:end]
    start += len(text) - len(text.lstrip())
    end = max(start, start + len(text.strip()))
    parts = tuple(
        position
        for position in index.positions_in.get(document.doc_id, ())
        if index.chunks[position].start < end and start < index.chunks[position].end
    )
    whole = tuple(p for p in parts if index.chunks[p].start <= start and end <= index.chunks[p].end)
    return PassagePlace(
        document.doc_id,
        start,
        end,
        document.text.count("\n", 0, start) + 1,
        document.text.count("\n", 0, max(start, end - 1)) + 1,
        parts if any_part else whole,
        parts,
    )
