"""``rag-tui eval --answers``: answers to all questions, what became of them, and what changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from rag_tui.cli.answers_output import head_json, run_json, share, summary_json, write_run
from rag_tui.cli.evaluation_run import (
    Asked,
    interruptible,
    make_request,
    note_problems,
    open_questions,
)
from rag_tui.cli.output import note, write_json, write_rich
from rag_tui.cli.session import Session
from rag_tui.config import load_settings
from rag_tui.display import count, display, plain
from rag_tui.engine.answer_sources import prompt_columns
from rag_tui.engine.answering import make_answerer
from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.agreement import AnswerLabels, agreement
from rag_tui.engine.evaluation.answer_making import AnswerJob
from rag_tui.engine.evaluation.answer_scoring import (
    compare_answer_runs,
    summarise,
)
from rag_tui.engine.evaluation.answer_store import AnswerStore
from rag_tui.engine.evaluation.answer_types import AnswerProgress, AnswerRun
from rag_tui.engine.evaluation.answers import evaluate_answers
from rag_tui.engine.evaluation.judge import Judge, expected_of
from rag_tui.engine.evaluation.run_store import check_name
from rag_tui.engine.evaluation.types import QuestionSet
from rag_tui.engine.events import CancelToken
from rag_tui.engine.prompt_templates import load_template
from rag_tui.engine.searching import check_request
from rag_tui.engine.types import SearchRequest

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class AnswersWanted:
    """What is to come of an evaluation of answers."""

    is_judged: bool = False
    cost_limit: float | None = None
    save: str = ""
    baseline: str = ""
    """Name of a kept run of answers to compare with."""
    labels: tuple[str, ...] = ()
    """``question id=correct|partly|wrong``; nothing behind ``=`` takes a label back."""
    lists_runs: bool = False
    """Only list the kept runs."""
    as_json: bool = False


def eval_answers_command(asked: Asked, wanted: AnswersWanted) -> int:
    """Open the corpus and its questions, and answer them; see `answers_command`."""
    request, overrides = make_request(asked)
    settings = load_settings(asked.folder, overrides)
    check_request(replace(request, query="question"))
    prompt_columns(request)
    load_template(settings.answer.template)
    if wanted.save:
        check_name(wanted.save)
    opened = open_questions(asked.folder, asked.questions, overrides)
    note_problems(opened.questions)
    return answers_command(opened.session, opened.questions, request, wanted)


def answers_command(
    session: Session, questions: QuestionSet, request: SearchRequest, wanted: AnswersWanted
) -> int:
    """Answer every question, keep the run, and tell what became of it.

    Exit 1 when every answer failed or a judge has no key, 130 when interrupted. Labels given are
    kept first, for the answers of the newest run.
    """
    store = AnswerStore.of(session.settings.engine.cache_dir, session.folder)
    if store.n_damaged:
        note(f"{count(store.n_damaged, 'damaged line')} of earlier answers passed over")
    if wanted.lists_runs:
        return _list_runs(store, as_json=wanted.as_json)
    labels = AnswerLabels(store.folder)
    if wanted.labels:
        _keep_labels(wanted.labels, store, labels)
    before = store.load(wanted.baseline) if wanted.baseline else None
    judge = _judge(session, questions) if wanted.is_judged else None
    token = CancelToken()
    run: AnswerRun | None = None
    with interruptible(token), _asking() as show:
        for item in evaluate_answers(
            questions,
            request,
            session.index,
            session.models,
            make_answerer(session.settings.engine.answer, session.models, os.environ),
            AnswerJob(
                session.settings.engine.answer,
                prices=session.settings.token_prices,
                cost_limit=wanted.cost_limit,
            ),
            store=store,
            judge=judge,
            cancel=token,
        ):
            if isinstance(item, AnswerRun):
                run = item
            else:
                show(item)
    if run is None:
        raise RagTuiError("The evaluation ended without a run.", "Run it again.")
    run = store.save(run, wanted.save)
    change = compare_answer_runs(before, run) if before is not None else None
    agreed = agreement(run, labels)
    if wanted.as_json:
        write_json(run_json(run, labels, change, agreed))
    else:
        write_run(run, labels, change, agreed)
    if token.is_cancelled:
        note("interrupted: what was answered is kept, the same command goes on from there")
        return EXIT_INTERRUPTED
    return EXIT_FAILED if run.rows and all(r.kind == "no answer" for r in run.rows) else 0


def _judge(session: Session, questions: QuestionSet) -> Judge:
    settings = session.settings.engine.answer
    if make_answerer(replace(settings, provider="auto"), session.models, os.environ).name == (
        "extractive"
    ):
        raise RagTuiError(
            "A judge is a language model, and no API key is set.",
            "Set ANTHROPIC_API_KEY, or leave out --judge.",
        )
    n = sum(q.answerable and not expected_of(q) for q in questions.questions)
    if n:
        note(f"{count(n, 'question')} without an expected answer or quote: not judged")
    return Judge(settings, environ=os.environ, prices=session.settings.token_prices)


def _keep_labels(texts: tuple[str, ...], store: AnswerStore, labels: AnswerLabels) -> None:
    """Label the answers of the newest run."""
    runs, _ = store.runs()
    if not runs:
        raise UsageError("There is no run of answers to label.", "Run `rag-tui eval --answers`.")
    rows = {row.qid: row for row in runs[-1].rows}
    for text in texts:
        qid, equals, label = text.rpartition("=")
        if not equals or qid not in rows:
            known = ", ".join(list(rows)[:8])
            raise UsageError(
                f"{text!r} labels no answer of the run {runs[-1].name}.",
                f"Write question=correct, partly or wrong; questions are {known}.",
            )
        labels.put(rows[qid], label)


def _list_runs(store: AnswerStore, *, as_json: bool) -> int:
    runs, damaged = store.runs()
    for remark in damaged:
        note(remark)
    if as_json:
        write_json([{**head_json(run), **summary_json(summarise(run))} for run in runs])
        return 0
    if not runs:
        note("there are no runs of answers yet: `rag-tui eval --answers` makes one")
        return 0
    table = Table(box=None, pad_edge=False)
    for name in ("run", "answers by", "questions", "right section", "refused rightly", "support"):
        table.add_column(name)
    for run in runs:
        summary = summarise(run)
        table.add_row(
            plain(run.name),
            plain(run.answerer),
            f"{summary.n}/{run.n_questions}",
            str(summary.outcomes["right section"]),
            str(summary.outcomes["refused rightly"]),
            share(summary.support.mean if summary.support else None),
        )
    write_rich(table)
    return 0


@contextmanager
def _asking() -> Iterator[Callable[[AnswerProgress], None]]:
    """A progress line on stderr when that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with console.status("") as status:

        def show(progress: AnswerProgress) -> None:
            spent = f", {progress.spent:.4f} {progress.currency}" if progress.spent else ""
            status.update(f"answering {progress.done:,}/{progress.total:,}{display(spent)}")

        yield show
