"""Plain windows of words or tokens: no structure, exact sizes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Literal

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.flat import Layout
from rag_tui.engine.chunkers.packing import packed
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.splitting import Stretch, windows_in
from rag_tui.engine.chunkers.units import is_inside_character, split_long, word_spans
from rag_tui.engine.types import Chunk, Document

_ENCODED = 65_536
"""Characters given to a tokenizer at a time, up to the next line break."""


class WindowsChunker:
    """Windows over the whole text after the front matter, cut only between words or tokens.

    A window holds as many whole words (or tokens) as fit the size, and the next one begins with
    as many of its last ones as fit the overlap: with the unit of the same name both are exact,
    but for windows of tokens that begin or end inside a word: its parts can be more tokens than
    the word was, and then the window ends earlier, so that it is never longer than the size.
    What a reader sees as one character is never torn. Where a single word is longer than the
    size, that word is cut. With unit ``characters`` the blank space between counts too.

    Args:
        settings: Size, overlap and unit.
        counter: The model's tokens.
        by: What is not torn. A token may be a part of a word.
        reserve: Tokens kept free in each chunk for what is put in front of it later.
    """

    def __init__(
        self,
        settings: ChunkingSettings,
        counter: TokenCounter,
        *,
        by: Literal["words", "tokens"],
        reserve: int = 0,
    ) -> None:
        self._ruler = Ruler(settings, counter, reserve=reserve)
        self._by = by

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        layout = Layout(document, self._ruler)
        return layout.chunks(self._stretches(layout))

    def _stretches(self, layout: Layout) -> Iterator[Stretch]:
        start, end = layout.span
        text = layout.document.text
        places = self._starts(text, start, end, self._by)
        places = [at for at in places if not is_inside_character(text, at)] or [start]
        # Also where no place is left, e.g. in a text without a token: what is there is not lost.
        places[0] = start
        ends = self._totals(text, places, start, end)
        borders = [*places, end]
        size, overlap = layout.budget, self._ruler.overlap(layout.budget)

        def excess(first: int, after: int) -> int:
            """Tokens that a window has more than its text had: torn words are other tokens."""
            if not any(_is_in_word(text, borders[at]) for at in (first, after)):
                return 0
            return self._ruler.costs(text, [(borders[first], borders[after])])[0] - size

        may_tear = self._by == "tokens" and self._ruler.is_tokens
        for first, after in packed(ends, size, overlap, excess if may_tear else None):
            low, high = borders[first], borders[after]
            cost = ends[after - 1] - (ends[first - 1] if first else 0)
            if after - first == 1 and cost > size:
                for inner in windows_in(text, low, high, self._ruler, size, overlap):
                    yield Stretch(*inner)
            else:
                yield Stretch(low, high)

    def _starts(self, text: str, start: int, end: int, by: Literal["words", "tokens"]) -> list[int]:
        if by == "words":
            return [start + low for low, _ in word_spans(text[start:end])]
        return [
            at + low
            for at, after in pairwise(_portions(text, start, end))
            for low, _ in split_long(self._ruler.counter.spans(text[at:after]))
        ]

    def _totals(self, text: str, places: list[int], start: int, end: int) -> list[int]:
        """Running total of the units of the atoms that begin at these places."""
        if self._ruler.unit == self._by and self._ruler.unit == "words":
            starts = self._starts(text, start, end, "words")
            if len(starts) == len(places):
                return list(accumulate([1] * len(places)))
        elif self._ruler.unit == "characters":
            return [at - start for at in [*places[1:], end]]
        else:
            starts = self._starts(text, start, end, "tokens" if self._ruler.is_tokens else "words")
        return [bisect_left(starts, at) for at in [*places[1:], end]]


def _is_in_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and not text[at - 1].isspace() and not text[at].isspace()


def _portions(text: str, start: int, end: int) -> list[int]:
    """Borders of parts to encode: a tokenizer's spans of one long text take much memory."""
    borders = [start]
    while end - borders[-1] > _ENCODED:
        at = text.find("\n", borders[-1] + _ENCODED, end)
        if at < 0:
            break
        borders.append(at)
    return [*borders, end]
