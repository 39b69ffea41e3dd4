"""A document in rows of text with the borders of its chunks between them: pure functions.

All offsets are character offsets into the document's text. A row is found from its number and an
interval from its offset by bisection, so drawing costs what is in view, not what there is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from rich.cells import get_character_cell_size

from rag_tui.display import display

RowKind = Literal["text", "rule", "unread", "gap"]
Row = tuple[RowKind, int, int]
"""Kind, then start and end of the text; for borders the number of the piece or gap, and 0."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk as it is drawn on its document."""

    number: int
    """What the gutter calls it."""
    start: int
    end: int
    label: str = ""
    """Foreign text for the border, such as the headings above."""
    n_tokens: int | None = None
    unread_start: int | None = None
    """Where the model stops reading; None when it reads all, or while nobody knows."""
    n_unread: int = 0
    """Tokens after that."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Text that no chunk holds."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of text with the same chunks all along."""

    start: int
    end: int
    owner: int
    """Index of the piece that began last, -1 when no piece holds the text."""
    is_shared: bool
    """Whether several pieces hold it: overlap."""
    is_unread: bool
    """Whether the model reads it in none of the pieces that hold it."""


class DocumentLayout:
    """What there is to draw of one document, whatever the width.

    Args:
        text: The document's text.
        pieces: By ascending start; they may overlap.
        gaps: By ascending start.
    """

    def __init__(self, text: str, pieces: Sequence[Piece], gaps: Sequence[Gap] = ()) -> None:
        self.text = text
        self.pieces = tuple(pieces)
        self.gaps = tuple(gaps)
        self.intervals = tuple(_intervals(text, self.pieces, self.gaps))
        self._starts = [interval.start for interval in self.intervals]

    def first_interval(self, offset: int) -> int:
        """The index of the interval that holds this offset."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def rows(self, width: int) -> tuple[list[Row], list[int]]:
        """All rows at a width, and for each piece the row of its border.

        A row of text is at most ``width`` cells wide. It ends at a line end, a border, or where
        the width ends, behind a space if there is one. Time grows with the length of the text.
        """
        borders = self._borders()
        rows: list[Row] = []
        rule_of = [0] * len(self.pieces)
        offsets = sorted({0, len(self.text), *borders})
        for start, end in pairwise([*offsets, len(self.text)]):
            for border in borders.get(start, ()):
                if border[0] == "rule":
                    rule_of[border[1]] = len(rows)
                rows.append(border)
            _wrap(self.text, start, end, max(1, width), rows)
        return rows, rule_of

    def _borders(self) -> dict[int, list[Row]]:
        borders: dict[int, list[Row]] = {}
        for i, gap in enumerate(self.gaps):
            borders.setdefault(gap.start, []).append(("gap", i, 0))
        for i, piece in enumerate(self.pieces):
            borders.setdefault(piece.start, []).append(("rule", i, 0))
        for i, piece in enumerate(self.pieces):
            if piece.unread_start is not None:
                borders.setdefault(piece.unread_start, []).append(("unread", i, 0))
        return borders


def _intervals(text: str, pieces: Sequence[Piece], gaps: Sequence[Gap]) -> Iterator[Interval]:
    edges = {0, len(text)}
    for piece in pieces:
        edges.update((piece.start, piece.end))
        if piece.unread_start is not None:
            edges.add(piece.unread_start)
    for gap in gaps:
        edges.update((gap.start, gap.end))
    active: list[int] = []
    following = 0
    for start, end in pairwise(sorted(edges)):
        active = [i for i in active if pieces[i].end > start]
        while following < len(pieces) and pieces[following].start <= start:
            if pieces[following].end > start:
                active.append(following)
            following += 1
        is_unread = bool(active) and all(_stops(pieces[i]) <= start for i in active)
        yield Interval(start, end, active[-1] if active else -1, len(active) > 1, is_unread)


def _stops(piece: Piece) -> int:
    return piece.end if piece.unread_start is None else piece.unread_start


def _wrap(text: str, start: int, end: int, width: int, rows: list[Row]) -> None:
    """Append the rows of a stretch of text."""
    at = start
    while at < end:
        newline = text.find("\n", at, end)
        stop = end if newline < 0 else newline
        line = text[at:stop]
        # Printable ASCII has a cell a letter, everything printable at most two.
        if line.isprintable() and len(line) * (1 if line.isascii() else 2) <= width:
            rows.append(("text", at, stop))
        elif line.isascii() and line.isprintable():
            rows.extend(("text", at + a, at + b) for a, b in _wrapped(line, width))
        else:
            rows.extend(("text", at + a, at + b) for a, b in _wrapped_wide(line, width))
        at = stop + 1 if newline >= 0 else stop


def _wrapped(line: str, width: int) -> Iterator[tuple[int, int]]:
    """Rows of a line of one-cell characters."""
    at, n = 0, len(line)
    while n - at > width:
        space = line.rfind(" ", at + 1, at + width)
        cut = space + 1 if space > 0 else at + width
        yield at, cut
        at = cut
    yield at, n


def _wrapped_wide(line: str, width: int) -> Iterator[tuple[int, int]]:
    """Rows of a line with wide or hidden characters; combining ones stay with their letter."""
    at = used = since_space = 0
    space = 0
    for i, character in enumerate(line):
        cells = _cells(character)
        while used + cells > width and i > at:  # twice where the rest is still too long
            cut = space if space > at else i
            yield at, cut
            used = since_space if cut == space and cut != i else 0
            at = cut
        used += cells
        since_space += cells
        if character == " ":
            space, since_space = i + 1, 0
    yield at, len(line)


def _cells(character: str) -> int:
    if character.isprintable():
        # The variation selector makes the character before it wide.
        return 1 if character == "\ufe0f" else get_character_cell_size(character)
    return len(display(character))
