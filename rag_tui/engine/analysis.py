"""Words for lexical search: one function for documents, queries and highlighting."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

# "C++", "C#" and "F#" are words of their own; anywhere else these signs are none.
_SUFFIX = r"(?:(?<=[A-Za-z0-9_])(?:\+\+|#(?!\w)))?"
_ASCII_WORD = re.compile(rf"\w+{_SUFFIX}", re.ASCII)

# Han, kana (with voiced marks, prolonged sound mark, half width) and Hangul: written without
# spaces, or with particles glued to the word.
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3031-\u3035\u303b\u303c\u3041-\u3096"
    "\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\uffa0-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_CJK_RUN = re.compile(f"[{_CJK}]+")


@dataclass(frozen=True, slots=True)
class Analyzer:
    r"""Cuts text into the words that BM25 counts.

    A word is a run of letters, digits and underscores (``\w``) with the combining marks that
    belong to them and a trailing ``++`` or ``#`` (``C++``, ``C#``), composed (NFC) and
    case-folded, so that ``Café`` is one word whichever way it is spelled. Runs of Chinese,
    Japanese and Korean characters become overlapping pairs of characters (a single character
    stays single), as in Lucene's CJK analyzer. Nothing is stemmed, accents are not folded,
    identifiers are not split, no word is left out, and no sign is an operator.
    """

    name: str = "words"

    @property
    def fingerprint(self) -> str:
        """Changes when the same text may give other words; part of an index's manifest."""
        return f"{self.name}/2 unicode {unicodedata.unidata_version}"

    def tokens(self, text: str) -> list[str]:
        """The words of a text in order, repeated ones repeated."""
        if text.isascii():
            return _ASCII_WORD.findall(text.lower())
        return [token for token, _, _ in self.token_spans(text)]

    def token_spans(self, text: str) -> list[tuple[str, int, int]]:
        """The words of `tokens` with their character spans in ``text`` as it was given.

        Spans are end-exclusive and ascend by start; only the pairs of a CJK run overlap.
        """
        if text.isascii():
            return [(m.group().lower(), m.start(), m.end()) for m in _ASCII_WORD.finditer(text)]
        if unicodedata.is_normalized("NFC", text):
            return _spans_of_composed(text)
        composed, starts, ends = _compose(text)
        return [(token, starts[a], ends[b - 1]) for token, a, b in _spans_of_composed(composed)]


WORDS = Analyzer()
"""The analyzer in use."""


def _spans_of_composed(text: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for word in _unicode_word().finditer(text):
        start, end = word.span()
        if word.group().isascii():
            found.append((word.group().lower(), start, end))
            continue
        at = start
        for run in _CJK_RUN.finditer(text, start, end):
            if run.start() > at:
                found.append((_fold(text[at : run.start()]), at, run.start()))
            found.extend(_pairs(text, run.start(), run.end()))
            at = run.end()
        if at < end:
            found.append((_fold(text[at:end]), at, end))
    return found


def _pairs(text: str, start: int, end: int) -> list[tuple[str, int, int]]:
    if end - start == 1:
        return [(_fold(text[start:end]), start, end)]
    return [(_fold(text[i : i + 2]), i, i + 2) for i in range(start, end - 1)]


def _fold(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


@cache
def _unicode_word() -> re.Pattern[str]:
    r"""``\w`` followed by ``\w`` and combining marks, which ``\w`` alone would cut off."""
    marks: list[str] = []
    first = previous = -2
    for code in [*range(0x300, 0x20000), -1]:
        # Variation selectors choose a picture, not a letter.
        is_mark = (
            code >= 0 and unicodedata.category(chr(code))[0] == "M" and not 0xFE00 <= code <= 0xFE0F
        )
        if is_mark and code == previous + 1:
            previous = code
        elif is_mark or code < 0:
            if first >= 0:
                marks.append(f"{chr(first)}-{chr(previous)}")
            first = previous = code
    return re.compile(rf"\w[\w{''.join(marks)}]*{_SUFFIX}")


def _compose(text: str) -> tuple[str, list[int], list[int]]:
    """NFC of a text, and for each of its characters where it starts and ends in the text."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and _joins_previous(text[end]):
            continue
        piece = unicodedata.normalize("NFC", text[start:end])
        pieces.append(piece)
        starts.extend([start] * len(piece))
        ends.extend([end] * len(piece))
        start = end
    return "".join(pieces), starts, ends


def _joins_previous(character: str) -> bool:
    """Whether composing may merge a character with the one before it."""
    if character < "\u0300":
        return False
    return (
        unicodedata.category(character)[0] == "M"
        # conjoining Hangul vowels and finals
        or "\u1161" <= character <= "\u1175"
        or "\u11a8" <= character <= "\u11c2"
    )
