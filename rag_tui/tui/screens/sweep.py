"""Which settings are best on my questions, and what is that worth on others?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.worker import Worker

from rag_tui.display import without_hidden
from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.report_sweep import verdict
from rag_tui.engine.evaluation.sweep_space import Setting, parse_space
from rag_tui.engine.evaluation.sweep_tries import check_sweep
from rag_tui.engine.evaluation.sweep_types import SweepProgress, SweepResult
from rag_tui.tui import format as fmt
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.sweep_jobs import SweepAdvanced, SweepFailed, SweepFinished, SweepJob, run_sweep
from rag_tui.tui.widgets.setting_list import SettingList
from rag_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.evaluation_jobs import Labelled

EXAMPLE = "bm25.k1=0.6,0.9,1.5 chunking.size=128,256"
HINT = (
    "Knobs and their values, as in bm25.k1=0.6,0.9 chunking.size=128,256 bm25.analyzer=words,"
    "english embedder=…; random=20 tries only so many. Enter in a line begins, tab changes lines."
)
_NUMBERS = ("random", "seed")


@dataclass(frozen=True, slots=True)
class SweepChoice:
    """The setting that is to be used."""

    setting: Setting
    column: str
    is_written: bool
    """Whether it goes into the folder's settings file too."""


class SweepScreen(ModalScreen[SweepChoice]):
    """Enter on a setting gives it back to be used, escape nothing.

    Args:
        labelled: The questions.
        request: The settings in force, with the columns.
        column: The column that is measured at first.
        metric: What is best at first.
    """

    DEFAULT_CSS = """
    SweepScreen {
        align: center middle;
        & > Vertical {
            width: 96%; height: 90%; max-width: 150; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & Static { height: auto; min-width: 4; }
        & Horizontal { height: auto; }
        & Input { width: 1fr; min-width: 8; }
        & .sweep--name { width: auto; color: $text-muted; }
        & #sweep-hint { color: $text-muted; max-height: 3; }
        & #sweep-line { max-height: 4; }
        & #sweep-verdict { color: $text-muted; border-top: solid $panel; max-height: 9; }
        & SettingList { min-height: 3; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "write", "Use and write into rag-tui.toml", id="sweep.write"),
        Binding("y", "copy", "Copy the report", id="sweep.copy"),
        Binding("escape", "close", "Stop or close", id="sweep.close"),
    ]
    HELP = """\
