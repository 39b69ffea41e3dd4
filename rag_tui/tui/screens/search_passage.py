"""Where is my passage? Asked from the Search screen, and a chunk that stays marked in all lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.reactive import reactive

from rag_tui.tui import format as fmt
from rag_tui.tui.messages import StageFinished
from rag_tui.tui.screens.search_explain import SearchExplain
from rag_tui.tui.screens.search_labels import BORDER

if TYPE_CHECKING:
    from rag_tui.engine.types import Answer, Source
    from rag_tui.tui.screens.passage_work import PassageChoice

PIN = "◆"


class SearchPassage(SearchExplain):
    """The dialog about a passage, and the pinned chunk."""

    pinned: reactive[str] = reactive("", init=False)
    """Chunk id that is marked in all lists whatever is selected; empty: none."""

    # -- the pinned chunk --------------------------------------------------------------------

    def action_pin(self) -> None:
        """Keep the selected chunk marked in all lists; the pinned one: no longer."""
        chunk = self.chunk
        if chunk is None:
            self.workbench.warn("No chunk is selected.\nPress ↓ to select a row.")
        elif self.pinned == chunk.chunk_id:
            self.pinned = ""
            self.workbench.tell(f"Unpinned {fmt.one_line(chunk.location)}.")
        else:
            self.pin(chunk.chunk_id)

    def pin(self, chunk_id: str) -> None:
        """Mark a chunk in all lists from now on."""
        self.pinned = chunk_id
        chunk = self.results.chunk(chunk_id) if self.results is not None else None
        if chunk is not None:
            where = fmt.one_line(chunk.location)
            self.workbench.tell(f"Pinned {where}: {PIN} in all lists. w says where it is.")

    def watch_pinned(self) -> None:
        """All lists mark it and say where it stands."""
        self._mark_pinned()
        self._describe_lists()

    @on(StageFinished)
    def _mark_pinned(self) -> None:
        """Also lists of new columns, and not a chunk that the index no longer holds."""
        results = self.results
        if results is not None and self.pinned and results.chunk(self.pinned) is None:
            self.pinned = ""
            self.workbench.warn("The pinned chunk is not in this index any more: unpinned.")
        for result_list in self.lists.values():
            result_list.pinned = self.pinned

    def border_text(self, column: str, where: str, took: str) -> str:
        """Also where the pinned chunk stands; the time goes where not all has room."""
        if not self.pinned or self.results is None:
            return super().border_text(column, where, took)
        from rag_tui.tui.results import standing

        if self.pinned == self.selected:
            told = where.replace("●", f"{PIN}●")
        else:
            of_pinned = standing(column, self.results, self.pinned).replace("●", PIN)
            told = " · ".join(part for part in (where, of_pinned) if part)
        room = self.lists[column].outer_size.width - BORDER
        whole = super().border_text(column, told, took)
        return whole if len(whole) <= room else told

    # -- the dialog --------------------------------------------------------------------------

    def action_where(self) -> None:
        """Follow the pinned or the selected chunk, or any passage, through every list."""
        self.open_passage(self.pinned or self.selected or "")

    def open_passage(self, chunk_id: str) -> None:
        """Follow a chunk through every list; an empty id asks for a passage."""
        results, session = self.results, self.workbench.session
        if results is None or session is None:
            self.workbench.warn("Ask a question first (/).\nThen w says where a passage is.")
            return
        from rag_tui.tui.screens.passage import PassageScreen

        first = chunk_id if results.chunk(chunk_id) is not None else ""
        sources, answer = self._prompt_and_answer
        self.app.push_screen(
            PassageScreen(
                self.workbench.backend,
                session,
                results.index,
                results.request,
                first=first,
                sources=sources,
                answer=answer,
            ),
            self._take_passage,
        )

    @property
    def _prompt_and_answer(self) -> tuple[tuple[Source, ...] | None, Answer | None]:
        """The sources of the prompt on show and what was answered from them, if they are there."""
        facts = self.prompt_preview.facts
        if facts is None or self.is_searching:
            return None, None
        sources, answer, asked = facts.prompt.sources, self.answer_view.answer, self.answer_view
        is_whole = answer is not None and answer.state == "complete"
        is_of_it = asked.prompt is not None and asked.prompt.sources == sources
        return sources, answer if is_whole and is_of_it else None

    def _take_passage(self, choice: PassageChoice | None) -> None:
        if choice is None:
            return
        if choice.pin:
            self.pin(choice.pin)
        if choice.reindex:
            self.workbench.reindex_with(dict(choice.reindex))
        elif choice.knobs:
            from rag_tui.tui.passage_text import knobs_told, with_remedy

            changed = with_remedy(self.knobs, choice.column, choice.knobs)
            self.workbench.tell(f"Set {knobs_told(choice.knobs)}. z takes it back.")
            self.call_later(self.change_knobs, changed)
