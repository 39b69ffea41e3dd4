"""Kept searches as text: a row of the list, what one held, and what changed between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content

from rag_tui.tui import format as fmt
from rag_tui.tui.knob_values import shown
from rag_tui.tui.results import BEST_FIRST

if TYPE_CHECKING:
    from rag_tui.engine.history import ColumnChange, EntryComparison, HistoryColumn, HistoryEntry
    from rag_tui.engine.movement import Move

ARROW_WIDTH = 5
AS_THEN_HINT = "  (C in the history asks with the settings it had: then only the index can differ)"
LONGEST = 2_000
"""Cells of one line of details; a question may be a whole file that was pasted."""

Line = tuple[str, str]
"""Displayed text, still foreign, and a Textual style for it."""


def local_time(entry: HistoryEntry) -> str:
    """When it was asked, ``2026-05-04 17:03`` in the machine's time zone; as kept if unreadable."""
    try:
        return datetime.fromisoformat(entry.time).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return fmt.clip(fmt.one_line(entry.time), 16)


def question_of(entry: HistoryEntry) -> str:
    """The question with its filter, as it can be typed again."""
    return f"{entry.query} where: {entry.where}" if entry.where else entry.query


def settings_of(entry: HistoryEntry) -> str:
    """Knobs that were not the package's defaults, and columns that were not the four."""
    parts = [f"{name} {shown(name, value)}" for name, value in entry.knobs.items()]
    own = [column.name for column in entry.asked]
    if own != [column.method for column in entry.asked] or any(c.knobs for c in entry.asked):
        parts.append(f"columns {', '.join(own)}")
    return " · ".join(parts)


def top_of(entry: HistoryEntry) -> str:
    """Where the first row of the list that had come furthest stands: ``reranked a.md:1-4``."""
    for method in BEST_FIRST:
        for column in entry.columns:
            if column.method == method and column.rows:
                return f"{column.name} {column.rows[0].location}"
    return "nothing found"


def haystack(entry: HistoryEntry) -> str:
    """What a filter looks for its words in: time, question, settings and first rows."""
    tops = (column.rows[0].location for column in entry.columns if column.rows)
    parts = (local_time(entry), question_of(entry), settings_of(entry), *tops)
    return "\n".join(parts).casefold()


def details(entry: HistoryEntry, n_rows: int = 3) -> Iterator[Line]:
    """The whole entry: question, settings, and the first ``n_rows`` rows of each column."""
    yield question_of(entry), "bold"
    yield f"{local_time(entry)} · {entry.model}", "$text-muted"
    yield settings_of(entry) or "all knobs at the package's defaults", "$text-muted"
    width = max((len(fmt.one_line(column.name)) for column in entry.columns), default=0)
    for column in entry.columns:
        head = fmt.fit(fmt.one_line(column.name), min(width, 24))
        yield f"{head}  {_first_rows(column, n_rows)}", ""


def _first_rows(column: HistoryColumn, n_rows: int) -> str:
    if column.error:
        return f"✗ {column.error}"
    rows = [
        f"{rank} {row.location} {fmt.score(row.score, column.score_name)}"
        for rank, row in enumerate(column.rows[:n_rows], start=1)
    ]
    return "   ".join(rows) or "nothing found"


def comparison(
    before: HistoryEntry, now: HistoryEntry, compared: EntryComparison, *, is_fresh: bool
) -> Iterator[Line]:
    """What changed from one search to the other: in a sentence, knobs, then column by column.

    Args:
        before: The older search.
        now: The newer one.
        compared: What the engine found between the two.
        is_fresh: Whether the newer one was made for this comparison.
    """
    yield f"before  {local_time(before)}  {question_of(before)}", "bold"
    yield f"now     {'just asked' if is_fresh else local_time(now)}  {question_of(now)}", "bold"
    yield compared.summary, "$text-warning" if _differs(compared) else "$text-success"
    for name, (old, new) in compared.knobs.items():
        yield f"  {name} {shown(name, old)} → {shown(name, new)}", ""
    if is_fresh and not compared.is_same_settings:
        yield AS_THEN_HINT, "$text-muted"
    if before.model != now.model:
        yield f"  embedding model {before.model} → {now.model}", ""
    places = {
        row.chunk_id: row.location
        for entry in (before, now)
        for column in entry.columns
        for row in column.rows
    }
    yield "", ""
    for change in compared.columns:
        yield from _column_lines(change, before, now, places)


def _differs(compared: EntryComparison) -> bool:
    is_same = compared.is_same_query and compared.is_same_index and compared.is_same_settings
    return not is_same


def _column_lines(
    change: ColumnChange, before: HistoryEntry, now: HistoryEntry, places: dict[str, str]
) -> Iterator[Line]:
    moved = change.movement
    if moved is None:
        yield f"{change.name} · {_why_alone(change.name, before, now)}", "$text-warning"
        return
    others = ""
    if change.score_changed:
        others = ", with other scores" if moved.is_same else " · scores differ"
    yield f"{change.name} · {moved.summary}{others}", "bold"
    for move in (*moved.rows, *moved.gone):
        if move.arrow != "═":
            yield f"  {_arrow(move)}  {places.get(move.chunk_id, move.chunk_id)}", ""
    n_same = sum(move.arrow == "═" for move in moved.rows)
    if n_same and not moved.is_same:
        yield f"  ═      {fmt.count(n_same, 'row')} where they were", "$text-muted"


def _why_alone(name: str, before: HistoryEntry, now: HistoryEntry) -> str:
    for told, entry in (("before", before), ("now", now)):
        column = next((column for column in entry.columns if column.name == name), None)
        if column is None:
            return f"no such list {told}"
        if column.error:
            return f"no list {told}: {column.error}"
    return "not comparable"


def _arrow(move: Move) -> str:
    """``▲2   3→1``, ``new   at 2``, ``gone  was 4``: what happened, and the ranks."""
    arrow = fmt.fit(move.arrow, ARROW_WIDTH)
    if move.rank_before is None:
        return f"{arrow}{f'at {move.rank_now}':>7}"
    if move.rank_now is None:
        return f"{arrow}{f'was {move.rank_before}':>7}"
    return f"{arrow}{f'{move.rank_before}→{move.rank_now}':>7}"


def as_content(lines: Sequence[Line]) -> Content:
    """Lines of foreign text as one safe content."""
    return Content("\n").join(fmt.content(fmt.clip(text, LONGEST), style) for text, style in lines)
