"""One chunk per section; sections too long for the model become overlapping windows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.sections import Section, sections
from rag_tui.engine.chunkers.units import LONGEST_UNIT, cut_strengths, split_long, word_spans
from rag_tui.engine.chunkers.windows import fitted_windows
from rag_tui.engine.ids import chunk_id
from rag_tui.engine.types import Chunk, Document

_LEAST_BODY = 32
"""Tokens kept for the body when headings take nearly all of the size."""
_MOST_TRIES = 6


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    body_start: int
    heading_path: tuple[str, ...]


class HeadingsChunker:
    """Cuts documents at their headings.

    Chunks tile the text from the end of the front matter on, except for the overlap of windows
    and for headings without text at the very end; a chunk's body is never blank.

    A section is one chunk if it fits, else windows that end at paragraphs, lines, sentences or
    words where one is near, and share ``settings.overlap`` units (fewer only where headings
    leave little room for the body). With unit ``tokens`` the size counts context, body and
    special tokens, and is never more than the model reads; only the body's floor of 32 tokens
    (half the size if that is less) may exceed the size, not the model's limit: then outer
    headings are dropped from the path, at last the innermost is cut short. With unit ``words``
    the size counts the words of the body.
    """

    def __init__(self, settings: ChunkingSettings, counter: TokenCounter) -> None:
        self._settings = settings
        self._counter = counter

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        found = list(sections(document))
        if self._settings.unit == "words":
            sizes = [len(word_spans(document.text[s.body_start : s.end])) for s in found]
        else:
            n_special = self._counter.n_special
            sizes = [
                n + n_special
                for n in self._counter.count([_section_text(document, s) for s in found])
            ]
        pieces: list[_Piece] = []
        for section, size in zip(found, sizes, strict=True):
            # A tokenizer may give one token for a run of any length.
            n_characters = section.end - section.body_start
            if size <= self._size and n_characters <= self._size * LONGEST_UNIT:
                pieces.append(
                    _Piece(section.start, section.end, section.body_start, section.heading_path)
                )
            else:
                pieces.extend(self._windows(document, section))
        return _as_chunks(document, pieces)

    @property
    def _size(self) -> int:
        if self._settings.unit == "words" or self._counter.limit is None:
            return self._settings.size
        return min(self._settings.size, self._counter.limit)

    def _windows(self, document: Document, section: Section) -> list[_Piece]:
        body = document.text[section.body_start : section.end]
        if self._settings.unit == "words":
            spans = word_spans(body)
            budget, path = self._size, section.heading_path
        else:
            spans = split_long(self._counter.spans(body))
            budget, path = self._token_budget(section.heading_path)
        strengths = cut_strengths(body, spans)
        pieces: list[_Piece] = []
        for _ in range(_MOST_TRIES):
            cuts = fitted_windows(strengths, budget, self._overlap(budget))
            pieces = list(_window_pieces(section, path, body, spans, cuts))
            excess = self._excess(document, pieces, budget)
            if excess <= 0 or budget == 1:
                break
            # Cutting inside a word can make more tokens than the whole word had.
            budget = max(1, min(budget - excess, budget * 7 // 8))
        return pieces

    def _token_budget(self, heading_path: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        """Tokens for a window's body, and the heading path, shortened if it must be."""
        floor = max(1, min(_LEAST_BODY, self._size // 2))
        room = self._size - self._counter.n_special
        budget = max(floor, room - self._context_tokens(heading_path))
        limit = self._counter.limit
        if limit is None:
            return budget, heading_path
        most = limit - self._counter.n_special - budget
        if self._context_tokens(heading_path) <= most:
            return budget, heading_path
        return budget, self._shortened(heading_path, max(most, 0))

    def _shortened(self, heading_path: tuple[str, ...], most: int) -> tuple[str, ...]:
        for n_dropped in range(1, len(heading_path)):
            if self._context_tokens(heading_path[n_dropped:]) <= most:
                return heading_path[n_dropped:]
        title = heading_path[-1]
        spans = self._counter.spans(title)
        for n_kept in range(min(most, len(spans)), 0, -1):
            path = (title[: spans[n_kept - 1][1]].rstrip() + "…",)
            if self._context_tokens(path) <= most:
                return path
        return ()

    def _context_tokens(self, heading_path: tuple[str, ...]) -> int:
        return self._counter.count([" > ".join(heading_path) + "\n\n"])[0] if heading_path else 0

    def _overlap(self, budget: int) -> int:
        overlap, size = self._settings.overlap, self._settings.size
        if overlap <= budget // 2:
            return overlap
        return min(overlap, max(budget // 2, budget * overlap // size), budget - 1)

    def _excess(self, document: Document, pieces: Sequence[_Piece], budget: int) -> int:
        """Tokens by which the longest window is over what it may be; 0 or less when it fits."""
        if self._settings.unit == "words":
            return 0
        texts = [
            _embedded_text(piece.heading_path, document.text[piece.body_start : piece.end])
            for piece in pieces
        ]
        longest = max(self._counter.count(texts), default=0) + self._counter.n_special
        context = self._context_tokens(pieces[0].heading_path) if pieces else 0
        allowed = max(self._size, context + self._counter.n_special + budget)
        if self._counter.limit is not None:
            allowed = min(allowed, self._counter.limit)
        return longest - allowed


def _section_text(document: Document, section: Section) -> str:
    return _embedded_text(section.heading_path, document.text[section.body_start : section.end])


def _embedded_text(heading_path: tuple[str, ...], body: str) -> str:
    body = body.strip()
    return f"{' > '.join(heading_path)}\n\n{body}" if heading_path else body


def _window_pieces(
    section: Section,
    path: tuple[str, ...],
    body: str,
    spans: Sequence[tuple[int, int]],
    cuts: Sequence[tuple[int, int]],
) -> Iterator[_Piece]:
    for first, after in cuts:
        low = spans[first][0] if first else 0
        high = spans[after][0] if after < len(spans) else len(body)
        if body[low:high].strip():
            at = section.body_start + low
            yield _Piece(at if first else section.start, section.body_start + high, at, path)


def _as_chunks(document: Document, pieces: Sequence[_Piece]) -> tuple[Chunk, ...]:
    line_starts = [0]
    for line in document.text.split("\n"):
        line_starts.append(line_starts[-1] + len(line) + 1)
    n_equal: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for ordinal, piece in enumerate(pieces):
        text = document.text[piece.start : piece.end]
        first = piece.start + len(text) - len(text.lstrip())
        last = piece.start + len(text.rstrip()) - 1
        chunks.append(
            Chunk(
                chunk_id=chunk_id(document.doc_id, text, n_equal[text]),
                doc_id=document.doc_id,
                ordinal=ordinal,
                start=piece.start,
                end=piece.end,
                text=text,
                heading_path=piece.heading_path,
                body_offset=piece.body_start - piece.start,
                line_start=bisect_right(line_starts, first),
                line_end=bisect_right(line_starts, last),
            )
        )
        n_equal[text] += 1
    return tuple(chunks)
