"""Long stretches cut at blocks, lines and sentences, and by windows where nothing else is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_tui.engine.chunkers.packing import Atom, best_packs
from rag_tui.engine.chunkers.pieces import Piece, embedded_text
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.segments import header_at
from rag_tui.engine.chunkers.units import LONGEST_UNIT, cut_strengths
from rag_tui.engine.chunkers.windows import fitted_windows
from rag_tui.engine.types import Document

_MOST_TRIES = 6


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a document's text, and what must be repeated in front of it."""

    start: int
    end: int
    prefix: str = ""


def split(
    document: Document, atoms: Sequence[Atom], ruler: Ruler, budget: int, overlap: int
) -> Iterator[Stretch]:
    """The atoms packed within the budget; those too long by themselves become windows."""
    for pack in best_packs(atoms, budget, overlap):
        first, last = atoms[pack.first], atoms[pack.after - 1]
        header = _text_of(document, first.header)
        prefix = "" if first.holds_header else header
        front = 0 if first.holds_header else first.header_cost
        if pack.after - pack.first == 1 and first.cost > budget - front:
            room = max(budget - first.header_cost, 1)
            for low, high in windows_in(
                document.text, first.start, first.end, ruler, room, min(overlap, room - 1)
            ):
                yield Stretch(low, high, prefix if low == first.start else header)
        else:
            yield Stretch(first.start, last.end, prefix)


def windows_in(
    text: str, start: int, end: int, ruler: Ruler, size: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Windows of ``size`` units over a stretch, none of them blank, which together cover it.

    Where a tokenizer sees nothing, `LONGEST_UNIT` characters are a unit.
    """
    body = text[start:end]
    spans = ruler.units(body) or _plain_units(body)
    for first, after in fitted_windows(cut_strengths(body, spans), size, overlap):
        low = spans[first][0] if first else 0
        high = spans[after][0] if after < len(spans) else len(body)
        if body[low:high].strip():
            yield start + low, start + high


def fitted(document: Document, pieces: Sequence[Piece], ruler: Ruler) -> list[Piece]:
    """The pieces, those cut anew that turn out to hold more tokens than they may.

    Tokens do not add up exactly: a word cut in two can have more than the whole word had.
    Starts and ends ascend strictly afterwards: what lies within another piece is left out.
    """
    if not ruler.is_tokens:
        return _ascending(pieces)
    counts = ruler.counter.count([embedded_text(document, piece) for piece in pieces])
    made: list[Piece] = []
    for piece, count in zip(pieces, counts, strict=True):
        n_characters = piece.end - piece.body_start
        if count + ruler.n_special <= ruler.size and n_characters <= ruler.size * LONGEST_UNIT:
            made.append(piece)
        else:
            made.extend(_cut_anew(document, piece, count, ruler))
    return _ascending(made)


def prefix_at(document: Document, at: int, ruler: Ruler, budget: int) -> str:
    """What a cut here must repeat: the header of the table or code block around it.

    Empty where there is none, and where it would take more than half of the budget.
    """
    header = header_at(document, at)
    if header is None or ruler.costs(document.text, [header])[0] > budget // 2:
        return ""
    return _text_of(document, header)


def _ascending(pieces: Iterable[Piece]) -> list[Piece]:
    made: list[Piece] = []
    for piece in pieces:
        if made and piece.end <= made[-1].end:
            continue
        while made and piece.start <= made[-1].start:
            made.pop()
        made.append(piece)
    return made


def _plain_units(text: str) -> list[tuple[int, int]]:
    """Units of a text without a token, e.g. of nothing but accents: it must not be lost."""
    ends = range(LONGEST_UNIT, len(text) + LONGEST_UNIT, LONGEST_UNIT)
    return [(end - LONGEST_UNIT, min(end, len(text))) for end in ends]


def _cut_anew(document: Document, piece: Piece, count: int, ruler: Ruler) -> list[Piece]:
    front = ruler.context_cost(piece.heading_path) + ruler.n_special
    prefix_cost = ruler.counter.count([piece.prefix])[0] if piece.prefix else 0
    allowed = max(ruler.size, front + ruler.floor)
    if ruler.limit is not None:
        allowed = min(allowed, ruler.limit)
    if prefix_cost and allowed - front - prefix_cost < ruler.floor:
        piece, count, prefix_cost = replace(piece, prefix=""), count - prefix_cost, 0
    n_characters = piece.end - piece.body_start
    if count + ruler.n_special <= allowed and n_characters <= allowed * LONGEST_UNIT:
        return [piece]
    room = max(1, allowed - front - prefix_cost)
    # As in `Ruler.costs`: of a text in which the tokenizer sees nothing, the length counts.
    count = max(count, n_characters // LONGEST_UNIT, 1)
    # About equal parts: a crumb of what is too much by a few tokens says nothing.
    n_parts = -(-count // room)
    budget = min(room, max(1, count // n_parts * 9 // 8))
    made = [piece]
    for _ in range(_MOST_TRIES):
        made = [
            replace(
                piece,
                start=low if n else piece.start,
                body_start=low,
                end=high,
                prefix=piece.prefix or (prefix_at(document, low, ruler, room) if n else ""),
            )
            for n, (low, high) in enumerate(
                windows_in(
                    document.text,
                    piece.body_start,
                    piece.end,
                    ruler,
                    budget,
                    0,
                )
            )
        ]
        longest = max(ruler.counter.count([embedded_text(document, one) for one in made]))
        excess = longest + ruler.n_special - allowed
        if excess <= 0 or budget == 1:
            break
        budget = max(1, min(budget - excess, budget * 7 // 8))
    return made


def _text_of(document: Document, header: tuple[int, int] | None) -> str:
    return document.text[header[0] : header[1]].strip() if header else ""
