"""Asking every question of a set in every column, without asking anything twice."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_tui.engine.errors import Cancelled, RagTuiError, UsageError
from rag_tui.engine.evaluation.fingerprints import column_fingerprint, index_fingerprint
from rag_tui.engine.evaluation.finished import ColumnFile, Finished
from rag_tui.engine.evaluation.types import (
    ColumnRun,
    EvalRun,
    Question,
    QuestionRun,
    QuestionSet,
    Retrieved,
)
from rag_tui.engine.events import CancelToken, StageResult
from rag_tui.engine.filters import where_mask
from rag_tui.engine.knobs import KNOBS, column_request, knob
from rag_tui.engine.searching import check_request, search
from rag_tui.engine.types import Column, KnobValue, Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.run_store import RunStore
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

DEFAULT_DEPTH = 100
"""Candidates for each list: enough for recall at 100, the usual depth of a run."""

_log = logging.getLogger("rag_tui.evaluation")


@dataclass(frozen=True, slots=True)
class EvalProgress:
    """How far an evaluation has come."""

    done: int
    """Lists, one per question and column, that are there."""
    total: int
    n_known: int
    """Those that were there before."""
    columns: tuple[str, ...] = ()
    """Columns being asked now."""


def evaluate(
    questions: QuestionSet,
    request: SearchRequest,
    index: Index,
    models: Models,
    *,
    store: RunStore | None = None,
    depth: int = DEFAULT_DEPTH,
    cancel: CancelToken | None = None,
) -> Iterator[EvalProgress | EvalRun]:
    """Progress, and at the end one run with what every column gave for every question.

    Columns without a reranker come first, for all questions. A list that the store knows, by
    question text, column, models, index and filter, is not made again; each new one is kept at
    once. A column that fails for a question carries the error there and is not kept, so the next
    evaluation tries again. A hybrid or reranked list that lost one of its two retrievers is
    such a failure: it is not what the column's name says.

    Once the token is set the run is yielded as far as it has come and the generator ends: what
    was not asked is missing in it.

    Args:
        questions: Unanswerable ones are asked too.
        request: Its columns, knobs and filter; the query does not count.
        index: Searched as it is.
        models: Loaded only when something has to be asked.
        store: Where finished questions are kept; None: nowhere.
        depth: Candidates of each list, in place of the request's; a column's own knob stands.
        cancel: Polled between questions and by every stage.

    Raises:
        UsageError: For a request that makes no sense with any question.
    """
    token = cancel if cancel is not None else CancelToken()
    check_evaluation(request, depth)
    request = _deep(request, depth)
    where_mask(request.where, index)
    columns = columns_of(request)
    job = _Job(questions.questions, request, columns, index, models, store)
    yield job.progress()
    cheap = tuple(column for column in columns if column.method != "reranked")
    dear = tuple(column for column in columns if column.method == "reranked")
    try:
        for group in (cheap, dear):
            for question in questions.questions if group else ():
                token.check()
                if job.ask(question, group, token):
                    yield job.progress(group)
    except Cancelled:
        _log.info("evaluation cancelled after %d of %d lists", job.n_done, job.n_total)
    yield EvalRun(
        name="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        folder=str(index.folder),
        index_fingerprint=job.index_fingerprint,
        questions_fingerprint=questions.fingerprint,
        depth=depth,
        columns=job.column_runs(),
        knobs=_knobs(request, index),
    )


def columns_of(request: SearchRequest) -> tuple[Column, ...]:
    """The columns that an evaluation of this request asks."""
    return tuple(
        column
        for column in request.columns
        if column.method in request.methods
        and (column.method != "reranked" or column_request(request, column).rerank)
    )


def check_evaluation(request: SearchRequest, depth: int) -> None:
    """Refuse what would be refused for every question, before anything is indexed.

    Raises:
        UsageError: Naming the value, the rule and the fix.
    """
    if depth < 1:
        raise UsageError(f"depth must be at least 1 (got {depth}).", "Set it to 100, as is usual.")
    request = replace(_deep(request, depth), query="question")
    check_request(request)
    columns = columns_of(request)
    if not columns:
        raise UsageError(
            "There is no column to evaluate.", "Name methods or columns that the request has."
        )
    for column in columns:
        check_request(column_request(request, column))


def _deep(request: SearchRequest, depth: int) -> SearchRequest:
    return replace(request, depth=depth, top_k=min(request.top_k, depth))


def _knobs(request: SearchRequest, index: Index) -> dict[str, KnobValue]:
    values = {spec.name: knob(request, spec.name) for spec in KNOBS}
    values["models.embedder"] = index.manifest.embedder_name
    if request.where.strip():
        values["where"] = request.where
    return values


class _Job:
    """What is asked, what is known, and what came of it."""

    def __init__(
        self,
        questions: Sequence[Question],
        request: SearchRequest,
        columns: Sequence[Column],
        index: Index,
        models: Models,
        store: RunStore | None,
    ) -> None:
        self._questions = questions
        self._request = request
        self._columns = columns
        self._index = index
        self._models = models
        self.index_fingerprint = index_fingerprint(index)
        self._files: dict[str, ColumnFile] = {}
        if store is not None:
            for column in columns:
                own = column_fingerprint(request, column, index, models)
                if own is not None:
                    self._files[column.name] = store.finished.column(
                        self.index_fingerprint, own, len(index.chunks)
                    )
        self._done: dict[tuple[str, str], QuestionRun] = {}
        self._score_names: dict[str, str] = {}
        self.n_total = len(questions) * len(columns)
        self.n_known = self._take_known()

    @property
    def n_done(self) -> int:
        return len(self._done)

    def progress(self, columns: Sequence[Column] = ()) -> EvalProgress:
        names = tuple(column.name for column in columns)
        return EvalProgress(self.n_done, self.n_total, self.n_known, names)

    def _take_known(self) -> int:
        for name, file in self._files.items():
            for question in self._questions:
                known = file.get(question.text)
                if known is not None:
                    self._done[name, question.qid] = known.as_run(question.qid, self._index)
                    self._score_names[name] = known.score_name
        return len(self._done)

    def ask(self, question: Question, group: Sequence[Column], token: CancelToken) -> bool:
        """Ask one question in those columns of a group that do not know it; whether any was."""
        missing = tuple(c for c in group if (c.name, question.qid) not in self._done)
        if not missing:
            return False
        request = replace(
            self._request,
            query=question.text,
            columns=missing,
            methods=tuple({column.method: None for column in missing}),
        )
        given: set[str] = set()
        try:
            for result in search(request, self._index, self._models, cancel=token):
                if result.ranking is not None and result.ranking.n_waiting:
                    continue
                given.add(result.stage)
                self._keep(question, result)
        except RagTuiError as error:  # such as a question of thousands of words
            self._fail(question, missing, given, error.message)
        else:
            self._fail(question, missing, given, "the search ended without this list")
        return True

    def _fail(
        self, question: Question, columns: Sequence[Column], given: set[str], reason: str
    ) -> None:
        for column in columns:
            if column.name not in given:
                run = QuestionRun(question.qid, error=reason)
                self._done[column.name, question.qid] = run

    def _keep(self, question: Question, result: StageResult) -> None:
        ranking = result.ranking
        key = (result.stage, question.qid)
        if ranking is None:
            reason = result.error.message if result.error is not None else "no list"
            self._done[key] = QuestionRun(question.qid, error=reason, elapsed_s=result.elapsed_s)
            return
        lost = _lost_retriever(ranking)
        if lost:
            self._done[key] = QuestionRun(question.qid, error=lost, elapsed_s=result.elapsed_s)
            return
        self._done[key] = QuestionRun(
            question.qid, _rows(ranking, self._index), "", result.elapsed_s
        )
        self._score_names[result.stage] = ranking.score_kind.name
        file = self._files.get(result.stage)
        if file is None:
            return
        finished = Finished(
            tuple(hit.position for hit in ranking.hits),
            tuple(hit.score for hit in ranking.hits),
            ranking.score_kind.name,
            result.elapsed_s,
        )
        try:
            file.put(question.text, finished)
        except OSError:  # a full disk costs asking again, never the evaluation
            _log.warning("a finished question could not be kept", exc_info=True)
            del self._files[result.stage]

    def column_runs(self) -> tuple[ColumnRun, ...]:
        """Every column with the questions it was asked, in the order of both."""
        return tuple(
            ColumnRun(
                column,
                self._score_names.get(column.name, ""),
                tuple(
                    self._done[column.name, question.qid]
                    for question in self._questions
                    if (column.name, question.qid) in self._done
                ),
            )
            for column in self._columns
        )


def _rows(ranking: Ranking, index: Index) -> tuple[Retrieved, ...]:
    rows = []
    for hit in ranking.hits:
        chunk = index.chunks[hit.position]
        rows.append(Retrieved(chunk.chunk_id, chunk.doc_id, chunk.start, chunk.end, hit.score))
    return tuple(rows)


def _lost_retriever(ranking: Ranking) -> str:
    """Why a fused list, or one reranked from it, is made of one retriever only; else nothing."""
    for only in ("keyword only: ", "vector only: "):
        if ranking.method in ("hybrid", "reranked") and ranking.note.startswith(only):
            return ranking.note
    return ""
