"""Labelling on the Search screen: what answers the question is marked, and marks are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.widgets import Static

from rag_tui.tui import format as fmt
from rag_tui.tui.messages import StageFinished
from rag_tui.tui.screens.inspect import InspectScreen

if TYPE_CHECKING:
    from rag_tui.tui.labels import Bench, Change, LabelBook, LabelDesk, Marks
    from rag_tui.tui.screens.grade import GradeChoice
    from rag_tui.tui.widgets.query_bar import QueryBar
    from rag_tui.tui.widgets.result_list import ResultList

BORDER = 6
"""Cells of a list's lower border that no text can have."""


class SearchLabels(InspectScreen):
    """Marks of labelled chunks in all lists, and the keys that label."""

    question: str
    query_bar: QueryBar
    active: str

    def __init__(self) -> None:
        super().__init__()
        self.marks: Marks | None = None
        """What the labels say for the question asked; None until they are read."""
        self._label_line = Static("", id="label-line", markup=False)
        self._marks_generation = 0
        self._is_following_labels = False

    @property
    def lists(self) -> dict[str, ResultList]:
        """The lists by column."""
        raise NotImplementedError

    def search(self, question: str, *, with_reranker: bool = True) -> None:
        """Search for a question."""
        raise NotImplementedError

    def _describe_lists(self) -> None:
        raise NotImplementedError

    async def complete(self) -> None:
        """The line of labels is hidden until there is something to say in it."""
        await self.mount(self._label_line, before="#lists")
        await super().complete()

    # -- what the labels say -----------------------------------------------------------------

    @property
    def desk(self) -> LabelDesk:
        """The app's way to the label file."""
        from rag_tui.tui.labels import desk_of

        desk = desk_of(self.workbench)
        if not self._is_following_labels:
            self._is_following_labels = True
            desk.changed.subscribe(self, self._take_book)
        return desk

    @property
    def current_marks(self) -> Marks | None:
        """The marks, if they are those of the question and the index on show."""
        from rag_tui.tui.labels import words_of

        marks, results = self.marks, self.results
        if marks is None or results is None or marks.index is not results.index:
            return None
        return marks if marks.words == words_of(results.request.query) else None

    def border_text(self, column: str, where: str, took: str) -> str:
        """What stands on a list's lower border: the selected chunk, the first gold one, the time.

        Where not all has room the time goes first.
        """
        marks, results = self.current_marks, self.results
        ranking = results.rankings.get(column) if results is not None else None
        gold = marks.standing(ranking) if marks is not None and ranking is not None else ""
        room = self.lists[column].outer_size.width - BORDER
        if where and gold.startswith("✓ not") and len(where) + 3 + len(gold) > room:
            gold = "✓ –"
        told = " · ".join(part for part in (where, gold) if part)
        if gold and len(told) + 3 + len(took) > room:
            return told
        return f"{told} · {took}" if told else took

    @on(StageFinished)
    def _mark_stage(self, event: StageFinished) -> None:
        results = self.results
        if results is None or event.generation != results.generation:
            return
        self.show_marks()
        if self._marks_generation != results.generation:
            self._marks_generation = results.generation
            self._read_marks()

    def _take_book(self, _: LabelBook) -> None:
        self._read_marks()

    def _read_marks(self) -> None:
        from rag_tui.tui.jobs import start

        start(self, self._read, "labels")

    async def _read(self) -> None:
        results = self.results
        if results is None:
            return
        marks = await self.desk.marks(results.request.query, results.index)
        if self.results is not None and self.results.request.query == results.request.query:
            self.marks = marks
            self.show_marks()

    def show_marks(self) -> None:
        """Rows, borders, the line of labels and the open chunk say what is judged."""
        marks = self.current_marks
        gold = marks.gold if marks is not None else {}
        for result_list in self.lists.values():
            result_list.gold = gold
        self._describe_lists()
        line = self._line_of(marks) if marks is not None else None
        self.set_class(line is not None, "-labelled")
        self.set_class(line is None and marks is not None, "-unlabelled")
        if line is not None:
            self._label_line.update(line)
        elif marks is not None:
            self._label_line.update(_hint(len(marks.book.questions)))
        self._tell_judgement()

    def show_selected(self) -> None:
        """Also what the selected chunk is judged for this question."""
        super().show_selected()
        self._tell_judgement()

    def _tell_judgement(self) -> None:
        from rag_tui.tui.screens.grade import GRADES

        marks = self.current_marks
        grade = marks.grades.get(self.selected or "") if marks is not None else None
        if grade is None:
            self.chunk_view.say_judgement("")
        elif grade > 0:
            word = GRADES.get(grade, "relevant")
            self.chunk_view.say_judgement(f"✓ judged {word} for this question (grade {grade})")
        else:
            self.chunk_view.say_judgement("✗ judged not relevant to this question")

    def _line_of(self, marks: Marks) -> Content | None:
        """The question among the labelled ones, and how much of it each column finds."""
        if marks.resolved is None:
            if not marks.book.problem:
                return None
            return fmt.content(f"⚠ {fmt.one_line(marks.book.problem)}", "$text-warning")
        question = marks.resolved.question
        place = marks.book.place(question.text)
        n_relevant = sum(grade > 0 for grade in marks.grades.values())
        lost = sum(evidence.grade > 0 for evidence, _ in marks.resolved.unresolved)
        parts = [f"{fmt.clip(fmt.one_line(question.qid), 14)} {place}/{len(marks.book.questions)}"]
        if not question.answerable:
            parts.append("∅ nothing in the documents answers it")
        elif n_relevant:
            parts.append(self._recalls(marks))
        elif not lost:
            parts.append("no passage is marked relevant yet (r on a row)")
        if lost:
            why = next(why for one, why in marks.resolved.unresolved if one.grade > 0)
            parts.append(f"⚠ {fmt.count(lost, 'label')} not found: {fmt.one_line(why)}")
        return fmt.content(" · ".join(parts))

    def _recalls(self, marks: Marks) -> str:
        from rag_tui.tui.labels import short_share

        results = self.results
        if results is None:
            return ""
        shown, last_k = [], 0
        for column in self.lists:
            ranking = results.rankings.get(column)
            if ranking is None:
                continue
            k = results.request_of(column).top_k
            name = f"{'' if k == last_k else f'R@{k} '}{fmt.one_line(column)}"
            shown.append(f"{name} {short_share(marks.recall(ranking, k))}")
            last_k = k
        return " · ".join(shown)

    # -- labelling ---------------------------------------------------------------------------

    def action_relevant(self) -> None:
        """Mark the selected chunk as relevant, then ask how well it answers."""
        if (found := self._labelled_chunk()) is None:
            return
        from rag_tui.tui.screens.grade import GradeScreen

        text, position, chunk_id = found
        marks = self.current_marks
        before = marks.grades.get(chunk_id, 0) if marks is not None else 0
        is_new = [False]

        def mark(bench: Bench) -> str:
            if (bench.grade(text, position) or 0) > 0:
                return ""
            is_known = bench.book.find(text) is not None
            bench.judge(text, position, 1)
            is_new[0] = True
            return "" if is_known else f"Added the question to {bench.book.path}."

        def regrade(grade: int, bench: Bench) -> str:
            if bench.grade(text, position) != grade:
                if is_new[0]:
                    bench.file.undo()  # so that undoing takes back both in one go
                bench.judge(text, position, grade)
            return ""

        prompt = GradeScreen(before if before > 0 else 1)

        def take(choice: GradeChoice | None) -> None:
            if choice is None:
                return
            if choice.grade is not None:
                self._change_labels(partial(regrade, choice.grade))
            if choice.step:
                self.lists[self.active].action_move(choice.step)

        def then(is_done: bool) -> None:
            if not is_done and prompt.is_current:
                prompt.dismiss(None)

        self.app.push_screen(prompt, take)
        self._change_labels(mark, then)

    def action_not_relevant(self) -> None:
        """Mark the selected chunk as not relevant; a second time nothing is said of it."""
        if (found := self._labelled_chunk()) is None:
            return
        text, position, _ = found

        def mark(bench: Bench) -> str:
            if bench.grade(text, position) != 0:
                bench.judge(text, position, 0)
            elif not bench.file.unjudge(bench.question(text), position, bench.resolver):
                return "This judgement is about more than this passage: change it in the file."
            return ""

        self._change_labels(mark)

    def action_unanswerable(self) -> None:
        """Say that nothing in the documents answers the question, or that something does."""
        if (text := self._labelled_question()) is None:
            return

        def toggle(bench: Bench) -> str:
            question = bench.question(text)
            bench.file.set_answerable(question, not question.answerable)
            if question.answerable:
                return "Marked as unanswerable: nothing in the documents answers this question."
            return "The question counts as answerable again."

        self._change_labels(toggle)

    def action_undo_label(self) -> None:
        """Take back the last label of this session."""
        self._change_labels(lambda bench: f"Took back: {bench.file.undo()}.")

    def action_next_question(self, step: int) -> None:
        """Ask the next or the previous question of the label file."""
        from rag_tui.tui.jobs import start

        if self.workbench.index is None:
            self.workbench.warn("There is no index yet.\nIts questions can be asked then.")
            return
        start(self, partial(self._go_to_question, step), "next question")

    def ask_question(self, text: str) -> None:
        """Search for a question as if it had been typed."""
        self.query_bar.put_back(text)
        self.search(text)

    async def _go_to_question(self, step: int) -> None:
        book = await self.desk.read()
        results = self.results
        here = results.request.query if results is not None else self.question
        question = book.neighbour(here, step)
        if question is not None:
            self.ask_question(question.text)
        elif book.problem:
            self.workbench.warn(book.problem)
        else:
            self.workbench.warn(
                f"There are no labelled questions: {book.path} does not exist.\n"
                "Ask one and press r on the row that answers it, or draft some (ctrl+p)."
            )

    def _labelled_question(self) -> str | None:
        if self.results is None or self.workbench.index is None:
            self.workbench.warn("There is no question to label for.\nPress / and ask one.")
            return None
        return self.results.request.query

    def _labelled_chunk(self) -> tuple[str, int, str] | None:
        """Question, position and id of what is to be judged."""
        if (text := self._labelled_question()) is None or self.results is None:
            return None
        chunk = self.chunk
        if chunk is None:
            self.workbench.warn("No chunk is selected.\nPress ↓ to select a row.")
            return None
        return text, self.results.index.position_of[chunk.chunk_id], chunk.chunk_id

    def _change_labels(self, change: Change, then: Callable[[bool], None] | None = None) -> None:
        index = self.results.index if self.results is not None else self.workbench.index
        if index is None:
            self.workbench.warn("There is no index yet.\nLabels can be changed then.")
            return
        self.desk.change(index, change, then)


def _hint(n_questions: int) -> str:
    """What the keys are for; shown where there is room to spare."""
    others = f" · n next of {fmt.count(n_questions, 'labelled question')}" if n_questions else ""
    return f"no labelled question: r on the row that answers it, u if none can{others}"
