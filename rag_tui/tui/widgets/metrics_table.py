"""Columns by measures: means, intervals, and what chance does not explain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from rag_tui.engine.evaluation.score_table import Cell, ColumnScores, ScoreTable
from rag_tui.tui import format as fmt
from rag_tui.tui.evaluation_text import mark, share, short_interval
from rag_tui.tui.widgets.virtual_list import CURSOR, VirtualList
from rag_tui.tui.widgets.virtual_list import Cell as Drawn

FULL_CELL = 18
"""Cells of a mean with its interval and a gap."""
SHORT_CELL = 9
"""Cells of a mean alone, with its mark and a gap."""
TAIL = 18
"""Cells of the counts at the end of a row."""
LEAST_NAME, MOST_NAME = 8, 26
ACTIVE = "▾"

CELL_BINDINGS: tuple[BindingType, ...] = (
    Binding("left,h", "cell(-1)", "Cell left", show=False, id="evaluate.left"),
    Binding("right,l", "cell(1)", "Cell right", show=False, id="evaluate.right"),
)
"""The same in the table and in the matrix."""


class HeadLine(Widget):
    """The line of column titles above a list; it asks the list what to say."""

    DEFAULT_CSS = """
    HeadLine { height: 1; min-width: 1; color: $text-muted; text-style: bold; }
    """

    def __init__(self, of: CellList) -> None:
        super().__init__(id=f"{of.id}-head")
        self._of = of

    def render(self) -> Content:
        """The titles for the list's present width."""
        width = self._of.scrollable_content_region.width
        indent = " " * len(CURSOR)
        return fmt.content(indent + self._of.head_text(max(0, width - len(CURSOR))))


class CellList(VirtualList):
    """A list whose rows have cells, one column of which is the active one."""

    BINDINGS: ClassVar[list[BindingType]] = [*CELL_BINDINGS]

    active: var[int] = var(0)
    """The active column of cells, from 0."""
    n_cells: var[int] = var(0)

    @dataclass
    class CellMoved(Message):
        """Another column of cells is active."""

        list: CellList
        active: int

        @property
        def control(self) -> CellList:
            """The list itself."""
            return self.list

    def __init__(self, widget_id: str) -> None:
        super().__init__(id=widget_id)
        self.head = HeadLine(self)

    def head_text(self, width: int) -> str:
        """The titles, drawn like a row."""
        raise NotImplementedError

    def validate_active(self, active: int) -> int:
        """Keep to cells that exist."""
        return max(0, min(active, self.n_cells - 1))

    def watch_active(self) -> None:
        """Draw it, and tell."""
        self.refresh()
        self.head.refresh()
        self.post_message(self.CellMoved(self, self.active))

    def on_resize(self) -> None:
        """The titles stand above their cells at every width."""
        super().on_resize()
        self.head.refresh()

    def action_cell(self, step: int) -> None:
        """Go to a neighbouring cell."""
        self.active += step


class MetricsTable(CellList):
    """One row a column of the evaluation, one cell a measure."""

    BINDING_GROUP_TITLE = "Scores"
    HELP = "Means of the measures; ← → choose a measure, b compares with this row's column."

    def __init__(self) -> None:
        super().__init__("scores")
        self.table: ScoreTable | None = None

    def show(self, table: ScoreTable) -> None:
        """Show a scored run; cursor and active measure stay where they are."""
        row = max(0, self.cursor)
        self.table = table
        self.n_cells = len(table.measures)
        self.active = min(self.active, self.n_cells - 1)
        self.styles.height = max(1, min(6, len(table.columns)))
        self.set_n_rows(len(table.columns), cursor=row)
        self.head.refresh()

    @property
    def column(self) -> ColumnScores | None:
        """The column under the cursor."""
        if self.table is None or not 0 <= self.cursor < len(self.table.columns):
            return None
        return self.table.columns[self.cursor]

    @property
    def measure(self) -> str:
        """The active measure."""
        measures = self.table.measures if self.table is not None else ()
        return measures[self.active] if self.active < len(measures) else ""

    def head_text(self, width: int) -> str:
        """Names of the measures; the active one is marked."""
        if self.table is None:
            return ""
        shape = self._shape(width)
        against = f"against {self.table.baseline}" if self.table.baseline else "column"
        parts = [fmt.fit(against, shape.name)]
        for place in range(shape.first, shape.last):
            sign = ACTIVE if place == self.active else " "
            parts.append(fmt.fit(f" {sign}{self.table.measures[place]}", shape.cell))
        parts.append(f" {'won/tied/lost':>13} {'n':>3}" if shape.has_tail else "")
        return "".join(parts)

    def draw_row(self, row: int, width: int) -> Iterable[Drawn]:
        """Name, cells, counts; or why there are none."""
        table = self.table
        if table is None:
            return
        column, shape = table.columns[row], self._shape(width)
        yield fmt.fit(fmt.one_line(column.name[:200]), shape.name), "virtual-list--strong"
        if column.reason:
            reason = fmt.one_line(f"  ✗ not scored: {column.reason[:500]}")
            yield fmt.clip(reason, width - shape.name), "virtual-list--warning"
            return
        for place in range(shape.first, shape.last):
            yield from _drawn(column.cells[place], shape.cell)
        if shape.has_tail:
            cell = column.cells[self.active] if self.active < len(column.cells) else None
            yield f" {_counts(cell):>13} {column.n_scored:>3}", "virtual-list--dim"

    def _shape(self, width: int) -> _Shape:
        table = self.table
        names = (
            [cell_len(fmt.one_line(column.name[:200])) for column in table.columns] if table else []
        )
        head = len("against ") + cell_len(table.baseline) if table and table.baseline else 6
        name = min(MOST_NAME, max(LEAST_NAME, head, *names, 0), max(LEAST_NAME, width // 4))
        n = len(table.measures) if table else 0
        for cell, has_tail in ((FULL_CELL, True), (FULL_CELL, False), (SHORT_CELL, True)):
            if name + n * cell + (TAIL if has_tail else 0) <= width:
                return _Shape(name, cell, 0, n, has_tail=has_tail)
        # Not all measures fit: those around the active one.
        fitting = max(1, min(n, (width - name) // SHORT_CELL))
        first = min(max(0, self.active - fitting + 1), max(0, n - fitting))
        return _Shape(name, SHORT_CELL, first, min(n, first + fitting), has_tail=False)


@dataclass(frozen=True, slots=True)
class _Shape:
    name: int
    cell: int
    first: int
    last: int
    has_tail: bool


def _drawn(cell: Cell, width: int) -> Iterable[Drawn]:
    if cell.interval is None:
        yield fmt.fit("   –", width), "virtual-list--dim"
        return
    sign = mark(cell.comparison)
    mean = f"  {share(cell.interval.mean):>5}{sign}"
    yield mean, "virtual-list--strong" if sign.strip() else ""
    around = f" {short_interval(cell.interval)}" if width >= FULL_CELL else ""
    yield fmt.fit(around, width - cell_len(mean)), "virtual-list--dim"


def _counts(cell: Cell | None) -> str:
    compared = cell.comparison if cell is not None else None
    if compared is None:
        return "baseline"
    if compared.is_identical:
        return "no change"
    return f"{compared.wins}/{compared.ties}/{compared.losses}"
