"""Numbers and times as filters write and compare them."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_DATE = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?)?)?"
)


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: a year, a month, a day, or one second."""

    start: float
    end: float
    """Seconds since the epoch, end-exclusive."""


def read_number(text: str) -> float | None:
    """A decimal number, or None."""
    try:
        return float(text) if re.fullmatch(r"\s*[+-]?\d+(?:\.\d+)?\s*", text) else None
    except (ValueError, OverflowError):
        return None


def read_period(text: str) -> Period | None:
    """The time that ``2026``, ``2026-01``, ``2026-01-31`` or ``2026-01-31T12:30`` names, or None.

    Without an offset it is UTC.
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, offset = match.groups()
    zone = "+00:00" if offset in (None, "Z") else offset
    try:
        start = datetime.fromisoformat(
            f"{year}-{int(month or 1):02}-{int(day or 1):02}T"
            f"{int(hour or 0):02}:{minute or '00'}:{second or '00'}{zone}"
        ).astimezone(UTC)
        if hour is not None:
            end = start + timedelta(seconds=1 if second else 60)
        elif day is not None:
            end = start + timedelta(days=1)
        elif month is not None:
            end = start + timedelta(days=_days_of(int(year), int(month)))
        else:
            end = start + timedelta(days=366 if _days_of(int(year), 2) == 29 else 365)
        return Period(start.timestamp(), end.timestamp())
    except (ValueError, OverflowError):
        return None


def compare_times(when: Period, operator: str, period: Period) -> bool:
    """Whether a time lies before, in or after a period, by its beginning."""
    match operator:
        case "<":
            return when.start < period.start
        case "<=":
            return when.start < period.end
        case ">":
            return when.start >= period.end
        case ">=":
            return when.start >= period.start
        case _:
            return period.start <= when.start < period.end


def compare_numbers(number: float, operator: str, limit: float) -> bool:
    """Whether a number lies before or after a limit."""
    match operator:
        case "<":
            return number < limit
        case "<=":
            return number <= limit
        case ">":
            return number > limit
        case _:
            return number >= limit


def _days_of(year: int, month: int) -> int:
    return monthrange(year, month)[1]
