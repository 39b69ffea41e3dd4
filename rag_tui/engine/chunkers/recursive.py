"""The whole text from its coarsest structure to its finest, without regard to sections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.flat import Layout
from rag_tui.engine.chunkers.packing import Atom
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.segments import HEADING, atoms, header_at, segments
from rag_tui.engine.chunkers.splitting import Stretch, split
from rag_tui.engine.chunkers.units import cut_strengths
from rag_tui.engine.chunkers.windows import WORD
from rag_tui.engine.types import Chunk, Document

_SLICE_PER_UNIT = 12
_SLICE_MORE = 64


class RecursiveChunker:
    """Chunks near the size, cut at the best places: headings, blocks, lines, sentences, words.

    Unlike with `HeadingsChunker`, short sections share a chunk. Each chunk begins with the last
    words of the one before: as many whole ones as fit the overlap, and none out of a table or a
    code block, nor in front of rows or lines of one.

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
        layout = Layout(document, self._ruler)
        return layout.chunks(self._stretches(layout), repeats_headers=True)

    def _stretches(self, layout: Layout) -> Iterator[Stretch]:
        overlap = self._ruler.overlap(layout.budget)
        budget = layout.budget - overlap
        previous = -1
        for stretch in split(layout.document, self._atoms(layout, budget), self._ruler, budget, 0):
            start = stretch.start
            if previous >= 0 and overlap and not stretch.prefix:
                start = self._earlier(layout.document, stretch.start, previous + 1, overlap)
            yield replace(stretch, start=start)
            previous = stretch.start

    def _atoms(self, layout: Layout, budget: int) -> list[Atom]:
        made: list[Atom] = []
        for section in layout.sections:
            found = segments(layout.document, section.body_start, section.end)
            found[0] = replace(found[0], start=section.start)
            own = atoms(layout.document, found, self._ruler, budget)
            made.append(replace(own[0], penalty=HEADING))
            made.extend(own[1:])
        return made

    def _earlier(self, document: Document, start: int, lowest: int, overlap: int) -> int:
        """Where a chunk begins so that it shares whole words with the one before."""
        if header_at(document, start) is not None:
            return start
        index = bisect_right(document.blocks, start - 1, key=lambda block: block.start) - 1
        if index >= 0 and document.blocks[index].header_end:
            lowest = max(lowest, document.blocks[index].end)
        low = max(lowest, start - overlap * _SLICE_PER_UNIT - _SLICE_MORE)
        if low >= start:
            return start
        body = document.text[low:start]
        spans = self._ruler.units(body)
        strengths = cut_strengths(body, spans)
        for n in range(max(len(spans) - overlap, 1), len(spans)):
            if strengths[n] >= WORD:
                return low + spans[n][0]
        return start
