"""Asking every question of a set, and what became of each answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rag_tui.engine.answer_sources import PromptChunks, chunks_for_prompt, prompt_columns
from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.evaluation.answer_making import (
    AnswerJob,
    count_checks,
    final_answer,
    models_of,
    prompt_of,
    source_refs,
    wait_for,
    with_outcome,
)
from rag_tui.engine.evaluation.answer_types import (
    AnswerProgress,
    AnswerRow,
    AnswerRun,
    CheckCounts,
    Judgement,
)
from rag_tui.engine.evaluation.fingerprints import index_fingerprint
from rag_tui.engine.evaluation.judge import RUBRIC_VERSION, Judge, expected_of
from rag_tui.engine.evaluation.refusals import answer_kind
from rag_tui.engine.evaluation.resolving import resolve_all
from rag_tui.engine.evaluation.types import Question, QuestionSet, Resolved
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import text_hash
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.prompt_request import request_body
from rag_tui.engine.prompting import prompt_tokens
from rag_tui.engine.searching import check_request
from rag_tui.engine.types import Prompt, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.answer_store import AnswerStore
    from rag_tui.engine.index import Index
    from rag_tui.engine.llms.base import Answerer
    from rag_tui.engine.loading import Models

MAX_FAILURES_IN_A_ROW = 5
"""After so many an evaluation ends: what is wrong is wrong for all."""

_CHECKS_VERSION = 1


def evaluate_answers(
    questions: QuestionSet,
    request: SearchRequest,
    index: Index,
    models: Models,
    answerer: Answerer,
    job: AnswerJob,
    *,
    store: AnswerStore,
    judge: Judge | None = None,
    cancel: CancelToken | None = None,
) -> Iterator[AnswerProgress | AnswerRun]:
    """Progress after each question, and at the end one run, which is not saved yet.

    Each finished answer is in the store before the next question is asked, by the question, the
    prompt's text, the answerer and its settings: a second pass asks only what is missing. Answers
    that failed are not kept, and so are asked again. Outcomes are worked out anew from the labels
    each time, so mended labels cost no answer.

    A question is asked only while the limit cannot be passed by it: what was spent, the prompt
    by estimate, and the longest answer allowed (and the judge's) must fit. Once the limit,
    a cancel or `MAX_FAILURES_IN_A_ROW` ends the pass, the run holds what there is and says why.

    Args:
        questions: Unanswerable ones are asked too.
        request: Columns, knobs and filter; the query does not count.
        index: Searched as it is.
        models: For the search and the checks.
        answerer: Who answers.
        job: The answer's settings, prices and limit.
        store: Where answers are kept.
        judge: Judges answers to answerable questions that say what is expected; None: nobody.
        cancel: Polled ten times a second, also while an answer is under way.

    Raises:
        UsageError: For a request, column, template or limit that makes no sense.
        RagTuiError: When the store cannot be written.
    """
    if job.cost_limit is not None and not (math.isfinite(job.cost_limit) and job.cost_limit >= 0):
        raise UsageError(
            f"The cost limit must be 0 or more (got {job.cost_limit}).", "Give an amount such as 1."
        )
    prompt_columns(request, job.column)
    check_request(replace(request, query="question"))
    asking = _Asking(request, index, models, answerer, job, store, judge, cancel or CancelToken())
    resolved = resolve_all(questions.questions, index)
    total = len(questions.questions)
    rows: list[AnswerRow] = []
    stopped = ""
    yield AnswerProgress(0, total, 0, 0.0, job.prices.currency)
    try:
        for question in questions.questions:
            asking.cancel.check()
            row = asking.row(question, resolved[question.qid])
            rows.append(row)
            yield AnswerProgress(
                len(rows), total, asking.n_known, asking.spent, job.prices.currency, row
            )
            if asking.stopped:
                raise _Stopped(asking.stopped)
    except Cancelled:
        stopped = "cancelled"
    except _Stopped as reason:
        stopped = str(reason)
    yield AnswerRun(
        name="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        folder=str(index.folder),
        answerer=answerer.name,
        index_fingerprint=index_fingerprint(index),
        questions_fingerprint=questions.fingerprint,
        rows=tuple(rows),
        n_questions=total,
        n_known=asking.n_known,
        spent=asking.spent,
        currency=job.prices.currency,
        stopped=stopped,
        settings=_settings(job, request, judge),
    )


class _Stopped(Exception):  # noqa: N818 - control flow, not a failure
    """Why no further question is asked."""


class _Asking:
    """One pass."""

    def __init__(
        self,
        request: SearchRequest,
        index: Index,
        models: Models,
        answerer: Answerer,
        job: AnswerJob,
        store: AnswerStore,
        judge: Judge | None,
        cancel: CancelToken,
    ) -> None:
        self._request = request
        self._index = index
        self._models = models
        self._answerer = answerer
        self._job = job
        self._store = store
        self._judge = judge
        self.cancel = cancel
        self.spent = 0.0
        self.n_known = 0
        self.stopped = ""
        """Why no further question is to be asked."""
        self._n_failures = 0
        self._is_free = isinstance(answerer, ExtractiveAnswerer)
        self._made_by = models_of(models) if self._is_free else ""

    def row(self, question: Question, resolved: Resolved) -> AnswerRow:
        found = chunks_for_prompt(
            replace(self._request, query=question.text),
            self._index,
            self._models,
            n_sources=self._job.settings.n_sources,
            column=self._job.column,
            cancel=self.cancel,
        )
        prompt = prompt_of(question.text, found, self._job.settings)
        key = self._key(prompt)
        row = self._store.answer(key)
        if row is not None:
            self.n_known += 1
            row = replace(row, qid=question.qid, is_answerable=question.answerable)
        else:
            row = self._asked(question, prompt, found, key)
        row = with_outcome(row, resolved)
        return replace(row, judgement=self._judged(question, row))

    def _key(self, prompt: Prompt) -> str:
        body = request_body(prompt, self._job.settings)
        if self._is_free:
            body.pop("model")
            body.pop("max_tokens")
            body["not_found_below"] = self._job.settings.not_found_below
        parts = [prompt.question, self._answerer.name, body, self._made_by, _CHECKS_VERSION]
        return text_hash(json.dumps([*parts, self._job.is_checked], sort_keys=True))

    def _asked(
        self, question: Question, prompt: Prompt, found: PromptChunks, key: str
    ) -> AnswerRow:
        prices = self._job.prices
        most = 0.0
        if prompt.sources and not self._is_free:
            limit = self._job.settings.max_tokens
            most = (prompt_tokens(prompt) * prices.input + limit * prices.output) / 1e6
        self._afford(most)
        final = wait_for(final_answer(prompt, self._answerer, prices), self.cancel)
        self.spent += final.cost or 0.0
        kind = answer_kind(final, prompt.not_found)
        checks = CheckCounts()
        if self._job.is_checked and kind in ("answered", "hedged"):
            checks = count_checks(final, prompt, self._models, self.cancel)
        row = AnswerRow(
            key=key,
            qid=question.qid,
            question=question.text,
            is_answerable=question.answerable,
            text=final.text,
            state=final.state,
            kind=kind,
            outcome="unjudged",
            answerer=final.answerer,
            sources=source_refs(prompt, self._index),
            cited=final.cited,
            unknown=final.unknown,
            detail="; ".join(part for part in (final.detail, *found.notes) if part),
            checks=checks,
            elapsed_s=final.elapsed_s,
            input_tokens=final.input_tokens,
            output_tokens=final.output_tokens,
            cost=final.cost,
            column=found.column,
            not_found=prompt.not_found,
        )
        if final.state in ("failed", "ended early"):
            self._n_failures += 1
            if self._n_failures >= MAX_FAILURES_IN_A_ROW:
                self.stopped = (
                    f"{self._n_failures} answers failed one after the other, the last: "
                    f"{final.detail}"
                )
        else:
            self._n_failures = 0
            if not found.notes:  # a column that failed may do better next time
                self._store.put_answer(row)
        return row

    def _judged(self, question: Question, row: AnswerRow) -> Judgement | None:
        expected = expected_of(question)
        if self._judge is None or not question.answerable or not expected:
            return None
        if row.kind not in ("answered", "hedged"):
            return None
        key = self._judge.key(question.text, expected, row.text)
        known = self._store.judgement(key)
        if known is not None:
            return known
        most = self._judge.estimated_cost(question.text, expected, row.text, self._job.prices)
        try:
            self._afford(most)
        except _Stopped as reason:
            self.stopped = str(reason)  # the answer is there, and stays
            return None
        judgement = wait_for(self._judge.judge(question.text, expected, row.text), self.cancel)
        self.spent += judgement.cost or 0.0
        # Without tokens nobody replied: that is no judgement to be kept.
        if judgement.verdict != "no verdict" or judgement.output_tokens:
            self._store.put_judgement(key, judgement)
        return judgement

    def _afford(self, most: float) -> None:
        limit = self._job.cost_limit
        if limit is None or not most or self.spent + most <= limit:
            return
        unit = self._job.prices.currency
        raise _Stopped(
            f"the cost limit of {limit:g} {unit}: {self.spent:.4f} {unit} are spent, and the next "
            f"question may cost up to {most:.4f} {unit}"
        )


def _settings(job: AnswerJob, request: SearchRequest, judge: Judge | None) -> Mapping[str, Any]:
    values = asdict(job.settings)
    values.pop("base_url", None)  # an address may hold a password
    values = {f"answer.{name}": value for name, value in values.items()}
    values["column"] = job.column
    values["where"] = request.where
    if judge is not None:
        values["judge"] = f"{judge.name} by {RUBRIC_VERSION}"
    return values
