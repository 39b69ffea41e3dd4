"""The labelled questions of the folder that is open: what they say about lists, and changing them.

Reading and writing happen in threads, one change after the other in the order of the keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.signal import Signal
from textual.worker import WorkType

from rag_tui.engine.documents.beir import QUESTIONS
from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.judging import judge_rows
from rag_tui.engine.evaluation.labels import LabelFile
from rag_tui.engine.evaluation.measures import Measure
from rag_tui.engine.evaluation.question_rows import typed_id
from rag_tui.engine.evaluation.question_sets import is_beir
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import Resolver, grade_at
from rag_tui.engine.evaluation.types import Question, Resolved, Retrieved, Unit

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import Ranking
    from rag_tui.tui.app import RagTuiApp

_OTHER_FORMATS = (".json", ".toml", ".csv")
Stamp = tuple[tuple[str, int, int, int], ...]


def words_of(text: str) -> str:
    """A question for comparing: blank space and case do not count."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class LabelBook:
    """The questions of a folder as they were read last."""

    path: Path
    """Where labels are written."""
    questions: tuple[Question, ...] = ()
    problem: str = ""
    """Why the file there is gave no question; empty when there is none or it did."""
    stamp: Stamp = ()
    by_words: Mapping[str, int] = field(default_factory=dict)
    """Place in ``questions`` by `words_of`."""

    def find(self, text: str) -> Question | None:
        """The question with these words."""
        place = self.by_words.get(words_of(text))
        return None if place is None else self.questions[place]

    def place(self, text: str) -> int | None:
        """Its 1-based number in the file."""
        place = self.by_words.get(words_of(text))
        return None if place is None else place + 1

    def neighbour(self, text: str, step: int) -> Question | None:
        """The question before or after this one, around the ends; None without questions."""
        if not self.questions:
            return None
        here = self.by_words.get(words_of(text))
        if here is None:
            here = -1 if step > 0 else 0
        return self.questions[(here + step) % len(self.questions)]


def read_book(folder: Path, known: LabelBook | None = None) -> LabelBook:
    """The labelled questions of a folder, or of the folder a single file is in.

    Labels are written to ``questions.jsonl``; a BEIR data set or a question file of another format
    beside it is read as well, and the evidence of a question in both is taken together.

    Args:
        folder: The corpus.
        known: What was read before; given back when no file has changed since.
    """
    base = folder if folder.is_dir() else folder.parent
    path = base / QUESTIONS
    others = [path.with_suffix(suffix) for suffix in _OTHER_FORMATS]
    stamp = _stamp(path, base / "queries.jsonl", *others)
    if known is not None and known.path == path and known.stamp == stamp:
        return known
    sources = [path] if path.exists() else []
    if is_beir(base):
        sources.append(base)
    else:
        sources += [other for other in others if other.is_file()][:1]
    found: dict[str, Question] = {}
    problem = ""
    for source in sources:
        try:
            questions = read_questions(source).questions
        except RagTuiError as error:
            problem = problem or error.message
            continue
        for question in questions:
            own = found.get(question.qid)
            if own is None:
                found[question.qid] = question
            elif words_of(own.text) == words_of(question.text):
                evidence = dict.fromkeys((*own.evidence, *question.evidence))
                found[question.qid] = replace(own, evidence=tuple(evidence))
    by_words: dict[str, int] = {}
    for i, question in enumerate(found.values()):
        by_words.setdefault(words_of(question.text), i)
    return LabelBook(path, tuple(found.values()), problem, stamp, by_words)


