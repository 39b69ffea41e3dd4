"""Earlier searches of the corpus: ask one again, take over its settings, see what has changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static
from textual.worker import Worker

from rag_tui.engine.errors import RagTuiError
from rag_tui.tui import format as fmt
from rag_tui.tui.history_text import as_content, details, haystack
from rag_tui.tui.widgets.history_list import HistoryList
from rag_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from rag_tui.engine.history import HistoryEntry
    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.app import RagTuiApp

EMPTY = "No searches are kept yet."
EMPTY_HINT = "Close this (esc), ask something (/), and it is here."
SETTINGS_TIP = "Ask it, and take over its knobs and columns"
COMPARE_TIP = "Compare with the marked search, else with the same question asked now"
AS_WAS_TIP = "Compare with the same question asked now with the settings it had"
OFF = "New searches are not kept: history.enabled is false in the settings."


@dataclass(frozen=True, slots=True)
class HistoryChoice:
    """The search that is to be asked again."""

    entry: HistoryEntry
    takes_settings: bool = False
    """Whether with its own knobs and columns, not with those of today."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One entry with what the filter looks for in it."""

    entry: HistoryEntry
    text: str


class HistoryScreen(ModalScreen[HistoryChoice]):
    """The kept searches, newest first; gives back the one to ask again.

    Args:
        knobs: The settings of today, for asking again.
    """

    DEFAULT_CSS = """
    HistoryScreen {
        background: $background;
        & > #history-title { height: 1; min-width: 4; padding: 0 1; text-style: bold; }
        & > #history-filter { display: none; height: 1; min-width: 4; }
        &.-filtering > #history-filter { display: block; }
        & > #history-details {
            height: auto; max-height: 40%; min-width: 4; padding: 0 1; border-top: solid $panel;
        }
        & > Footer { min-width: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "settings", "As then", tooltip=SETTINGS_TIP, id="history.settings"),
        Binding("c", "compare", "Compare", tooltip=COMPARE_TIP, id="history.compare"),
        Binding("C", "compare_as_was", "Compare as then", show=False, tooltip=AS_WAS_TIP,
                id="history.compare_as_was"),
        Binding("space", "mark", "Mark", tooltip="To compare another with", id="history.mark"),
        Binding("slash", "filter", "Filter", tooltip="Words that are in it", id="history.filter"),
        Binding("e", "export", "Export", tooltip="All as JSON Lines", id="history.export"),
        Binding("D", "forget", "Delete", tooltip="All, after a question", id="history.forget"),
        Binding("escape,q", "close", "Close", id="history.close"),
    ]  # fmt: skip
    BINDING_GROUP_TITLE = "History"
    HELP = """\
