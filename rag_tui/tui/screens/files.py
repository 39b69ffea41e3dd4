"""What became of every file that was looked at, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.engine.types import FileReport, FileState
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

SYMBOLS: dict[FileState, str] = {"indexed": "✓", "partly": "◐", "skipped": "–", "failed": "✗"}

_TROUBLE_FIRST: tuple[FileState, ...] = ("failed", "partly", "skipped", "indexed")


class FileList(VirtualList):
    """The reports, those with trouble first."""

    BINDING_GROUP_TITLE = "Files"

    def __init__(self, reports: Sequence[FileReport]) -> None:
        super().__init__()
        order = _TROUBLE_FIRST.index
        self.reports = sorted(reports, key=lambda report: order(report.state))
        self.empty_note = "No file was looked at."

    def on_mount(self) -> None:
        """Show the rows."""
        self.set_n_rows(len(self.reports))

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Symbol, path, then the reason or the number of chunks."""
        report = self.reports[row]
        in_trouble = report.state != "indexed"
        yield f"{SYMBOLS[report.state]} ", "virtual-list--warning" if in_trouble else ""
        note = report.reason or fmt.count(report.n_chunks, "chunk")
        room = max(0, width - 2)
        path_room = min(60, max(room // 2, room - len(note) - 2))
        yield fmt.fit(report.path, path_room, keep_end=True), ""
        yield "  ", ""
        yield fmt.clip(fmt.one_line(note[:500]), room - path_room - 2), "virtual-list--dim"


class FilesScreen(ModalScreen[str]):
    """A list of all files; enter gives the path of one back, escape nothing."""

    DEFAULT_CSS = """
    FilesScreen {
        align: center middle;
        & > Vertical {
            width: 90%;
            height: 80%;
            max-width: 130;
            min-width: 10;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        & #report { height: auto; max-height: 8; min-width: 4; border-top: solid $panel; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f", "close", "Close", id="files.close"),
    ]

    def __init__(self, reports: Sequence[FileReport]) -> None:
        super().__init__()
        self._reports = reports

    def compose(self) -> ComposeResult:
        """The list, and the whole report of the file under the cursor."""
        with Vertical() as frame:
            frame.border_title = fmt.content(self._title())
            frame.border_subtitle = "enter: show its chunks   esc: close"
            yield FileList(self._reports)
            yield Static(id="report", markup=False)

    @on(VirtualList.CursorMoved)
    def _show_report(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        report = self.query_one(FileList).reports[event.row]
        lines = [
            f"{SYMBOLS[report.state]} {report.state}: {fmt.display(report.path)}",
            fmt.display(report.reason, newlines=True) or fmt.count(report.n_chunks, "chunk"),
        ]
        self.query_one("#report", Static).update(fmt.content("\n".join(lines), newlines=True))

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        if self.is_current:  # a second enter may come while the screen is closing
            self.dismiss(self.query_one(FileList).reports[event.row].path)

    def action_close(self) -> None:
        """Close without a choice."""
        if self.is_current:
            self.dismiss()

    def _title(self) -> str:
        states = [report.state for report in self._reports]
        counts = [f"{SYMBOLS[s]} {states.count(s):,} {s}" for s in SYMBOLS if s in states]
        return " · ".join(["Files", *counts])