def _stamp(*paths: Path) -> Stamp:
    found = []
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            continue
        # Two changes within one tick of the clock differ in the inode: each makes a new file.
        found.append((path.name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Marks:
    """What the labels of one question say about the chunks of one index."""

    words: str
    """`words_of` the question they are for."""
    index: Index
    book: LabelBook
    resolved: Resolved | None = None
    """None: the question is not in the file."""
    grades: Mapping[str, int] = field(default_factory=dict)
    """Chunk id to grade; chunks that nobody judged are absent."""

    @property
    def gold(self) -> Mapping[str, str]:
        """Chunk id to the mark of its row: ``✓``, with the grade where grades differ; ``✗``."""
        is_graded = any(grade > 1 for grade in self.grades.values())
        return {
            chunk_id: ("✓" + (str(grade) if is_graded else "")) if grade > 0 else "✗"
            for chunk_id, grade in self.grades.items()
        }

    @property
    def unit(self) -> Unit:
        """What is judged."""
        evidence = self.resolved.question.evidence if self.resolved is not None else ()
        return "document" if evidence and all(one.is_document for one in evidence) else "passage"

    def standing(self, ranking: Ranking) -> str:
        """Where the first relevant chunk stands in a list; empty when there is none anywhere."""
        if not any(grade > 0 for grade in self.grades.values()):
            return ""
        relevant = (h.rank for h in ranking.hits if self.grades.get(h.chunk_id, 0) > 0)
        rank = min(relevant, default=None)
        if rank is not None:
            return f"✓ at {rank}"
        if len(ranking.hits) < ranking.depth:
            return f"✓ not among the {len(ranking.hits)}"
        return f"✓ not in the first {ranking.depth}"

    def recall(self, ranking: Ranking, k: int) -> float | None:
        """``R@k`` of a list; None when nothing relevant is known."""
        if self.resolved is None:
            return None
        judged = judge_rows(retrieved(ranking, self.index), self.resolved, self.unit)
        return Measure("R", k).value(judged)


def marks_of(text: str, book: LabelBook, resolver: Resolver) -> Marks:
    """What the labels say about an index for a question."""
    marks = Marks(words_of(text), resolver.index, book)
    question = book.find(text)
    if question is None:
        return marks
    resolved = resolver.resolve(question)
    held = sorted({position for place in resolved.places for position in place.positions})
    chunks = resolver.index.chunks
    grades = {chunks[position].chunk_id: grade_at(resolved, position) or 0 for position in held}
    return replace(marks, resolved=resolved, grades=grades)


def retrieved(ranking: Ranking, index: Index, n: int | None = None) -> tuple[Retrieved, ...]:
    """The first rows of a list as the evaluation takes them."""
    rows = []
    for hit in ranking.hits[:n]:
        chunk = index.chunks[hit.position]
        rows.append(Retrieved(hit.chunk_id, chunk.doc_id, chunk.start, chunk.end, hit.score))
    return tuple(rows)


def short_share(value: float | None) -> str:
    """A share in few characters: ``1.00``, ``.33``; ``–`` where it is not known."""
    return "–" if value is None else f"{value:.2f}".removeprefix("0")


@dataclass(frozen=True, slots=True)
class Bench:
    """What a change needs; made in the thread that changes, from the file as it is then."""

    file: LabelFile
    resolver: Resolver
    book: LabelBook

    def question(self, text: str) -> Question:
        """The question in the file, or one that is to be added."""
        words = " ".join(text.split())
        if not words:
            raise UsageError("There is no question to label for.", "Press / and ask one.")
        return self.book.find(words) or Question(typed_id(words), words)

    def grade(self, text: str, position: int) -> int | None:
        """What a chunk is judged now; None: unjudged."""
        return grade_at(self.resolver.resolve(self.question(text)), position)

    def judge(self, text: str, position: int, grade: int) -> None:
        """Judge a chunk for a question."""
        self.file.judge(self.question(text), position, self.resolver, grade)

    def accept(self, text: str, position: int) -> int:
        """Add a drafted question with the chunk as its evidence.

        One that is in the file already only gets the evidence. Returns how many changes that
        were, so many are to be undone to take it back.
        """
        if self.book.find(text) is not None:
            if (self.grade(text, position) or 0) > 0:
                return 0
            self.judge(text, position, 1)
            return 1
        qid = self.file.add(text, synthetic=True)
        try:
            self.file.judge(Question(qid, " ".join(text.split())), position, self.resolver, 1)
        except UsageError:
            self.file.undo()  # a question without evidence is of no use
            raise
        return 2


Change = Callable[[Bench], str]
"""Changes the file and says what there is to tell about it; empty: nothing."""


class LabelDesk:
    """The app's way to the label file: one change at a time, each on disk before the next."""

    def __init__(self, app: RagTuiApp) -> None:
        self.app = app
        self.book: LabelBook | None = None
        self.changed: Signal[LabelBook] = Signal(app, "labels changed")
        self._file: LabelFile | None = None
        self._resolver: Resolver | None = None
        self._turn = asyncio.Lock()

    async def read(self) -> LabelBook:
        """The questions as the files are now."""
        from rag_tui.tui.jobs import in_thread

        folder, known = self.app.folder, self.book
        self.book = await in_thread(lambda _: self.app.backend.read_labels(folder, known), "labels")
        return self.book

    async def marks(self, text: str, index: Index) -> Marks:
        """What the labels say for a question."""
        from rag_tui.tui.jobs import in_thread

        book = await self.read()
        resolver = self.resolver(index)
        return await in_thread(lambda _: marks_of(text, book, resolver), "labels")

    def resolver(self, index: Index) -> Resolver:
        """The resolver of an index; the last one is kept."""
        if self._resolver is None or self._resolver.index is not index:
            self._resolver = Resolver(index)
        return self._resolver

    def change(
        self, index: Index, change: Change, then: Callable[[bool], None] | None = None
    ) -> None:
        """Change the file after all changes that were asked for before; errors become toasts.

        Args:
            index: The positions in the change are those of this index.
            change: Runs in a thread.
            then: Told on the app's thread whether it was done.
        """

        async def work() -> None:
            is_done = await self._change(index, change)
            if then is not None:
                then(is_done)

        coroutine_function: WorkType[None] = work
        self.app.run_worker(
            coroutine_function,
            name="labelling",
            group="labelling",
            exclusive=False,
            exit_on_error=False,
        )

    async def _change(self, index: Index, change: Change) -> bool:
        from rag_tui.tui.jobs import in_thread

        app = self.app
        resolver, folder = self.resolver(index), app.folder

        def work() -> tuple[str, LabelBook]:
            book = app.backend.read_labels(folder, self.book)
            if self._file is None:
                self._file = LabelFile(book.path)
            told = change(Bench(self._file, resolver, book))
            return told, app.backend.read_labels(folder, book)

        async with self._turn:
            try:
                told, book = await in_thread(lambda _: work(), "labelling")
            except RagTuiError as error:
                app.warn(f"{error.message}\n{error.hint}")
                return False
        self.book = book
        app.tell(told)
        self.changed.publish(book)
        return True


def desk_of(app: RagTuiApp) -> LabelDesk:
    """The app's desk; made when first wanted."""
    if app.label_desk is None:
        app.label_desk = LabelDesk(app)
    return app.label_desk


def unjudged(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Questions that nothing was judged for."""
    return tuple(one for one in questions if one.answerable and not one.evidence)
