"""Trying things out on the Search screen: knobs, columns, presets, and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.tui import format as fmt
from rag_tui.tui.screens.search_moved import SearchMoved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_tui.engine.events import Progress
    from rag_tui.engine.presets import Undo
    from rag_tui.engine.types import Column, KnobValue, SearchRequest
    from rag_tui.tui.screens.presets import PresetChoice
    from rag_tui.tui.widgets.knobs_panel import KnobsPanel
    from rag_tui.tui.widgets.result_list import ListGrid


class SearchLab(SearchMoved):
    """Every change of knobs or columns goes through `change_knobs`, which remembers it."""

    knobs: SearchRequest
    knobs_panel: KnobsPanel
    grid: ListGrid
    _waiting: frozenset[str]

    def __init__(self) -> None:
        super().__init__()
        self._undo: Undo | None = None
        self._saved: dict[str, Mapping[str, KnobValue]] = {}

    async def show_columns(self, active: str = "") -> bool:
        """Show the columns that the knobs name; returns whether they have changed."""
        raise NotImplementedError

    def action_show_list(self, place: int) -> None:
        """Go to a list by its place, from 0."""
        raise NotImplementedError

    async def complete(self) -> None:
        """From now on the panel follows the active column."""
        await super().complete()
        self.watch(self, "active", self._follow_active)
        self.watch(self.workbench, "progress", self._tell_vectors)

    def _follow_active(self, active: str) -> None:
        if active:
            self.knobs_panel.follow(active)

    # -- changing ----------------------------------------------------------------------------

    async def change_knobs(
        self, request: SearchRequest, *, active: str = "", is_step: bool = True
    ) -> None:
        """Search with other knobs and columns from now on.

        Args:
            request: The knobs and columns; its question and filter are ignored.
            active: The column that is active then; empty: the same as before.
            is_step: Whether it can be undone; False for what undoing itself brings.
        """
        from rag_tui.engine.presets import Undo
        from rag_tui.tui.moved import lists_before, old_names

        before, now = self.knobs, replace(request, query="", where="")
        if now == before:
            return
        if is_step:
            self._undo = (self._undo or Undo(before)).push(now)
        if self.results is not None:
            self._before = lists_before(self.results, before, now, self._before)
        if not active:
            kept = (new for new, old in old_names(before, now).items() if old == self.active)
            active = next(kept, "")
        self.knobs = now
        self.knobs_panel.set_request(now, active=active)
        if not await self.show_columns(active) and self.question:
            self.search(self.question)

    async def on_knobs_panel_changed(self, event: KnobsPanel.Changed) -> None:
        """Search again with the new values."""
        await self.change_knobs(event.request, active=event.active)

    async def action_undo(self) -> None:
        """Take back the last change of knobs or columns."""
        await self._step_to(-1)

    async def action_redo(self) -> None:
        """Make the change again that was taken back."""
        await self._step_to(1)

    async def _step_to(self, direction: int) -> None:
        from rag_tui.tui.knob_values import told_change

        here = self._undo
        there = here and (here.undo() if direction < 0 else here.redo())
        if here is None or there is None or there is here:
            what = "undo: no knob or column was changed" if direction < 0 else "redo"
            self.workbench.tell(f"There is nothing to {what}.")
            return
        self._undo = there
        word = "Undone" if direction < 0 else "Redone"
        self.workbench.tell(f"{word}: {told_change(here.present, there.present)}")
        await self.change_knobs(there.present, is_step=False)

    # -- dialogs -----------------------------------------------------------------------------

    def action_columns(self) -> None:
        """Show, add, change and remove columns."""
        if not self._has_settings():
            return
        from rag_tui.tui.screens.columns import ColumnsScreen

        def go(name: str | None) -> None:
            if name in self.lists:
                self.action_show_list(list(self.lists).index(name))

        self.app.push_screen(ColumnsScreen(self.knobs, self.active, self._take_columns), go)

    def _take_columns(self, columns: tuple[Column, ...], active: str) -> None:
        async def change() -> None:
            await self.change_knobs(replace(self.knobs, columns=columns), active=active)

        self.call_later(change)

    def action_presets(self) -> None:
        """Show, apply and save presets."""
        session = self.workbench.session
        if not self._has_settings() or session is None:
            return
        from rag_tui.engine.knobs import differing_knobs
        from rag_tui.tui.screens.presets import PresetsScreen

        differing = differing_knobs(self.knobs, session.settings.request(""))
        screen = PresetsScreen(self.presets, differing, self._project_file, self._save_preset)
        self.app.push_screen(screen, self._take_preset)

    @property
    def presets(self) -> dict[str, Mapping[str, object]]:
        """The presets of the settings and those that were saved since, by name."""
        session = self.workbench.session
        known: Mapping[str, Mapping[str, object]] = session.settings.presets if session else {}
        return {**known, **self._saved}

    @property
    def _project_file(self) -> Path:
        folder = self.workbench.folder
        return (folder if folder.is_dir() else folder.parent) / "rag-tui.toml"

    async def _save_preset(self, name: str, knobs: Mapping[str, KnobValue]) -> str:
        """Write a preset; returns why it cannot be written, or nothing."""
        from rag_tui.engine.errors import UsageError
        from rag_tui.tui.jobs import in_thread

        backend, path = self.workbench.backend, self._project_file
        try:
            await in_thread(lambda _: backend.save_preset(path, name, knobs), "preset")
        except UsageError as error:
            return f"{error.message} {error.hint}"
        self._saved[name] = dict(knobs)
        return ""

    def _take_preset(self, choice: PresetChoice | None) -> None:
        from rag_tui.engine.errors import UsageError
        from rag_tui.engine.presets import apply_preset

        session = self.workbench.session
        if choice is None or session is None:
            return
        if choice.copy_as:
            self.copy_settings(choice.copy_as)
            return
        try:
            request = apply_preset(session.settings.request(""), self.presets, choice.name)
        except UsageError as error:
            self.workbench.warn(f"{error.message}\n{error.hint}")
            return
        now = replace(request, columns=self.knobs.columns)

        async def change() -> None:
            await self.change_knobs(now)

        is_known = now == self.knobs
        self.workbench.tell(
            f"The knobs stand at {choice.name} already."
            if is_known
            else f"Applied {choice.name}; z takes it back."
        )
        self.call_later(change)

    def action_copy_settings(self) -> None:
        """Choose how the knobs and columns are copied."""
        if not self._has_settings():
            return
        from rag_tui.tui.screens.presets import CopySettings

        def take(kind: str | None) -> None:
            if kind:
                self.copy_settings(kind)

        self.app.push_screen(CopySettings(), take)

    def copy_settings(self, kind: str) -> None:
        """Copy the knobs and columns, ``toml`` or ``python``."""
        from rag_tui.engine.presets import as_python, as_toml

        session = self.workbench.session
        if session is None:
            return
        defaults = session.settings.request("")
        if kind == "python":
            asked = self.results.request if self.results is not None else self.knobs
            query = asked.query or "your question"
            request = replace(self.knobs, query=query, where=asked.where)
            what, text = "script", as_python(request, defaults, folder=str(self.workbench.folder))
        else:
            what, text = "settings", as_toml(self.knobs, defaults)
        if not text:
            self.workbench.warn("There is nothing to copy: all knobs stand as in the settings.")
            return
        self.app.copy_to_clipboard(text)
        n_lines = fmt.count(len(text.splitlines()), "line")
        self.workbench.tell(f"Copied the {what}, {n_lines}, with the terminal (OSC 52).")

    def _has_settings(self) -> bool:
        if self.workbench.session is None:
            self.workbench.warn("The settings are still being read.\nTry again in a moment.")
            return False
        return True

    # -- other models ------------------------------------------------------------------------

    def _tell_vectors(self, progress: Progress | None) -> None:
        """Columns that wait for vectors of their own say how far these are."""
        results = self.results
        if progress is None or results is None or not self.is_searching:
            return
        if progress.stage not in ("embed", "model"):
            return
        from rag_tui.tui.widgets.job_bar import STAGES

        done = f" {progress.done:,}/{progress.total:,}" if progress.total else ""
        for column in self._waiting.intersection(self.lists):
            own = results.request_of(column)
            result_list = self.lists[column]
            if not own.embedder or result_list.head.method == "bm25":
                continue
            text = f"{STAGES[progress.stage]}{done} {progress.note}".strip()
            if result_list.rows:
                result_list.describe(fmt.one_line(result_list.head.title), fmt.one_line(text), "")
            else:
                result_list.show_message(text, "The other columns stand; escape stops it.")
