"""Units of a text that windows are made of, and how good it is to cut before each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rag_tui.engine.chunkers.windows import ANYWHERE, BREAK, FORBIDDEN, WORD
from rag_tui.engine.sentences import ends_sentence

PUNCTUATION, SENTENCE, LINE, PARAGRAPH = ANYWHERE + 1, BREAK, BREAK + 1, BREAK + 2

LONGEST_UNIT = 64
"""Characters; a longer run (a minified file, a key) counts as many units."""

# Scripts written without spaces, where every character is a word of its own: Chinese, Japanese,
# Thai, Lao, Myanmar, Khmer.
_SPACELESS = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# What belongs to the character before it: vowel signs and tone marks, variation selectors.
_MARKS = (
    "\u0300-\u036f\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"
)
# Thai and Lao vowels that are written before the consonant they are spoken after.
_LEADING_VOWELS = "\u0e40-\u0e44\u0ec0-\u0ec4"
_WORD_UNIT = re.compile(rf"[{_LEADING_VOWELS}]*[{_SPACELESS}][{_MARKS}]*|[^\s{_SPACELESS}]+")
_LEADING_VOWEL = re.compile(f"[{_LEADING_VOWELS}]")
_SPACELESS_CHARACTER = re.compile(f"[{_SPACELESS}]")
_SPACING_VOWELS = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"

_SPACELESS_STOPS = "。！？｡"
_FARTHEST_BACK = 64


def word_spans(text: str) -> list[tuple[int, int]]:
    """Character spans of the words of a text, ascending.

    A word is a run without blank space; of scripts written without spaces, one character with
    its marks. Runs longer than `LONGEST_UNIT` are several words.
    """
    return [
        (at, min(at + LONGEST_UNIT, match.end()))
        for match in _WORD_UNIT.finditer(text)
        for at in range(match.start(), match.end(), LONGEST_UNIT)
    ]


def split_long(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of which none is longer than `LONGEST_UNIT`: longer ones become single characters.

    A tokenizer may give one token (unknown) for a run of any length, whose parts, once cut,
    may be many tokens: one a character is the most.
    """
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if end - start <= LONGEST_UNIT:
            found.append((start, end))
        else:
            found.extend((at, at + 1) for at in range(start, end))
    return found


def cut_strengths(text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each unit, how good it is to cut just before it: the scale of `windows`."""
    strengths = [PARAGRAPH]
    for (before, previous_end), (start, _) in pairwise(spans):
        if start <= before:
            strengths.append(FORBIDDEN)
        elif start <= previous_end:
            strengths.append(_strength_between(text, start))
        else:
            gap = text[previous_end:start]
            strengths.append(_strength_of_gap(text, previous_end, start, gap))
    return strengths[: len(spans)]


def is_inside_character(text: str, at: int) -> bool:
    """Whether cutting here would tear what a reader sees as one character.

    Combining marks, variation selectors, skin tones, joined emoji, flags, decomposed Hangul
    and surrogate pairs stay whole; an approximation of Unicode's UAX #29 without its tables.
    """
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < "\u0300" and before != "\u200d":
        return False
    return (
        before == "\u200d"
        or (_LEADING_VOWEL.match(before) is not None and after.isalpha())
        or after == "\u200d"
        or unicodedata.category(after)[0] == "M"
        or after in _SPACING_VOWELS
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or "\u1160" <= after <= "\u11ff"
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or (_is_flag_letter(after) and _n_flag_letters_before(text, at) % 2 == 1)
    )


def _strength_of_gap(text: str, gap_start: int, at: int, gap: str) -> int:
    if is_inside_character(text, at):
        return FORBIDDEN
    if not gap.isspace():
        # Characters that belong to no token, e.g. emoji joiners.
        return WORD if text[at - 1].isspace() else PUNCTUATION
    n_lines = gap.count("\n")
    if n_lines > 1:
        return PARAGRAPH
    if n_lines == 1:
        return LINE
    return SENTENCE if ends_sentence(text, gap_start, at) else WORD


def _strength_between(text: str, at: int) -> int:
    before, after = text[at - 1], text[at]
    if is_inside_character(text, at):
        return FORBIDDEN
    if after.isspace():
        return ANYWHERE
    if before.isspace():
        gap_start = at - 1
        while gap_start > max(0, at - _FARTHEST_BACK) and text[gap_start - 1].isspace():
            gap_start -= 1
        return _strength_of_gap(text, gap_start, at, text[gap_start:at])
    if before in _SPACELESS_STOPS:
        return SENTENCE
    if _SPACELESS_CHARACTER.match(before) or _SPACELESS_CHARACTER.match(after):
        return WORD
    is_in_word = (before.isalnum() or before == "_") and (after.isalnum() or after == "_")
    return ANYWHERE if is_in_word else PUNCTUATION


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _n_flag_letters_before(text: str, at: int) -> int:
    count = 0
    # Bounded: a file of nothing but flags must not take quadratic time.
    while count < 64 and at - count > 0 and _is_flag_letter(text[at - count - 1]):
        count += 1
    return count
