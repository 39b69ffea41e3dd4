"""The scores of single sentences as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content

from rag_tui.tui import format as fmt

if TYPE_CHECKING:
    from rag_tui.tui.close_reading import SentenceTable

INDENT = "  "
QUOTED = 240
"""Characters of a sentence that are quoted."""


def sentence_lines(table: SentenceTable) -> Iterator[Content]:
    """A title, what the columns are, and a row a sentence; the first one is marked."""
    yield Content("")
    how = "each sentence alone, without headings and neighbours; best first"
    yield Content.styled("SENTENCES", "bold") + fmt.content(f"  {how}", "dim")
    names = [name for name in (table.similarity, table.reranker) if name]
    yield fmt.content(INDENT + "  " + "".join(f"{fmt.clip(name, 9):>9} " for name in names), "dim")
    for place, row in enumerate(table.rows):
        scores = [s for s in (row.similarity, row.reranked) if s is not None]
        shown = "".join(f"{score:>9.3f} " for score in scores)
        unread = "" if row.is_read else "(not read) "
        quoted = fmt.clip(" ".join(row.text.split()), QUOTED)
        mark = "▸" if place == 0 else " "
        yield fmt.content(f"{INDENT}{mark} {shown}{unread}{quoted}", "" if row.is_read else "dim")
    if not table.rows:
        yield fmt.content(f"{INDENT}the chunk has no sentences", "dim")
