"""When a chunk counts as holding a place: the one rule that labels and measures share."""

from __future__ import annotations

from rag_tui.engine.evaluation.types import Place, Retrieved


def overlap(start: int, end: int, other_start: int, other_end: int) -> int:
    """Characters that two spans have in common."""
    return max(0, min(end, other_end) - max(start, other_start))


def covers(start: int, end: int, place_start: int, place_end: int) -> bool:
    """Whether the span of a chunk holds a place.

    It does when at least half of the place lies in it; or, for a place longer than the chunk,
    when at least half of the chunk lies in the place. All offsets are characters of one document,
    end-exclusive.
    """
    common = overlap(start, end, place_start, place_end)
    if common == 0:
        return False
    length, place_length = end - start, place_end - place_start
    return 2 * common >= place_length or (place_length > length and 2 * common >= length)


def row_holds(row: Retrieved, place: Place) -> bool:
    """Whether a row of a run holds a place.

    A chunk that the place resolved to does; any other row by its span, so that a run made with
    another way of cutting can be scored too. A row without a known span holds nothing else.
    """
    if row.chunk_id and row.chunk_id in place.chunk_ids:
        return True
    return row.document == place.document and covers(row.start, row.end, place.start, place.end)
