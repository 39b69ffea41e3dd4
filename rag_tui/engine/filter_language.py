"""The filter language: a text becomes a small closed tree, or an error that points at the place.

Grammar::

    filter = all { "or" all }
    all    = one { "and" one }
    one    = "not" one | "(" filter ")" | test
    test   = key ( "=" | "!=" | "~" | "!~" | "<" | "<=" | ">" | ">=" ) value
           | key [ "not" ] "in" "(" value { "," value } ")"
    key    = letters, digits, "_", "-", "." | quoted
    value  = anything without blanks, quotes, parentheses, commas | quoted
    quoted = "…" or '…', in which a backslash stands before a quote or a backslash

What the keys mean is said in `rag_tui.engine.filters`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from rag_tui.engine.errors import UsageError
from rag_tui.engine.filter_values import read_number, read_period

Operator = Literal["=", "!=", "~", "!~", "<", "<=", ">", ">=", "in", "not in"]

EXAMPLE = 'path~"advanced/*" and not tag=draft'
"""A filter that shows most of the language."""

NUMBER_KEYS = ("page", "line")
DATE_KEYS = ("modified",)
TEXT_KEYS = ("path", "title", "heading", "format")
"""Keys every index has; all other keys are those of the documents' own metadata."""
BUILT_IN_KEYS = (*TEXT_KEYS, *NUMBER_KEYS, *DATE_KEYS)

