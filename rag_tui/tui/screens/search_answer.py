"""The answer to the present question, on the Search screen."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from rag_tui.tui.messages import AnswerGrew
from rag_tui.tui.screens.search_prompt import NO_RESULTS, PromptingScreen

if TYPE_CHECKING:
    from rag_tui.engine.types import Answer, Prompt
    from rag_tui.tui.widgets.answer_view import AnswerView

NO_ANSWER = "Press a to have this question answered from the chunks above."
OUTDATED = "The prompt has changed since: a answers from the new one."


class AnsweringScreen(PromptingScreen):
    """Makes answers from prompts; never changes a list.

    Every answer has a generation number: what comes of an older one is dropped.
    """

    answer_view: AnswerView

    def __init__(self) -> None:
        super().__init__()
        self.answer_generation = 0
        self._is_answering = False

    def show_passage(self, chunk_id: str, passage: str, *, is_opened: bool) -> None:
        """Select a chunk everywhere and mark a passage in its text."""
        raise NotImplementedError

    def prompt_is_made(self, prompt: Prompt) -> None:
        """Answer from it, if that was waited for."""
        self._compare_with_answer(prompt)
        if self._answer_wanted:
            self._answer_wanted = False
            self._start_answer(prompt)

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
