"""One ranked list: rows, where the selected chunk stands, or why there is no list.

Drawn line by line instead of with a table: an error or a note wraps at any width, the columns
follow the width, and filling it costs nothing that grows with the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rag_tui.tui import format as fmt
from rag_tui.tui.keys import bindings

if TYPE_CHECKING:
    from rag_tui.engine.types import Method

TITLES: dict[Method, str] = {
    "vector": "VECTOR",
    "bm25": "BM25",
    "hybrid": "HYBRID",
    "reranked": "RERANKED",
}
METHODS = tuple(TITLES)
"""As in the engine's types, which the first frame does without."""

IN_ONE_ROW = 4
"""More columns than these are scrolled sideways."""

SHORT_BADGE = 3
"""Cells of a badge that always has room behind the label."""

PLACE_WIDTH = 12
"""Cells that a file and its lines need at least to say anything."""

BAR_WIDTHS = ((44, 6), (30, 4), (0, 0))
"""From this content width on, the bar has so many cells."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One drawn row; all text is ready for display."""

    chunk_id: str
    rank: int
    score: str
    fraction: float
    """Length of the bar, 0 to 1, comparable within its own list only."""
    label: str
    badge: str = ""
    """Where the row comes from: ``v3 b1`` or ``▲4``."""
    place: str = ""
    """File and lines; a second line where there is room, else behind the label."""
    moved: str = ""
    """What the last change of knobs did to the row: ``↑2``, ``↓1``, ``+new``; empty: nothing."""


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """What a list is called and which method it shows."""

    name: str
    """Unique among the columns on screen; the engine's name of the column."""
    method: Method

    @property
    def title(self) -> str:
        """As on the border; foreign text."""
        return TITLES[self.method] if self.name == self.method else self.name


DEFAULT_HEADS: tuple[ColumnHead, ...] = tuple(ColumnHead(method, method) for method in METHODS)


