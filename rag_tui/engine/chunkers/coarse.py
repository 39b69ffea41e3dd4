"""The coarsest cuts: one chunk a page, or one for all. Neither knows a size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.flat import Layout
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.splitting import Stretch
from rag_tui.engine.types import Chunk, Document


class PageChunker:
    """One chunk for each page, slide, sheet or record; one for all where there are no pages.

    What stands between two pages belongs to the one before it. Pages longer than the model reads
    stay whole: what is beyond is not seen by the embedder, and the chunk lint says so.

    Args:
        settings: Not used but for the unit.
        counter: The model's tokens.
        is_whole: Take no notice of pages.
    """

    def __init__(
        self, settings: ChunkingSettings, counter: TokenCounter, *, is_whole: bool = False
    ) -> None:
        self._ruler = Ruler(settings, counter)
        self._is_whole = is_whole

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        layout = Layout(document, self._ruler)
        return layout.chunks(self._stretches(layout), may_recut=False)

    def _stretches(self, layout: Layout) -> Iterator[Stretch]:
        start, end = layout.span
        pages = () if self._is_whole else layout.document.pages
        borders = [start, *(page.start for page in pages[1:] if start < page.start < end), end]
        for low, high in pairwise(borders):
            yield Stretch(low, high)
