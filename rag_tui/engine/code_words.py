r"""Identifiers, versions, error codes and paths: the whole and its parts.

A *compound* is words joined by single signs without blank space: ``.``, ``-``, ``_``, ``/``,
``:``, ``@``, ``\``, and by ``::`` and ``->``. Its words are those of the analyzer ``words``; a
word has parts where underscores stand in it, where lower case meets upper case (``getUser``,
``HTTPServer`` is ``http server``, the plural of ``URLs`` stays whole), and where letters meet
digits (``E0277``, ``utf8``).
"""

from __future__ import annotations

import re
from functools import cache

from rag_tui.engine.word_cutting import (
    CJK_RUN,
    TokenSpan,
    fold,
    spans_of_composed,
    word_pattern,
)

_JOINT = r"(?:::|->|[-./:@\\])"
_VERSION = re.compile(r"[vV](?=\d+(?:[._-]\w+)+$)")
_REMEMBERED = 500_000
"""So many different compounds keep their parts; further ones are cut each time."""
_LONGEST = 120
"""Characters; longer compounds (data, not names) are not kept whole."""


def compound_pattern(text: str) -> re.Pattern[str]:
    """Finds the compounds of an NFC text; a word that is joined to nothing is one too."""
    return _compounds_of(word_pattern(text))


@cache
def _compounds_of(word: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(f"{word.pattern}(?:{_JOINT}{word.pattern})*", word.flags)


class CompoundTokens(dict[str, tuple[str, ...]]):
    """Compound to its words and parts, filled on demand."""

    def __missing__(self, compound: str) -> tuple[str, ...]:
        tokens = tuple(token for token, _, _ in compound_spans(compound))
        if len(self) < _REMEMBERED and len(compound) <= _LONGEST:
            self[compound] = tokens
        return tokens


def compound_spans(compound: str) -> tuple[TokenSpan, ...]:
    """The whole, its words and their parts, by start and then the longer one first.

    Args:
        compound: What `compound_pattern` found in an NFC text.
    """
    found: dict[tuple[int, int], str] = {}
    for word, start, end in spans_of_composed(compound):
        found[start, end] = word
        if not CJK_RUN.match(compound, start):
            found |= {(start + a, start + b): token for token, a, b in _parts(compound[start:end])}
    if len(found) > 1 and len(compound) <= _LONGEST and not CJK_RUN.search(compound):
        found[0, len(compound)] = fold(compound)
        if _VERSION.match(compound):
            found[1, len(compound)] = fold(compound[1:])
    ordered = sorted(found.items(), key=lambda item: (item[0][0], -item[0][1]))
    return tuple((token, start, end) for (start, end), token in ordered)


def _parts(word: str) -> list[TokenSpan]:
    """The parts of one word; none when it is all of a piece."""
    cuts = [i for i in range(1, len(word)) if _is_border(word, i)]
    parts: list[TokenSpan] = []
    for start, end in zip([0, *cuts], [*cuts, len(word)], strict=True):
        if word[start] != "_":
            parts.append((fold(word[start:end]), start, end))
    return parts if cuts else []


def _is_border(word: str, i: int) -> bool:
    """Whether a part ends and another begins before character ``i``."""
    before, here = word[i - 1], word[i]
    if (before == "_") != (here == "_"):
        return True
    if before.isalpha() and here.isalpha():
        if before.islower() and here.isupper():
            return True
        starts_word = i + 1 < len(word) and word[i + 1].islower()
        is_plural = word[i + 1 : i + 2] == "s" and not word[i + 2 : i + 3].isalpha()
        return before.isupper() and here.isupper() and starts_word and not is_plural
    return (before.isdecimal() and here.isalpha()) or (before.isalpha() and here.isdecimal())
