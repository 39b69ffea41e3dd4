"""What is different between two searches, column by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from rag_tui.engine.errors import RagTuiError
from rag_tui.tui import format as fmt
from rag_tui.tui.history_text import Line, as_content, comparison

if TYPE_CHECKING:
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.history import HistoryEntry
    from rag_tui.tui.app import RagTuiApp

Maker = Callable[["CancelToken"], "HistoryEntry"]


class ChangesSinceScreen(ModalScreen[None]):
    """Two searches compared.

    Args:
        before: The older one.
        now: The newer one, or what makes it now; that runs in a thread and ends with the screen.
    """

    DEFAULT_CSS = """
    ChangesSinceScreen {
        align: center middle;
        & > VerticalScroll {
            width: 95%; max-width: 120; min-width: 10; height: 90%;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & Static { width: 1fr; min-width: 4; height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", id="changed.close"),
        Binding("y", "copy", "Copy", tooltip="All of it as text", id="changed.copy"),
        Binding("j", "scroll(1)", "Down", show=False, id="changed.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="changed.up"),
    ]
    BINDING_GROUP_TITLE = "What changed"

    def __init__(self, before: HistoryEntry, now: HistoryEntry | Maker) -> None:
        super().__init__()
        self._before = before
        self._now = now
        self._text = Static("asking again…", markup=False)
        self.lines: tuple[Line, ...] = ()

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    def compose(self) -> ComposeResult:
        """The text in a scrolling frame."""
        with VerticalScroll() as frame:
            frame.border_title = "What changed"
            frame.border_subtitle = "y: copy   esc: close"
            yield self._text

    def on_mount(self) -> None:
        """Compare, in a thread."""
        from rag_tui.tui.jobs import start

        self.query_one(VerticalScroll).focus()
        start(self, self._compare, "comparison")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    async def _compare(self) -> None:
        from rag_tui.engine.history import compare_entries
        from rag_tui.tui.jobs import in_thread

        before, now = self._before, self._now

        def work(cancel: CancelToken) -> tuple[Line, ...]:
            is_fresh = callable(now)
            entry = now(cancel) if callable(now) else now
            return tuple(
                comparison(before, entry, compare_entries(before, entry), is_fresh=is_fresh)
            )

        try:
            self.lines = await in_thread(work, "comparison")
        except RagTuiError as error:
            self._text.update(fmt.content(f"✗ {error.message}\n{error.hint}", newlines=True))
            return
        self._text.update(as_content(self.lines))

    def action_scroll(self, lines: int) -> None:
        """Scroll by some lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_copy(self) -> None:
        """Copy all of it."""
        if not self.lines:
            self.workbench.warn("There is nothing to copy yet.")
            return
        self.app.copy_to_clipboard("\n".join(text for text, _ in self.lines))
        self.workbench.tell("Copied what changed, with the terminal (OSC 52).")

    def action_close(self) -> None:
        """Back to the history; a search that is being made is given up."""
        if self.is_current:
            self.dismiss()
