"""What is shown about the selected chunk: its text, its scores, the prompt, the answer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import on
from textual.reactive import reactive
from textual.screen import Screen

from rag_tui.tui import format as fmt
from rag_tui.tui.messages import AnswerGrew
from rag_tui.tui.widgets.detail_tabs import DetailTabs

if TYPE_CHECKING:
    from rag_tui.engine.types import Chunk, Prompt
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.results import Results
    from rag_tui.tui.widgets.answer_view import AnswerView
    from rag_tui.tui.widgets.chunk_view import ChunkView
    from rag_tui.tui.widgets.explain_panel import ExplainPanel
    from rag_tui.tui.widgets.prompt_preview import PromptPreview

NO_RESULTS = "Ask a question first: / goes to the input, enter searches."
NO_CHUNK = "No chunk is selected."
NO_ANSWER = "Press a to have this question answered from the chunks above."


class InspectScreen(Screen[None]):
    """The lower half of the Search screen; the upper half says what is selected."""

    selected: reactive[str | None] = reactive(None)
    """The chunk that is marked in all lists and shown here."""

    chunk_view: ChunkView
    explain_panel: ExplainPanel
    prompt_preview: PromptPreview
    answer_view: AnswerView

    def __init__(self) -> None:
        super().__init__()
        self.results: Results | None = None
        self.is_searching = False
        self.answer_generation = 0
        self.terms: frozenset[str] = frozenset()
        self.is_complete = False
        self.tabs = DetailTabs(
            {"chunk": "Chunk", "explain": "Explain", "prompt": "Prompt", "answer": "Answer"}
        )
        self._answer_wanted = False
        self._is_answering = False

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

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
        from rag_tui.tui.widgets.chunk_view import ChunkView
        from rag_tui.tui.widgets.explain_panel import ExplainPanel
        from rag_tui.tui.widgets.prompt_preview import PromptPreview

        self.chunk_view = ChunkView(id="chunk-view")
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
        self.explain()

    def explain(self) -> None:
        """Work out why the selected chunk stands where it does, if anybody looks at it."""
        if self.tabs.active != "explain":
            return
        results, chunk, session = self.results, self.chunk, self.workbench.session
        if results is None or chunk is None or session is None:
            self.explain_panel.clear(NO_RESULTS)
            return
        from rag_tui.tui.jobs import start

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
            title = f"{chunk.context or chunk.label}  {chunk.location}"
            self.explain_panel.show(title, found, results.stages(column))

    @on(DetailTabs.Changed)
    def _take_tab(self) -> None:
        self.explain()

    def action_tab(self, name: str) -> None:
        """Show a tab; the focus stays where it is, so that rows can be walked through."""
        self.tabs.active = name

    # -- the prompt --------------------------------------------------------------------------

    def show_prompt(self) -> None:
        """Make the prompt of the present results and show it."""
        results, session = self.results, self.workbench.session
        if results is None or session is None:
            self.prompt_preview.clear(NO_RESULTS)
            return
        from rag_tui.tui.jobs import start

        start(self, lambda: self._show_prompt(results), "prompt")

    async def _show_prompt(self, results: Results) -> None:
        from rag_tui.engine.events import StageError
        from rag_tui.tui.jobs import in_thread, make_prompt

        session = self.workbench.session
        if session is None:
            return
        backend = self.workbench.backend
        found = await in_thread(lambda _: make_prompt(backend, session, results), "prompt")
        if self.results is None or self.results.generation != results.generation:
            return
        if isinstance(found, StageError):
            self._answer_wanted = False
            self.prompt_preview.clear(f"✗ {found.message} {found.hint}")
            return
        self.prompt_preview.show(found)
        if self._answer_wanted:
            self._answer_wanted = False
            self._start_answer(found.prompt)

    # -- the answer --------------------------------------------------------------------------

    def action_answer(self) -> None:
        """Answer the question from the first chunks; waits for a search that is running."""
        self.tabs.active = "answer"
        if self.results is None or not (self.is_searching or self.results.rankings):
            self.answer_view.clear(NO_RESULTS)
            return
        self.stop_answer()
        self._answer_wanted = True
        self.answer_view.clear("waiting for the lists…")
        if not self.is_searching:
            self.show_prompt()

    def _start_answer(self, prompt: Prompt) -> None:
        from rag_tui.tui.jobs import in_thread, run_answer, start

        session = self.workbench.session
        if session is None:
            return
        self.answer_generation += 1
        self._is_answering = True
        self.answer_view.clear("asking…", prompt)
        work = partial(
            run_answer,
            self.workbench.backend,
            session,
            prompt,
            generation=self.answer_generation,
            post=self.post_message,
        )
        start(self, lambda: in_thread(lambda cancel: work(cancel=cancel), "answer"), "answer")

    @on(AnswerGrew)
    def _take_answer(self, event: AnswerGrew) -> None:
        if event.generation != self.answer_generation:
            return
        self.answer_view.show(event.answer)
        self._is_answering = event.answer.state == "streaming"

    def stop_answer(self) -> bool:
        """Cancel an answer that is wanted or running; returns whether there was one."""
        was_running = self._is_answering or self._answer_wanted
        self.answer_generation += 1
        self._is_answering = self._answer_wanted = False
        self.workers.cancel_group(self, "answer")
        if was_running:
            answer = self.answer_view.answer
            if answer is not None:
                self.answer_view.show(replace(answer, state="cancelled"))
            else:
                self.answer_view.clear("cancelled")
        return was_running

    def forget_answer(self) -> None:
        """Another question is asked: nothing of the old answer may stay or arrive."""
        self.stop_answer()
        self.answer_view.clear(NO_ANSWER)

    def on_answer_view_source_chosen(self, event: AnswerView.SourceChosen) -> None:
        """A citation was followed."""
        self.selected = event.chunk_id

    def action_follow(self, number: int) -> None:
        """Select the source that a citation names."""
        self.answer_view.action_follow(number)

    # -- copying and opening -----------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy what the open tab shows: chunk, explanation, prompt or answer."""
        what, text = "chunk", self.chunk.text if self.chunk is not None else ""
        if self.tabs.active == "prompt" and self.prompt_preview.facts is not None:
            what, text = "prompt", self.prompt_preview.facts.text
        elif self.tabs.active == "answer" and self.answer_view.answer is not None:
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
