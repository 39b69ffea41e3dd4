"""The widget of the bump chart: paints its lines and walks through its lists."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rag_tui.tui.widgets.bump_chart import BumpChart, BumpColumn, Run, bump_lines, layout_of


class BumpView(ScrollView, can_focus=True):
    """A bump chart with a cursor: it walks down one list, and from list to list."""

    # The ids are those of the result lists: remapping a key there remaps it here.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row up", show=False, id="list.up"),
        Binding("down,j", "move(1)", "Row down", show=False, id="list.down"),
        Binding("home,g", "move(-999)", "First row", show=False, id="list.first"),
        Binding("end,G", "move(999)", "Last row", show=False, id="list.last"),
        Binding("left,h", "column(-1)", "List left", show=False, id="results.left"),
        Binding("right,l", "column(1)", "List right", show=False, id="results.right"),
        Binding("enter", "open", "Read it", id="list.open"),
    ]
    BINDING_GROUP_TITLE = "Bump chart"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "bump--line", "bump--node", "bump--picked", "bump--edge", "bump--title", "bump--active",
        "bump--label",
    }  # fmt: skip
    DEFAULT_CSS = """
    BumpView {
        height: 1fr; min-width: 4; overflow-x: hidden; scrollbar-size-vertical: 1;
        & > .bump--line { color: $text-muted; text-style: dim; }
        & > .bump--node { color: $foreground; }
        & > .bump--picked { color: $text-accent; text-style: bold; }
        & > .bump--edge { color: $text-muted; }
        & > .bump--title { color: $text-muted; }
        & > .bump--active { text-style: bold; }
        & > .bump--label { color: $foreground; }
    }
    """

    class Picked(Message):
        """The user moved to a chunk, or wants to read it."""

        def __init__(self, view: BumpView, chunk_id: str, *, is_opened: bool) -> None:
            super().__init__()
            self.view = view
            self.chunk_id = chunk_id
            self.is_opened = is_opened

        @property
        def control(self) -> BumpView:
            """The chart it happened in."""
            return self.view

    def __init__(self) -> None:
        super().__init__()
        self.chart = BumpChart()
        self.picked: str | None = None
        self.active = ""
        self._lines: list[list[Run]] = []
        self._layout = layout_of(self.chart, 1, 1)

    def show(self, chart: BumpChart, *, picked: str | None, active: str) -> None:
        """Draw a chart; a list that it lacks cannot be the active one."""
        names = [column.name for column in chart.columns]
        self.chart, self.picked = chart, picked
        self.active = active if active in names else next(iter(names), "")
        self._draw()

    def render_line(self, y: int) -> Strip:
        """The titles stay; the rest scrolls below them."""
        base = self.rich_style
        width = self.scrollable_content_region.width
        line = 0 if y == 0 else y + round(self.scroll_y)
        runs = self._lines[line] if line < len(self._lines) else []
        segments = [
            Segment(text, base + self._style_of(kind) if kind else base) for text, kind in runs
        ]
        return Strip(segments).adjust_cell_length(max(0, width), base)

    def on_resize(self) -> None:
        """The chart fills the room there is."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Pick the chunk at the nearest node; a double click opens it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y == 0 or not self.chart.columns:
            return
        places = self._layout.places
        nearest = min(range(len(places)), key=lambda i: abs(places[i] - offset.x))
        column = self.chart.columns[nearest]
        row = (offset.y + round(self.scroll_y) - 1) // self._layout.spacing
        if 0 <= row < len(column.rows):
            self.active = column.name
            self._pick(column.rows[row], is_opened=event.chain == 2)

    def action_move(self, step: int) -> None:
        """Pick the chunk so many rows further on in the active list."""
        column = self._active_column
        if column is None or not column.rows:
            return
        if self.picked in column.rows:
            row = column.rows.index(self.picked) + step
        else:
            row = 0 if step > 0 else len(column.rows) - 1
        self._pick(column.rows[min(max(row, 0), len(column.rows) - 1)], is_opened=False)

    def action_column(self, step: int) -> None:
        """Walk down the list before or behind from now on."""
        names = [column.name for column in self.chart.columns]
        if names:
            self.active = names[(names.index(self.active) + step) % len(names)]
            self._draw()

    def action_open(self) -> None:
        """Ask for the text of the picked chunk."""
        if self.picked is not None:
            self._pick(self.picked, is_opened=True)

    @property
    def text(self) -> str:
        """All lines as they are drawn."""
        return "\n".join("".join(text for text, _ in runs).rstrip() for runs in self._lines)

    @property
    def _active_column(self) -> BumpColumn | None:
        return next((one for one in self.chart.columns if one.name == self.active), None)

    def _pick(self, chunk_id: str, *, is_opened: bool) -> None:
        self.picked = chunk_id
        self._draw()
        self.post_message(self.Picked(self, chunk_id, is_opened=is_opened))

    def _draw(self) -> None:
        width, height = self.scrollable_content_region.size
        if width <= 0:
            return
        self._layout = layout_of(self.chart, width, height)
        self._lines = bump_lines(self.chart, self._layout, picked=self.picked, active=self.active)
        self.virtual_size = Size(width, len(self._lines))
        column = self._active_column
        if column is not None and self.picked in column.rows:
            line = self._layout.line_of(column.rows.index(self.picked))
            # The line above it too: it lies under the titles, which stay.
            self.scroll_to_region(Region(0, line, 1, 2), animate=False, force=True)
        self.refresh()

    def _style_of(self, kind: str) -> Style:
        return self.get_component_rich_style(f"bump--{kind}", partial=True)
