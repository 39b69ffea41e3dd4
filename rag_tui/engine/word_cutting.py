"""Where words begin and end in a text: letters with their marks, CJK runs in pairs."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

TokenSpan = tuple[str, int, int]
"""A word as it is counted, and its character span, end-exclusive."""

# "C++", "C#" and "F#" are words of their own; anywhere else these signs are none.
SUFFIX = r"(?:(?<=[A-Za-z0-9_])(?:\+\+|#(?!\w)))?"
ASCII_WORD = re.compile(rf"\w+{SUFFIX}", re.ASCII)

# Han, kana (with voiced marks, prolonged sound mark, half width) and Hangul: written without
# spaces, or with particles glued to the word.
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3031-\u3035\u303b\u303c\u3041-\u3096"
    "\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\uffa0-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
CJK_RUN = re.compile(f"[{_CJK}]+")
HAN = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

# No combining mark and no CJK character is outside of these; punctuation and the alphabets of
# Europe are, so that most texts need no look at their marks.
HARD = re.compile("[\u0300-\u036f\u0483-\u0489\u0591-\u1dff\u20d0-\u20ff\u2c00-\U0010ffff]")
_EASY_WORD = re.compile(rf"\w+{SUFFIX}")

_HALF_WIDTH_MARKS = "\uff9e\uff9f"


def cut_words(text: str) -> list[str]:
    """The words of `spans_of_composed` without their places, several times as fast."""
    if text.isascii():
        return ASCII_WORD.findall(text.lower())
    found: list[str] = []
    for word in word_pattern(text).findall(text):
        if word.isascii():
            found.append(word.lower())
        elif CJK_RUN.search(word):
            found += [token for token, _, _ in spans_of_composed(word)]
        else:
            found.append(fold(word))
    return found


def spans_of_composed(text: str) -> list[TokenSpan]:
    """The words of an NFC text: case-folded, CJK runs as overlapping pairs of characters."""
    if text.isascii():
        return [(m.group().lower(), m.start(), m.end()) for m in ASCII_WORD.finditer(text)]
    found: list[TokenSpan] = []
    for word in word_pattern(text).finditer(text):
        start, end = word.span()
        if word.group().isascii():
            found.append((word.group().lower(), start, end))
            continue
        at = start
        for run in CJK_RUN.finditer(text, start, end):
            if run.start() > at:
                found.append((fold(text[at : run.start()]), at, run.start()))
            found.extend(_pairs(text, run.start(), run.end()))
            at = run.end()
        if at < end:
            found.append((fold(text[at:end]), at, end))
    return found


def word_pattern(text: str) -> re.Pattern[str]:
    """Finds the words of a text, before CJK runs are cut."""
    if text.isascii():
        return ASCII_WORD
    return _unicode_word() if HARD.search(text) else _EASY_WORD


def _pairs(text: str, start: int, end: int) -> list[TokenSpan]:
    if end - start == 1:
        return [(fold(text[start:end]), start, end)]
    return [(fold(text[i : i + 2]), i, i + 2) for i in range(start, end - 1)]


def fold(word: str) -> str:
    """A word without its case, composed."""
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
    return re.compile(rf"\w[\w{''.join(marks)}]*{SUFFIX}")


def compose(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> tuple[str, list[int], list[int]]:
    """A normal form of a text, and where each of its characters starts and ends in the text."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and (
            _joins_previous(text[end]) or (form == "NFKC" and text[end] in _HALF_WIDTH_MARKS)
        ):
            continue
        piece = unicodedata.normalize(form, text[start:end])
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


def han_singles(text: str) -> list[TokenSpan]:
    """`spans_of_composed`, and every Han character by itself before the pair it begins."""
    found: list[TokenSpan] = []
    for token, start, end in spans_of_composed(text):
        if end - start == 2 and CJK_RUN.match(text, start):
            if HAN.match(text, start):
                found.append((fold(text[start]), start, start + 1))
            found.append((token, start, end))
            at_end = end == len(text) or not CJK_RUN.match(text, end)
            if at_end and HAN.match(text, end - 1):
                found.append((fold(text[end - 1]), end - 1, end))
        else:
            found.append((token, start, end))
    return found