_ORDERED = ("<", "<=", ">", ">=")
_INLINE = re.compile(r"(?<!\S)where:")
_TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<open>["'])
      | (?P<mark>[(),])
      | (?P<operator>!=|!~|<=|>=|[=~<>])
      | (?P<word>[^\s"'(),=~<>!]+|!)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"""\\(["'\\])""")
_KEY = re.compile(r"[\w.-]+")
_MAX_DEPTH = 50
_SHOWN = 200
"""Characters of a filter that an error repeats."""


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison."""

    __test__ = False  # not a test case, whatever its name makes a test runner think

    key: str
    operator: Operator
    values: tuple[str, ...]
    """One, but for ``in`` and ``not in``."""
    column: int
    """1-based place of the key in the text."""


@dataclass(frozen=True, slots=True)
class Not:
    """What the operand does not allow."""

    operand: Filter


@dataclass(frozen=True, slots=True)
class And:
    """What all operands allow."""

    operands: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """What any operand allows."""

    operands: tuple[Filter, ...]


Filter = Test | Not | And | Or
"""A parsed filter."""


def parse(text: str) -> Filter:
    """The tree of a filter.

    ``and`` binds closer than ``or``, ``not`` closer than both; these words and ``in`` may be
    written in capitals too. Keys that every index has are checked here: ``page`` takes numbers,
    ``modified`` dates.

    Raises:
        UsageError: Naming the column, the rule and an example.
    """
    return _Parser(text).parse()


def split_query(text: str) -> tuple[str, str]:
    """A typed question and the filter behind its last ``where:``; both without blanks around.

    ``how do I log in where: path~"advanced/*"`` gives ``how do I log in`` and
    ``path~"advanced/*"``. ``where:`` counts only in small letters, at the start or after a blank;
    a text without it is never read as anything but a question. The filter is not parsed here.
    """
    places = list(_INLINE.finditer(text))
    if not places:
        return text.strip(), ""
    last = places[-1]
    return text[: last.start()].strip(), text[last.end() :].strip()


def combine(*filters: str) -> str:
    """One filter that allows what all the given ones allow; blank ones are left out.

    Each must be a whole filter by itself, so that none can widen another one by its parentheses.

    Raises:
        UsageError: When one of them cannot be parsed.
    """
    used = [text.strip() for text in filters if text.strip()]
    if len(used) < 2:
        return "".join(used)
    for text in used:
        parse(text)
    return " and ".join(f"({text})" for text in used)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["word", "quoted", "mark", "operator", "end"]
    text: str
    column: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._read_tokens()
        self._at = 0
        self._depth = 0

    def parse(self) -> Filter:
        if self._peek().kind == "end":
            self._fail("The filter is empty")
        found = self._any()
        rest = self._peek()
        if rest.kind != "end":
            self._fail(
                f"{rest.shown} at column {rest.column} comes after the end of a test: "
                "tests are joined by and, or, and a value with blanks stands in quotes"
            )
        return found

    def _any(self) -> Filter:
        operands = [self._all()]
        while self._peek().is_word("or"):
            self._take()
            operands.append(self._all())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _all(self) -> Filter:
        operands = [self._one()]
        while self._peek().is_word("and"):
            self._take()
            operands.append(self._one())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _one(self) -> Filter:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail(f"It is nested more than {_MAX_DEPTH} deep")
        try:
            if self._peek().is_word("not"):
                self._take()
                return Not(self._one())
            if self._peek().text == "(" and self._peek().kind == "mark":
                opened = self._take()
                inside = self._any()
                if self._peek().text != ")" or self._peek().kind != "mark":
                    self._fail(
                        f"The parenthesis at column {opened.column} is not closed "
                        f"before {self._peek().shown}"
                    )
                self._take()
                return inside
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> Filter:
        token = self._take()
        is_key = token.kind == "quoted" or (token.kind == "word" and _KEY.fullmatch(token.text))
        if not is_key or token.is_word("and", "or", "in"):
            self._fail(f"A key is wanted at column {token.column}, not {token.shown}")
        key, column = token.text, token.column
        if self._peek().is_word("in", "not"):
            return self._membership(key, column)
        sign = self._take()
        if sign.kind != "operator":
            self._fail(
                f"After the key {key!r} one of = != ~ !~ < <= > >= in is wanted at column "
                f"{sign.column}, not {sign.shown}"
            )
        operator: Operator = sign.text  # type: ignore[assignment]
        return self._checked(key, operator, (self._value(sign.text),), column)

    def _membership(self, key: str, column: int) -> Filter:
        operator: Operator = "in"
        if self._take().is_word("not"):
            operator = "not in"
            if not self._take().is_word("in"):
                self._fail(f"After the key {key!r} `not` is wanted only before `in`")
        opened = self._take()
        if opened.text != "(" or opened.kind != "mark":
            self._fail(
                f"After `in` a list in parentheses is wanted at column {opened.column}, "
                f"as in {key} in (one, two)"
            )
        values = [self._value("(")]
        while self._peek().text == "," and self._peek().kind == "mark":
            self._take()
            values.append(self._value(","))
        closed = self._take()
        if closed.text != ")" or closed.kind != "mark":
            self._fail(f"The list opened at column {opened.column} is not closed by )")
        return self._checked(key, operator, tuple(values), column)

    def _value(self, after: str) -> str:
        token = self._take()
        if token.kind not in ("word", "quoted"):
            self._fail(f"A value is wanted at column {token.column} after {after}")
        return token.text

    def _checked(
        self, key: str, operator: Operator, values: tuple[str, ...], column: int
    ) -> Filter:
        name = key.lower()
        if operator in ("~", "!~") and name in (*NUMBER_KEYS, *DATE_KEYS):
            self._fail(f"{name} at column {column} is no text: use = != < <= > >= in")
        if operator in _ORDERED and name in TEXT_KEYS:
            self._fail(f"{name} at column {column} is text: use = != ~ !~ in")
        for value in values:
            number, period = read_number(value), read_period(value)
            if name in NUMBER_KEYS and number is None:
                self._fail(f"{name} at column {column} is compared with a number, not {value!r}")
            if name in DATE_KEYS and period is None:
                self._fail(
                    f"{name} at column {column} is compared with a date such as 2026-01-31, "
                    f"not {value!r}"
                )
            if operator in _ORDERED and number is None and period is None:
                self._fail(
                    f"{operator} compares numbers and dates, {value!r} (for {key}, "
                    f"column {column}) is neither"
                )
        return Test(key, operator, values, column)

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _read_tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        for match in _TOKEN.finditer(self._text):
            kind, column = match.lastgroup, match.start() + 1
            if kind == "open":
                self._fail(f"The quote at column {column} is never closed")
            elif kind == "quoted":
                inside = _ESCAPE.sub(r"\1", match.group()[1:-1])
                tokens.append(_Token("quoted", inside, column))
            elif kind != "blank":
                tokens.append(_Token(kind, match.group(), column))  # type: ignore[arg-type]
        tokens.append(_Token("end", "", len(self._text) + 1))
        return tokens

    def _fail(self, what: str) -> NoReturn:
        raise UsageError(
            f"The filter {self._text[:_SHOWN]!r} cannot be read. {what}.",
            f"Write it like {EXAMPLE}; to search for the word where: itself, put it in quotes.",
        )
