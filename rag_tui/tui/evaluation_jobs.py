"""What the Evaluate screen has done in threads: reading questions, asking them, scoring, files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from rag_tui.engine.errors import Cancelled, RagTuiError, UsageError
from rag_tui.engine.evaluation.compare import RunChange, compare_runs
from rag_tui.engine.evaluation.evaluate import EvalProgress
from rag_tui.engine.evaluation.fingerprints import index_fingerprint
from rag_tui.engine.evaluation.score_table import ScoreTable
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.trec import IdKind, read_run, write_qrels, write_run
from rag_tui.engine.evaluation.types import ColumnRun, EvalRun, QuestionSet, Resolved
from rag_tui.engine.events import CancelToken, StageError
from rag_tui.tui.jobs import Post, log

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.run_store import RunStore
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.backend import Backend, Session


class EvaluationAdvanced(Message):
    """How far an evaluation has come; a newer one replaces one that is still waiting."""

    def __init__(self, generation: int, progress: EvalProgress) -> None:
        super().__init__()
        self.generation = generation
        self.progress = progress

    def can_replace(self, message: Message) -> bool:
        """Only the newest state is worth painting."""
        return isinstance(message, EvaluationAdvanced)


class EvaluationFinished(Message):
    """An evaluation ended, whole or as far as it came.

    Args:
        generation: Of the evaluation.
        run: What was asked.
        is_whole: Whether nothing is missing; then it is kept.
        n_known: Lists that had been made before.
        problem: Why it could not be kept; empty: it is, or need not be.
    """

    def __init__(
        self, generation: int, run: EvalRun, *, is_whole: bool, n_known: int, problem: str = ""
    ) -> None:
        super().__init__()
        self.generation = generation
        self.run = run
        self.is_whole = is_whole
        self.n_known = n_known
        self.problem = problem


class EvaluationFailed(Message):
    """An evaluation ended without anything."""

    def __init__(self, generation: int, error: StageError) -> None:
        super().__init__()
        self.generation = generation
        self.error = error


@dataclass(frozen=True, slots=True)
class Labelled:
    """A folder's questions, and where their evidence is in an index."""

    base: Path
    """The folder that the questions are in."""
    questions: QuestionSet
    resolved: Mapping[str, Resolved]
    index: Index

    @property
    def files(self) -> Mapping[str, Sequence[str]]:
        """Question id to the documents of its relevant evidence."""
        return {
            qid: tuple(p.document for p in one.places if p.evidence.grade > 0)
            for qid, one in self.resolved.items()
        }

    @property
    def n_answerable(self) -> int:
        """Questions that something is said to answer."""
        return sum(question.answerable for question in self.questions.questions)


@dataclass(frozen=True, slots=True)
class Scored:
    """A run with its table."""

    run: EvalRun
    table: ScoreTable
    labelled: Labelled
    is_whole: bool = True
    is_kept: bool = False
    """Whether it is a file among the kept runs."""
    n_known: int = 0


def read_labelled(backend: Backend, folder: Path, index: Index) -> Labelled | StageError:
    """The questions of a folder resolved in its index, or why there are none."""
    base = folder if folder.is_dir() else folder.parent
    try:
        questions, resolved = backend.read_question_set(base, index)
    except RagTuiError as error:
        return StageError.from_exception(error)
    return Labelled(base, questions, resolved, index)


def run_evaluation(
    backend: Backend,
    session: Session,
    folder: Path,
    labelled: Labelled,
    request: SearchRequest,
    imported: Sequence[ColumnRun],
    *,
    generation: int,
    post: Post,
    cancel: CancelToken,
) -> None:
    """Ask all questions in all columns and tell it by messages; a whole run is kept at once."""
    try:
        store = backend.run_store(session.settings, folder)
        run: EvalRun | None = None
        n_known = 0
        for item in backend.evaluate(
            labelled.questions, request, labelled.index, session.models, store, cancel=cancel
        ):
            if isinstance(item, EvalProgress):
                n_known = item.n_known
                post(EvaluationAdvanced(generation, item))
            else:
                run = item
        if run is None:
            raise RagTuiError("The evaluation ended without a run.", "Run it again.")
        is_whole = not cancel.is_cancelled
        run = replace(run, columns=(*run.columns, *imported))
        problem = ""
        if is_whole:
            try:
                run = _kept_already(store, run) or store.save(run)
            except RagTuiError as error:
                problem = f"{error.message}\n{error.hint}"
        post(
            EvaluationFinished(generation, run, is_whole=is_whole, n_known=n_known, problem=problem)
        )
    except Cancelled:
        return
    except Exception as error:
        if not isinstance(error, RagTuiError):
            log.exception("evaluation failed")
        post(EvaluationFailed(generation, StageError.from_exception(error)))


