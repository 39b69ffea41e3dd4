"""Cuts where the meaning of neighbouring sentences parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.flat import Layout
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.sentences import sentence_atoms
from rag_tui.engine.chunkers.splitting import Stretch, windows_in
from rag_tui.engine.types import Chunk, Document

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors

PERCENTILE = 95.0
"""Of the distances in a document: those above it are cuts."""


class SemanticChunker:
    """Breaks where the embeddings of neighbouring sentences are far apart.

    Each sentence is embedded together with the one before and the one behind it; where the
    cosine distance of two such neighbours is above the 95th percentile of the document's, a
    chunk ends. This is the method of Kamradt 2023 ("5 Levels of Text Splitting", level 4). It
    knows no size, so a stretch over the size is cut further, at the greatest distance in the
    second half of what fits; a sentence over the size becomes windows. Neighbours share nothing.

    Every sentence is embedded before any chunk is, which is slow, and it is not known to be worth
    it: Qu, Tu and Bao 2024 ("Is Semantic Chunking Worth the Computational Cost?",
    arXiv:2410.13070) find no consistent gain over chunks of a fixed size.

    Args:
        settings: Size and unit.
        counter: The model's tokens.
        embed: Texts to float32 ``(n, dim)``, rows of L2 norm 1.
        reserve: Tokens kept free in each chunk for what is put in front of it later.
    """

    def __init__(
        self,
        settings: ChunkingSettings,
        counter: TokenCounter,
        *,
        embed: Callable[[Sequence[str]], Vectors],
        reserve: int = 0,
    ) -> None:
        self._ruler = Ruler(settings, counter, reserve=reserve)
        self._embed = embed

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        layout = Layout(document, self._ruler)
        return layout.chunks(self._stretches(layout), repeats_headers=True)

    def _stretches(self, layout: Layout) -> Iterator[Stretch]:
        text = layout.document.text
        spans, costs = sentence_atoms(layout)
        if not spans:
            return
        distances = self._distances(text, spans)
        for first, after in groups(distances, costs, layout.budget):
            low, high = spans[first][0], spans[after - 1][1]
            if after - first == 1 and costs[first] > layout.budget:
                for inner in windows_in(text, low, high, self._ruler, layout.budget, 0):
                    yield Stretch(*inner)
            else:
                yield Stretch(low, high)

    def _distances(self, text: str, spans: Sequence[tuple[int, int]]) -> npt.NDArray[np.float32]:
        """Cosine distance of each sentence, with its neighbours, to the next: ``(n - 1,)``."""
        if len(spans) < 2:
            return np.zeros(0, np.float32)
        last = len(spans) - 1
        vectors = self._embed(
            [
                text[spans[max(n - 1, 0)][0] : spans[min(n + 1, last)][1]].strip()
                for n in range(len(spans))
            ]
        )
        # Not of norm 1 where the model compares by dot product or distance.
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines: npt.NDArray[np.float32] = np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
        return np.float32(1.0) - cosines


def groups(
    distances: npt.NDArray[np.float32], costs: Sequence[int], size: int
) -> list[tuple[int, int]]:
    """Runs of sentences that belong together.

    Args:
        distances: float ``(n - 1,)``: of each sentence to the next.
        costs: Of each sentence; ``n``.
        size: The most that a run may cost; a dearer sentence is a run of its own.

    Returns:
        Spans in sentences, end-exclusive, which tile them.
    """
    n = len(costs)
    threshold = float(np.percentile(distances, PERCENTILE)) if n > 1 else 0.0
    borders = [i + 1 for i in range(n - 1) if distances[i] > threshold]
    found: list[tuple[int, int]] = []
    start = 0
    for end in [*borders, n]:
        while start < end:
            after, cost, half = start, 0, start
            while after < end and (after == start or cost + costs[after] <= size):
                cost += costs[after]
                after += 1
                half = after if cost <= size // 2 else half
            if after < end:
                low = max(half, start + 1)
                after = low + int(np.argmax(distances[low - 1 : after]))
            found.append((start, after))
            start = after
    return found