Searches of this corpus that were finished, newest first. They are kept in a private file of the
cache folder, with the first rows of every list, so that c can say what is different now: what came
into each list, what left, what moved, and whether the index or the settings have changed."""
    AUTO_FOCUS = "HistoryList"

    def __init__(self, knobs: SearchRequest) -> None:
        super().__init__()
        self._knobs = knobs
        self._kept: tuple[Kept, ...] = ()
        self._n_damaged = 0
        self._is_read = False
        self._title = Static("History", id="history-title", markup=False)
        self._details = Static("", id="history-details", markup=False)
        self._filter = Input(
            placeholder="words that must be in it", id="history-filter", compact=True
        )
        self.searches = HistoryList()

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def entry(self) -> HistoryEntry | None:
        """The search under the cursor."""
        row = self.searches.cursor
        return self.searches.entries[row] if 0 <= row < len(self.searches.entries) else None

    def compose(self) -> ComposeResult:
        """Title, filter, list, the whole entry under the cursor, keys."""
        yield self._title
        yield self._filter
        yield self.searches
        yield self._details
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Read the file."""
        self._read_again()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    # -- what is shown -----------------------------------------------------------------------

    def _read_again(self) -> None:
        from rag_tui.tui.jobs import start

        start(self, self._read, "history")

    async def _read(self) -> None:
        from rag_tui.tui.jobs import in_thread

        app, session = self.workbench, self.workbench.session
        if session is None:
            return

        def work() -> tuple[tuple[Kept, ...], int]:
            found = app.backend.read_history(session.settings, app.folder)
            newest = reversed(found.entries)
            return tuple(Kept(one, haystack(one)) for one in newest), found.n_damaged

        try:
            self._kept, self._n_damaged = await in_thread(lambda _: work(), "history")
        except RagTuiError as error:
            self.searches.empty_note = "✗ no history"
            self.searches.refresh()
            self._details.update(fmt.content(f"✗ {error.message}\n{error.hint}", newlines=True))
            return
        self._is_read = True
        self.searches.marked = None
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        """Show the entries that the filter allows."""
        if not self._is_read:
            return
        words = self._filter.value.casefold().split()
        found = [one.entry for one in self._kept if all(word in one.text for word in words)]
        self.searches.entries = found
        self.searches.empty_note = "Nothing has these words in it." if self._kept else EMPTY
        self.searches.set_n_rows(len(found))
        shown = fmt.count(len(self._kept), "search", "searches")
        parts = [
            f"History · {shown if len(found) == len(self._kept) else f'{len(found):,} of {shown}'}"
        ]
        if self._n_damaged:
            parts.append(f"⚠ {fmt.count(self._n_damaged, 'line')} cannot be read")
        if self._is_off:
            parts.append("⚠ switched off")
        self._title.update(fmt.content(" · ".join(parts)))
        if not found:
            hints = [] if self._kept else [OFF if self._is_off else EMPTY_HINT]
            self._details.update(fmt.content("\n".join(hints)))

    @property
    def _is_off(self) -> bool:
        session = self.workbench.session
        return session is not None and not session.settings.keeps_history

    @on(VirtualList.CursorMoved)
    def _show_details(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        if (entry := self.entry) is not None:
            n_rows = max(1, min(self.app.size.width // 45, 3))
            off = [(OFF, "$text-warning")] if self._is_off else []
            self._details.update(as_content([*details(entry, n_rows), *off]))

    # -- actions -----------------------------------------------------------------------------

    @on(VirtualList.RowChosen)
    def _choose(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        self.action_again()

    @on(Input.Submitted)
    def _leave_filter(self, event: Input.Submitted) -> None:
        event.stop()
        self.searches.focus()

    def action_again(self) -> None:
        """Ask the question again with today's settings."""
        self._end(takes_settings=False)

    def action_settings(self) -> None:
        """Ask it again with the settings it had, which stay."""
        self._end(takes_settings=True)

    def _end(self, *, takes_settings: bool) -> None:
        entry = self._wanted()
        if entry is None or not self.is_current:
            return
        if takes_settings and self._request_of(entry) is None:
            return
        self.dismiss(HistoryChoice(entry, takes_settings))

    def action_mark(self) -> None:
        """Mark the search for a comparison, or take the mark away."""
        entry = self._wanted()
        if entry is not None:
            self.searches.marked = None if entry is self.searches.marked else entry
            self.searches.refresh()
            if self.searches.marked is not None:
                self.workbench.tell("Marked. Press c on another search to compare the two.")

    def action_compare(self) -> None:
        """Compare with the marked search, else with the same question asked now."""
        entry, marked = self._wanted(), self.searches.marked
        if entry is None:
            return
        if marked is None or marked is entry:
            self._compare_now(entry, replace(self._knobs, query=entry.query, where=entry.where))
            return
        from rag_tui.tui.screens.history_changes import ChangesSinceScreen

        is_older = self._place(entry) > self._place(marked)
        pair = (entry, marked) if is_older else (marked, entry)
        self.app.push_screen(ChangesSinceScreen(*pair))

    def action_compare_as_was(self) -> None:
        """Compare with the same question asked now with the settings it had."""
        entry = self._wanted()
        if entry is not None and (request := self._request_of(entry)) is not None:
            self._compare_now(entry, request)

    def _compare_now(self, entry: HistoryEntry, request: SearchRequest) -> None:
        app = self.workbench
        session, index, backend = app.session, app.index, app.backend
        if session is None or index is None:
            app.warn("There is no index yet.\nThe question can be asked then.")
            return
        from rag_tui.tui.screens.history_changes import ChangesSinceScreen

        self.app.push_screen(
            ChangesSinceScreen(
                entry,
                lambda cancel: backend.ask_entry(request, index, session.models, cancel=cancel),
            )
        )

    def action_filter(self) -> None:
        """Open the filter."""
        self.add_class("-filtering")
        self.call_after_refresh(self._filter.focus)

    def action_export(self) -> None:
        """Write all searches to a file."""
        app, session = self.workbench, self.workbench.session
        if session is None or not self._kept:
            app.warn(f"{EMPTY}\n{EMPTY_HINT}")
            return
        from rag_tui.tui.screens.history_export import ask_and_export

        ask_and_export(self, session.settings, len(self._kept))

    def action_forget(self) -> None:
        """Delete all searches of this corpus, after a question."""
        session = self.workbench.session
        if session is None or not (self._kept or self._n_damaged):
            self.workbench.warn(EMPTY)
            return
        from rag_tui.tui.screens.history_export import ask_and_forget

        ask_and_forget(self, session.settings, len(self._kept), self._read)

    def action_close(self) -> None:
        """Leave the filter, else the history."""
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            self._filter.value = ""
            self.searches.focus()
        elif self.is_current:
            self.dismiss()

    # -- helpers -----------------------------------------------------------------------------

    def _wanted(self) -> HistoryEntry | None:
        if (entry := self.entry) is None:
            self.workbench.warn(EMPTY if not self._kept else "No search is selected.")
        return entry

    def _place(self, entry: HistoryEntry) -> int:
        return next(i for i, one in enumerate(self._kept) if one.entry is entry)

    def _request_of(self, entry: HistoryEntry) -> SearchRequest | None:
        """The search as it was asked; None, and a warning, when this version cannot ask it."""
        try:
            return entry.request()
        except RagTuiError as error:
            self.workbench.warn(
                f"This search was made with settings that are not known: {error.message}\n"
                "Enter asks it with today's settings."
            )
            return None
