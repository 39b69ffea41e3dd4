"""One setting measured: its lists against the labels, its time, its prompts, its overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.answer_sources import PromptChunks, neighbours_of
from rag_tui.engine.evaluation.answer_making import prompt_of
from rag_tui.engine.evaluation.judged_columns import judge_column
from rag_tui.engine.evaluation.measures import Measure
from rag_tui.engine.evaluation.sweep_types import Measured, SpanMeans
from rag_tui.engine.evaluation.token_measures import Ints, span_scores, wanted_spans
from rag_tui.engine.evaluation.types import ColumnRun, Question, Resolved, Unit
from rag_tui.engine.events import CancelToken
from rag_tui.engine.filters import where_mask
from rag_tui.engine.knobs import column_request
from rag_tui.engine.prompting import prompt_tokens
from rag_tui.engine.searching import search
from rag_tui.engine.types import SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.chunkers.base import TokenCounter
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models
    from rag_tui.engine.settings import AnswerSettings

N_TIMED = 5
"""Questions that are asked afresh for the latency, spread evenly over the set."""


class TokenStarts(dict[str, "Ints"]):
    """Where the tokens of documents begin, counted when first wanted; for one corpus.

    Args:
        index: Any index of the corpus.
        counter: The embedding model's tokens.
    """

    def __init__(self, index: Index, counter: TokenCounter) -> None:
        super().__init__()
        self._index = index
        self._counter = counter

    def __missing__(self, document: str) -> Ints:
        found = self._index.document_of.get(document)
        spans = self._counter.spans(found.text) if found is not None else []
        starts = np.asarray([start for start, _ in spans], np.int64)
        self[document] = starts
        return starts


def measure_column(
    column: ColumnRun,
    request: SearchRequest,
    index: Index,
    resolved: Mapping[str, Resolved],
    measure: Measure,
    unit: Unit,
    starts: TokenStarts,
    answer: AnswerSettings,
) -> Measured:
    """All that a setting's lists say, without their time.

    Args:
        column: The lists.
        request: What they were asked with.
        index: What they were asked of.
        resolved: The labels in this very index.
        measure: The metric.
        unit: What is judged.
        starts: Where tokens begin.
        answer: How prompts are made: ``n_sources``, template, order.
    """
    ids = [qid for qid, one in resolved.items() if one.question.answerable and one.is_judged]
    values = judge_column(column, resolved, ids, (measure,), unit).values[measure]
    return Measured(
        values={qid: value for qid, value in values.items() if value is not None},
        failed={run.qid: run.error for run in column.questions if run.error and run.qid in ids},
        prompt_tokens=_prompt_tokens(column, request, index, resolved, answer),
        spans=_spans(column, resolved, ids, starts, answer.n_sources)
        if unit == "passage"
        else None,
        n_chunks=len(index.chunks),
    )


def latency_ms(
    questions: Sequence[Question],
    request: SearchRequest,
    index: Index,
    models: Models,
    cancel: CancelToken,
) -> float | None:
    """The median time of a search for the request's columns, in milliseconds.

    Each question is asked with nothing remembered of it; one is asked before, so that what an
    index makes once, such as postings for another analyzer, is made. None when any fails.
    """
    step = max(1, len(questions) // N_TIMED)
    chosen = list(questions[::step])[:N_TIMED]
    times = []
    for i, question in enumerate([chosen[-1], *chosen] if chosen else ()):
        fresh = models.afresh()
        asked = replace(request, query=question.text)
        started = perf_counter()
        is_complete = all(r.error is None for r in search(asked, index, fresh, cancel=cancel))
        if not is_complete:
            return None
        if i:
            times.append((perf_counter() - started) * 1000)
    return median(times) if times else None


def _prompt_tokens(
    column: ColumnRun,
    request: SearchRequest,
    index: Index,
    resolved: Mapping[str, Resolved],
    answer: AnswerSettings,
) -> float | None:
    """The mean estimate over all questions with a list."""
    n_around = column_request(request, column.column).post.neighbours
    allowed = where_mask(request.where, index)
    sizes = []
    for run in column.questions:
        if run.error or run.qid not in resolved:
            continue
        chunks = tuple(index.chunk(row.chunk_id) for row in run.rows[: answer.n_sources])
        found = PromptChunks(chunks, "", neighbours_of(chunks, index, n_around, allowed))
        sizes.append(prompt_tokens(prompt_of(resolved[run.qid].question.text, found, answer)))
    return sum(sizes) / len(sizes) if sizes else None


def _spans(
    column: ColumnRun,
    resolved: Mapping[str, Resolved],
    ids: Sequence[str],
    starts: TokenStarts,
    k: int,
) -> SpanMeans | None:
    by_id = {run.qid: run for run in column.questions if not run.error}
    found = [
        scores
        for qid in ids
        if qid in by_id
        and (
            scores := span_scores(
                by_id[qid].rows, wanted_spans(resolved[qid]), token_starts=starts, k=k
            )
        )
    ]
    if not found:
        return None
    return SpanMeans(
        recall=sum(one.recall for one in found) / len(found),
        precision=sum(one.precision for one in found) / len(found),
        iou=sum(one.iou for one in found) / len(found),
        unit=found[0].unit,
    )
