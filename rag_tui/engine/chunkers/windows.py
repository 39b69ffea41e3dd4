"""Windows over a row of units, with overlap: plain arithmetic, and ends at good places."""

from __future__ import annotations

from collections.abc import Sequence

from rag_tui.engine.errors import UsageError

FORBIDDEN = -1
"""Strength of a place inside a character: never cut there."""
ANYWHERE = 0
"""Strength of a place inside a word: cut there when nothing better is near."""
WORD = 2
"""From this strength on, a cut keeps words whole."""
BREAK = 3
"""From this strength on, a place is worth ending a window early: sentence, line, paragraph."""

_FARTHEST = 64
"""Units that a window may exceed its size by rather than be cut inside a character."""


def windows(n_units: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Windows of ``size`` units, each starting ``overlap`` units before the one before ends.

    They cover ``0`` to ``n_units``; the last may be shorter, and none lies inside another.

    Returns:
        Spans in units, end-exclusive, ascending; none for no units.

    Raises:
        UsageError: When size is below 1, or overlap is negative or not below size.
    """
    _check(size, overlap)
    spans: list[tuple[int, int]] = []
    start = 0
    while n_units > 0:
        end = min(start + size, n_units)
        spans.append((start, end))
        if end == n_units:
            break
        start = end - overlap
    return spans


def fitted_windows(strengths: Sequence[int], size: int, overlap: int) -> list[tuple[int, int]]:
    """Windows as of `windows` that end and start where the text allows it.

    A window ends at the strongest `BREAK` of its last quarter (the last of equal ones), else at
    the last place in its second half that keeps a word whole, else at the last place that is
    not `FORBIDDEN`. It holds more than ``size`` units only where it would have to be cut inside
    a character. The next one starts ``overlap`` units before that end; where that would tear a
    word, up to an eighth of the size earlier, else up to half the overlap later.

    Args:
        strengths: For each unit, how good it is to cut just before it.
        size: Units of a window, at least 1.
        overlap: Units shared by neighbours, below size.

    Returns:
        Spans in units, end-exclusive; starts and ends ascend strictly.

    Raises:
        UsageError: As `windows`.
    """
    _check(size, overlap)
    n_units = len(strengths)
    spans: list[tuple[int, int]] = []
    start = end = 0
    while end < n_units:
        end = _end(strengths, start, after=end, size=size)
        spans.append((start, end))
        if end < n_units:
            start = _next_start(strengths, start, end, size=size, overlap=overlap)
    return spans


def _check(size: int, overlap: int) -> None:
    if size < 1:
        raise UsageError(
            f"window size must be at least 1 (got {size})", "Set the size to a positive number."
        )
    if not 0 <= overlap < size:
        raise UsageError(
            f"window overlap must be 0 or more and below the size (got {overlap} for {size})",
            f"Set the overlap to a number from 0 to {size - 1}.",
        )


def _end(strengths: Sequence[int], start: int, *, after: int, size: int) -> int:
    n_units = len(strengths)
    last = start + size
    if last >= n_units:
        return n_units
    best = last
    for place in range(last, max(after, last - max(size // 4, 1)), -1):
        if strengths[place] >= BREAK and (
            strengths[best] < BREAK or strengths[place] > strengths[best]
        ):
            best = place
    if strengths[best] >= WORD:
        return best
    lowest = max(after, start + size // 2 - 1)
    for wanted in (WORD, ANYWHERE + 1, ANYWHERE):
        for place in range(last, lowest, -1):
            if strengths[place] >= wanted:
                return place
    for place in range(lowest, after, -1):
        if strengths[place] > FORBIDDEN:
            return place
    for place in range(last + 1, min(last + _FARTHEST, n_units)):
        if strengths[place] > FORBIDDEN:
            return place
    return min(last + _FARTHEST, n_units)


def _next_start(strengths: Sequence[int], start: int, end: int, *, size: int, overlap: int) -> int:
    if overlap == 0:
        return end
    wanted = end - overlap
    # A start at or before this leads to no end behind the one just made.
    too_low = max(start, _place_after(strengths, end) - size - 1)
    earliest = max(too_low, wanted - max(size // 8, 1) - 1)
    latest = min(end, wanted + overlap // 2 + 1)
    for least in (WORD, ANYWHERE):
        for place in range(wanted, earliest, -1):
            if strengths[place] >= least:
                return place
        for place in range(max(wanted, earliest) + 1, latest):
            if strengths[place] >= least:
                return place
    return end


def _place_after(strengths: Sequence[int], end: int) -> int:
    """The first place behind ``end`` where a window may end."""
    n_units = len(strengths)
    for place in range(end + 1, min(end + _FARTHEST, n_units)):
        if strengths[place] > FORBIDDEN:
            return place
    return min(end + 1, n_units)
