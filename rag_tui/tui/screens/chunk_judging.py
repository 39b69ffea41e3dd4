"""What is known of the chunks beside their text: warnings, corpus health, facts."""

from __future__ import annotations

from functools import partial

from textual.widgets import Static

from rag_tui.engine.index import Index
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_jobs import facts_of, health_of, lint_notes
from rag_tui.tui.chunk_notes import NO_NOTES, ChunkNotes, joined, known_kinds
from rag_tui.tui.chunk_selection import warning_counts
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.screens.chunk_reading import ReadingScreen
from rag_tui.tui.screens.warnings import WarningsScreen

NO_INDEX = "No index yet. The chunks appear here as soon as the documents are read."


class JudgingScreen(ReadingScreen):
    """Runs lint when an index comes, and health and facts when they are asked for.

    The subclass composes a ``#warnings`` line.
    """

    @property
    def chosen_warning(self) -> str:
        """The kind of warning that narrows the list, if any."""
        return ""

    def show_warning(self, kind: str | None) -> None:
        """Show only chunks with a kind of warning."""
        raise NotImplementedError

    def notes_changed(self) -> None:
        """Something new is known of the chunks."""
        raise NotImplementedError

    def action_warnings(self) -> None:
        """Choose a kind of warning."""
        if self._index is None:
            self.notify(NO_INDEX, severity="warning", markup=False)
            return
        rules = dict.fromkeys(self._notes.kinds, "") | known_kinds()
        screen = WarningsScreen(
            self._notes.counts, rules, len(self._index.chunks), chosen=self.chosen_warning
        )
        self.app.push_screen(screen, self.show_warning)

    def action_health(self) -> None:
        """Work out hubs, orphans and copies from the vectors."""
        if (index := self._index) is None:
            self.notify(NO_INDEX, severity="warning", markup=False)
            return
        self.query_one("#warnings", Static).update("Looking at every chunk's neighbours …")
        start(self, partial(self._look_at_health, index), "corpus health")

    def action_facts(self) -> None:
        """Say how large the corpus is, and whether retrieval is needed at all."""
        if (index := self._index) is None:
            self.notify(NO_INDEX, severity="warning", markup=False)
            return
        start(self, partial(self._look_at_facts, index), "corpus facts")

    @property
    def warning_kinds(self) -> dict[str, int]:
        """Chunks of each kind that was found."""
        return dict(self._notes.counts)

    def look_for_warnings(self, index: Index) -> None:
        """Begin to lint."""
        start(self, partial(self._look_for_warnings, index), "looking for warnings")

    def take_notes(self, notes: ChunkNotes) -> None:
        """What is known from now on."""
        self._notes = notes
        self._show_counts()
        self.notes_changed()

    async def _look_for_warnings(self, index: Index) -> None:
        notes = await in_thread(lambda cancel: lint_notes(index, cancel), "lint")
        if index is self._index:
            self.take_notes(joined(notes, self._notes))

    async def _look_at_health(self, index: Index) -> None:
        try:
            notes = await in_thread(lambda cancel: health_of(index, cancel), "health")
        finally:
            self._show_counts()
        if index is self._index:
            self.take_notes(joined(self._notes, notes))
            if index.vectors is None:
                self.notify(
                    "Hubs, orphans and copies need vectors, which this index does not have yet.",
                    severity="warning",
                    markup=False,
                )

    async def _look_at_facts(self, index: Index) -> None:
        from rag_tui.engine.corpus_facts import Prices
        from rag_tui.tui.screens.corpus_facts import CorpusFactsScreen

        session = self.session
        prices = session.settings.token_prices if session is not None else Prices()
        found = await in_thread(lambda cancel: facts_of(index, session, prices, cancel), "facts")
        if index is self._index and self.app.screen is self:
            self.app.push_screen(CorpusFactsScreen(found, prices))

    def _show_counts(self) -> None:
        text = warning_counts(self._notes) if self._notes is not NO_NOTES else ""
        self.query_one("#warnings", Static).update(fmt.content(text))
