"""Paragraphs, tables, lists and code of a stretch of text, and what they are made of."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag_tui.engine.chunkers.packing import Atom
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.sentences import sentence_spans
from rag_tui.engine.types import BlockKind, Document

HEADING, BLOCK, ROW, LINE, SENTENCE, LEAD_IN = 0.0, 0.05, 0.25, 0.4, 0.5, 1.2
"""Penalties of a cut, for `packing.best_packs`. ``LEAD_IN``: behind a line like ``Do this:``."""

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)++")
_ITEM = re.compile(r"([^\S\n]*+)(?:[-*+]|\d{1,9}[.)])\s")
_MOST_HEADER = 2
"""A header is repeated when it takes at most the budget divided by this."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A block with the blank lines behind it; segments tile their stretch."""

    kind: BlockKind
    start: int
    end: int
    header: tuple[int, int] | None = None
    """Column names of a table, or the opening line of a code block, where the whole of it lies
    in this stretch."""


def segments(document: Document, start: int, end: int) -> list[Segment]:
    """The blocks of a stretch of the document's text, and the paragraphs between them."""
    blocks = document.blocks
    found: list[Segment] = []
    at = start
    first = max(bisect_right(blocks, start, key=lambda block: block.start) - 1, 0)
    for block in blocks[first:]:
        if block.start >= end:
            break
        low, high = max(block.start, at), min(block.end, end)
        if low >= high:
            continue
        found.extend(_paragraphs(document.text, at, low))
        has_header = start <= block.start < block.header_end < end
        header = (block.start, block.header_end) if has_header else None
        found.append(Segment(block.kind, low, high, header))
        at = high
    found.extend(_paragraphs(document.text, at, end))
    return _tiled(document.text, found, start, end)


def header_at(document: Document, at: int) -> tuple[int, int] | None:
    """Span of the header that a cut here takes away: of the table or code block around it."""
    index = bisect_right(document.blocks, at, key=lambda block: block.start) - 1
    if index < 0:
        return None
    block = document.blocks[index]
    if block.start < block.header_end <= at < block.end:
        return block.start, block.header_end
    return None


def atoms(
    document: Document, found: Sequence[Segment], ruler: Ruler, budget: int, *, first_group: int = 1
) -> list[Atom]:
    """Atoms of these segments: a segment that fits is one, others are taken apart.

    Tables, lists and code become lines, prose becomes sentences, and so do lines that are too
    long. What is still too long then stays an atom dearer than the budget.
    """
    text = document.text
    costs = ruler.costs(text, [(segment.start, segment.end) for segment in found])
    made: list[Atom] = []
    leads_in = False
    for group, (segment, cost) in enumerate(zip(found, costs, strict=True), first_group):
        penalty = LEAD_IN if leads_in else BLOCK
        if cost <= budget:
            made.append(Atom(segment.start, segment.end, cost, penalty))
        else:
            parts = list(_parts(text, segment, ruler, budget, group))
            made.append(replace(parts[0], penalty=penalty))
            made.extend(parts[1:])
        leads_in = segment.kind == "paragraph" and _leads_in(text, segment)
    return made


