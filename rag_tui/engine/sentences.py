"""Sentences of Markdown prose, with their places: the one splitter of the whole engine."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a text."""

    start: int
    end: int
    """Character offsets into the text, end-exclusive, no blank space at either side. A sentence
    of several lines holds their breaks, and the marks of a quotation within them."""
    text: str
    """The sentence as one line: white space made single spaces, line marks left out."""


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of Markdown prose, in order, not overlapping; in linear time.

    Paragraphs, list items and table rows end a sentence whatever they end with; headings, rules
    and fenced code are no sentences. Versions, decimals, abbreviations and initials do not end
    one; of scripts without spaces, ``。！？`` do, whatever follows.
    """
    for words in _blocks(text):
        yield from _split_block(_Block(text, words))


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences of a text, as of `sentences`."""
    return [(sentence.start, sentence.end) for sentence in sentences(text)]


def ends_sentence(text: str, end: int, following: int, *, start: int = 0) -> bool:
    """Whether the text up to ``end`` ends a sentence, given that a space or a line end follows.

    Args:
        text: The text.
        end: Just after the last character before the space; closing quotes may stand there.
        following: Where the text goes on; at or behind the text's end when it does not.
        start: Where the sentence began, if that is known.
    """
    so_far = text[max(start, end - _LOOK_BACK) : end]
    stripped = so_far.rstrip(_CLOSING)
    last = stripped[-1:]
    if last and last in _WIDE_STOPS:
        return True
    if not last or last not in _STOPS:
        return False
    next_char = _first_letter(text, following)
    if next_char.islower():
        return False
    if last != "." or stripped.endswith(".."):
        return True
    word = stripped[:-1].split()[-1].lstrip(_OPENING) if stripped[:-1].split() else ""
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    abbreviation = word.casefold()
    if abbreviation in _BEFORE_NUMBERS and next_char.isdigit():
        return False
    if is_initial or abbreviation in _ABBREVIATIONS:
        return abbreviation in _MAY_END and next_char.isupper()
    # "3. Turn the key": the number of a step, not the end of anything.
    return not (word.isdigit() and word == stripped[:-1].strip())


_LOOK_BACK = 80
"""Characters: longer than any abbreviation, so that a text of nothing but dots stays linear."""
_OPENING = "\"'“‘«([*_`"
_CLOSING = "\"'”’»)]*_`』」）"
_STOPS = ".!?…"
_WIDE_STOPS = "。！？｡"

# Possessive wherever two loops could share blank space: a long blank line must not be quadratic.
_FENCE = re.compile(r"\s*+(`{3,}|~{3,})")
_NO_PROSE = re.compile(r"\s*+(?:#{1,6}(?:\s|$)|[-=*_|:\s]++$)")
_MARK = re.compile(r"\s*+(?:>\s?)*+\s*+(?:(?:[-*+]|\d{1,9}[.)])\s++(?:\[[ xX]\]\s++)?)?")
_ITEM = re.compile(r"\s*+(?:(?:>\s?)*+\s*+(?:[-*+]|\d{1,9}[.)])\s|\|)")
_WORD = re.compile(r"\S+")
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_`]*+(?=\s)|[。！？]+[”』」）]*")
_ABBREVIATIONS = frozenset(
    re.findall(r"\S+", "e.g i.e cf vs approx ca incl excl etc a.m p.m z.b d.h mr mrs ms dr prof st")
)
# These are whole words too; abbreviations only in front of a number.
_BEFORE_NUMBERS = frozenset(
    re.findall(
        r"\S+",
        "no nr fig eq sec ch vol p pp art ver v jan feb mar apr jun jul aug sep sept oct nov dec",
    )
)
# After these a capital letter does begin a sentence.
_MAY_END = frozenset({"etc", "a.m", "p.m"})


class _Block:
    """A paragraph, list item or table row as one line, and where its characters come from."""

    def __init__(self, text: str, words: Sequence[tuple[int, int]]) -> None:
        self.line = " ".join([text[start:end] for start, end in words])
        self._sources = [start for start, _ in words]
        self._places: list[int] = []
        at = 0
        for start, end in words:
            self._places.append(at)
            at += end - start + 1

    def source(self, at: int) -> int:
        """The place in the text of a character of the line that is not a space."""
        word = bisect_right(self._places, at) - 1
        return self._sources[word] + at - self._places[word]


def _blocks(text: str) -> Iterator[list[tuple[int, int]]]:
    """Word spans of paragraphs, list items and table rows."""
    words: list[tuple[int, int]] = []
    fence = ""
    at = 0
    for line in (*text.split("\n"), ""):
        start, at = at, at + len(line) + 1
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        is_break = not line.strip() or mark is not None or _NO_PROSE.match(line) is not None
        if words and (is_break or _ITEM.match(line)):
            yield words
            words = []
        if mark:
            fence = mark[1]
        elif not is_break:
            prose = _MARK.match(line)
            skipped = prose.end() if prose else 0
            words += [
                (start + found.start(), start + found.end())
                for found in _WORD.finditer(line, skipped)
            ]
    if words:
        yield words


def _split_block(block: _Block) -> Iterator[Sentence]:
    line = block.line
    start = 0
    for found in _END.finditer(line):
        end = found.end()
        if end == len(line):
            break
        if found[0][0] in _WIDE_STOPS or ends_sentence(line, end, end + 1, start=start):
            yield from _trimmed(block, start, end)
            start = end
    yield from _trimmed(block, start, len(line))


def _trimmed(block: _Block, start: int, end: int) -> Iterator[Sentence]:
    piece = block.line[start:end]
    text = piece.strip()
    if any(char.isalnum() for char in text):
        first = start + len(piece) - len(piece.lstrip())
        yield Sentence(block.source(first), block.source(first + len(text) - 1) + 1, text)


def _first_letter(text: str, at: int) -> str:
    """The first character from a place on that opens no quotation or emphasis."""
    for char in text[at : at + _LOOK_BACK]:
        if char not in _OPENING and not char.isspace():
            return char
    return ""