class ListGrid(Container):
    """Holds the lists, and once for all of them the styles that they share.

    Every component class of a widget is styled anew with the widget, before the first frame too.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "result-list--bar",
        "result-list--badge",
        "result-list--dim",
        "result-list--error",
        "result-list--gold",
    }
    DEFAULT_CSS = """
    ListGrid {
        &.-scrolled { layout: horizontal; overflow-x: auto; scrollbar-size-horizontal: 1; }
        &.-scrolled > ResultList { width: 1fr; min-width: 30; height: 1fr; }
        & > .result-list--bar { color: $primary; }
        & > .result-list--badge { color: $text-muted; }
        & > .result-list--dim { color: $text-muted; text-style: dim; }
        & > .result-list--error { color: $text-error; }
        & > .result-list--gold { color: $text-success; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="lists")
        self.heads = DEFAULT_HEADS
        self.lists = {head.name: ResultList(head) for head in self.heads}

    def compose(self) -> ComposeResult:
        """The lists of the first set of columns."""
        yield from self.lists.values()

    async def set_columns(self, heads: tuple[ColumnHead, ...]) -> bool:
        """Show other columns, from left to right; returns whether anything has changed.

        Lists that stay keep their rows; one that is called otherwise in the same place is the same.
        """
        if heads == self.heads:
            return False
        before = list(self.lists.values())
        self.lists = self._lists_for(heads)
        self.heads = heads
        kept = list(self.lists.values())
        await self.remove_children([one for one in before if one not in kept])
        await self.mount_all(one for one in kept if one not in before)
        for place, result_list in enumerate(kept):
            if self.children[place] is not result_list:
                self.move_child(result_list, before=place)
        self.set_class(len(heads) > IN_ONE_ROW, "-scrolled")
        if len(heads) < IN_ONE_ROW:
            self.styles.grid_size_columns = len(heads)
            self.styles.grid_size_rows = 1
        else:
            self.styles.clear_rule("grid_size_columns")
            self.styles.clear_rule("grid_size_rows")
        return True

    def _lists_for(self, heads: tuple[ColumnHead, ...]) -> dict[str, ResultList]:
        wanted = {head.name for head in heads}
        found: dict[str, ResultList] = {}
        for place, head in enumerate(heads):
            known = self.lists.get(head.name)
            if known is None and len(heads) == len(self.heads):
                there = self.lists[self.heads[place].name]
                known = there if there.head.name not in wanted else None
            is_same = known is not None and known.head.method == head.method
            result_list = known if known is not None and is_same else ResultList(head)
            found[head.name] = result_list
        for head, result_list in zip(heads, found.values(), strict=True):
            result_list.head = head
        return found


class ResultList(ScrollView, can_focus=True):
    """The list of one column. It is told what to show and posts what the user chose."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list"), *bindings("results")]
    BINDING_GROUP_TITLE = "Result list"
    HELP = "One column's ranking. Selecting a row marks the same chunk in all lists."
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "result-list--selected",
    }
    DEFAULT_CSS = """
    ResultList {
        min-width: 4; min-height: 3; overflow-x: hidden; overflow-y: auto;
        scrollbar-size-vertical: 1; border: round $foreground 40%;
        border-title-align: left; border-subtitle-align: left; border-subtitle-color: $text-muted;
        &:focus { border: heavy $accent; }
        & > .result-list--selected { background: $boost; text-style: bold; }
        &:focus > .result-list--selected {
            background: $block-cursor-background; color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
    }
    """

    selected: reactive[str | None] = reactive(None)
    """Chunk id that is marked here and in the other lists."""
    is_stale: reactive[bool] = reactive(False, toggle_class="-stale")
    """Whether the rows belong to an older search."""
    gold: reactive[Mapping[str, str]] = reactive(MappingProxyType({}))
    """Chunk id to the mark of what was judged: ``✓``, ``✓2``, ``✗``."""

    pinned: reactive[str] = reactive("")
    """Chunk id that stays marked, whatever is selected."""

    class Highlighted(Message):
        """The user moved to a chunk."""

        def __init__(self, result_list: ResultList, chunk_id: str) -> None:
            super().__init__()
            self.result_list = result_list
            self.chunk_id = chunk_id

        @property
        def control(self) -> ResultList:
            """The list it happened in."""
            return self.result_list

    class Opened(Highlighted):
        """The user wants to read a chunk."""

    def __init__(self, head: ColumnHead, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.head = head
        self.rows: tuple[ResultRow, ...] = ()
        self._message = ""
        self._hint = ""
        self._is_error = False
        self._lines: list[tuple[str, bool]] = []
        self.border_title = fmt.content(fmt.one_line(head.title))

    @property
    def message(self) -> str:
        """The text shown below the rows or instead of them."""
        return f"{self._message}\n{self._hint}" if self._hint else self._message

    # -- what it is told -------------------------------------------------------------------

    def show_rows(self, rows: tuple[ResultRow, ...], note: str = "") -> None:
        """Replace the rows; a row that is selected stays in view."""
        self.rows = rows
        self.is_stale = False
        self._say(note or ("" if rows else "nothing found"), "", is_error=False)
        self._keep_in_view()

    def show_message(self, message: str, hint: str = "", *, is_error: bool = False) -> None:
        """Show a text instead of rows."""
        self.rows = ()
        self.is_stale = False
        self._say(message, hint, is_error=is_error)

    def describe(self, title: str, subtitle: str, tooltip: str) -> None:
        """Set the texts on the border and the tooltip."""
        self.border_title = fmt.content(title)
        self.border_subtitle = fmt.content(subtitle)
        self.tooltip = fmt.content(tooltip, newlines=True) if tooltip else None

    # -- drawing ---------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """One row of the list, or one line of the text below it."""
        width = self.scrollable_content_region.width
        base = self.rich_style
        line = y + self.scroll_offset.y
        if width <= 0:
            return Strip.blank(0, base)
        row, part = divmod(line, self._row_height)
        if row < len(self.rows):
            draw = self._place_segments if part else self._row_segments
            segments = draw(self.rows[row], width, base)
        elif line - self._rows_end < len(self._lines):
            text, is_error = self._lines[line - self._rows_end]
            style = self._shared("result-list--error" if is_error else "result-list--dim")
            segments = [Segment(text, base + style)]
        else:
            segments = []
        return Strip(segments).adjust_cell_length(width, base)

    def _row_segments(self, row: ResultRow, width: int, base: Style) -> list[Segment]:
        style = base
        if row.chunk_id == self.selected:
            style = base + self.get_component_rich_style("result-list--selected")
        elif self.is_stale:
            style = base + self._shared("result-list--dim")
        is_plain = style is not base
        bar_style = style if is_plain else style + self._colour("result-list--bar")
        badge_style = style if is_plain else style + self._colour("result-list--badge")
        score_width = max(len(other.score) for other in self.rows)
        badge_width = 0 if self._has_low_badges else self._badge_width
        bar_width = next(cells for least, cells in BAR_WIDTHS if width >= least)
        mark = "●" if row.chunk_id == self.selected else " "
        pin = "◆" if row.chunk_id == self.pinned else " "
        head = f"{row.rank:>2}{pin}{mark}{row.score:>{score_width}} "
        bar = fmt.bar(row.fraction, bar_width) + " " if bar_width else ""
        tail = f" {row.badge:<{badge_width}}" if badge_width else ""
        moved_width = max((len(other.moved) for other in self.rows), default=0)
        moved = f" {row.moved:<{moved_width}}" if moved_width else ""
        taken = cell_len(head) + self._gold_width + cell_len(bar) + cell_len(moved + tail)
        rest = max(0, width - taken)
        place = ""
        if self._row_height == 1 and (room := rest - cell_len(row.label) - 2) >= PLACE_WIDTH:
            place = "  " + fmt.clip(row.place, room, keep_end=True)
        return [
            Segment(head, style),
            *self._gold_segments(row, style),
            Segment(bar, bar_style),
            Segment(fmt.fit(row.label, rest - cell_len(place)), style),
            Segment(place, badge_style),
            Segment(moved, bar_style),
            Segment(tail, badge_style),
        ]

    def _place_segments(self, row: ResultRow, width: int, base: Style) -> list[Segment]:
        """The second line of a row: where its chunk stands in the files."""
        style = base + self._colour("result-list--badge")
        if row.chunk_id == self.selected:
            style = base + self.get_component_rich_style("result-list--selected")
        elif self.is_stale:
            style = base + self._shared("result-list--dim")
        badge = f"{row.badge:<{self._badge_width}}  " if self._has_low_badges else ""
        head = fmt.fit(" " * 5 + badge, min(5 + cell_len(badge), width))
        text = head + fmt.fit(row.place, width - cell_len(head), keep_end=True)
        return [Segment(text, style)]

    @property
    def _gold_width(self) -> int:
        """Cells of the column of judgements; none where no row is judged."""
        marks = (self.gold.get(row.chunk_id, "") for row in self.rows)
        return max((len(mark) + 1 for mark in marks if mark), default=0)

    def _gold_segments(self, row: ResultRow, style: Style) -> list[Segment]:
        mark = self.gold.get(row.chunk_id, "")
        colour = "result-list--error" if mark.startswith("✗") else "result-list--gold"
        is_plain = row.chunk_id == self.selected or self.is_stale
        width = self._gold_width
        return [Segment(f"{mark:<{width}}", style if is_plain else style + self._colour(colour))]

    @property
    def _row_height(self) -> int:
        """Lines of a row: two when all rows and the text below them have room for that."""
        needed = 2 * len(self.rows) + len(self._lines)
        return 2 if self.rows and needed <= self.size.height else 1

    @property
    def _badge_width(self) -> int:
        return max((len(row.badge) for row in self.rows), default=0)

    @property
    def _has_low_badges(self) -> bool:
        """Whether long badges stand on the second line, where they cost the label nothing."""
        return self._row_height == 2 and self._badge_width > SHORT_BADGE

    @property
    def _rows_end(self) -> int:
        return self._row_height * len(self.rows)

    def _shared(self, component: str) -> Style:
        """A style that all lists share."""
        holder = self.parent
        return (
            holder.get_component_rich_style(component) if isinstance(holder, ListGrid) else Style()
        )

    def _colour(self, component: str) -> Style:
        """A component's text colour alone, so that the row's background stays."""
        return Style(color=self._shared(component).color)

    # -- events and actions ------------------------------------------------------------------

    def on_resize(self) -> None:
        """Texts are wrapped to the new width."""
        self._wrap()
        self._keep_in_view()

    def on_click(self, event: events.Click) -> None:
        """Select the row under the pointer; a double click opens it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        line = (offset.y + self.scroll_offset.y) // self._row_height
        if 0 <= line < len(self.rows):
            self._choose(line)
            if event.chain == 2:
                self.action_open()

    def watch_selected(self) -> None:
        """The marked row stays in view."""
        self._keep_in_view()

    def action_move(self, delta: int) -> None:
        """Select the row so many rows further on."""
        here = self._selected_line()
        if here is None:
            here = -1 if delta > 0 else len(self.rows)
        self._choose(here + delta)

    def action_page(self, direction: int) -> None:
        """Select the row a page further on."""
        self.action_move(direction * max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Select the first row."""
        self._choose(0)

    def action_last(self) -> None:
        """Select the last row."""
        self._choose(len(self.rows) - 1)

    def action_open(self) -> None:
        """Ask for the text of the selected row."""
        line = self._selected_line()
        if line is not None:
            self.post_message(self.Opened(self, self.rows[line].chunk_id))

    # -- helpers -----------------------------------------------------------------------------

    def _selected_line(self) -> int | None:
        found = (i for i, row in enumerate(self.rows) if row.chunk_id == self.selected)
        return next(found, None)

    def _choose(self, line: int) -> None:
        if not self.rows:
            return
        row = self.rows[min(max(line, 0), len(self.rows) - 1)]
        self.selected = row.chunk_id
        self.post_message(self.Highlighted(self, row.chunk_id))

    def _keep_in_view(self) -> None:
        line = self._selected_line()
        if line is not None and self.size.height > 0:
            height = self._row_height
            self.scroll_to_region(Region(0, line * height, 1, height), animate=False, force=True)

    def _say(self, message: str, hint: str, *, is_error: bool) -> None:
        self._message, self._hint, self._is_error = message, hint, is_error
        self._wrap()

    def _wrap(self) -> None:
        width = self.size.width
        if width <= 0:
            return  # not laid out yet: the first resize wraps
        shown = [("✗ " if self._is_error else "") + self._message] if self._message else []
        shown += [f"→ {self._hint}"] if self._hint else []
        self._lines = self._wrapped(shown, width)
        if self._rows_end + len(self._lines) > self.size.height:
            width = max(1, width - self.styles.scrollbar_size_vertical)
            self._lines = self._wrapped(shown, width)
        self.virtual_size = Size(width, self._rows_end + len(self._lines))
        self.refresh()

    def _wrapped(self, shown: list[str], width: int) -> list[tuple[str, bool]]:
        return [
            (line.plain.rstrip(), self._is_error and i == 0)
            for i, text in enumerate(shown)
            for line in Text(fmt.display(text, newlines=True)).wrap(self.app.console, width)
        ]
