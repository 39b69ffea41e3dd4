"""What the last turn of a knob moved, on the lists of the Search screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import on

from rag_tui.tui.messages import StageFinished
from rag_tui.tui.screens.search_labels import SearchLabels

if TYPE_CHECKING:
    from rag_tui.engine.movement import Movement
    from rag_tui.tui.moved import Before

BORDER = 6
"""Cells of a list's lower border that no text can have: corners, lines and blanks."""


def briefly(where: str) -> str:
    """``● – · ◆ at 4``: as `results.standing` has it, but all that is not listed is a dash."""
    return " · ".join(
        part if " at " in part else f"{part.split()[0]} –" for part in where.split(" · ") if part
    )


class SearchMoved(SearchLabels):
    """Arrows on rows and words on borders, until the next turn or another question."""

    def __init__(self) -> None:
        super().__init__()
        self._before: Before | None = None

    @on(StageFinished)
    def _forget_before(self, event: StageFinished) -> None:
        """Another question has nothing to do with the lists before."""
        before, results = self._before, self.results
        if before is not None and results is not None and before.query != results.request.query:
            self._before = None

    def movement(self, column: str) -> Movement | None:
        """What the last turn of a knob moved in a column; None when it was not turned."""
        if self._before is None or self.results is None:
            return None
        from rag_tui.tui.moved import column_movement

        return column_movement(self._before, column, self.results)

    def arrows(self, column: str) -> dict[str, str]:
        """Chunk id to how its row moved."""
        from rag_tui.tui.moved import arrows

        return arrows(self.movement(column))

    def border_text(self, column: str, where: str, took: str) -> str:
        """Also what moved: where not all has room the time goes, then likeness and gold rows."""
        from rag_tui.tui.moved import summaries

        room = self.lists[column].outer_size.width - BORDER
        told = summaries(self.movement(column))
        for text in (*(f"{told[0]} · {took}" for _ in told[:1]), *told):
            line = super().border_text(column, where, text)
            if cell_len(line) <= room and text in line:
                return line
        if told:
            return next(
                (
                    line
                    for place in (where, briefly(where))
                    if place and cell_len(line := f"{place} · {told[-1]}") <= room
                ),
                told[0] if cell_len(told[0]) <= room else told[-1],
            )
        return super().border_text(column, where, took)

    def tooltip_lines(self, column: str) -> list[str]:
        """What a list's border has no room for: steps after ranking, and what went out."""
        results = self.results
        ranking = results.rankings.get(column) if results is not None else None
        if results is None or ranking is None:
            return []
        lines = [f"{step.name}: {step.note}" for step in ranking.steps]
        if (found := self.movement(column)) is not None:
            lines.append(f"since the last change: {found.summary}")
            gone = [results.chunk(move.chunk_id) for move in found.gone]
            lines += [f"out: {chunk.label}" for chunk in gone[:5] if chunk is not None]
        return lines
