"""What is shown about the selected chunk: its text, its scores, the prompt, the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.reactive import reactive

from rag_tui.tui import format as fmt
from rag_tui.tui.screens.search_answer import NO_ANSWER, AnsweringScreen
from rag_tui.tui.screens.search_prompt import NO_RESULTS
from rag_tui.tui.widgets.detail_tabs import DetailTabs

if TYPE_CHECKING:
    from rag_tui.engine.types import Chunk
    from rag_tui.tui.widgets.asked_chunk_view import AskedChunkView
    from rag_tui.tui.widgets.explain_panel import ExplainPanel

NO_CHUNK = "No chunk is selected."


class InspectScreen(AnsweringScreen):
    """The lower half of the Search screen; the upper half says what is selected."""

    selected: reactive[str | None] = reactive(None)
    """The chunk that is marked in all lists and shown here."""

    chunk_view: AskedChunkView
    explain_panel: ExplainPanel

    def __init__(self) -> None:
        super().__init__()
        self.terms: frozenset[str] = frozenset()
        self.is_complete = False
        self._passage = ("", "")

    @property
    def chunk(self) -> Chunk | None:
        """The selected chunk, when the index holds it."""
        return self.results.chunk(self.selected) if self.results is not None else None

    @property
    def explained_column(self) -> str:
        """The column whose pipeline the explanation is about."""
        raise NotImplementedError

    async def complete(self) -> None:
        """Make what the first frame could spare: every module and widget costs it milliseconds."""
        from rag_tui.tui.widgets.answer_view import AnswerView
        from rag_tui.tui.widgets.asked_chunk_view import AskedChunkView
        from rag_tui.tui.widgets.explain_panel import ExplainPanel
        from rag_tui.tui.widgets.prompt_preview import PromptPreview

        self.chunk_view = AskedChunkView(id="chunk-view")
        self.explain_panel = ExplainPanel()
        self.prompt_preview = PromptPreview()
        self.answer_view = AnswerView()
        await self.tabs.add_panes(
            {
                "chunk": self.chunk_view,
                "explain": self.explain_panel,
                "prompt": self.prompt_preview,
                "answer": self.answer_view,
            }
        )
        self.chunk_view.clear(NO_CHUNK)
        self.prompt_preview.clear(NO_RESULTS)
        self.answer_view.clear(NO_ANSWER)
        self.is_complete = True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No key does anything in the moment before everything is there."""
        return self.is_complete

    # -- the selected chunk ------------------------------------------------------------------

    def show_selected(self) -> None:
        """Show the text of the selected chunk and, if that is open, its explanation."""
        results, chunk = self.results, self.chunk
        if results is None or chunk is None:
            self.chunk_view.clear(NO_CHUNK)
        else:
            index = results.index
            self.chunk_view.show(
                chunk,
                index.document_of.get(chunk.doc_id),
                query_terms=self.terms,
                n_tokens=int(index.n_tokens[index.position_of[chunk.chunk_id]]),
                limit=index.manifest.max_tokens or None,
            )
            if self._passage[0] == chunk.chunk_id:
                self.chunk_view.mark(self._passage[1])
        self.explain()

    def show_passage(self, chunk_id: str, passage: str, *, is_opened: bool) -> None:
        """Select a chunk everywhere and mark a passage in its text."""
        self._passage = (chunk_id, passage)
        if self.selected == chunk_id:
            self.show_selected()
        self.selected = chunk_id
        if is_opened:
            self.action_tab("chunk")

    def explain(self) -> None:
        """Work out why the selected chunk stands where it does, if anybody looks at it."""
        raise NotImplementedError

    @on(DetailTabs.Changed)
    def _take_tab(self) -> None:
        self.explain()

    def action_tab(self, name: str) -> None:
        """Show a tab; the focus stays where it is, so that rows can be walked through."""
        self.tabs.active = name

    # -- copying and opening -----------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy what the open tab shows: chunk, explanation, prompt or answer."""
        what, text = "chunk", self.chunk.text if self.chunk is not None else ""
        if self.tabs.active == "prompt":
            self.copy_prompt()
            return
        if self.tabs.active == "answer" and self.answer_view.answer is not None:
            what, text = "answer", self.answer_view.answer.text
        elif self.tabs.active == "explain":
            what, text = "explanation", self.explain_panel.text
        if not text:
            self.workbench.warn("There is nothing to copy: no chunk is selected.")
            return
        self.app.copy_to_clipboard(text)
        self.workbench.tell(
            f"Copied the {what}, {fmt.count(len(text), 'character')}, with the terminal (OSC 52)."
        )

    def action_open_source(self) -> None:
        """Open the source file at the chunk's first line."""
        from rag_tui.tui.editor import open_in_editor, source_of

        chunk, results = self.chunk, self.results
        if chunk is None or results is None:
            self.workbench.warn("There is nothing to open: no chunk is selected.")
            return
        open_in_editor(self.app, *source_of(results.index, chunk))

    def action_browse(self) -> None:
        """Show the chunk among all chunks."""
        if self.chunk is None:
            self.workbench.warn("There is nothing to browse: no chunk is selected.")
            return
        where = self.results.request.where if self.results is not None else ""
        self.workbench.show_in_chunks(self.chunk.chunk_id, self.terms, where=where)
