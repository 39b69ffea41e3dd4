"""Wording that stands in a corpus more than once: whole chunks, and single passages."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import text_hash
from rag_tui.engine.types import Block, BlockKind, Chunk, Document

PASSAGE_CHARACTERS = 30
"""Shorter lines and sentences (``Example``, ``| --- |``) may stand in any number of chunks."""
PASSAGE_PLACES = 10
"""A passage in more places than this is boilerplate,"""
PASSAGE_SHARE = 0.01
"""if they are also more than this share of the number of chunks."""

_CHECK_EVERY = 64
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+")
_NOT_PROSE: tuple[BlockKind, ...] = ("code", "table")


@dataclass(frozen=True, slots=True)
class Passage:
    """One line, or sentence of a line, that stands in many places."""

    text: str
    n_places: int
    """Different places in the documents: overlapping chunks share one."""


def normalised(text: str) -> str:
    """A text as duplicates are compared: NFC, case folded, all blank space single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def first_copies(chunks: Sequence[Chunk], *, cancel: CancelToken | None = None) -> dict[int, int]:
    """For every chunk whose body stands earlier already: its position to the first one's.

    Bodies are compared `normalised`, by hash; blank bodies are no copies of each other.
    """
    token = cancel if cancel is not None else CancelToken()
    seen: dict[str, int] = {}
    copies: dict[int, int] = {}
    for position, chunk in enumerate(chunks):
        if position % _CHECK_EVERY == 0:
            token.check()
        body = normalised(chunk.body)
        first = seen.setdefault(text_hash(body), position) if body else position
        if first != position:
            copies[position] = first
    return copies


def prose(chunk: Chunk, document: Document | None) -> str:
    """The chunk's body without the parts that lie in code or tables, as far as they are known."""
    return "".join(text for _, text in prose_pieces(chunk, document)).strip()


def prose_pieces(chunk: Chunk, document: Document | None) -> Iterator[tuple[int, str]]:
    """The body's pieces outside code and tables, each with its offset in the document."""
    at = chunk.start + chunk.body_offset
    for block in blocks_in(document, at, chunk.end) if document is not None else ():
        if block.kind in _NOT_PROSE:
            if block.start > at:
                yield at, chunk.text[at - chunk.start : block.start - chunk.start]
            at = max(at, min(block.end, chunk.end))
    if at < chunk.end:
        yield at, chunk.text[at - chunk.start :]


def blocks_in(document: Document, start: int, end: int) -> Iterator[Block]:
    """The blocks that share at least one character with a span, ascending."""
    blocks = document.blocks
    for i in range(bisect_right(blocks, start, key=lambda block: block.end), len(blocks)):
        if blocks[i].start >= end:
            return
        yield blocks[i]


def repeated_passages(
    chunks: Sequence[Chunk],
    documents: Mapping[str, Document],
    *,
    cancel: CancelToken | None = None,
) -> dict[int, tuple[Passage, ...]]:
    """Boilerplate: for each chunk that holds any, its passages that stand in very many places.

    A passage is a line, or a sentence of a line, of at least `PASSAGE_CHARACTERS` once
    normalised, outside code and tables. It is boilerplate in more than `PASSAGE_PLACES` places
    that are also more than `PASSAGE_SHARE` of the number of chunks.
    """
    token = cancel if cancel is not None else CancelToken()
    places: dict[str, set[tuple[str, int]]] = {}
    held: list[list[str]] = []
    for position, chunk in enumerate(chunks):
        if position % _CHECK_EVERY == 0:
            token.check()
        mine: dict[str, None] = {}
        for at, text in passages(chunk, documents.get(chunk.doc_id)):
            places.setdefault(text, set()).add((chunk.doc_id, at))
            mine[text] = None
        held.append(list(mine))
    most = max(PASSAGE_PLACES, math.floor(PASSAGE_SHARE * len(chunks)))
    repeated = {text: Passage(text, len(at)) for text, at in places.items() if len(at) > most}
    found: dict[int, tuple[Passage, ...]] = {}
    for position, texts in enumerate(held):
        mine_repeated = tuple(repeated[text] for text in texts if text in repeated)
        if mine_repeated:
            found[position] = mine_repeated
    return found


def passages(chunk: Chunk, document: Document | None) -> Iterator[tuple[int, str]]:
    """The chunk's passages that are long enough to count, normalised, with their offsets."""
    for start, piece in prose_pieces(chunk, document):
        at = start
        for line in piece.split("\n"):
            if len(line) >= PASSAGE_CHARACTERS:
                yield from _sentences(line, at)
            at += len(line) + 1


def _sentences(line: str, start: int) -> Iterator[tuple[int, str]]:
    low = 0
    for high in [*(match.end() for match in _SENTENCE_END.finditer(line)), len(line)]:
        text = normalised(line[low:high])
        if len(text) >= PASSAGE_CHARACTERS:
            yield start + low, text
        low = high
