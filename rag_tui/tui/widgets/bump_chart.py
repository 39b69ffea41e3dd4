"""The bump chart: how the top rows move from list to list, one line a chunk.

`bump_lines` makes the whole picture as text from a value; the widget is in `bump_view`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len

from rag_tui.tui import format as fmt

NODE, PICKED = "•", "●"
GONE, CAME = "×", "+"
GUTTER = 3
"""Cells of the ranks at the left."""
MAX_LABEL = 40
MAX_SPACING = 3
LEFT_LABELS = 110
"""From this width on the first list's rows are named at the left, too."""
WITH_RANKS = 9
"""From this distance of two lists on, a chunk that leaves says where it has gone."""

Run = tuple[str, str]
"""Text and what it is: ``line``, ``node``, ``picked``, ``edge``, ``title``, ``active``, ``label``
or nothing."""


@dataclass(frozen=True, slots=True)
class BumpColumn:
    """One list."""

    name: str
    title: str
    rows: tuple[str, ...]
    """Chunk ids by rank; as many as are drawn, at most."""
    ranks: Mapping[str, int]
    """Chunk id to 1-based rank, of all rows that the list has."""


@dataclass(frozen=True, slots=True)
class BumpChart:
    """What is drawn."""

    columns: tuple[BumpColumn, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Chunk id to what it is called; foreign text."""

    @property
    def n_rows(self) -> int:
        """Rows of the longest list."""
        return max((len(column.rows) for column in self.columns), default=0)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand, in cells."""

    width: int
    spacing: int
    """Lines from one rank to the next, as far as there is room."""
    n_left: int
    """Cells of the labels at the left; 0 for none."""
    n_right: int
    places: tuple[int, ...]
    """The column of cells in which each list's nodes stand."""

    @property
    def gap(self) -> int:
        """Cells from one list to the next."""
        return self.places[1] - self.places[0] if len(self.places) > 1 else 0

    def line_of(self, row: int) -> int:
        """The line of a 0-based row, below the titles."""
        return row * self.spacing


def layout_of(chart: BumpChart, width: int, height: int) -> Layout:
    """How a chart is laid out in so many cells and lines, the titles' line among them."""
    n = len(chart.columns)
    longest = max((cell_len(fmt.one_line(one)) for one in chart.labels.values()), default=0)
    n_right = min(longest + 2, MAX_LABEL, max(8, width * 3 // 10))
    n_left = min(longest + 1, MAX_LABEL, width // 5) if width >= LEFT_LABELS else 0
    first = GUTTER + n_left
    last = max(first + 2 * max(n - 1, 0), width - n_right - 2)
    gap = (last - first) // (n - 1) if n > 1 else 0
    spacing = min(max((height - 1) // max(chart.n_rows, 1), 1), MAX_SPACING)
    return Layout(width, spacing, n_left, n_right, tuple(first + i * gap for i in range(n)))


def bump_lines(
    chart: BumpChart, layout: Layout, *, picked: str | None, active: str
) -> list[list[Run]]:
    """The picture: a line of titles, then the ranks from above, each line as runs of text.

    Between two lists a chunk's rows are joined: dots for all, heavy strokes for the picked one.
    A chunk that is not among the next list's drawn rows ends at once with ``×`` and its rank
    there, if it has any; one that was not among those of the list before begins with ``+``.

    Args:
        chart: What is drawn.
        layout: From `layout_of`, for the same chart.
        picked: The chunk whose line stands out.
        active: The name of the list that the cursor walks through.
    """
    canvas = _Canvas(layout, max(1, layout.line_of(max(chart.n_rows - 1, 0)) + 1))
    pairs = list(zip(chart.columns, chart.columns[1:], strict=False))
    for i, (here, there) in enumerate(pairs):
        to = {chunk_id: row for row, chunk_id in enumerate(there.rows)}
        for row, chunk_id in enumerate(here.rows):
            if chunk_id in to and chunk_id != picked:
                canvas.curve(i, row, to[chunk_id])
    canvas.flush()
    for i, (here, there) in enumerate(pairs):
        for row, chunk_id in enumerate(here.rows):
            if chunk_id not in there.rows:
                canvas.leave(i, row, there.ranks.get(chunk_id), is_picked=chunk_id == picked)
        for row, chunk_id in enumerate(there.rows):
            if chunk_id not in here.rows:
                canvas.come(i + 1, row, is_picked=chunk_id == picked)
        if picked in here.rows and picked in there.rows:
            canvas.stroke(i, here.rows.index(picked), there.rows.index(picked))
    for i, column in enumerate(chart.columns):
        for row, chunk_id in enumerate(column.rows):
            canvas.node(i, row, is_picked=chunk_id == picked)
    return [_titles(chart, layout, active), *_labelled(chart, layout, canvas, picked)]


class _Canvas:
    """Cells of the chart without titles and labels."""

    def __init__(self, layout: Layout, n_lines: int) -> None:
        self.layout = layout
        self.width = (layout.places[-1] if layout.places else 0) + 1
        self.cells = [[(" ", "")] * self.width for _ in range(n_lines)]
        self._dots = [[0] * self.width for _ in range(n_lines)]

    def put(self, x: int, y: int, text: str, kind: str) -> None:
        for place, character in enumerate(text, start=x):
            if 0 <= place < self.width:
                self.cells[y][place] = (character, kind)

    def curve(self, column: int, row: int, to_row: int) -> None:
        """A dotted line, level at both ends: 2 x 4 dots of Braille a cell."""
        x0 = 2 * (self.layout.places[column] + 1)
        x1 = 2 * self.layout.places[column + 1] - 1
        y0, y1 = (4 * self.layout.line_of(r) + 2 for r in (row, to_row))
        before = y0
        for x in range(x0, x1 + 1):
            t = (x - x0) / max(1, x1 - x0)
            y = round(y0 + (y1 - y0) * t * t * (3 - 2 * t))
            for dot in range(min(before, y), max(before, y) + 1):
                self._dots[dot // 4][x // 2] |= _DOTS[x % 2][dot % 4]
            before = y

    def flush(self) -> None:
        """Turn dots into characters."""
        for y, dots in enumerate(self._dots):
            for x, bits in enumerate(dots):
                if bits:
                    self.cells[y][x] = (chr(0x2800 + bits), "line")

    def stroke(self, column: int, row: int, to_row: int) -> None:
        """A heavy line with corners halfway."""
        x0, x1 = self.layout.places[column] + 1, self.layout.places[column + 1] - 1
        y0, y1 = self.layout.line_of(row), self.layout.line_of(to_row)
        middle = (x0 + x1) // 2
        self.put(x0, y0, "━" * (middle - x0), "picked")
        self.put(middle + 1, y1, "━" * (x1 - middle), "picked")
        if y0 == y1:
            self.put(middle, y0, "━", "picked")
            return
        corners = "┓┗" if y1 > y0 else "┛┏"
        for y in range(min(y0, y1) + 1, max(y0, y1)):
            self.put(middle, y, "┃", "picked")
        self.put(middle, y0, corners[0], "picked")
        self.put(middle, y1, corners[1], "picked")

    def leave(self, column: int, row: int, rank: int | None, *, is_picked: bool) -> None:
        """The end of a line."""
        has_room = self.layout.gap >= WITH_RANKS and rank is not None
        text = f"{'━' if is_picked else '─'}{GONE}{rank if has_room else ''}"
        self.put(
            self.layout.places[column] + 1,
            self.layout.line_of(row),
            text[: max(0, self.layout.gap - 1)],
            "picked" if is_picked else "edge",
        )

    def come(self, column: int, row: int, *, is_picked: bool) -> None:
        """The beginning of a line."""
        text = f"{CAME}{'━' if is_picked else '─'}"[-max(0, self.layout.gap - 3) :]
        if self.layout.gap > 3:
            self.put(
                self.layout.places[column] - len(text),
                self.layout.line_of(row),
                text,
                "picked" if is_picked else "edge",
            )

    def node(self, column: int, row: int, *, is_picked: bool) -> None:
        """A chunk's place in a list."""
        self.put(
            self.layout.places[column],
            self.layout.line_of(row),
            PICKED if is_picked else NODE,
            "picked" if is_picked else "node",
        )


_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Braille: the bit of each of a cell's 2 x 4 dots (Unicode chapter 21.1)."""


def _titles(chart: BumpChart, layout: Layout, active: str) -> list[Run]:
    """Each title over its list, as far as the neighbours leave room."""
    runs: list[Run] = []
    used = 0
    for i, (column, place) in enumerate(zip(chart.columns, layout.places, strict=True)):
        is_active = column.name == active
        is_last = i + 1 == len(chart.columns)
        room = (layout.n_right + 2 if is_last else 0) + (layout.gap or layout.width) - 1
        name = fmt.clip(column.title, max(1, room - 2 * is_active))
        text = f"[{name}]" if is_active else name
        end = layout.width if is_last else layout.places[i + 1] - 1
        start = max(used, min(place - cell_len(text) // 2, end - cell_len(text)))
        text = fmt.clip(text, layout.width - start)
        runs.append((" " * (start - used), ""))
        runs.append((text, "active" if is_active else "title"))
        used = start + cell_len(text) + 1
        runs.append((" ", ""))
    return runs


def _labelled(
    chart: BumpChart, layout: Layout, canvas: _Canvas, picked: str | None
) -> Iterable[list[Run]]:
    """The canvas's lines with ranks at the left and names at both sides."""
    rows_at = {layout.line_of(row): row for row in range(chart.n_rows)}
    first = chart.columns[0] if chart.columns else None
    last = chart.columns[-1] if chart.columns else None
    for y, cells in enumerate(canvas.cells):
        row = rows_at.get(y)
        rank = f"{row + 1:>2} " if row is not None else " " * GUTTER
        runs: list[Run] = []
        if layout.n_left:
            runs += _label(chart, first, row, layout.n_left, picked, pad=True)
        runs.append((rank, "label"))
        runs += _merged(cells[GUTTER + layout.n_left :])
        runs += [("  ", "")]
        runs += _label(chart, last, row, layout.n_right - 1, picked, pad=False)
        yield runs


def _label(
    chart: BumpChart,
    column: BumpColumn | None,
    row: int | None,
    width: int,
    picked: str | None,
    *,
    pad: bool,
) -> list[Run]:
    if column is None or row is None or row >= len(column.rows):
        return [(" " * width, "")] if pad else []
    chunk_id = column.rows[row]
    text = fmt.one_line(chart.labels.get(chunk_id, chunk_id))
    # right-aligned against the first list, so that name and line touch
    shown = fmt.clip(text, width - 1)
    lead = " " * (width - 1 - cell_len(shown)) if pad else ""
    return [(lead, ""), (shown, "picked" if chunk_id == picked else "label"), (" " * pad, "")]


def _merged(cells: Sequence[tuple[str, str]]) -> list[Run]:
    runs: list[Run] = []
    for character, kind in cells:
        if runs and runs[-1][1] == kind:
            runs[-1] = (runs[-1][0] + character, kind)
        else:
            runs.append((character, kind))
    return runs
