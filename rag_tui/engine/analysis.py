"""Words for lexical search: one function for documents, queries and highlighting.

`make_analyzer` knows analyzers by name: ``words``, ``english``, ``code``, ``cjk``, and the
languages that Snowball has a stemmer for.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from rag_tui.engine.code_words import CompoundTokens, compound_pattern, compound_spans
from rag_tui.engine.errors import UsageError
from rag_tui.engine.stemming import (
    ENGLISH_STOP_WORDS,
    POSSESSIVE,
    Stems,
    snowball_languages,
    stemmer_version,
    turkish_lower,
)
from rag_tui.engine.word_cutting import (
    HARD,
    TokenSpan,
    compose,
    cut_words,
    han_singles,
    spans_of_composed,
)


@dataclass(frozen=True, slots=True)
class Analyzer:
    r"""Cuts text into the words that BM25 counts. This one is ``words``; others refine it.

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
        if unicodedata.is_normalized("NFC", text):
            return self._words(text)
        return [token for token, _, _ in self.token_spans(text)]

    def token_spans(self, text: str) -> list[TokenSpan]:
        """The words of `tokens` with their character spans in ``text`` as it was given.

        Spans are end-exclusive and ascend by start; CJK pairs overlap, and with ``code`` a word
        and its parts do.
        """
        if unicodedata.is_normalized("NFC", text):
            return self._spans(text)
        composed, starts, ends = compose(text)
        return [(token, starts[a], ends[b - 1]) for token, a, b in self._spans(composed)]

    def phrase_tokens(self, text: str) -> list[str]:
        """The words in which a phrase is looked for: each follows the one before it."""
        return self.tokens(text)

    def _words(self, text: str) -> list[str]:
        """What `tokens` gives for an NFC text."""
        return cut_words(text)

    def _spans(self, text: str) -> list[TokenSpan]:
        """What `token_spans` gives for an NFC text."""
        return spans_of_composed(text)


@dataclass(frozen=True, slots=True)
class StemmingAnalyzer(Analyzer):
    """Words as `Analyzer` cuts them, each reduced to its stem by Snowball (PyStemmer).

    ``english`` also leaves out Lucene's 33 English stop words and the ``s`` of a possessive
    (``pump's``); the other languages leave out nothing. Words are case-folded, Turkish ones with
    its two letters i; every other change of letters is the stemmer's own. Each word of the
    vocabulary is stemmed once. CJK pairs stay as they are.
    """

    language: str = "english"
    stems: Stems = field(default_factory=lambda: Stems("english"), compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """Changes with the stemmer's version too."""
        base = f"{self.name}/1 unicode {unicodedata.unidata_version}"
        return f"{base} snowball {stemmer_version()}"

    def _words(self, text: str) -> list[str]:
        has_apostrophe = self.language == "english" and ("'" in text or "’" in text)
        if self.language == "turkish" or (has_apostrophe and HARD.search(text)):
            return [token for token, _, _ in self._spans(text)]
        if has_apostrophe:
            text = POSSESSIVE.sub(" ", text)
        stems = self.stems
        return [stem for word in cut_words(text) if (stem := stems[word])]

    def _spans(self, text: str) -> list[TokenSpan]:
        words = spans_of_composed(text)
        if self.language == "turkish":
            words = [(turkish_lower(text[a:b], word), a, b) for word, a, b in words]
        if self.language == "english":
            words = [one for one in words if not (one[0] == "s" and _is_possessive(text, one))]
        stems = self.stems
        return [(stem, a, b) for word, a, b in words if (stem := stems[word])]


@dataclass(frozen=True, slots=True)
class CodeAnalyzer(Analyzer):
    """Identifiers, versions, codes and paths: whole, and in their parts.

    What `code_words` calls a compound (``max_retry_count``, ``getUserName``, ``a.b-c``,
    ``v2.10.3``, ``CVE-2024-1234``) gives the whole of it, then its words, then the parts of each
    word; prose gives the words of `Analyzer`. Questions are cut like texts, so a whole identifier
    finds its own places first and those that share parts after them.
    """

    compounds: CompoundTokens = field(default_factory=CompoundTokens, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """As of `Analyzer`."""
        return f"{self.name}/1 unicode {unicodedata.unidata_version}"

    def phrase_tokens(self, text: str) -> list[str]:
        """Only the smallest parts: ``"api key"`` is also found in ``the api-key``."""
        spans = self.token_spans(text)
        return [
            token
            for i, (token, _, end) in enumerate(spans)
            if not (i + 1 < len(spans) and spans[i + 1][2] <= end)
        ]

    def _words(self, text: str) -> list[str]:
        found = compound_pattern(text).findall(text)
        return list(chain.from_iterable(map(self.compounds.__getitem__, found)))

    def _spans(self, text: str) -> list[TokenSpan]:
        return [
            (token, match.start() + a, match.start() + b)
            for match in compound_pattern(text).finditer(text)
            for token, a, b in compound_spans(match.group())
        ]


@dataclass(frozen=True, slots=True)
class CjkAnalyzer(Analyzer):
    """`Analyzer` for Chinese, Japanese and Korean among other scripts.

    Full-width letters and half-width kana count as the usual ones (NFKC), and Han characters
    stand beside the pairs as single words too, so that a question of one character finds
    something.
    """

    @property
    def fingerprint(self) -> str:
        """As of `Analyzer`."""
        return f"{self.name}/1 unicode {unicodedata.unidata_version}"

    def tokens(self, text: str) -> list[str]:
        """Pairs and single Han characters, by start, the single one first."""
        return cut_words(text) if text.isascii() else [one[0] for one in self.token_spans(text)]

    def token_spans(self, text: str) -> list[TokenSpan]:
        """The words of `tokens` with their spans in ``text``."""
        if unicodedata.is_normalized("NFKC", text):
            return han_singles(text)
        composed, starts, ends = compose(text, "NFKC")
        return [(token, starts[a], ends[b - 1]) for token, a, b in han_singles(composed)]


WORDS = Analyzer()
"""The default analyzer."""


def analyzer_names() -> tuple[str, ...]:
    """All names that `make_analyzer` knows."""
    return ("words", "english", "code", "cjk", *(n for n in snowball_languages() if n != "english"))


@cache
def make_analyzer(name: str) -> Analyzer:
    """The analyzer of a name; the same object each time.

    Raises:
        UsageError: For a name that is none; the hint lists those that are.
    """
    match name:
        case "words":
            return WORDS
        case "code":
            return CodeAnalyzer(name)
        case "cjk":
            return CjkAnalyzer(name)
        case "english":
            return StemmingAnalyzer(name, name, Stems(name, ENGLISH_STOP_WORDS))
    if name in snowball_languages():
        return StemmingAnalyzer(name, name, Stems(name))
    raise UsageError(
        f"there is no analyzer {name!r}",
        f"Set bm25.analyzer to one of {', '.join(analyzer_names())}.",
    )


def _is_possessive(text: str, span: TokenSpan) -> bool:
    start = span[1]
    return start > 1 and text[start - 1] in "'’" and text[start - 2].isalnum()
