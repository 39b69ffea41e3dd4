"""The kept runs of a corpus: look at one, compare, rename, export, delete; import another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.evaluation.run_store import RunHead, RunList, RunStore, check_name
from rag_tui.engine.evaluation.types import EvalRun
from rag_tui.tui import format as fmt
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.screens.evaluate_asking import AskScreen, SureScreen
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

if TYPE_CHECKING:
    from rag_tui.tui.app import RagTuiApp

RunAction = Literal["open", "compare", "baseline", "export"]


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What is to be done with which run."""

    action: RunAction
    run: EvalRun


class RunRows(VirtualList):
    """Newest first: name, time, questions, index, columns."""

    BINDING_GROUP_TITLE = "Runs"

    def __init__(self, shown: str, index_fingerprint: str) -> None:
        super().__init__(id="runs")
        self._shown, self._index = shown, index_fingerprint
        self.heads: tuple[RunHead, ...] = ()
        self.empty_note = "reading…"

    def show(self, found: RunList) -> None:
        """Show these runs; the cursor stays on its run."""
        here = self.head.name if self.head is not None else ""
        self.heads = tuple(reversed(found.runs))
        self.empty_note = "No run is kept yet: close this (esc) and press r."
        row = next((i for i, head in enumerate(self.heads) if head.name == here), 0)
        self.set_n_rows(len(self.heads), cursor=row)

    @property
    def head(self) -> RunHead | None:
        """The run under the cursor."""
        return self.heads[self.cursor] if 0 <= self.cursor < len(self.heads) else None

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One run."""
        head = self.heads[row]
        mark = "●" if head.name == self._shown else " "
        name = max(12, min(34, width // 3))
        yield f"{mark} " + fmt.fit(fmt.one_line(head.name), name), "virtual-list--strong"
        made = fmt.one_line(head.created[:16].replace("T", " "))
        yield fmt.fit(f"  {made}", 19), ""
        yield fmt.fit(f" {head.n_questions:>5} q", 9), ""
        same = head.index_fingerprint == self._index
        text = "this index" if same else "another index"
        yield fmt.fit(text, 14), "virtual-list--dim" if same else "virtual-list--warning"
        columns = fmt.one_line(", ".join(head.columns)[:500])
        yield fmt.clip(columns, max(0, width - name - 44)), "virtual-list--dim"


class RunsScreen(ModalScreen[RunChoice]):
    """Gives back a run and what to do with it.

    Args:
        store: The kept runs.
        shown: Name of the run on show, if it is kept.
        index_fingerprint: Of the index of now.
        differences: In what a run's knobs differ from those of now, in words.
    """

    DEFAULT_CSS = """
    RunsScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: 90%; max-width: 150; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & #run-detail {
            height: auto; max-height: 7; min-width: 4; color: $text-muted;
            border-top: solid $panel;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "take('compare')", "Compare with the run on show", id="runs.compare"),
        Binding("b", "take('baseline')", "Use as baseline", id="runs.baseline"),
        Binding("x", "take('export')", "Export as TREC run", id="runs.export"),
        Binding("n", "rename", "Rename", id="runs.rename"),
        Binding("d,delete", "delete", "Delete", id="runs.delete"),
        Binding("escape,q,o", "close", "Close", id="runs.close"),
    ]
    HELP = "Every whole evaluation is kept; of those without a name the newest twenty."

    def __init__(
        self,
        store: RunStore,
        *,
        shown: str,
        index_fingerprint: str,
        differences: Callable[[EvalRun], str],
    ) -> None:
        super().__init__()
        self._store = store
        self._differences = differences
        self._rows = RunRows(shown, index_fingerprint)
        self._read: dict[str, EvalRun] = {}
        self._damaged: tuple[str, ...] = ()

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    def compose(self) -> ComposeResult:
        """Runs, and the one under the cursor in words."""
        with Vertical() as frame:
            frame.border_title = "Runs"
            frame.border_subtitle = (
                "enter open  c compare  b baseline  n rename  x export  d delete"
            )
            yield self._rows
            yield Static(id="run-detail", markup=False)

    def on_mount(self) -> None:
        """Read the runs in a thread: there may be many, and large ones."""
        start(self, self._list, "runs")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    async def _list(self) -> None:
        found = await in_thread(lambda _: self._store.list(), "runs")
        self._damaged = found.damaged
        self._rows.show(found)
        if not found.runs:
            self._tell("")

    @on(VirtualList.CursorMoved)
    def _take_cursor(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        if self._rows.head is not None:
            start(self, partial(self._show_detail, self._rows.head), "run detail")

    async def _show_detail(self, head: RunHead) -> None:
        try:
            run = await self._load(head.name)
        except RagTuiError as error:
            self._tell(f"✗ {error.message}")
            return
        if self._rows.head is head:
            questions = f"{fmt.count(head.n_questions, 'question')}, {run.depth} candidates a list"
            prints = (
                f"index {run.index_fingerprint[:12]}, questions {run.questions_fingerprint[:12]}"
            )
            self._tell(f"{questions} · {prints}\n{self._differences(run)}")

    async def _load(self, name: str) -> EvalRun:
        if name not in self._read:
            self._read[name] = await in_thread(lambda _: self._store.load(name), "run")
        return self._read[name]

    def _tell(self, text: str) -> None:
        lines = [text, *(f"⚠ {one}" for one in self._damaged[:3])]
        shown = "\n".join(line for line in lines if line)
        self.query_one("#run-detail", Static).update(fmt.content(shown, newlines=True))

    @on(VirtualList.RowChosen)
    def _open(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        self.action_take("open")

    def action_take(self, action: RunAction) -> None:
        """Give back the run under the cursor."""
        if (head := self._head()) is not None:
            start(self, partial(self._take, head.name, action), "run")

    async def _take(self, name: str, action: RunAction) -> None:
        try:
            run = await self._load(name)
        except RagTuiError as error:
            self.workbench.warn(f"{error.message}\n{error.hint}")
            return
        if self.is_current:
            self.dismiss(RunChoice(action, run))

    def action_rename(self) -> None:
        """Give the run under the cursor another name."""
        if (head := self._head()) is None:
            return

        def check(name: str) -> None:
            check_name(name)
            if name != head.name:
                self._store.check_free(name)

        def rename(name: str | None) -> None:
            if name is not None and name != head.name:
                self._change(
                    lambda: self._store.rename(head.name, name), f"{head.name} is now {name}."
                )

        ask = AskScreen("Rename the run", value=head.name, hint=NAME_HINT, check=check)
        self.app.push_screen(ask, rename)

    def action_delete(self) -> None:
        """Delete the run under the cursor, if that is meant."""
        if (head := self._head()) is None:
            return

        def delete(is_sure: bool | None) -> None:
            if is_sure:
                self._change(lambda: self._store.delete(head.name), f"{head.name} is deleted.")

        question = f"Delete the run {head.name}?\nIt cannot be brought back."
        self.app.push_screen(SureScreen(question), delete)

    def action_close(self) -> None:
        """Close without a choice."""
        if self.is_current:
            self.dismiss()

    def _head(self) -> RunHead | None:
        if self._rows.head is None:
            self.workbench.warn("There is no run here yet.\nClose this with esc, then press r.")
        return self._rows.head

    def _change(self, work: Callable[[], object], told: str) -> None:
        async def change() -> None:
            try:
                await in_thread(lambda _: work(), "runs")
            except RagTuiError as error:
                self.workbench.warn(f"{error.message}\n{error.hint}")
                return
            self._read.clear()
            self.workbench.tell(told)
            await self._list()

        start(self, change, "runs")


NAME_HINT = "Up to 80 letters, digits, blanks and . _ + = -"