Every combination of the values is measured on the questions; finished ones are kept.
The best of many settings looks better than it is: the held-out figure is what choosing gains on
questions that had no part in the choice. front: nothing is better, faster and shorter at once."""

    def __init__(
        self, labelled: Labelled, request: SearchRequest, *, column: str, metric: str
    ) -> None:
        super().__init__()
        self._labelled, self._request = labelled, request
        self._column, self._metric = column, metric
        self._list = SettingList()
        self._is_running = self._is_stopping = False
        self.progress: SweepProgress | None = None

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def result(self) -> SweepResult | None:
        """What came of the last sweep."""
        return self._list.result

    def compose(self) -> ComposeResult:
        """What to try, how far it is, the settings, what may be believed."""
        with Vertical() as frame:
            frame.border_title = "Sweep"
            frame.border_subtitle = "enter: begin / use this   w: use and write   esc: stop, close"
            with Horizontal():
                yield Static("try    ", classes="sweep--name")
                yield Input(EXAMPLE, id="vary", select_on_focus=False, compact=True)
            with Horizontal():
                yield Static("column ", classes="sweep--name")
                yield Input(without_hidden(self._column), id="sweep-column", compact=True)
                yield Static(" metric ", classes="sweep--name")
                yield Input(self._metric, id="sweep-metric", compact=True)
            yield Static(fmt.content(HINT), id="sweep-hint", markup=False)
            yield Static(id="sweep-line", markup=False)
            yield self._list
            yield Static(id="sweep-verdict", markup=False)

    def on_mount(self) -> None:
        """Typing goes into the values."""
        self.query_one("#vary", Input).focus()
        self._say(f"Column and metric below; {self._labelled.questions.name} is asked.")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    # -- running -----------------------------------------------------------------------------

    @on(Input.Submitted)
    def _begin(self, event: Input.Submitted) -> None:
        event.stop()
        app = self.workbench
        if self._is_running or app.session is None:
            return
        try:
            job = self._job()
            n = check_sweep(
                job.space, self._request, app.session.settings.engine,
                metric=job.metric, column=job.column,
            )  # fmt: skip
        except RagTuiError as error:
            self._say(f"✗ {error.message}\n{error.hint}".strip())
            return
        self._is_running, self._is_stopping = True, False
        self._say(f"{fmt.count(n, 'setting')}, those in force among them …")
        work = partial(run_sweep, app.backend, app.session, app.folder, job, post=self.post_message)
        start(self, lambda: in_thread(lambda cancel: work(cancel=cancel), "sweep"), "sweep")

    def _job(self) -> SweepJob:
        texts = self.query_one("#vary", Input).value.split()
        numbers = {"random": "", "seed": "0"}
        for text in texts:
            name, _, value = text.partition("=")
            if name in _NUMBERS:
                numbers[name] = value
        space = parse_space(
            [text for text in texts if text.partition("=")[0] not in _NUMBERS],
            n_random=_whole(numbers["random"]) if numbers["random"] else None,
            seed=_whole(numbers["seed"]),
        )
        return SweepJob(
            space,
            self.query_one("#sweep-column", Input).value.strip(),
            self.query_one("#sweep-metric", Input).value.strip(),
            self._labelled,
            self._request,
        )

    @on(SweepAdvanced)
    def _take_progress(self, event: SweepAdvanced) -> None:
        self.progress = now = event.progress
        if self._is_stopping or not self._is_running:
            return
        part = f" {now.part_done:,}/{now.part_total:,}" if now.part_total else ""
        known = f", {now.n_known:,} known" if now.n_known else ""
        self._say(
            f"{now.done:,} of {now.total:,} settings{known} · {now.phase}{part} "
            f"{now.setting} · esc stops"
        )

    @on(SweepFinished)
    def _take_result(self, event: SweepFinished) -> None:
        self._is_running = self._is_stopping = False
        result = event.result
        self._list.show(result)
        reasons = [f"{one.setting.name}: {one.reason}" for one in result.settings if one.reason]
        left = [*reasons, *result.notes]
        told = f"{len(result.settings):,} settings measured. Enter on one uses it."
        if not result.is_whole:
            told = f"Stopped after {told} What is finished is kept: enter above goes on."
        self._say("\n".join([told, *left[:2], *([f"and {len(left) - 2} more"] * (len(left) > 2))]))
        self._verdict(verdict(result))
        if self._list.n_rows:
            self._list.focus()

    @on(SweepFailed)
    def _take_failure(self, event: SweepFailed) -> None:
        self._is_running = self._is_stopping = False
        self._say(f"✗ {event.error.message}\n{event.error.hint}".strip())

    # -- choosing ----------------------------------------------------------------------------

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        self._use(is_written=False)

    @on(VirtualList.CursorMoved)
    def _stop_message(self, event: VirtualList.CursorMoved) -> None:
        event.stop()

    def action_write(self) -> None:
        """Use the setting under the cursor and write it into the folder's settings."""
        self._use(is_written=True)

    def action_copy(self) -> None:
        """Copy the report as Markdown."""
        if self.result is None:
            self._say("Nothing is measured yet: enter in a line above begins.")
            return
        from rag_tui.engine.evaluation.report import sweep_markdown

        self.app.copy_to_clipboard(sweep_markdown(self.result))
        self.workbench.tell("Copied the report as Markdown, with the terminal (OSC 52).")

    def action_close(self) -> None:
        """Stop what is running, else close."""
        if self._is_running:
            self._is_stopping = True
            self.workers.cancel_group(self, "sweep")
            self._say("stopping; what is finished is kept …")
        elif self.is_current:
            self.dismiss()

    def _use(self, *, is_written: bool) -> None:
        result, row = self.result, self._list.cursor
        if result is None or self._is_running or not 0 <= row < len(self._list.order):
            self._say("Nothing can be used yet: enter in a line above begins.")
            return
        one = result.settings[self._list.order[row]]
        if self.is_current:
            self.dismiss(SweepChoice(one.setting, result.column, is_written))

    def _say(self, text: str) -> None:
        self.query_one("#sweep-line", Static).update(fmt.content(text[:2_000], newlines=True))

    def _verdict(self, lines: Iterable[str]) -> None:
        text = "\n".join(line[:500] for line in lines)
        self.query_one("#sweep-verdict", Static).update(fmt.content(text, newlines=True))


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"random and seed must be whole numbers (got {text!r}).", "Such as random=20."
        ) from None
