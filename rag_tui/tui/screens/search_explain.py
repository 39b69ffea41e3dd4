"""Why the selected chunk stands where it stands, and what the models see in it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from rag_tui.tui.messages import SearchFinished
from rag_tui.tui.screens.search_lab import SearchLab
from rag_tui.tui.screens.search_prompt import NO_RESULTS

if TYPE_CHECKING:
    from rag_tui.engine.events import StageError
    from rag_tui.engine.explain import Explanation
    from rag_tui.engine.types import Chunk
    from rag_tui.tui.close_reading import Heat, Reading, SentenceTable
    from rag_tui.tui.results import Results

CALM_S = 0.05
"""So long a chunk is selected before its sentences are embedded: rows may be walked through."""
REMEMBERED = 64
"""Readings of chunks that are kept."""

ReadingKey = tuple[int, str, str]
"""Generation of the search, column, chunk id."""


class SearchExplain(SearchLab):
    """The explanation, the nearest sentence and the heat map of the selected chunk."""

    class ScoringSentences(Message):
        """How far the scoring of the sentences is."""

        def __init__(self, chunk_id: str, told: str) -> None:
            super().__init__()
            self.chunk_id = chunk_id
            self.told = told

        def can_replace(self, message: Message) -> bool:
            """Only the newest state is worth painting."""
            return isinstance(message, SearchExplain.ScoringSentences)

    def __init__(self) -> None:
        super().__init__()
        self._readings: dict[ReadingKey, Reading] = {}
        self._tables: dict[ReadingKey, SentenceTable] = {}
        self._scoring = ""
        self._told = ("", "")
        self._wants_heat = False

    async def complete(self) -> None:
        """From now on everything is about the active column's pipeline."""
        await super().complete()
        self.watch(self, "active", self._follow_column, init=False)

    def _follow_column(self, active: str) -> None:
        if active and self.results is not None:
            self.explain()
            self._look_closely()

    def _key(self, results: Results, chunk_id: str) -> ReadingKey:
        return results.generation, self.explained_column, chunk_id

    # -- the explanation ---------------------------------------------------------------------

    def explain(self) -> None:
        """Work out why the selected chunk stands where it does, if anybody looks at it."""
        if self.tabs.active != "explain":
            return
        results, chunk, session = self.results, self.chunk, self.workbench.session
        if results is None or chunk is None or session is None:
            self.explain_panel.clear(NO_RESULTS)
            return
        from rag_tui.tui.jobs import start

        if self.explain_panel.chunk_id != chunk.chunk_id:
            self.explain_panel.clear("working it out…")
        start(self, lambda: self._explain(results, chunk), "explanation")

    async def _explain(self, results: Results, chunk: Chunk) -> None:
        from rag_tui.engine.events import StageError
        from rag_tui.tui.jobs import explain_chunk, in_thread

        session = self.workbench.session
        if session is None:
            return
        backend, column = self.workbench.backend, self.explained_column
        found = await in_thread(
            lambda _: explain_chunk(backend, session, results, chunk.chunk_id, column), "explain"
        )
        if self.results is None or self.results.generation != results.generation:
            return
        if isinstance(found, StageError):
            self.explain_panel.clear(f"✗ {found.message}\n{found.hint}")
        else:
            self._show_explanation(results, chunk, column, found)

    def _show_explanation(
        self, results: Results, chunk: Chunk, column: str, found: Explanation
    ) -> None:
        from rag_tui.tui.widgets.explain_text import Explained

        named = found.steps.folded if found.steps is not None else ()
        into = (found.steps.folded_into,) if found.steps is not None else ()
        chunks = {one: c for one in (*named, *into) if (c := results.chunk(one)) is not None}
        key = self._key(results, chunk.chunk_id)
        self.explain_panel.show(
            Explained(
                chunk=chunk,
                column=column,
                explanation=found,
                rankings=results.stages(column),
                request=results.request_of(column),
                chunks=chunks,
                reading=self._readings.get(key),
                table=self._tables.get(key),
                is_told=self._told[1] if self._told[0] == chunk.chunk_id else "",
            )
        )

    def action_tab(self, name: str) -> None:
        """Show a tab; the explanation that is shown already gets the focus, to be scrolled."""
        is_shown = self.tabs.active == name
        super().action_tab(name)
        if name == "explain" and is_shown:
            self.call_after_refresh(self.explain_panel.focus)
        elif name in ("chunk", "explain"):
            self._look_closely()

    # -- reading closely ---------------------------------------------------------------------

    def show_selected(self) -> None:
        """Also mark in the text what the models see."""
        super().show_selected()
        self._look_closely()

    @on(SearchFinished)
    def _look_again(self) -> None:
        self._look_closely()

    def _look_closely(self) -> None:
        """Show the nearest sentence and the heat, at once where they are known."""
        results, chunk = self.results, self.chunk
        if results is None or chunk is None or not self.is_complete:
            return
        reading = self._readings.get(self._key(results, chunk.chunk_id))
        if reading is not None:
            self._show_reading(reading)
        if self.tabs.active not in ("chunk", "explain") or self.is_searching:
            return
        from rag_tui.tui.jobs import start

        if reading is None:
            start(self, lambda: self._read_closely(results, chunk), "reading")
        if self._wants_heat:
            start(self, lambda: self._make_heat(results, chunk), "heat map")

    def _show_reading(self, reading: Reading) -> None:
        self.chunk_view.show_reading(reading)
        self.explain_panel.show_reading(reading)

    async def _read_closely(self, results: Results, chunk: Chunk) -> None:
        from rag_tui.engine.errors import Cancelled
        from rag_tui.tui.close_reading import read_closely
        from rag_tui.tui.jobs import in_thread

        session = self.workbench.session
        if session is None:
            return
        await asyncio.sleep(CALM_S)
        backend, column = self.workbench.backend, self.explained_column
        key = self._key(results, chunk.chunk_id)
        try:
            reading = await in_thread(
                lambda cancel: read_closely(
                    backend, session, results, chunk, column, cancel=cancel
                ),
                "reading",
            )
        except Cancelled:
            return
        while len(self._readings) >= REMEMBERED:
            del self._readings[next(iter(self._readings))]
        self._readings[key] = reading
        if self.results is not None and self._key(self.results, self.selected or "") == key:
            self._show_reading(reading)

    # -- the heat map ------------------------------------------------------------------------

    def action_heat(self) -> None:
        """Shade the words by their likeness to the question's, or stop doing so."""
        results, chunk = self.results, self.chunk
        if results is None or chunk is None:
            self.workbench.warn("There is no chunk to shade.\nAsk a question first (/).")
            return
        self._wants_heat = not self._wants_heat
        if not self._wants_heat:
            self.workers.cancel_group(self, "heat map")
            self.chunk_view.forget_heat()
            return
        from rag_tui.tui.jobs import start

        start(self, lambda: self._make_heat(results, chunk), "heat map")

    async def _make_heat(self, results: Results, chunk: Chunk) -> None:
        from rag_tui.engine.events import StageError
        from rag_tui.tui.close_reading import heat_of
        from rag_tui.tui.jobs import in_thread

        session = self.workbench.session
        if session is None:
            return
        backend, column = self.workbench.backend, self.explained_column
        if "vector" not in results.stages(column):
            self.chunk_view.say(f"✗ no heat map: column {column} has no vector list (esc, then →)")
            return
        self.chunk_view.say("working out the heat map…")
        found: Heat | StageError = await in_thread(
            lambda _: heat_of(backend, session, results, chunk, column), "heat map"
        )
        if self.selected != chunk.chunk_id or self.results is None:
            return
        if isinstance(found, StageError):
            self.chunk_view.say(f"✗ no heat map: {found.message} {found.hint}")
        elif self.results.generation == results.generation:
            self.chunk_view.show_heat(found)

    # -- the sentences -----------------------------------------------------------------------

    def action_sentences(self) -> None:
        """Score each sentence of the selected chunk; pressed again: hide the scores."""
        results, chunk = self.results, self.chunk
        if results is None or chunk is None:
            self.workbench.warn("There is no chunk to look into.\nAsk a question first (/).")
            return
        key = self._key(results, chunk.chunk_id)
        if self.tabs.active == "explain" and self._tables.pop(key, None) is not None:
            self._told = ("", "")
            self.explain_panel.show_sentences(chunk.chunk_id, None)
            return
        if self.tabs.active != "explain":
            self.action_tab("explain")
        from rag_tui.tui.jobs import start

        self._scoring = chunk.chunk_id
        start(self, lambda: self._score(results, chunk, key), "sentences")

    async def _score(self, results: Results, chunk: Chunk, key: ReadingKey) -> None:
        from rag_tui.engine.errors import Cancelled
        from rag_tui.engine.events import StageError
        from rag_tui.tui.close_reading import score_sentences
        from rag_tui.tui.jobs import in_thread

        session = self.workbench.session
        if session is None:
            return
        backend, chunk_id, column = self.workbench.backend, chunk.chunk_id, key[1]

        def report(told: str) -> None:
            self.post_message(self.ScoringSentences(chunk_id, told))

        try:
            found = await in_thread(
                lambda cancel: score_sentences(
                    backend, session, results, chunk_id, column, report=report, cancel=cancel
                ),
                "sentences",
            )
        except Cancelled:
            return
        self._scoring = ""
        if isinstance(found, StageError):
            self._tell_of_sentences(chunk_id, f"✗ {found.message} {found.hint}")
            return
        self._tables, self._told = {key: found}, ("", "")
        if self._key(results, self.selected or "") == key:
            self.explain_panel.show_sentences(chunk_id, found)

    @on(ScoringSentences)
    def _tell_scoring(self, event: ScoringSentences) -> None:
        if self._scoring == event.chunk_id:
            self._tell_of_sentences(event.chunk_id, f"{event.told}… (esc stops it)")

    def _tell_of_sentences(self, chunk_id: str, told: str) -> None:
        """Also for an explanation that comes only after this."""
        self._told = (chunk_id, told)
        self.explain_panel.show_sentences(chunk_id, None, told)

    def stop_sentences(self) -> bool:
        """Stop scoring sentences; returns whether that was under way."""
        if not self._scoring:
            return False
        chunk_id, self._scoring = self._scoring, ""
        self.workers.cancel_group(self, "sentences")
        self._tell_of_sentences(chunk_id, "stopped (S scores the sentences)")
        return True