def tiles(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Stretches that begin where these spans begin (the first at ``start``) and tile the whole."""
    starts = [start, *(low for low, _ in spans[1:] if low > start)]
    return list(zip(starts, [*starts[1:], end], strict=True))


def line_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The lines that hold something, each with its line break and the blank lines behind it."""
    spans: list[tuple[int, int]] = []
    at = start
    for line in text[start:end].splitlines(keepends=True):
        if line.strip():
            spans.append((at, at + len(line)))
        at += len(line)
    return tiles(spans, start, end)


def _paragraphs(text: str, start: int, end: int) -> Iterator[Segment]:
    at = start
    for gap in _BLANK_LINES.finditer(text, start, end):
        if text[at : gap.start()].strip():
            yield Segment("paragraph", at, gap.end())
            at = gap.end()
    if text[at:end].strip():
        yield Segment("paragraph", at, end)


def _tiled(text: str, found: list[Segment], start: int, end: int) -> list[Segment]:
    filled = [segment for segment in found if text[segment.start : segment.end].strip()]
    starts = [start, *(segment.start for segment in filled[1:])]
    return [
        replace(segment, start=low, end=high)
        for segment, low, high in zip(filled, starts, [*starts[1:], end], strict=True)
    ]


def _leads_in(text: str, segment: Segment) -> bool:
    return text[segment.start : segment.end].rstrip().endswith((":", "："))


def _parts(text: str, segment: Segment, ruler: Ruler, budget: int, group: int) -> Iterator[Atom]:
    if segment.kind in ("paragraph", "quote"):
        spans = tiles(
            [
                (segment.start + low, segment.start + high)
                for low, high in sentence_spans(text[segment.start : segment.end])
            ],
            segment.start,
            segment.end,
        )
        for (low, high), cost in zip(spans, ruler.costs(text, spans), strict=True):
            yield Atom(low, high, cost, SENTENCE, group=group)
        return
    header, header_cost = segment.header, 0
    if header is not None:
        (header_cost,) = ruler.costs(text, [header])
        if header_cost > budget // _MOST_HEADER:
            header, header_cost = None, 0
    spans = line_spans(text, segment.start, segment.end)
    if segment.header is not None:
        spans = _header_joined(spans, segment.header[1])
    if segment.kind == "code":
        spans = _closing_joined(text, spans)
    penalties = _list_penalties(text, spans) if segment.kind == "list" else None
    for n, ((low, high), cost) in enumerate(zip(spans, ruler.costs(text, spans), strict=True)):
        penalty = penalties[n] if penalties else _line_penalty(text, low, segment.kind)
        front = (header, header_cost, header is not None and n == 0)
        if cost + header_cost <= budget or segment.kind == "code":
            yield Atom(low, high, cost, penalty, *front)
            continue
        inner = tiles([(low + a, low + b) for a, b in sentence_spans(text[low:high])], low, high)
        for m, ((a, b), part) in enumerate(zip(inner, ruler.costs(text, inner), strict=True)):
            holds = header is not None and n == m == 0
            yield Atom(a, b, part, SENTENCE if m else penalty, header, header_cost, holds)


def _header_joined(spans: list[tuple[int, int]], header_end: int) -> list[tuple[int, int]]:
    """Header lines and the first row are one: a header alone says nothing."""
    n_header = sum(start < header_end for start, _ in spans)
    if n_header >= len(spans):
        return [(spans[0][0], spans[-1][1])]
    return [(spans[0][0], spans[n_header][1]), *spans[n_header + 1 :]]


def _closing_joined(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The closing fence stays with the last line of code."""
    if len(spans) > 1 and set(text[spans[-1][0] : spans[-1][1]].strip()) in ({"`"}, {"~"}):
        return [*spans[:-2], (spans[-2][0], spans[-1][1])]
    return spans


def _line_penalty(text: str, start: int, kind: BlockKind) -> float:
    """Code is better cut at a blank line, and where a line is not indented."""
    if kind == "table":
        return ROW
    is_after_blank = text[max(0, start - 2) : start] == "\n\n"
    is_indented = text[start : start + 1].isspace()
    return ROW if is_after_blank else SENTENCE if is_indented else LINE


def _list_penalties(text: str, spans: Sequence[tuple[int, int]]) -> list[float]:
    """Top-level items are good places, inner items less so, lines within an item the least."""
    items = [_ITEM.match(text, start, end) for start, end in spans]
    indents = [len(item[1].expandtabs()) if item else -1 for item in items]
    top = min((indent for indent in indents if indent >= 0), default=0)
    return [SENTENCE if n < 0 else BLOCK if n == top else LINE for n in indents]
