"""The prompt of the present question on the Search screen, and what is changed about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from textual import on
from textual.screen import Screen

from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.detail_tabs import DetailTabs

if TYPE_CHECKING:
    from rag_tui.engine.prompt_order import PromptPlan
    from rag_tui.engine.types import Prompt
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.prompt_facts import PromptFacts, SourceRow
    from rag_tui.tui.results import Results
    from rag_tui.tui.widgets.prompt_preview import PromptPreview

NO_RESULTS = "Ask a question first: / goes to the input, enter searches."

Name = TypeVar("Name", bound=str)


class PromptingScreen(Screen[None]):
    """Makes prompts from the lists; never changes a list."""

    prompt_preview: PromptPreview

    def __init__(self) -> None:
        super().__init__()
        self.results: Results | None = None
        self.is_searching = False
        self.tabs = DetailTabs(
            {"chunk": "Chunk", "explain": "Explain", "prompt": "Prompt", "answer": "Answer"}
        )
        self._plan: PromptPlan | None = None
        self._planned_for = ""
        self._prompt_column = ""
        self._answer_wanted = False

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    def prompt_is_made(self, prompt: Prompt) -> None:
        """Another prompt is on show."""
        raise NotImplementedError

    @on(DetailTabs.Changed)
    def _make_room(self) -> None:
        """Prompt and answer need more of a small screen than one chunk does."""
        self.set_class(self.tabs.active in ("prompt", "answer"), "-deep")

    def show_prompt(self) -> None:
        """Make the prompt of the present results and show it."""
        results, session = self.results, self.workbench.session
        if results is None or session is None:
            self.prompt_preview.clear(NO_RESULTS)
            return
        from rag_tui.tui.jobs import start

        start(self, lambda: self._show_prompt(results), "prompt")

    @property
    def plan(self) -> PromptPlan:
        """What was changed by hand; sources that were are forgotten with their question."""
        from rag_tui.engine.prompt_order import PromptPlan

        plan = self._plan or PromptPlan()
        query = self.results.request.query if self.results is not None else ""
        if query != self._planned_for:
            self._planned_for = query
            plan = replace(plan, entries=())
        self._plan = plan
        return plan

    async def _show_prompt(self, results: Results) -> None:
        from rag_tui.engine.events import StageError
        from rag_tui.tui.answer_jobs import count_prompt, make_prompt
        from rag_tui.tui.jobs import in_thread

        session = self.workbench.session
        if session is None:
            return
        backend, plan, column = self.workbench.backend, self.plan, self._prompt_column
        found = await in_thread(
            lambda _: make_prompt(backend, session, results, plan, column=column), "prompt"
        )
        if self.results is None or self.results.generation != results.generation:
            return
        if isinstance(found, StageError):
            self._answer_wanted = False
            self.prompt_preview.clear(f"✗ {found.message} {found.hint}\n= takes changes back")
            return
        self.prompt_preview.show(found)
        self.prompt_is_made(found.prompt)
        if found.is_sent:
            counted = await in_thread(
                lambda cancel: count_prompt(backend, session, found, cancel), "count"
            )
            if self.prompt_preview.facts is found:
                self.prompt_preview.show(counted)

    def on_prompt_preview_changed(self, event: PromptPreview.Changed) -> None:
        """Another prompt from the same lists."""
        facts = self.prompt_preview.facts
        if facts is None:
            return
        if event.change == "edit" and event.row is not None:
            self._edit(event.row)
            return
        if event.change == "column":
            self._prompt_column = self._next_column(facts.column)
        else:
            self._plan = self._changed(facts, event.change, event.row)
            if event.change == "reset":
                self._prompt_column = ""
        self.show_prompt()

    def _changed(self, facts: PromptFacts, change: str, row: SourceRow | None) -> PromptPlan:
        from rag_tui.engine.prompt_order import PromptPlan
        from rag_tui.engine.prompt_templates import TEMPLATES
        from rag_tui.engine.types import PROMPT_ORDERS

        plan = self.plan
        session = self.workbench.session
        if change == "reset" or session is None:
            return PromptPlan()
        answer = session.settings.engine.answer
        if change in ("more", "fewer"):
            n = plan.n_sources or answer.n_sources
            return replace(plan, n_sources=max(1, n + (1 if change == "more" else -1)))
        if change == "order":
            return replace(plan, order=_after(facts.prompt.order, PROMPT_ORDERS))
        if change == "template":
            known = tuple(dict.fromkeys((*TEMPLATES, answer.template)))
            return replace(plan, template=_after(facts.prompt.template, known))
        if row is None:
            return plan
        if change == "toggle":
            return plan.toggled(row.chunk_id)
        if change == "pin":
            return plan.pinned(row.chunk_id)
        if facts.prompt.order == "document order":
            self.workbench.warn("The sources stand in document order: s chooses another order.")
            return plan
        ids = [one.chunk_id for one in facts.rows]
        return plan.moved(row.chunk_id, -1 if change == "up" else 1, ids)

    def _next_column(self, column: str) -> str:
        rankings = self.results.rankings if self.results is not None else {}
        usable = tuple(name for name, ranking in rankings.items() if ranking.hits)
        return _after(column, usable) if usable else column

    def _edit(self, row: SourceRow) -> None:
        from rag_tui.tui.screens.edit_source import EditSourceScreen

        def take(text: str | None) -> None:
            if text is not None:
                self._plan = self.plan.edited(row.chunk_id, text)
                self.show_prompt()

        self.app.push_screen(EditSourceScreen(f"{row.label} · {row.place}", row.text), take)

    def copy_prompt(self) -> None:
        """Ask in which form the prompt is to be copied."""
        facts, session = self.prompt_preview.facts, self.workbench.session
        if facts is None or session is None:
            self.workbench.warn("There is nothing to copy: no prompt is made yet.")
            return
        from rag_tui.tui.screens.copy_prompt import CopyPromptScreen

        settings = session.settings.engine.answer

        def take(form: str | None) -> None:
            if form is None:
                return
            text = facts.text
            if form != "text":
                text = self.workbench.backend.request_text(form, facts.prompt, settings)
            self.app.copy_to_clipboard(text)
            what = "prompt" if form == "text" else f"prompt as {form}"
            size = fmt.count(len(text), "character")
            self.workbench.tell(f"Copied the {what}, {size}, with the terminal (OSC 52).")

        self.app.push_screen(CopyPromptScreen(), take)


def _after(one: Name, known: tuple[Name, ...]) -> Name:
    """The one behind it, after the last the first; the first for one that is not known."""
    return known[(known.index(one) + 1) % len(known)] if one in known else known[0]
