"""The app: one folder, its index, its settings, and the modes that look at them.

Until the first frame is on screen nothing is imported but Textual and light modules of ours;
settings, engine and models come in a thread that is started when the app is ready.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import Worker, WorkerState

from rag_tui.tui import format as fmt
from rag_tui.tui.keys import bindings, checked_keymap, defaults_of
from rag_tui.tui.messages import IndexChanged, JobFailed, JobProgress, SessionReady
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.themes import usable_theme
from rag_tui.tui.widgets.status_line import CorpusStatus, Phase, status_of

if TYPE_CHECKING:
    from textual.command import Provider

    from rag_tui.engine.events import Progress, StageError
    from rag_tui.engine.index import Index
    from rag_tui.tui.backend import Backend, Session
    from rag_tui.tui.labels import LabelDesk

LONG_TOAST_S = 12
FRAME_S = 0.01
"""The thread that writes to the terminal gets this head start over imports."""
LEAVE_AGAIN_S = 2.0
"""So soon the key that leaves has to be pressed again."""
MIN_WIDTH = 40
MIN_HEIGHT = 10
"""Below this size a notice stands in front of everything."""


def _commands() -> type[Provider]:
    from rag_tui.tui.commands import WorkbenchCommands

    return WorkbenchCommands


def _label_commands() -> type[Provider]:
    from rag_tui.tui.label_commands import LabelCommands

    return LabelCommands


def _chunks_screen() -> Screen[Any]:
    from rag_tui.tui.screens.chunks import ChunksScreen

    return ChunksScreen()


def _evaluate_screen() -> Screen[Any]:
    from rag_tui.tui.screens.evaluate import EvaluateScreen

    return EvaluateScreen()


def _corpus_commands() -> type[Provider]:
    from rag_tui.tui.palette import CorpusCommands

    return CorpusCommands


class RagTuiApp(App[None]):
    """The workbench for one folder.

    Args:
        folder: The corpus: a folder, or one file.
        overrides: Settings from the command line, by dotted name.
        backend: The engine's functions; another one for tests.
        question: Asked as soon as there is an index.
    """

    TITLE = "rag-tui"
    CSS_PATH = Path(__file__).with_name("base.tcss")
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        "search": SearchScreen,
        "chunks": _chunks_screen,
        "evaluate": _evaluate_screen,
    }
    DEFAULT_MODE = "search"
    COMMANDS = App.COMMANDS | {_commands, _label_commands, _corpus_commands}
    BINDINGS = bindings("app")
    BINDING_GROUP_TITLE = "Everywhere"

    index: reactive[Index | None] = reactive(None)
    """The index that is searched; screens watch it."""
    status: reactive[CorpusStatus] = reactive(CorpusStatus(""))
    progress: reactive[Progress | None] = reactive(None)
    """The newest report of the job that is running, None when there is none."""

    def __init__(
        self,
        folder: Path,
        *,
        overrides: Mapping[str, object] | None = None,
        backend: Backend | None = None,
        question: str = "",
    ) -> None:
        super().__init__()
        self.folder = folder
        self.question = question
        self.session: Session | None = None
        self.key_problems: tuple[str, ...] = ()
        self.keys: Mapping[str, str] = {}
        self.label_desk: LabelDesk | None = None
        self._backend = backend
        self._overrides = dict(overrides or {})
        self._clashes_told: set[str] = set()
        self._leave_asked_at = -LEAVE_AGAIN_S
        self.set_reactive(RagTuiApp.status, CorpusStatus(folder.resolve().name or str(folder)))

    @property
    def backend(self) -> Backend:
        """The engine's functions."""
        if self._backend is None:
            from rag_tui.tui.backend import Backend

            self._backend = Backend()
        return self._backend

    # -- life ------------------------------------------------------------------------------

    def on_ready(self) -> None:
        """The first frame is made; only when it is also written is it time for anything heavy."""
        self.set_timer(FRAME_S, self._begin)

    async def _begin(self) -> None:
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        self._leave_on_signals()
        self.theme_changed_signal.subscribe(self, self._keep_readable)
        if isinstance(screen := self._search_screen(), SearchScreen):
            await screen.complete()
        self._start_index(rebuild=False)

    def on_resize(self, event: events.Resize) -> None:
        """Below the smallest usable size a notice stands in front of everything."""
        is_too_small = event.size.width < MIN_WIDTH or event.size.height < MIN_HEIGHT
        if is_too_small and not self._has_notice:
            from rag_tui.tui.screens.too_small import TooSmallScreen

            self.push_screen(TooSmallScreen(MIN_WIDTH, MIN_HEIGHT))
        elif not is_too_small and self._has_notice:
            # A notice that lies under a dialog goes when it comes up again.
            self.pop_screen()

    @property
    def _has_notice(self) -> bool:
        return self.screen.has_class("-too-small")

    # -- the indexing job ------------------------------------------------------------------

    def _start_index(self, *, rebuild: bool) -> None:
        from rag_tui.tui.jobs import in_thread, run_index, start

        phase: Phase = "opening" if self.index is None else "indexing"
        self.status = replace(self.status, phase=phase, message="", hint="")
        work = partial(
            run_index,
            self.backend,
            self.folder,
            self._overrides,
            self.session,
            rebuild=rebuild,
            post=self.post_message,
        )
        start(self, lambda: in_thread(lambda cancel: work(cancel=cancel), "indexing"), "indexing")

    def cancel_index(self) -> bool:
        """Stop the indexing job; the index there was stays. Returns whether one was running."""
        if not self.status.is_busy or not self.workers.cancel_group(self, "indexing"):
            return False
        self.progress = None
        self._set_phase("not refreshed", "Indexing was cancelled.", "Press ctrl+r to go on.")
        self.warn("Indexing was cancelled. Nothing is lost: ctrl+r goes on.")
        return True

    @on(SessionReady)
    def _take_session(self, event: SessionReady) -> None:
        self.session = event.session
        ui = event.session.settings.ui
        theme, problem = usable_theme(ui.theme, self.available_themes, no_color=_no_color())
        self.theme = theme
        self.warn(problem)
        self._apply_keys(ui.keys)
        if isinstance(screen := self._search_screen(), SearchScreen):
            screen.take_session(event.session)

    @on(IndexChanged)
    def _take_index(self, event: IndexChanged) -> None:
        phase: Phase = "indexing"
        if event.is_final:
            phase = "fresh" if event.index.vectors is not None else "keyword only"
            self.progress = None
        elif event.index.vectors is None:
            phase = "embedding"
        self.status = status_of(event.index, self.status.folder, phase)
        self.index = event.index
        for note in event.notes:
            self.tell(note)

    @on(JobProgress)
    def _take_progress(self, event: JobProgress) -> None:
        if self.status.phase == "opening":
            self._set_phase("indexing")
        self.progress = event.progress

    @on(JobFailed)
    def _take_failure(self, event: JobFailed) -> None:
        self.progress = None
        phase: Phase = "failed" if self.index is None else "not refreshed"
        self._set_phase(phase, event.error.message, event.error.hint)
        if not event.is_expected:
            self.show_failure("Indexing failed", event.error)
        elif self.index is not None:
            self.warn(f"{event.error.message}\n{event.error.hint}")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the app dies unseen."""
        self.report_worker(event)

    def _set_phase(self, phase: Phase, message: str = "", hint: str = "") -> None:
        self.status = replace(self.status, phase=phase, message=message, hint=hint)

    # -- actions ---------------------------------------------------------------------------

    async def action_show_mode(self, mode: str) -> None:
        """Go to another mode."""
        if self.current_mode != mode and not self._has_notice:
            await self.switch_mode(mode)

    def action_reindex(self) -> None:
        """Index what has changed, or try again after a failure."""
        if self.session is not None:
            self.session.models.forget()
        self._start_index(rebuild=False)

    def reindex_with(self, overrides: Mapping[str, object]) -> None:
        """Index with other settings, by dotted name, from now on until the app is left.

        Loaded models stay, and so do cached embeddings.

        Raises:
            UsageError: When the settings make no sense; then nothing has changed.
        """
        merged = {**self._overrides, **overrides}
        settings = self.backend.load_settings(self.folder, merged)
        self._overrides = merged
        if self.session is not None:
            self.session = replace(self.session, settings=settings)
        self._start_index(rebuild=False)

    def change_settings(self, overrides: Mapping[str, object]) -> None:
        """Use other settings, by dotted name, until the app is left; nothing is indexed.

        Raises:
            UsageError: When the settings make no sense; then nothing has changed.
        """
        merged = {**self._overrides, **overrides}
        settings = self.backend.load_settings(self.folder, merged)
        self._overrides = merged
        if self.session is not None:
            self.session = replace(self.session, settings=settings)

    def action_rebuild(self) -> None:
        """Index from scratch."""
        self._start_index(rebuild=True)

    def action_command_palette(self) -> None:
        """Show the palette, unless the terminal is too small for anything."""
        if not self._has_notice:
            super().action_command_palette()

    async def action_quit(self) -> None:
        """Leave at once."""
        self.exit()

    def action_leave(self) -> None:
        """Leave when asked twice: a stray letter must not end a session."""
        now = monotonic()
        if now - self._leave_asked_at < LEAVE_AGAIN_S:
            self.exit()
            return
        self._leave_asked_at = now
        self.notify("Press the key again to leave (ctrl+q leaves at once).", markup=False)

    def action_help(self) -> None:
        """Show all keys."""
        from rag_tui.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.keys))

    # -- for the screens -------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """A toast."""
        if text.strip():
            self.notify(fmt.display(text.strip(), newlines=True), markup=False)

    def warn(self, text: str) -> None:
        """A toast about something that needs attention."""
        if text.strip():
            self.notify(
                fmt.display(text.strip(), newlines=True),
                severity="warning",
                timeout=LONG_TOAST_S,
                markup=False,
            )

    def report_worker(self, event: Worker.StateChanged) -> None:
        """Show and log the error of a worker that ended with one."""
        from rag_tui.engine.events import StageError
        from rag_tui.tui.jobs import log

        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            log.error("worker %s failed", event.worker.name, exc_info=error)
            self.progress = None
            self.show_failure(f"{event.worker.name} failed", StageError.from_exception(error))

    def show_failure(self, title: str, error: StageError) -> None:
        """A dialog about a failure that nobody expected."""
        from rag_tui.logfile import log_path
        from rag_tui.tui.screens.failure import FailureScreen

        where = f"The traceback is in {log_path()}." if log_path() else ""
        hint = "\n".join(part for part in (error.hint, where) if part)
        self.push_screen(FailureScreen(title, error.message, hint))

    def show_in_chunks(
        self, chunk_id: str, query_terms: frozenset[str], *, where: str = ""
    ) -> None:
        """Go to a chunk among all chunks, or among those that a filter allows."""

        async def go() -> None:
            from rag_tui.tui.screens.chunks import ChunksScreen

            await self.switch_mode("chunks")
            if isinstance(self.screen, ChunksScreen):
                self.screen.show_chunk(chunk_id, query_terms=query_terms, where=where)

        self.call_later(go)

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: DOMNode) -> None:
        """Two bindings want one key; said once."""
        for binding in clashed_bindings:
            name = f"{binding.id or binding.action}: {binding.key}"
            if name not in self._clashes_told:
                self._clashes_told.add(name)
                self.warn(f"Key clash in ui.keys: {name} is used twice.")

    # -- helpers ---------------------------------------------------------------------------

    def _leave_on_signals(self) -> None:
        """A polite kill, or a terminal that goes away, still restores the terminal."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                # not on Windows, and not when the app is not in the main thread
                with suppress(NotImplementedError, RuntimeError, ValueError):
                    leave = partial(self.exit, return_code=128 + number)
                    loop.add_signal_handler(number, leave)

    @property
    def search_screen(self) -> Screen[Any] | None:
        """The Search screen, wherever the user is; None before it was made."""
        return self._search_screen()

    def _search_screen(self) -> Screen[Any] | None:
        stack = self._screen_stacks.get("search", [])
        return stack[0] if stack else None

    def _apply_keys(self, wanted: Mapping[str, str]) -> None:
        if not wanted:
            return
        from rag_tui.tui.screens.answer_keys import answer_keys
        from rag_tui.tui.screens.chunk_keys import chunk_keys
        from rag_tui.tui.screens.evaluate_keys import evaluate_keys
        from rag_tui.tui.screens.help import HelpScreen
        from rag_tui.tui.screens.history_keys import history_keys
        from rag_tui.tui.screens.lab_keys import lab_keys
        from rag_tui.tui.screens.label_keys import label_keys
        from rag_tui.tui.screens.passage import passage_keys

        others = defaults_of(
            (
                *(*answer_keys(), *chunk_keys(), *evaluate_keys(), *lab_keys(), *label_keys()),
                *(*history_keys(), *passage_keys(), *HelpScreen.BINDINGS),
            )
        )
        self.keys, self.key_problems = checked_keymap(wanted, others)
        self.set_keymap(dict(self.keys))
        self.warn("\n".join(self.key_problems))

    def _keep_readable(self, theme: Theme) -> None:
        name, problem = usable_theme(theme.name, self.available_themes, no_color=_no_color())
        if name != theme.name:
            self.theme = name
            self.warn(problem)


def _no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))
