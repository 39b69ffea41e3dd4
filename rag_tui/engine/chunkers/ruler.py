"""Measuring text in the unit of the settings, and how much room a chunk's body has."""

from __future__ import annotations

from collections.abc import Sequence

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.units import LONGEST_UNIT, split_long, word_spans

_LEAST_BODY = 32
"""Tokens kept for the body when headings take nearly all of the size."""
_CONTEXT_SHARE = 4


class Ruler:
    """Measures in tokens, words or characters.

    Args:
        settings: Unit, size and overlap.
        counter: The model's tokens.
        reserve: Tokens kept free for what is put in front of the text after the cut.
    """

    def __init__(
        self, settings: ChunkingSettings, counter: TokenCounter, *, reserve: int = 0
    ) -> None:
        self.counter = counter
        self.unit = settings.unit
        self.is_tokens = settings.unit == "tokens"
        self.n_special = counter.n_special + reserve
        self.limit = counter.limit
        self.size = settings.size
        if self.is_tokens and counter.limit is not None:
            self.size = min(settings.size, counter.limit)
        self._settings = settings

    @property
    def floor(self) -> int:
        """Tokens that a body is given even where headings leave less."""
        return max(1, min(_LEAST_BODY, self.size // 2))

    def costs(self, text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Units of each piece of the text; of characters, blank ones too."""
        if self.is_tokens:
            pieces = [text[start:end] for start, end in spans]
            counts = self.counter.count(pieces)
            # A tokenizer may give one token (unknown) for a run of any length.
            return [
                max(count, len(piece.strip()) // LONGEST_UNIT)
                for piece, count in zip(pieces, counts, strict=True)
            ]
        if self.unit == "words":
            return [len(word_spans(text[start:end])) for start, end in spans]
        if self.unit == "characters":
            return [end - start for start, end in spans]
        return [1] * len(spans)

    def units(self, text: str) -> list[tuple[int, int]]:
        """Character span of each unit, ascending; of characters, blank ones too."""
        if self.is_tokens:
            return split_long(self.counter.spans(text))
        if self.unit == "characters":
            return [(at, at + 1) for at in range(len(text))]
        return word_spans(text)

    def budget(self, heading_path: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        """Units for a chunk's body, and its heading path, shortened if it must be.

        With tokens, context and special tokens come out of the size. A context over a quarter
        of the size would leave mere scraps of text below one and the same line: then outer
        headings are dropped, at last the innermost is cut short. The body's floor may exceed the
        size, never the model's limit.
        """
        if not self.is_tokens:
            return self.size, heading_path
        most = self.most_context
        if self.limit is not None:
            most = max(0, min(most, self.limit - self.n_special - self.floor))
        path = self.shortened(heading_path, most)
        return max(self.floor, self.size - self.n_special - self.context_cost(path)), path

    @property
    def most_context(self) -> int:
        """Tokens that the context of a chunk cut out of something longer may have."""
        return self.size // _CONTEXT_SHARE

    def context_cost(self, heading_path: tuple[str, ...]) -> int:
        """Tokens of the context line; 0 in other units, whose sizes are those of the body."""
        if not heading_path or not self.is_tokens:
            return 0
        return self.counter.count([" > ".join(heading_path) + "\n\n"])[0]

    def shortened(self, heading_path: tuple[str, ...], most: int) -> tuple[str, ...]:
        """The path without its outermost headings, so that its context has at most ``most``."""
        if self.context_cost(heading_path) <= most:
            return heading_path
        for n_dropped in range(1, len(heading_path)):
            if self.context_cost(heading_path[n_dropped:]) <= most:
                return heading_path[n_dropped:]
        title = heading_path[-1]
        spans = self.counter.spans(title)
        for n_kept in range(min(most, len(spans)), 0, -1):
            path = (title[: spans[n_kept - 1][1]].rstrip() + "…",)
            if self.context_cost(path) <= most:
                return path
        return ()

    def overlap(self, budget: int) -> int:
        """The settings' overlap; in proportion where headings leave little room for the body."""
        overlap, size = self._settings.overlap, self._settings.size
        if overlap <= budget // 2:
            return overlap
        return min(overlap, max(budget // 2, budget * overlap // size), budget - 1)
