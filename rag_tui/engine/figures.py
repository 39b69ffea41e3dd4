"""What in a sentence can be looked up exactly: numbers, amounts, dates, times, links, names.

A figure is compared by its *readings*: ``1,000``, ``1000`` and ``1 000`` read alike, ``10 %`` as
``10 percent``, ``three`` as ``3``, ``3 May 2024`` as ``2024-05-03``; what can be read in two ways
(``1.000``) is found when either stands in the source. Names are capitalised words inside a
sentence, and words with capitals or digits inside. Code, list numbers and citation markers are no
figures. English month and number words only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.figure_readings import (
    LONGEST_BEFORE,
    MONTHS,
    NUMBER_WORDS,
    UNIT_BEFORE,
    UNIT_BEHIND,
    Dated,
    date_readings,
    number_readings,
    times_of,
    unit_of,
)

FigureKind = Literal["number", "date", "time", "link", "name"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a text."""

    kind: FigureKind
    text: str
    """As it is written, its unit with it."""
    start: int
    end: int
    """Character offsets into the text, end-exclusive."""
    readings: tuple[str, ...]
    """Each a way to read it; never empty."""
    unit: str = ""
    """``%``, ``eur``, ``day``, …; empty when there is none that is known."""
    is_word: bool = False
    """Written as a number word."""
    coarser: tuple[str, ...] = ()
    """What it says as well: the year of a date, the hour of a time."""


@dataclass(frozen=True, slots=True)
class FigureSet:
    """The figures of a source, to look others up in."""

    units_of: dict[str, frozenset[str]]
    """Number to the units it stands with; the empty unit where it stands without a known one."""
    moments: frozenset[str]
    """Dates and times, the less exact readings too."""
    words: frozenset[str]
    text: str

    @classmethod
    def of(cls, text: str) -> FigureSet:
        """All figures and words of a text."""
        units: dict[str, set[str]] = {}
        moments: set[str] = set()
        for figure in _moments_and_numbers(text):
            if figure.kind == "number":
                # Two numbers may stand side by side, and look like one with a space in it.
                parts = [part for part in figure.text.split() if part.isdecimal()]
                for reading in (*figure.readings, *parts):
                    units.setdefault(reading, set()).add(figure.unit)
                moments.update(figure.coarser)
            else:
                moments.update((*figure.readings, *figure.coarser))
                for part in re.findall(r"\d+", figure.text):
                    for reading in number_readings(part):
                        units.setdefault(reading, set()).add("")
        return cls(
            {reading: frozenset(found) for reading, found in units.items()},
            frozenset(moments),
            frozenset(_word_forms(text)),
            text,
        )

    def holds(self, figure: Figure) -> bool:
        """Whether a figure stands here.

        A number with a known unit is not the same number with another known unit; where either
        has none, the number decides.
        """
        match figure.kind:
            case "link":
                return figure.text in self.text
            case "name":
                return any(reading in self.words for reading in figure.readings) or all(
                    _bare(part) in self.words for part in re.findall(r"[^\W_]+", figure.readings[0])
                )
            case "number":
                return self._holds_number(figure) or any(r in self.moments for r in figure.coarser)
            case _:
                return any(reading in self.moments for reading in figure.readings)

    def _holds_number(self, figure: Figure) -> bool:
        for reading in figure.readings:
            units = self.units_of.get(reading, frozenset())
            if units and (not figure.unit or figure.unit in units or "" in units):
                return True
        return False


def figures_of(text: str, markers: Sequence[tuple[int, int]] = ()) -> tuple[Figure, ...]:
    """The figures of one sentence, by place.

    ``one`` as a word is left out (it is a pronoun more often than a number), and so are single
    letters and capitalised words in a sentence where most are (a title, or a language that
    capitalises nouns).

    Args:
        text: One sentence, as it stands in the answer.
        markers: Spans that are no text of it, such as citation markers; end-exclusive.
    """
    masked = _CODE.sub(lambda m: " " * len(m[0]), _blanked(text, markers))
    found = [f for f in _moments_and_numbers(masked) if f.readings[0] != "1" or not f.is_word]
    found += _names(_without(masked, found))
    return tuple(sorted(found, key=lambda figure: figure.start))


_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|^\s*\d{1,9}[.)]\s", re.DOTALL)
_LINK = re.compile(r"\b(?:https?://|www\.)[^\s<>\"'`]+")
_NUMBER = re.compile(
    r"(?<![\w.,])\d{1,3}(?:([,.'’\u00a0\u202f\u2009 ])\d{3})(?:\1\d{3})*(?:[.,]\d{1,9})?"
    r"(?![\w.,]{0,3}\d)"
    r"|(?<!\w)(?<!\d[.,])(?<![A-Za-z]-)\d+(?:[.,]\d+)*"
)
_WORD_NUMBER = re.compile(
    rf"\b(?:({'|'.join(w for w, n in NUMBER_WORDS.items() if n >= 20)})"
    rf"(?:[-\s]({'|'.join(w for w, n in NUMBER_WORDS.items() if 0 < n < 10)}))?"
    rf"|({'|'.join(w for w, n in NUMBER_WORDS.items() if n < 20)}))\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_](?:[\w]|[-'’.&](?=\w))*")
