"""Two runs side by side: the questions that were fixed, broken, or moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.engine.evaluation.compare import ChangeKind, ColumnChange, QuestionChange, RunChange
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

SYMBOLS: dict[ChangeKind, str] = {
    "fixed": "▲ fixed",
    "broken": "▼ broken",
    "better": "↑ better",
    "worse": "↓ worse",
    "moved": "~ moved",
    "unjudged": "? unjudged",
    "same": "= same",
}
COUNTED: tuple[ChangeKind, ...] = ("fixed", "broken", "better", "worse")
READ = 2_000


@dataclass(frozen=True, slots=True)
class Opened:
    """A question in a column of the later run."""

    qid: str
    text: str
    column: str
    rank: int | None


class ChangeList(VirtualList):
    """A line above each column, then its changed questions, most changed first."""

    BINDING_GROUP_TITLE = "Changes"

    def __init__(self, change: RunChange) -> None:
        super().__init__(id="changes")
        self.change = change
        self.rows: list[ColumnChange | tuple[ColumnChange, QuestionChange]] = []
        for column in change.columns:
            self.rows.append(column)
            self.rows += [(column, one) for one in column.changes if one.kind != "same"]
        self.empty_note = "The two runs have no column of the same name."

    def on_mount(self) -> None:
        """Show the rows; the cursor stands on the first change."""
        first = next((i for i, one in enumerate(self.rows) if isinstance(one, tuple)), 0)
        self.set_n_rows(len(self.rows), cursor=first)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """A column's summary, or one question."""
        one = self.rows[row]
        if isinstance(one, ColumnChange):
            yield fmt.clip(summary(one, self.change.k), width), "virtual-list--strong"
            return
        _, question = one
        style = "virtual-list--warning" if question.kind in ("broken", "worse") else ""
        yield fmt.fit(f"  {SYMBOLS[question.kind]}", 13), style
        yield fmt.fit(ranks(question), 9), "virtual-list--strong"
        rows = fmt.fit(moves(question), 20) if width >= 90 else ""
        yield rows, "virtual-list--dim"
        text = fmt.one_line(f"{question.qid[:40]}  {question.text[:READ]}")
        yield fmt.clip(text, max(0, width - 22 - len(rows))), ""


class ChangesScreen(ModalScreen[Opened]):
    """Enter gives back the question to open in Search, escape nothing."""

    DEFAULT_CSS = """
    ChangesScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: 92%; max-width: 150; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & #change-notes { height: auto; max-height: 6; min-width: 4; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", id="run_change.close"),
    ]
    HELP = """\
fixed, broken: the first evidence came into the first rows, or left them
better, worse: it moved and crossed nothing;  moved: only other rows did"""

    def __init__(self, change: RunChange) -> None:
        super().__init__()
        self._change = change
        self._list = ChangeList(change)

    def compose(self) -> ComposeResult:
        """What the runs differ in, then the questions."""
        change = self._change
        with Vertical() as frame:
            frame.border_title = fmt.content(f"{change.before} → {change.after}")
            frame.border_subtitle = "enter: open in Search   esc: close"
            lines = list(change.notes)
            if change.is_identical:
                lines.insert(0, "No change: every list of both runs is the same.")
            yield Static(
                fmt.content("\n".join(map(fmt.one_line, lines)), newlines=True),
                id="change-notes",
                markup=False,
            )
            yield self._list

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        one = self._list.rows[event.row]
        if isinstance(one, tuple) and self.is_current:
            column, question = one
            self.dismiss(Opened(question.qid, question.text, column.other_name, question.after))

    @on(VirtualList.CursorMoved)
    def _stop(self, event: VirtualList.CursorMoved) -> None:
        event.stop()

    def action_close(self) -> None:
        """Close without a choice."""
        if self.is_current:
            self.dismiss()


def summary(column: ColumnChange, k: int) -> str:
    """``hybrid: 2 fixed, 1 broken, … of 22 questions in the first 5``."""
    name = fmt.one_line(column.name[:100])
    if column.other_name != column.name:
        name += f" → {fmt.one_line(column.other_name[:100])}"
    if column.is_identical and not column.n_not_compared:
        return f"{name}: no change"
    counts = ", ".join(f"{len(column.of_kind(kind))} {kind}" for kind in COUNTED)
    n = fmt.count(len(column.changes), "question")
    alone = f"; {column.n_not_compared} in one run only" if column.n_not_compared else ""
    return f"{name}: {counts} of {n} in the first {k}{alone}"


def ranks(one: QuestionChange) -> str:
    """``– → 3``: rank of the first evidence before and after."""
    if one.kind == "unjudged":
        return ""
    before, after = ("–" if rank is None else str(rank) for rank in (one.before, one.after))
    return f"{before} → {after}"


def moves(one: QuestionChange) -> str:
    """``1 in 1 out 2 up``: what became of the first rows."""
    parts = (
        (len(one.new), "in"),
        (len(one.dropped), "out"),
        (len(one.promoted), "up"),
        (len(one.demoted), "down"),
    )
    return " ".join(f"{n} {word}" for n, word in parts if n)
