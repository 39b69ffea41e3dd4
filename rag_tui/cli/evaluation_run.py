"""Opening a corpus with its questions and running them, for every command of the evaluation."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from rich.console import Console

from rag_tui.cli.knob_options import parse_knobs, with_options
from rag_tui.cli.output import note
from rag_tui.cli.session import Session, open_session
from rag_tui.config import bundled_corpus, load_settings
from rag_tui.display import display
from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.evaluate import EvalProgress, columns_of, evaluate
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import resolve_all
from rag_tui.engine.evaluation.run_store import RunStore
from rag_tui.engine.evaluation.trec import read_run
from rag_tui.engine.evaluation.types import EvalRun, QuestionSet, Resolved
from rag_tui.engine.events import CancelToken
from rag_tui.engine.indexing_files import check_folder
from rag_tui.engine.types import METHODS, SearchRequest

_SECTIONS = ("chunking", "loading", "models")
"""Settings that are no knobs of a search, and may be given like one: they change the index."""

N_PROBLEMS = 5
"""So many problems of a file are named; `rag-tui questions check` names all."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides an evaluation, as it was typed."""

    folder: Path | None = None
    questions: Path | None = None
    methods: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    preset: str = ""
    depth: int = 100
    where: str = ""
    no_rerank: bool = False
    runs: tuple[Path, ...] = ()
    """Runs of other systems, as TREC files."""
    overrides: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A corpus, its questions, and where the questions' evidence is in it."""

    session: Session
    questions: QuestionSet
    resolved: Mapping[str, Resolved]
    store: RunStore


def open_questions(
    folder: Path | None, questions: Path | None, overrides: Mapping[str, object] | None = None
) -> Opened:
    """Read the questions before anything is indexed, then open the corpus and find the evidence."""
    place = questions if questions is not None else _beside(folder)
    read_questions(place)  # a file that is no use is told before minutes of embedding
    session = open_session(folder, overrides or {})
    found = read_questions(place, index=session.index)
    return Opened(
        session=session,
        questions=found,
        resolved=resolve_all(found.questions, session.index),
        store=RunStore.of(session.settings.engine.cache_dir, session.folder),
    )


def _beside(folder: Path | None) -> Path:
    path = (folder if folder is not None else bundled_corpus()).expanduser()
    check_folder(path)
    return path if path.is_dir() else path.parent


def note_problems(questions: QuestionSet) -> None:
    """Name the first problems of a question file on stderr."""
    for problem in questions.problems[:N_PROBLEMS]:
        note(problem)
    rest = len(questions.problems) - N_PROBLEMS
    if rest > 0:
        note(f"and {rest:,} more: `rag-tui questions check` names them")


def make_request(asked: Asked) -> tuple[SearchRequest, dict[str, object]]:
    """The request of an evaluation, and the settings that its knobs change.

    Raises:
        UsageError: For a knob, column, method or preset that does not exist or cannot be read.
    """
    index_knobs = [text for text in asked.knobs if text.partition(".")[0] in _SECTIONS]
    overrides = {**(asked.overrides or {}), **parse_knobs(index_knobs)}
    settings = load_settings(asked.folder, overrides)
    request = with_options(
        settings.request(""),
        settings.presets,
        preset=asked.preset,
        flags={},
        knobs=[text for text in asked.knobs if text not in index_knobs],
        columns=asked.columns,
    )
    if asked.methods:
        unknown = [name for name in asked.methods if name not in METHODS]
        if unknown:
            raise UsageError(
                f"There is no method {unknown[0]!r}.", f"Methods are: {', '.join(METHODS)}."
            )
        request = replace(request, methods=tuple(m for m in METHODS if m in asked.methods))
    if asked.no_rerank:
        request = replace(request, rerank=False)
    return replace(request, where=asked.where), overrides


def ask_all(opened: Opened, request: SearchRequest, asked: Asked) -> tuple[EvalRun, bool]:
    """Run every question in every column, and add the runs of other systems.

    Returns:
        The run, and whether it is whole: False when it was interrupted.
    """
    imported = []
    for path in asked.runs:
        found = read_run(path, opened.questions.questions, opened.session.index)
        for problem in found.problems[:N_PROBLEMS]:
            note(problem)
        imported.append(found.column)
    taken = [column.name for column in columns_of(request)]
    for column in imported:
        if column.column.name in taken:
            raise UsageError(
                f"There are two columns called {column.column.name!r}.",
                "Change the tag in the run's last column, or name your own with --column.",
            )
        taken.append(column.column.name)
    token = CancelToken()
    run: EvalRun | None = None
    n_known = 0
    with interruptible(token), asking() as show:
        for item in evaluate(
            opened.questions,
            request,
            opened.session.index,
            opened.session.models,
            store=opened.store,
            depth=asked.depth,
            cancel=token,
        ):
            if isinstance(item, EvalRun):
                run = item
            else:
                n_known = item.n_known
                show(item)
    if run is None:
        raise RagTuiError("The evaluation ended without a run.", "Run it again.")
    if n_known:
        note(f"{n_known:,} lists were known from earlier evaluations")
    return replace(run, columns=(*run.columns, *imported)), not token.is_cancelled


@contextmanager
def interruptible(token: CancelToken) -> Iterator[None]:
    """Let the first ctrl+c stop the work at a good place; the second one stops at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        if token.is_cancelled:
            raise KeyboardInterrupt
        token.cancel()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not in the main thread: whoever started us handles it
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def asking() -> Iterator[Callable[[EvalProgress], None]]:
    """A progress line on stderr when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with console.status("") as status:

        def show(progress: EvalProgress) -> None:
            names = display(", ".join(progress.columns))
            status.update(f"asking {progress.done:,}/{progress.total:,} {names}")

        yield show
