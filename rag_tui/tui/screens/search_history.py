"""Keeping finished searches, and the two screens that look back or across: history, bump chart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on

from rag_tui.tui.messages import SearchFinished, StageFinished
from rag_tui.tui.screens.search_lab import SearchLab

if TYPE_CHECKING:
    from rag_tui.engine.events import StageResult
    from rag_tui.engine.history import SearchLog
    from rag_tui.tui.backend import Settings
    from rag_tui.tui.results import Results
    from rag_tui.tui.screens.bump import BumpScreen
    from rag_tui.tui.screens.history import HistoryChoice


class SearchHistory(SearchLab):
    """Every finished search is appended to the history; what is asked while typing is not."""

    _follows_top: bool
    is_draft = False
    """Whether the present search was started by a pause in typing."""

    def __init__(self) -> None:
        super().__init__()
        self._log: tuple[Settings, SearchLog] | None = None
        self._bump: BumpScreen | None = None

    # -- keeping -----------------------------------------------------------------------------

    @on(SearchFinished)
    def _keep(self, event: SearchFinished) -> None:
        results = self.results
        if results is None or event.generation != results.generation or self.is_draft:
            return
        from rag_tui.tui.jobs import start

        # A group of its own for each: none may replace the one before while it still writes.
        start(self, lambda: self._write(results), f"history {event.generation}")

    async def _write(self, results: Results) -> None:
        from rag_tui.tui.jobs import in_thread

        app, session = self.workbench, self.workbench.session
        if session is None:
            return
        if self._log is None or self._log[0] is not session.settings:
            self._log = (session.settings, app.backend.search_log(session.settings))
        log = self._log[1]
        request, index, made = results.request, results.index, _stage_results(results)
        app.warn(await in_thread(lambda _: log.record(request, index, made), "history"))

    def export_search(self) -> None:
        """Write the present lists to a file, in the form in which searches are kept."""
        results = self.results
        if results is None or self.is_searching:
            self.workbench.warn("There is nothing to export yet.\nPress / and ask a question.")
            return
        from rag_tui.tui.screens.history_export import ask_for_file

        backend, made = self.workbench.backend, _stage_results(results)
        ask_for_file(
            self,
            "Export this search to",
            "search.json",
            "JSON: the question, its settings, and the first rows of each list.",
            lambda target: backend.export_search(results.request, results.index, made, target),
        )

    # -- looking back ------------------------------------------------------------------------

    def action_history(self) -> None:
        """Show earlier searches."""
        if not self._has_settings():
            return
        from rag_tui.tui.screens.history import HistoryScreen

        self.app.push_screen(HistoryScreen(self.knobs), self._take_choice)

    def _take_choice(self, choice: HistoryChoice | None) -> None:
        if choice is None:
            return
        from rag_tui.engine.types import METHODS
        from rag_tui.tui.history_text import question_of

        text = question_of(choice.entry)
        if not choice.takes_settings:
            self.ask_question(text)
            return
        request = choice.entry.request()

        async def go() -> None:
            # Lists that were left out then are not shown empty now.
            await self.change_knobs(replace(request, methods=METHODS))
            self.workbench.tell("Its knobs and columns are set; z takes them back.")
            self.ask_question(text)

        self.call_later(go)

    # -- for the palette ---------------------------------------------------------------------

    def apply_preset(self, name: str) -> None:
        """Set the knobs of a preset."""
        from rag_tui.tui.screens.presets import PresetChoice

        self._take_preset(PresetChoice(name))

    async def reset_columns(self) -> None:
        """Show the lists that the settings name."""
        session = self.workbench.session
        if session is not None:
            columns = session.settings.request("").columns
            await self.change_knobs(replace(self.knobs, columns=columns))

    # -- looking across ----------------------------------------------------------------------

    def action_bump(self) -> None:
        """Show how rows move from list to list."""
        results = self.results
        if results is None or not results.rankings:
            self.workbench.warn("There are no lists yet.\nPress / and ask a question.")
            return
        from rag_tui.tui.screens.bump import BumpScreen

        def select(chunk_id: str) -> None:
            self._follows_top = False
            self.selected = chunk_id

        def close(chunk_id: str | None) -> None:
            self._bump = None
            if chunk_id is not None:
                self.action_tab("chunk")
                self.call_after_refresh(self.chunk_view.focus)

        self._bump = BumpScreen(results, picked=self.selected, active=self.active, select=select)
        self.app.push_screen(self._bump, close)

    @on(StageFinished)
    def _redraw_bump(self, event: StageFinished) -> None:
        results = self.results
        if self._bump is not None and results is not None and self._bump.is_mounted:
            self._bump.show(results)


def _stage_results(results: Results) -> list[StageResult]:
    from rag_tui.engine.events import StageResult

    made = [
        StageResult(name, ranking=ranking, elapsed_s=ranking.elapsed_s)
        for name, ranking in results.rankings.items()
    ]
    return made + [StageResult(name, error=error) for name, error in results.errors.items()]
