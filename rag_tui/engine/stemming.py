"""Stems of words by Snowball: each word of a vocabulary is stemmed once and remembered."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cache
from typing import Any

ENGLISH_STOP_WORDS = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
))  # fmt: skip
"""The 33 words of Lucene's EnglishAnalyzer (``ENGLISH_STOP_WORDS_SET``), which bm25s calls
``en``."""

POSSESSIVE = re.compile(r"(?<=[^\W_])['’][sSſ](?!\w|\+\+|#(?!\w))")
"""The ``'s`` of ``pump's`` where `word_cutting` sees a word ``s``."""

_LIMIT = 1_000_000
"""Stems kept; a corpus has fewer different words, and junk shall not fill the memory."""


class Stems(dict[str, str]):
    """Word to stem, filled on demand; a stop word's stem is empty."""

    def __init__(self, language: str, stop_words: frozenset[str] = frozenset()) -> None:
        super().__init__(dict.fromkeys(stop_words, ""))
        self._language = language
        self._stemmer: Any = None
        self._lock = threading.Lock()

    def __missing__(self, word: str) -> str:
        # A PyStemmer object may not be used by two threads at a time.
        with self._lock:
            if self._stemmer is None:
                import Stemmer

                # This dict is the memory; the stemmer's own would be a second one.
                self._stemmer = Stemmer.Stemmer(self._language, 0)
            # A stem that is empty would read as a stop word.
            stem = str(self._stemmer.stemWord(word)) or word
            if len(self) < _LIMIT:
                self[word] = stem
            return stem


@cache
def snowball_languages() -> tuple[str, ...]:
    """The languages that PyStemmer stems; not its older algorithms for English and Dutch."""
    import Stemmer

    return tuple(
        sorted(name for name in Stemmer.algorithms() if name not in ("porter", "dutch_porter"))
    )


@cache
def stemmer_version() -> str:
    """PyStemmer's version, which stands for Snowball's."""
    import Stemmer

    return str(Stemmer.version())


def turkish_lower(written: str, folded: str) -> str:
    """A Turkish word in lower case: ``I`` has no dot there, and ``İ`` keeps its own.

    Args:
        written: The word as it stands in the text.
        folded: The same word, case-folded as in other languages.
    """
    if "I" not in written and "İ" not in written:
        return folded
    composed = unicodedata.normalize("NFC", written).replace("İ", "i").replace("I", "ı")
    return unicodedata.normalize("NFC", composed.casefold())
