"""Strategies of other libraries behind the same contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.flat import Layout
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.splitting import Stretch, windows_in
from rag_tui.engine.chunkers.units import is_inside_character
from rag_tui.engine.errors import UsageError
from rag_tui.engine.tokenizing import without_surrogates
from rag_tui.engine.types import Chunk, Document

Claim = tuple[int, int, str]
"""Start, end and text of a chunk, as a library says."""


class LibraryChunker:
    """Another library's chunks, each checked against the document.

    A chunk is taken only if it is the slice it claims to be and goes on where the ones before it
    ended; text that no such chunk holds, and chunks over the size, are cut into windows instead.
    So spans and coverage are as with every other strategy, whatever the library does.

    Args:
        settings: Size, overlap and unit; ``strategy`` names the library.
        counter: The model's tokens.
        reserve: Tokens kept free in each chunk for what is put in front of it later.

    Raises:
        UsageError: When the library is not installed.
    """

    def __init__(
        self, settings: ChunkingSettings, counter: TokenCounter, *, reserve: int = 0
    ) -> None:
        self._ruler = Ruler(settings, counter, reserve=reserve)
        self._make = _make_semchunk if settings.strategy == "semchunk" else _make_chonkie
        self._cutters: dict[int, Callable[[str], Iterator[Claim]]] = {}
        self._cutter(self._ruler.size)

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        layout = Layout(document, self._ruler)
        start, end = layout.span
        text = document.text
        # The libraries cannot take lone surrogates; a replacement is as long as they are.
        clean = without_surrogates(text)
        claims = self._cutter(layout.budget)(clean[start:end]) if start < end else ()
        true = (
            (start + low, start + high)
            for low, high, part in claims
            if clean[start + low : start + high] == part
        )
        spans = verified(text, start, end, true)
        return layout.chunks(self._stretches(layout, spans), repeats_headers=True)

    def _stretches(self, layout: Layout, spans: Sequence[tuple[int, int]]) -> Iterator[Stretch]:
        costs = self._ruler.costs(layout.document.text, spans)
        for (low, high), cost in zip(spans, costs, strict=True):
            if cost <= layout.budget:
                yield Stretch(low, high)
                continue
            for inner in windows_in(layout.document.text, low, high, self._ruler, layout.budget, 0):
                yield Stretch(*inner)

    def _cutter(self, size: int) -> Callable[[str], Iterator[Claim]]:
        if size not in self._cutters:
            self._cutters[size] = self._make(self._ruler, size)
        return self._cutters[size]


def verified(
    text: str, start: int, end: int, claimed: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Spans that hold all of a stretch that is not blank: those claimed, and the gaps they leave.

    Spans are moved outward to the border of a character; starts and ends ascend strictly.
    """
    spans: list[tuple[int, int]] = []
    covered, last_start = start, start - 1
    for claimed_low, claimed_high in claimed:
        low, high = claimed_low, claimed_high
        if not start <= low < high <= end:
            continue
        while is_inside_character(text, low) and low > start:
            low -= 1
        while is_inside_character(text, high) and high < end:
            high += 1
        if low <= last_start or high <= covered or not text[low:high].strip():
            continue
        if text[covered:low].strip():
            spans.append((covered, low))
        spans.append((low, high))
        covered, last_start = high, low
    if text[covered:end].strip():
        spans.append((covered, end))
    return spans


def _missing(name: str) -> UsageError:
    return UsageError(
        f"the chunking strategy {name} needs the library of that name, which is not installed",
        "Run `pip install 'rag-tui-explorer[chunkers]'`, or set chunking.strategy to headings.",
    )


def _count(ruler: Ruler) -> Callable[[str], int]:
    def count(text: str) -> int:
        return ruler.costs(text, [(0, len(text))])[0]

    return count


def _make_semchunk(ruler: Ruler, size: int) -> Callable[[str], Iterator[Claim]]:
    try:
        from semchunk.semchunk import chunkerify
    except ImportError as error:
        raise _missing("semchunk") from error
    chunker = chunkerify(_count(ruler), chunk_size=size, memoize=False)
    overlap = ruler.overlap(size) or None

    def cut(text: str) -> Iterator[Claim]:
        parts: Any
        spans: Any
        parts, spans = chunker(text, offsets=True, overlap=overlap)
        for part, (low, high) in zip(parts, spans, strict=True):
            yield int(low), int(high), str(part)

    return cut


def _make_chonkie(ruler: Ruler, size: int) -> Callable[[str], Iterator[Claim]]:
    try:
        from chonkie import RecursiveChunker
        from chonkie.tokenizer import CharacterTokenizer
    except ImportError as error:
        raise _missing("chonkie") from error
    count = _count(ruler)

    class _Counting(CharacterTokenizer):
        """Counts as the ruler does; its last resort, cutting at codes, is by characters."""

        def encode(self, text: str) -> Sequence[int]:
            return [ord(char) for char in text]

        def decode(self, tokens: Sequence[int]) -> str:
            return "".join(map(chr, tokens))

        def decode_batch(self, token_sequences: Sequence[Sequence[int]]) -> Sequence[str]:
            return [self.decode(tokens) for tokens in token_sequences]

        def count_tokens(self, text: str) -> int:
            return count(text)

        def count_tokens_batch(self, texts: Sequence[str]) -> Sequence[int]:
            ends = list(accumulate(map(len, texts)))
            return ruler.costs("".join(texts), list(pairwise([0, *ends])))

    chunker = RecursiveChunker(tokenizer=_Counting(), chunk_size=size)

    def cut(text: str) -> Iterator[Claim]:
        for chunk in chunker.chunk(text):
            yield int(chunk.start_index), int(chunk.end_index), str(chunk.text)

    return cut
