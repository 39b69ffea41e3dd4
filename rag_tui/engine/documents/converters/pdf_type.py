"""Headings of a PDF by the size of their type, for documents without bookmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PAGES_MEASURED = 300
"""Looking at each character takes time: later pages get no headings by type."""
LARGER = 1.15
"""A heading's type is at least so many times the size that most of the text has."""
LONGEST_HEADING = 120
"""Characters; longer lines in large type are pull quotes or covers."""
N_LEVELS = 3
"""Only the largest sizes make headings: more are ornament."""
MOST_PAGES = 2
"""A line that stands on more pages is a running head."""


@dataclass(frozen=True, slots=True)
class SizedLine:
    """One line of a page."""

    text: str
    size: float
    """Points, rounded to halves: the size of most of its characters."""


def sized_lines(textpage: Any) -> list[SizedLine]:
    """The lines of a page with the size of their type, as pdfium reports it.

    A document that scales its type by a matrix has one nominal size throughout, and so shows no
    headings this way.
    """
    from pypdfium2 import raw  # type: ignore[import-untyped,unused-ignore]

    lines: list[SizedLine] = []
    characters: list[str] = []
    sizes: Counter[float] = Counter()

    def end_line() -> None:
        if sizes:
            lines.append(SizedLine("".join(characters).strip(), sizes.most_common(1)[0][0]))
        characters.clear()
        sizes.clear()

    for index in range(textpage.count_chars()):
        character = chr(raw.FPDFText_GetUnicode(textpage.raw, index))
        if character in "\r\n":
            end_line()
            continue
        characters.append(character)
        if not character.isspace():
            sizes[round(raw.FPDFText_GetFontSize(textpage.raw, index) * 2) / 2] += 1
    end_line()
    return lines


def large_type(pages: Sequence[Sequence[SizedLine]]) -> list[tuple[int, str, int]]:
    """Level from 1, title and 1-based page of each line in type larger than the text's.

    A heading that runs over two lines is one title. Empty where all type has one size.
    """
    n_characters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            n_characters[line.size] += len(line.text)
    if not n_characters:
        return []
    body = n_characters.most_common(1)[0][0]
    found = [
        (line.size, line.text, number)
        for number, lines in enumerate(pages, start=1)
        for line in _joined(lines, LARGER * body)
    ]
    n_pages = Counter(title for title, _ in {(title, number) for _, title, number in found})
    sizes = sorted({size for size, _, _ in found}, reverse=True)[:N_LEVELS]
    return [
        (sizes.index(size) + 1, title, number)
        for size, title, number in found
        if size in sizes and n_pages[title] <= MOST_PAGES
    ]


def _joined(lines: Sequence[SizedLine], least: float) -> list[SizedLine]:
    """Lines that can be headings; two of one size that follow each other are one."""
    found: list[SizedLine] = []
    was_heading = False
    for line in lines:
        is_heading = (
            line.size >= least
            and len(line.text) <= LONGEST_HEADING
            and any(character.isalpha() for character in line.text)
        )
        if is_heading and was_heading and found[-1].size == line.size:
            found[-1] = SizedLine(f"{found[-1].text} {line.text}", line.size)
            is_heading = False  # a third line begins anew: `_find_line` looks at two
        elif is_heading:
            found.append(line)
        was_heading = is_heading
    return found
