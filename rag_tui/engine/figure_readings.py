"""How numbers, units, dates and times can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30,
    "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
"""One to twelve, and the tens."""

_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
MONTHS = {
    **{name: number for number, name in enumerate(_MONTH_NAMES, start=1)},
    **{name[:3]: number for number, name in enumerate(_MONTH_NAMES, start=1)},
    "Sept": 9,
}
"""Month to its number; capitalised, as ``may`` and ``march`` are words too."""

_UNITS = {
    "%": "% percent percentage pct prozent",
    "eur": "€ euro euros eur",
    "usd": "$ dollar dollars usd us$",
    "gbp": "£ pound pounds gbp",
    "jpy": "¥ yen jpy",
    "chf": "franc francs chf",
    "ms": "ms millisecond milliseconds",
    "second": "s sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "night": "night nights",
    "week": "week weeks",
    "month": "month months",
    "year": "year years",
    "byte": "byte bytes",
    "kb": "kb kib",
    "mb": "mb mib",
    "gb": "gb gib",
    "mm": "mm",
    "cm": "cm",
    "m": "m meter meters metre metres",
    "km": "km kilometer kilometers kilometre kilometres",
    "mile": "mile miles",
    "g": "g gram grams",
    "kg": "kg kilo kilos kilogram kilograms",
    "litre": "l litre litres liter liters",
    "fahrenheit": "°f fahrenheit",
    "degree": "° °c degree degrees celsius",
    "am": "am a.m. a.m",
    "pm": "pm p.m. p.m",
}
_UNIT_OF = {written: unit for unit, forms in _UNITS.items() for written in forms.split()}
_FACTORS = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_LONG_FIRST = sorted([*_UNIT_OF, "per cent"], key=len, reverse=True)

UNIT_BEHIND = re.compile(
    rf"(?:[\s\-]*({'|'.join(_FACTORS)})\b)?"
    rf"(?:[^\S\n]?[-\s]?(?:working |calendar |business )?"
    rf"({'|'.join(map(re.escape, _LONG_FIRST))})(?![^\W_]))?(?:st|nd|rd|th)?(?!\w)",
    re.IGNORECASE,
)
"""What may follow a number: a factor, a unit, an ordinal's end. Group 2 is the unit."""
UNIT_BEFORE = re.compile(r"(?:US\$|[$€£¥])\s?$")
"""What may stand before it."""
LONGEST_BEFORE = 4
"""Characters."""

_MAX_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Dated:
    """A date or a time in a text."""

    start: int
    end: int
    readings: tuple[str, ...]
    coarser: tuple[str, ...] = ()


def unit_of(behind: re.Match[str] | None, before: re.Match[str] | None) -> tuple[str, int]:
    """The unit of a number, and what to multiply it with."""
    factor = _FACTORS[behind[1].casefold()] if behind is not None and behind[1] else 1
    if behind is not None and behind[2]:
        written = behind[2].casefold()
        return "%" if written == "per cent" else _UNIT_OF[written], factor
    if before is not None:
        return _UNIT_OF[before[0].strip().casefold()], factor
    return "", factor


def number_readings(written: str, *, factor: int = 1) -> tuple[str, ...]:
    """The numbers that digits with separators can mean, in one form: ``1,000`` is ``1000``.

    A single comma or dot before exactly three digits may be either kind of separator. What is no
    number, such as a version, reads as itself.
    """
    digits = re.sub(r"['’\s]", "", written)
    if len(digits) > _MAX_DIGITS:
        return (digits,)
    separators = re.sub(r"\d", "", digits)
    candidates: list[str] = []
    if not separators:
        candidates = [digits]
    elif len(set(separators)) == 1:
        _, *groups = digits.split(separators[0])
        if all(len(group) == 3 for group in groups):
            candidates.append(digits.replace(separators[0], ""))
        if len(groups) == 1:
            candidates.append(digits.replace(separators[0], "."))
    else:
        last = separators[-1]
        whole, _, part = digits.rpartition(last)
        if last not in whole:
            candidates.append(re.sub(r"[.,]", "", whole) + "." + part)
    readings = tuple(dict.fromkeys(_plain(c, factor) for c in candidates))
    return readings or (digits,)


def _plain(number: str, factor: int) -> str:
    try:
        value = Decimal(number) * factor
    except InvalidOperation:
        return number
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).lstrip("0") or "0"


_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ISO = re.compile(r"(?<![\w-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\w-])")
_DIGITS = re.compile(r"(?<![\w./])(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\w/])")
_DAY_MONTH = re.compile(rf"(?<!\w){_DAY}\s+(?:of\s+)?({_MONTH})\b\.?(?:,?\s+(\d{{4}})\b)?")
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.?\s+{_DAY}(?!\w)(?:,?\s+(\d{{4}})\b)?")
_MONTH_YEAR = re.compile(rf"\b({_MONTH})\.?\s+(\d{{4}})\b")
_TIME = re.compile(
    r"(?<![\w:.,])([01]?\d|2[0-4]):([0-5]\d)(?![\w:])(?:\s?([ap])\.?m\b\.?)?"
    r"|(?<![\w:.,])(1[0-2]|0?[1-9]):([0-5]\d)([ap])m\b",
    re.IGNORECASE,
)


def date_readings(text: str) -> Iterator[Dated]:
    """The dates of a text; day and month of ``3/5/2024`` either way round."""
    at: list[tuple[int, int]] = []

    def is_free(match: re.Match[str]) -> bool:
        free = all(match.end() <= start or match.start() >= end for start, end in at)
        if free:
            at.append(match.span())
        return free

    for match in _ISO.finditer(text):
        if is_free(match):
            yield _dated(match, match[1], match[2], match[3])
    for match in _DIGITS.finditer(text):
        if is_free(match):
            first = _dated(match, match[4], match[3], match[1])
            other = _dated(match, match[4], match[1], match[3])
            is_ambiguous = match[2] == "/" and int(match[1]) <= 12 and int(match[3]) <= 12
            readings = (*first.readings, *other.readings) if is_ambiguous else first.readings
            coarser = (*first.coarser, *other.coarser) if is_ambiguous else first.coarser
            yield Dated(match.start(), match.end(), readings, coarser)
    for match in _DAY_MONTH.finditer(text):
        if is_free(match):
            yield _dated(match, match[3] or "", str(MONTHS[match[2]]), match[1])
    for match in _MONTH_DAY.finditer(text):
        if is_free(match):
            yield _dated(match, match[3] or "", str(MONTHS[match[1]]), match[2])
    for match in _MONTH_YEAR.finditer(text):
        if is_free(match):
            reading = f"{match[2]}-{MONTHS[match[1]]:02}"
            yield Dated(match.start(), match.end(), (reading,), (match[2],))


def _dated(match: re.Match[str], year: str, month: str, day: str) -> Dated:
    short = f"--{int(month):02}-{int(day):02}"
    if not year:
        return Dated(match.start(), match.end(), (short,))
    full = f"{year}-{int(month):02}-{int(day):02}"
    return Dated(match.start(), match.end(), (full,), (short, f"{year}-{int(month):02}", year))


def times_of(text: str) -> Iterator[Dated]:
    """Times of day with minutes, on the 24-hour clock: ``9:30 pm`` reads ``21:30``."""
    for match in _TIME.finditer(text):
        hours, minutes, half = (match[1], match[2], match[3]) if match[1] else match.groups()[3:]
        hour = int(hours)
        if half and hour <= 12:
            hour = hour % 12 + (12 if half.casefold() == "p" else 0)
        yield Dated(match.start(), match.end(), (f"{hour:02}:{minutes}",))
