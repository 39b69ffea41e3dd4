"""All kinds of warnings with their counts, to choose one to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_notes import OTHER_SYMBOL, SYMBOLS
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

ALL = ""
"""What is given back for all chunks, whatever is said about them."""


@dataclass(frozen=True, slots=True)
class WarningKind:
    """One line."""

    kind: str
    """Empty for all chunks."""
    n_chunks: int
    rule: str


class WarningList(VirtualList):
    """Symbol, number of chunks, kind, rule."""

    BINDING_GROUP_TITLE = "Warnings"

    def __init__(self, kinds: Iterable[WarningKind], chosen: str) -> None:
        super().__init__()
        self.kinds = tuple(kinds)
        self._first = next((i for i, one in enumerate(self.kinds) if one.kind == chosen), 0)

    def on_mount(self) -> None:
        """Show the rows."""
        self.set_n_rows(len(self.kinds), cursor=self._first)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One kind."""
        one = self.kinds[row]
        symbol = SYMBOLS.get(one.kind, OTHER_SYMBOL) if one.kind else " "
        yield (
            fmt.clip(f"{symbol} {one.n_chunks:>7,} ", width),
            ("virtual-list--warning" if one.kind and one.n_chunks else "virtual-list--dim"),
        )
        left = max(0, width - 10)
        yield fmt.fit(one.kind or "all chunks", min(19, left)) + " ", "virtual-list--strong"
        yield fmt.clip(one.rule, max(0, left - 20)), "virtual-list--dim"


class WarningsScreen(ModalScreen[str]):
    """Enter gives a kind back (`ALL` for all chunks), escape nothing."""

    DEFAULT_CSS = """
    WarningsScreen {
        align: center middle;
        & > Vertical {
            width: 90%;
            height: 80%;
            max-width: 130;
            max-height: 28;
            min-width: 10;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        & #rule { height: auto; max-height: 4; min-width: 4; border-top: solid $panel; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,v", "close", "Close", id="warnings.close"),
    ]

    def __init__(
        self, counts: Mapping[str, int], rules: Mapping[str, str], n_all: int, *, chosen: str
    ) -> None:
        """Make the screen.

        Args:
            counts: Chunks of each kind that was found.
            rules: All kinds there are, with their rules.
            n_all: Chunks of the index.
            chosen: Where the cursor stands first.
        """
        super().__init__()
        names = sorted(rules, key=lambda kind: -counts.get(kind, 0))
        self._kinds = [
            WarningKind(ALL, n_all, ""),
            *(WarningKind(kind, counts.get(kind, 0), rules[kind]) for kind in names),
        ]
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """The list, and the whole rule of the line under the cursor."""
        with Vertical() as frame:
            frame.border_title = "Warnings"
            frame.border_subtitle = "enter: show its chunks   esc: close"
            yield WarningList(self._kinds, self._chosen)
            yield Static(id="rule", markup=False)

    @on(VirtualList.CursorMoved)
    def _show_rule(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        one = self._kinds[event.row]
        rule = f"{one.kind}: {one.rule}" if one.kind else "All chunks, whatever is said of them."
        self.query_one("#rule", Static).update(fmt.content(rule))

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        if self.is_current:  # a second enter may come while the screen is closing
            self.dismiss(self._kinds[event.row].kind)

    def action_close(self) -> None:
        """Close without a choice."""
        if self.is_current:
            self.dismiss()