def _kept_already(store: RunStore, run: EvalRun) -> EvalRun | None:
    """The newest kept run, when asking again has changed nothing."""
    heads = store.list().runs
    if not heads or heads[-1].index_fingerprint != run.index_fingerprint:
        return None
    kept = store.load(heads[-1].name)
    return kept if _made_of(kept) == _made_of(run) else None


def _made_of(run: EvalRun) -> tuple[object, ...]:
    """What makes two runs the same run: what was asked, how, and what came of it."""
    lists = tuple(
        (
            one.column,
            tuple((q.qid, q.error, tuple(r.chunk_id for r in q.rows)) for q in one.questions),
        )
        for one in run.columns
    )
    return run.questions_fingerprint, run.depth, dict(run.knobs), lists


def score_run(
    labelled: Labelled, run: EvalRun, measures: Sequence[str], baseline: str | EvalRun | None
) -> ScoreTable:
    """Score a run with the labels of now; a baseline column that it lacks is not used."""
    if isinstance(baseline, str) and all(c.column.name != baseline for c in run.columns):
        baseline = None
    return score(run, labelled.resolved, measures, labelled.questions.unit, baseline=baseline)


def compare(labelled: Labelled, before: EvalRun, after: EvalRun, k: int) -> RunChange:
    """What changed from one run to another, with the labels of now."""
    return compare_runs(before, after, labelled.resolved, k=k, unit=labelled.questions.unit)


def import_column(
    path: Path, labelled: Labelled, taken: Sequence[str]
) -> tuple[ColumnRun, tuple[str, ...]]:
    """Another system's run as a column with a name of its own, and what was odd about it.

    Raises:
        UsageError: When the file is not a run.
    """
    found = read_run(path.expanduser(), labelled.questions.questions, labelled.index)
    column = found.column.column
    name, number = column.name, 2
    while name in taken:
        name, number = f"{column.name} {number}", number + 1
    return replace(found.column, column=replace(column, name=name)), found.problems


def run_of_import(column: ColumnRun, labelled: Labelled, folder: Path) -> EvalRun:
    """A run that holds nothing but an imported column."""
    return EvalRun(
        name="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        folder=str(folder),
        index_fingerprint=index_fingerprint(labelled.index),
        questions_fingerprint=labelled.questions.fingerprint,
        depth=max((len(one.rows) for one in column.questions), default=0),
        columns=(column,),
    )


def export_run(path: Path, run: EvalRun, labelled: Labelled) -> tuple[Path, ...]:
    """Write a run as TREC files, one a column, and the labels beside them; returns the paths.

    Raises:
        UsageError: When a file is there already or cannot be written; then nothing is.
    """
    path = path.expanduser()
    ids: IdKind = "chunk" if labelled.questions.unit == "passage" else "record"
    several = len(run.columns) > 1
    targets = [
        (path.with_name(f"{path.stem}-{_slug(c.column.name, i)}{path.suffix}") if several else path)
        for i, c in enumerate(run.columns)
    ]
    qrels = path.with_suffix(".qrels")
    there = [target for target in (*targets, qrels) if target.exists()]
    if there:
        raise UsageError(f"{there[0]} exists already.", "Choose another name.")
    for target, column in zip(targets, run.columns, strict=True):
        write_run(target, column, ids=ids)
    write_qrels(qrels, labelled.resolved.values(), ids=ids)
    return (*targets, qrels)


def _slug(name: str, place: int) -> str:
    """A column's name as a part of a file's name, unique among a run's columns."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return slug if slug == name else f"{place + 1}-{slug or 'column'}"
