"""Operators in a question: ``"a phrase"``, ``+must``, ``-not``.

The exact rule, made so that questions, flags and numbers stay what they are:

- An operator begins at the start of the question or after blank space or ``(``.
- ``"…"`` (or ``“…”``) is a phrase when the opening quote is followed directly by something that
  is not blank, the closing one stands before blank space, the end, or one of ``.,;:!?)``, and
  there is a letter or digit between them. A lone quote is no operator, nor are ``5"`` and ``'``.
- ``+word`` and ``-word`` need one sign, then a letter, then at least two more characters that
  are not blank: ``-v``, ``--flag``, ``-5``, ``+49``, ``C++``, ``well-known`` and `` - `` are no
  operators. Shorter words, numbers and phrases go in quotes: ``-"C#"``, ``+"4071"``, ``-"a b"``.
  The signs ``.,;:!?)`` at the end of a word do not belong to it.
- Where leaving out the ``-not`` words would leave no word to search for, nothing is an operator.

Operators restrict the BM25 list only. The embedder and the reranker read `plain_question`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_tui.engine.analysis import WORDS, Analyzer, make_analyzer

Phrase = tuple[str, ...]
"""Words that must follow each other; a single word is one too."""

_OPERATOR = re.compile(
    r"""(?<![^\s(])(?P<sign>[+-]?)
    (?:
        (?P<open>["“])(?P<phrase>(?=\S)[^"“”]+)["”](?=[\s.,;:!?)]|$)
      | (?<=[+-])(?P<word>[^\W\d_][^\s"“”]{2,})
    )""",
    re.VERBOSE,
)
_LETTER = re.compile(r"[^\W_]")
_END_SIGNS = ".,;:!?)"


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A question as lexical search reads it."""

    text: str
    """Without the signs of operators and the excluded words: for embedder and reranker. Without
    operators, the question as it was typed."""
    terms: tuple[str, ...]
    """What is scored: the words of ``text`` in order, repeated ones repeated."""
    phrases: tuple[Phrase, ...] = ()
    """Every chunk in the list holds each of these."""
    must: tuple[Phrase, ...] = ()
    """Every chunk in the list holds each of these; several words where the analyzer cuts one."""
    must_not: tuple[Phrase, ...] = ()
    """No chunk in the list holds one of these."""

    @property
    def has_operators(self) -> bool:
        """Whether anything restricts the list."""
        return bool(self.phrases or self.must or self.must_not)


@dataclass(frozen=True, slots=True)
class _Operators:
    """What was typed, before words are cut."""

    text: str
    phrases: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()


def parse_lexical(text: str, analyzer: Analyzer = WORDS) -> LexicalQuery:
    """Read the operators of a question and cut its words; see the module for the rule.

    An operator all of whose words the analyzer leaves out (``+the`` with ``english``) restricts
    nothing.
    """
    typed = _operators(text)
    return LexicalQuery(
        typed.text,
        tuple(analyzer.tokens(typed.text)),
        _cut(typed.phrases, analyzer),
        _cut(typed.must, analyzer),
        _cut(typed.must_not, analyzer),
    )


def plain_question(text: str) -> str:
    """The question without operator signs and excluded words: what models read."""
    return _operators(text).text


def query_term_set(query: str, analyzer_name: str = "words") -> frozenset[str]:
    """The words of a question as an analyzer cuts them, for highlighting.

    They are to be looked up in ``make_analyzer(analyzer_name).token_spans(text)``. Excluded words
    are not among them.

    Raises:
        UsageError: When there is no such analyzer.
    """
    return frozenset(parse_lexical(query, make_analyzer(analyzer_name)).terms)


def _operators(text: str) -> _Operators:
    if not any(sign in text for sign in '"“+-'):
        return _Operators(text)
    pieces: list[str] = []
    found: dict[str, list[str]] = {"": [], "+": [], "-": []}
    at = 0
    for match in _OPERATOR.finditer(text):
        sign, phrase, word = match.group("sign", "phrase", "word")
        rest = ""
        operand = phrase
        if operand is None:
            operand = word.rstrip(_END_SIGNS)
            rest = word[len(operand) :]
            if len(operand) < 3:
                continue
        elif not _LETTER.search(operand):
            continue
        found[sign].append(operand)
        pieces += [text[at : match.start()], "" if sign == "-" else operand, rest]
        at = match.end()
    if not any(found.values()):
        return _Operators(text)
    plain = " ".join("".join([*pieces, text[at:]]).split())
    if not WORDS.tokens(plain):
        return _Operators(text)
    return _Operators(plain, tuple(found[""]), tuple(found["+"]), tuple(found["-"]))


def _cut(operands: tuple[str, ...], analyzer: Analyzer) -> tuple[Phrase, ...]:
    phrases = (_phrase(operand.strip(), analyzer) for operand in operands)
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase))


def _phrase(operand: str, analyzer: Analyzer) -> Phrase:
    for token, start, end in analyzer.token_spans(operand):
        if (start, end) == (0, len(operand)):
            return (token,)
    return tuple(analyzer.phrase_tokens(operand))
