"""The prompt of the present question and its answer, on the Search screen."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from textual import on
from textual.screen import Screen

from rag_tui.tui import format as fmt
from rag_tui.tui.messages import AnswerGrew
from rag_tui.tui.widgets.detail_tabs import DetailTabs

if TYPE_CHECKING:
    from rag_tui.engine.prompt_order import PromptPlan
    from rag_tui.engine.types import Answer, Prompt
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.prompt_facts import PromptFacts, SourceRow
    from rag_tui.tui.results import Results
    from rag_tui.tui.widgets.answer_view import AnswerView
    from rag_tui.tui.widgets.prompt_preview import PromptPreview

NO_RESULTS = "Ask a question first: / goes to the input, enter searches."
NO_ANSWER = "Press a to have this question answered from the chunks above."
OUTDATED = "The prompt has changed since: a answers from the new one."

Name = TypeVar("Name", bound=str)


class AnsweringScreen(Screen[None]):
    """Makes prompts and answers from the lists; never changes a list.

    Every answer has a generation number: what comes of an older one is dropped.
    """

    prompt_preview: PromptPreview
    answer_view: AnswerView

    def __init__(self) -> None:
        super().__init__()
        self.results: Results | None = None
        self.is_searching = False
        self.answer_generation = 0
        self.tabs = DetailTabs(
            {"chunk": "Chunk", "explain": "Explain", "prompt": "Prompt", "answer": "Answer"}
        )
        self._plan: PromptPlan | None = None
        self._planned_for = ""
        self._prompt_column = ""
        self._answer_wanted = False
        self._is_answering = False

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    def show_passage(self, chunk_id: str, passage: str, *, is_opened: bool) -> None:
        """Select a chunk everywhere and mark a passage in its text."""
        raise NotImplementedError

    @on(DetailTabs.Changed)
    def _make_room(self) -> None:
        """Prompt and answer need more of a small screen than one chunk does."""
        self.set_class(self.tabs.active in ("prompt", "answer"), "-deep")

    # -- the prompt --------------------------------------------------------------------------

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
        self._compare_with_answer(found.prompt)
        if self._answer_wanted:
            self._answer_wanted = False
            self._start_answer(found.prompt)
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

    # -- the answer --------------------------------------------------------------------------

    def action_answer(self) -> None:
        """Answer the question from the prompt's sources; waits for a search that is running."""
        self.tabs.active = "answer"
        if self.results is None or not (self.is_searching or self.results.rankings):
            self.answer_view.clear(NO_RESULTS)
            return
        self.stop_answer()
        self._answer_wanted = True
        self.answer_view.clear("waiting for the lists…")
        if not self.is_searching:
            self.show_prompt()

    def action_compare_answers(self) -> None:
        """Two answers to the question, made in two ways."""
        results, session = self.results, self.workbench.session
        if results is None or session is None or self.is_searching or not results.rankings:
            self.workbench.warn("Ask a question first, and wait for its lists.")
            return
        from rag_tui.tui.screens.compare_answers import CompareAnswersScreen

        facts = self.prompt_preview.facts
        column = facts.column if facts is not None else ""
        self.app.push_screen(CompareAnswersScreen(results, session, column=column))

    def _start_answer(self, prompt: Prompt) -> None:
        from rag_tui.tui.answer_jobs import run_answer
        from rag_tui.tui.jobs import in_thread, start

        session = self.workbench.session
        if session is None:
            return
        self.answer_generation += 1
        self._is_answering = True
        self.answer_view.currency = session.settings.token_prices.currency
        self.answer_view.clear("asking… (escape stops)", prompt)
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
        prompt = self.answer_view.prompt
        if not self._is_answering and prompt is not None and event.answer.text:
            from rag_tui.tui.jobs import start

            start(self, lambda: self._check(event.answer, prompt, event.generation), "checks")

    async def _check(self, answer: Answer, prompt: Prompt, generation: int) -> None:
        """Look at the claims of a finished answer, and whether it was labelled before."""
        from rag_tui.engine.events import StageError
        from rag_tui.tui.answer_jobs import check_answer, label_of
        from rag_tui.tui.jobs import in_thread

        session, folder = self.workbench.session, self._corpus_folder
        if session is None or folder is None:
            return
        backend = self.workbench.backend
        label = await in_thread(
            lambda _: label_of(backend, session, folder, answer, prompt), "label"
        )
        if generation != self.answer_generation:
            return
        self.answer_view.show_label(label)
        if not prompt.sources or answer.state == "not found":
            return
        self.answer_view.say("checking its claims…")
        checks = await in_thread(
            lambda cancel: check_answer(backend, session, answer, prompt, cancel), "checks"
        )
        if generation != self.answer_generation:
            return
        if isinstance(checks, StageError):
            self.answer_view.say(f"✗ not checked: {checks.message} {checks.hint}")
            return
        self.answer_view.say()
        self.answer_view.show_checks(checks)
        if (facts := self.prompt_preview.facts) is not None:
            self._compare_with_answer(facts.prompt)

    def _compare_with_answer(self, prompt: Prompt) -> None:
        """Say so when the answer on show is not from the prompt on show."""
        answered = self.answer_view.prompt
        if self.answer_view.answer is not None and not self._is_answering and answered:
            is_same = (answered.system, answered.user) == (prompt.system, prompt.user)
            self.answer_view.say(*(() if is_same else (OUTDATED,)))

    def on_answer_view_labelled(self, event: AnswerView.Labelled) -> None:
        """Keep what the user calls the answer; the same key again takes it back."""
        answer, prompt = self.answer_view.answer, self.answer_view.prompt
        if answer is None or prompt is None:
            return
        from rag_tui.tui.jobs import start

        start(self, lambda: self._label(answer, prompt, event.label), "label")

    async def _label(self, answer: Answer, prompt: Prompt, label: str) -> None:
        from rag_tui.engine.events import StageError
        from rag_tui.tui.answer_jobs import label_answer
        from rag_tui.tui.jobs import in_thread

        session, folder = self.workbench.session, self._corpus_folder
        if session is None or folder is None:
            return
        backend = self.workbench.backend
        found = await in_thread(
            lambda _: label_answer(backend, session, folder, answer, prompt, label), "label"
        )
        if isinstance(found, StageError):
            self.workbench.warn(f"{found.message}\n{found.hint}")
        elif self.answer_view.answer is answer:
            self.answer_view.show_label(found)

    @property
    def _corpus_folder(self) -> Path | None:
        return self.results.index.folder if self.results is not None else None

    def stop_answer(self) -> bool:
        """Cancel an answer that is wanted or running; returns whether there was one."""
        was_running = self._is_answering or self._answer_wanted
        self.answer_generation += 1
        self._is_answering = self._answer_wanted = False
        for group in ("answer", "checks"):
            self.workers.cancel_group(self, group)
        if was_running:
            answer, prompt = self.answer_view.answer, self.answer_view.prompt
            if answer is not None and prompt is not None:
                from rag_tui.engine.answering import cancelled

                self.answer_view.show(cancelled(answer, prompt))
            else:
                self.answer_view.clear("cancelled · a asks again", prompt)
        return was_running

    def forget_answer(self) -> None:
        """Another question is asked: nothing of the old answer may stay or arrive."""
        self.stop_answer()
        self.answer_view.clear(NO_ANSWER)

    def on_answer_view_source_chosen(self, event: AnswerView.SourceChosen) -> None:
        """A citation, or evidence, was followed."""
        self.show_passage(event.chunk_id, event.passage, is_opened=event.is_opened)

    def action_follow(self, number: int) -> None:
        """Select the source that a citation names."""
        self.answer_view.action_follow(number)


def _after(one: Name, known: tuple[Name, ...]) -> Name:
    """The one behind it, after the last the first; the first for one that is not known."""
    return known[(known.index(one) + 1) % len(known)] if one in known else known[0]
