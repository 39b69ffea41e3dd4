"""Whole sentences up to a size, sharing whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.flat import Layout
from rag_tui.engine.chunkers.packing import packed
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.segments import line_spans, segments, tiles
from rag_tui.engine.chunkers.splitting import Stretch, windows_in
from rag_tui.engine.sentences import sentence_spans
from rag_tui.engine.types import Chunk, Document


class SentencesChunker:
    """As many whole sentences as fit; neighbours share those that fit the overlap.

    With unit ``sentences`` both numbers count sentences and are exact. Paragraphs, list items
    and table rows end a sentence; a code block counts as one, its lines if it is too long.
    Heading lines belong to the sentence behind them. A sentence longer than the size is cut into
    windows (not with unit ``sentences``).

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
        return layout.chunks(
            self._stretches(layout),
            repeats_headers=True,
            may_recut=self._ruler.is_tokens,
        )

    def _stretches(self, layout: Layout) -> Iterator[Stretch]:
        text = layout.document.text
        spans, costs = sentence_atoms(layout)
        ends = list(accumulate(costs))
        size, overlap = layout.budget, self._ruler.overlap(layout.budget)
        for first, after in packed(ends, size, overlap):
            low, high = spans[first][0], spans[after - 1][1]
            if after - first == 1 and costs[first] > size:
                for inner in windows_in(text, low, high, self._ruler, size, overlap):
                    yield Stretch(*inner)
            else:
                yield Stretch(low, high)


def sentence_atoms(layout: Layout) -> tuple[list[tuple[int, int]], list[int]]:
    """Spans that tile the text, each one sentence (or code block, or line of a long one).

    Returns:
        The spans, and what each costs in the ruler's unit.
    """
    document = layout.document
    spans: list[tuple[int, int]] = []
    code: set[int] = set()
    for section in layout.sections:
        first = len(spans)
        for segment in segments(document, section.body_start, section.end):
            if segment.kind == "code":
                code.add(len(spans))
                spans.append((segment.start, segment.end))
                continue
            found = [
                (segment.start + low, segment.start + high)
                for low, high in sentence_spans(document.text[segment.start : segment.end])
            ]
            spans.extend(tiles(found, segment.start, segment.end))
        spans[first] = (section.start, spans[first][1])
    costs = layout.ruler.costs(document.text, spans)
    if not any(costs[n] > layout.budget for n in code):
        return spans, costs
    taken_apart: list[tuple[int, int]] = []
    for n, (span, cost) in enumerate(zip(spans, costs, strict=True)):
        is_long_code = n in code and cost > layout.budget
        taken_apart.extend(line_spans(document.text, *span) if is_long_code else [span])
    return taken_apart, layout.ruler.costs(document.text, taken_apart)
