"""One chunk per section; sections too long are cut at blocks, then sentences, then anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.pieces import Piece, as_chunks, embedded_text
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.sections import sections
from rag_tui.engine.chunkers.segments import atoms, segments
from rag_tui.engine.chunkers.splitting import fitted, split
from rag_tui.engine.chunkers.units import LONGEST_UNIT
from rag_tui.engine.types import Chunk, Document


class HeadingsChunker:
    """Cuts documents at their headings.

    Chunks tile the text from the end of the front matter on, except for overlap and for headings
    without text at the very end; a chunk's body is never blank.

    A section is one chunk if it fits. A longer one is cut between blocks (paragraphs, lists,
    tables, code); a block that is too long between its items, rows, lines or sentences; a
    sentence that is too long into windows. Of all divisions into few pieces the one with the
    best cuts is taken (`packing.best_packs`). Rows behind a cut have the table's header as their
    prefix, lines of code the opening fence.

    Pieces cut between blocks, rows and lines share nothing. Pieces cut between sentences share
    the whole sentences that fit ``settings.overlap``, windows share just that many units (fewer
    only where headings leave little room for the body, or to keep a word whole).

    With unit ``tokens`` the size counts context, prefix, body and special tokens, and is never
    more than the model reads. In pieces of a cut section the context has at most a quarter of
    the size: outer headings are dropped from longer paths, at last the innermost is cut short.
    With ``words`` and ``characters`` the size counts those of
    prefix and body.

    Args:
        settings: Size, overlap and unit.
        counter: The model's tokens.
        reserve: Tokens kept free in each chunk for what is put in front of it later.
    """

    def __init__(
        self, settings: ChunkingSettings, counter: TokenCounter, *, reserve: int = 0
    ) -> None:
        self._ruler = Ruler(settings, counter, reserve=reserve)

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        ruler = self._ruler
        whole = [
            Piece(section.start, section.end, section.body_start, section.heading_path)
            for section in sections(document)
        ]
        sizes = self._sizes(document, whole)
        pieces: list[Piece] = []
        for piece, size in zip(whole, sizes, strict=True):
            # A tokenizer may give one token for a run of any length.
            n_characters = piece.end - piece.body_start
            if size <= ruler.size and n_characters <= ruler.size * LONGEST_UNIT:
                pieces.append(piece)
            else:
                pieces.extend(fitted(document, list(self._cut(document, piece)), ruler))
        return as_chunks(document, pieces)

    def _sizes(self, document: Document, pieces: list[Piece]) -> list[int]:
        if self._ruler.is_tokens:
            counts = self._ruler.counter.count([embedded_text(document, p) for p in pieces])
            return [count + self._ruler.n_special for count in counts]
        if self._ruler.unit == "characters":
            return [len(document.text[p.body_start : p.end].strip()) for p in pieces]
        return self._ruler.costs(document.text, [(p.body_start, p.end) for p in pieces])

    def _cut(self, document: Document, piece: Piece) -> Iterator[Piece]:
        budget, path = self._ruler.budget(piece.heading_path)
        found = segments(document, piece.body_start, piece.end)
        made = atoms(document, found, self._ruler, budget)
        overlap = self._ruler.overlap(budget)
        for stretch in split(document, made, self._ruler, budget, overlap):
            is_first = stretch.start == piece.body_start
            start = piece.start if is_first else stretch.start
            yield Piece(start, stretch.end, stretch.start, path, stretch.prefix)
