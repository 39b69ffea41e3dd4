"""A chunk's text as it is drawn: layers of styles over it, and notes where a model stops."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.content import Span as ContentSpan

from rag_tui.engine.chunkers.reach import Unread
from rag_tui.engine.types import Chunk
from rag_tui.tui import format as fmt

DISPLAYED = 20_000
"""Characters drawn at most: wrapping more in one piece would hold up the keyboard."""

HEADING_STYLE = "$text-muted"
MATCH_STYLE = "bold underline $text-accent"
WARNING_STYLE = "bold $text-warning"
PASSAGE_STYLE = "reverse"
"""Of a passage that an answer rests on."""
UNREAD_STYLE = "dim $text-disabled"
NEAREST_STYLE = "on $primary 30%"
"""Of the sentence nearest to the question; `NEAREST_MARKS` stand around it."""
NEAREST_MARKS = ("▸", "◂")
HEAT_STYLES = (
    "$text-muted",
    "underline",
    "bold underline on $primary 30%",
    "bold reverse",
)
"""Of words by their heat level, the coldest first: they differ without any colour too."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layers:
    """What is shown over a chunk's text besides its headings. Offsets into ``Chunk.text``."""

    query_terms: frozenset[str] = frozenset()
    """Analysed words to underline; not while there is heat."""
    unread: Unread | None = None
    """What the embedder does not read."""
    reranker_end: int | None = None
    """Where the reranker stops reading; None when it reads everything or was not asked."""
    nearest: Span | None = None
    """The sentence nearest to the question."""
    heat: tuple[tuple[int, int, int], ...] = ()
    """``(start, end, level)`` of words, ascending; levels as in `HEAT_STYLES`."""
    passage: Span | None = None
    """A passage that an answer rests on."""


def body(
    chunk: Chunk,
    *,
    query_terms: frozenset[str] = frozenset(),
    unread: Unread | None = None,
    layers: Layers | None = None,
) -> Content:
    """The chunk's text: heading lines and what is not read dim, the question's words underlined.

    Args:
        chunk: Whose text.
        query_terms: As in `Layers`; for those who need no more layers.
        unread: The same.
        layers: Everything, instead of the two.
    """
    over = layers if layers is not None else Layers(query_terms, unread)
    text = chunk.text[:DISPLAYED]
    end = len(text)
    words = _words(text, over)
    starts = [word[0] for word in words]
    heading_end = min(chunk.body_offset, end)
    read_end = min(over.unread.start, end) if over.unread is not None else end
    stops = _stops(chunk, over, words, end)
    cuts = {0, end, heading_end, read_end, *stops, *(p for w in words for p in w[:2])}
    for span in (over.nearest, over.passage):
        if span is not None:
            cuts.update(min(at, end) for at in span)
    pieces: list[tuple[str, str]] = []
    ordered = sorted(cuts)
    for at, to in zip(ordered, [*ordered[1:], end], strict=True):
        pieces += stops.get(at, ())
        if to == at:
            continue
        place = bisect_right(starts, at) - 1
        if place >= 0 and at < words[place][1]:
            style = words[place][2]
        elif at >= read_end:
            style = UNREAD_STYLE
        else:
            style = HEADING_STYLE if at < heading_end else ""
        if _holds(over.nearest, at) and PASSAGE_STYLE not in style:
            style = f"{style} {NEAREST_STYLE}".strip() if " on " not in style else style
        if _holds(over.passage, at):
            style = PASSAGE_STYLE if not style else f"{style} {PASSAGE_STYLE}"
        pieces.append((text[at:to], style))
    hidden = len(chunk.text) - end
    if hidden > 0:
        note = f"\n… {fmt.count(hidden, 'more character')}; copying gives all of them"
        pieces.append((note, WARNING_STYLE))
    return _assemble(pieces)


def _holds(span: Span | None, at: int) -> bool:
    return span is not None and span[0] <= at < span[1]


def _words(text: str, over: Layers) -> list[tuple[int, int, str]]:
    """The words that stand out, ascending and without overlap, each with its style."""
    if over.heat:
        return [
            (start, min(end, len(text)), HEAT_STYLES[level])
            for start, end, level in over.heat
            if start < len(text)
        ]
    return [(start, end, MATCH_STYLE) for start, end in _matches(text, over.query_terms)]


def _stops(
    chunk: Chunk, over: Layers, words: Sequence[tuple[int, int, str]], end: int
) -> dict[int, list[tuple[str, str]]]:
    """What is inserted where: the marks of the nearest sentence, notes where a model stops.

    A note never stands within a word that is marked.
    """
    found: dict[int, list[tuple[str, str]]] = {}

    def insert(at: int, text: str, style: str) -> None:
        found.setdefault(min(at, end), []).append((text, style))

    def behind_word(at: int) -> int:
        return next((stop for start, stop, _ in words if start < at < stop), at)

    if over.nearest is not None and over.nearest[0] < end:
        insert(over.nearest[1], NEAREST_MARKS[1], NEAREST_STYLE)
    if over.unread is not None:
        note = f"\n… {fmt.count(over.unread.n_tokens, 'token')} not read:\n"
        insert(behind_word(min(over.unread.start, end)), note, WARNING_STYLE)
    if over.reranker_end is not None:
        n_left = len(chunk.text) - over.reranker_end
        note = f"\n… {fmt.count(n_left, 'character')} not read by the reranker:\n"
        insert(behind_word(min(over.reranker_end, end)), note, WARNING_STYLE)
    if over.nearest is not None and over.nearest[0] < end:
        insert(over.nearest[0], NEAREST_MARKS[0], NEAREST_STYLE)
    return found


def _assemble(pieces: Sequence[tuple[str, str]]) -> Content:
    """Foreign strings and their styles as one piece of content; time grows with their length.

    Neighbours of one style are displayed as one string, for a character may depend on the one
    before; words that stand out stay apart.
    """
    joined: list[tuple[list[str], str]] = []
    for text, style in pieces:
        if joined and joined[-1][1] == style and style not in (MATCH_STYLE, *HEAT_STYLES):
            joined[-1][0].append(text)
        else:
            joined.append(([text], style))
    shown: list[str] = []
    spans: list[ContentSpan] = []
    at = 0
    for texts, style in joined:
        shown.append(fmt.display("".join(texts), newlines=True))
        end = at + len(shown[-1])
        if style and end > at:
            spans.append(ContentSpan(at, end, style))
        at = end
    return Content("".join(shown), spans=spans)


def _matches(text: str, query_terms: frozenset[str]) -> Iterator[Span]:
    """Where the question's words stand, in order and without overlap."""
    if not query_terms:
        return
    from rag_tui.engine.analysis import Analyzer

    at = 0
    for token, start, end in Analyzer().token_spans(text):
        # The character pairs of a Chinese or Japanese word overlap: each adds what it has new.
        if token in query_terms and end > at:
            yield max(start, at), end
            at = end