_LOOK_BACK = 12
"""Characters before a word in which the end of a sentence would stand."""
_OPENS = '.!?:;"“”‘’«»(…—–-*_>|'
_NO_NAMES = frozenset(
    re.findall(
        r"\S+",
        "i i'm i'll i'd i've ok no not yes a the and or but if in on at to of for with is are you "
        "your must never always all any only note",
    )
)


def _moments_and_numbers(text: str) -> Iterator[Figure]:
    """Links, dates, times and numbers; none within another."""
    links: list[Figure] = []
    for match in _LINK.finditer(text):
        link = match[0].rstrip(".,;:!?)]}")
        links.append(Figure("link", link, match.start(), match.start() + len(link), (link,)))
    yield from links
    masked = _without(text, links)
    dates = [_moment("date", text, dated) for dated in date_readings(masked)]
    yield from dates
    masked = _without(masked, dates)
    times = [_moment("time", text, dated) for dated in times_of(masked)]
    yield from times
    yield from _numbers(text, _without(masked, times))


def _moment(kind: FigureKind, text: str, dated: Dated) -> Figure:
    written = text[dated.start : dated.end]
    return Figure(kind, written, dated.start, dated.end, dated.readings, coarser=dated.coarser)


def _without(text: str, figures: Sequence[Figure]) -> str:
    return _blanked(text, [(figure.start, figure.end) for figure in figures])


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with spaces in place of the spans, so that offsets stay."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted(spans):
        pieces += [text[at:start], " " * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


def _numbers(text: str, masked: str) -> Iterator[Figure]:
    for match in _NUMBER.finditer(masked):
        behind = UNIT_BEHIND.match(masked, match.end())
        before = UNIT_BEFORE.search(masked[max(0, match.start() - LONGEST_BEFORE) : match.start()])
        start, end = match.span()
        if masked[end : end + 1].isalpha() and behind is None:
            continue  # "3D", "4x4": a name
        unit, factor = unit_of(behind, before)
        if behind is not None:
            end = behind.end()
        if before is not None and not (behind and behind[2]):
            start -= len(before[0])
        yield Figure(
            "number", text[start:end], start, end, number_readings(match[0], factor=factor), unit,
            coarser=_hours(match[0], unit),
        )  # fmt: skip
    for match in _WORD_NUMBER.finditer(masked):
        words = [word.casefold() for word in match.groups() if word]
        value = sum(NUMBER_WORDS[word] for word in words)
        behind = UNIT_BEHIND.match(masked, match.end())
        unit, factor = unit_of(behind, None)
        end = behind.end() if behind is not None else match.end()
        yield Figure(
            "number", text[match.start() : end], match.start(), end, (str(value * factor),), unit,
            is_word=True, coarser=_hours(str(value), unit),
        )  # fmt: skip


def _hours(number: str, unit: str) -> tuple[str, ...]:
    """``10 pm`` is ``22:00`` as well."""
    if unit not in ("am", "pm") or not number.isdecimal() or not 1 <= int(number[:4]) <= 12:
        return ()
    hour = int(number) % 12 + (12 if unit == "pm" else 0)
    return (f"{hour:02}:00",)


def _names(text: str) -> list[Figure]:
    tokens = list(_TOKEN.finditer(text))
    inner = [m for m in tokens[1:] if m[0][:1].isalpha()]
    n_capitals = sum(m[0][0].isupper() for m in inner)
    is_title = len(inner) >= 4 and n_capitals > 0.4 * len(inner)
    found: list[Figure] = []
    for i, match in enumerate(tokens):
        word = re.sub(r"['’]s$", "", match[0])
        if len(word) < 2 or word.casefold() in _NO_NAMES or word.isdecimal():
            continue
        is_mixed = any(c.isupper() for c in re.sub(r"[-'’.&].", "", word[1:])) or (
            any(c.isdecimal() for c in word) and any(c.isalpha() for c in word)
        )
        before = text[max(0, match.start() - _LOOK_BACK) : match.start()].rstrip()
        begins = i == 0 or not before or before[-1] in _OPENS
        is_capital = word[0].isupper() and not begins and not is_title
        if is_mixed or is_capital or (word in MONTHS and word != "May"):
            readings = tuple(dict.fromkeys((word.casefold(), _bare(word))))
            end = match.start() + len(word)
            found.append(Figure("name", word, match.start(), end, readings))
    return found


def _word_forms(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        word = match[0].casefold()
        yield word
        yield _bare(word)
        for part in re.findall(r"[^\W_]+", word):
            yield part
            yield _bare(part)


def _bare(word: str) -> str:
    """Without a possessive or plural s, so that ``Guests`` is found in ``guest``."""
    plain = re.sub(r"['’]s?$", "", word.casefold())
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") else plain
