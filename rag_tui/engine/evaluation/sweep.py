"""Trying settings on labelled questions, without believing the best of them more than it deserves.

Only what a setting changes is computed anew: index variants are outermost, embeddings go through
the cache, lists through the stage cache. A finished setting is kept at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.evaluation.evaluate import (
    DEFAULT_DEPTH,
    EvalProgress,
    evaluate,
)
from rag_tui.engine.evaluation.fingerprints import (
    column_fingerprint,
    index_fingerprint,
)
from rag_tui.engine.evaluation.measures import Measure, parse_measure
from rag_tui.engine.evaluation.resolving import resolve_all
from rag_tui.engine.evaluation.sweep_measuring import TokenStarts, latency_ms, measure_column
from rag_tui.engine.evaluation.sweep_scores import check_folds, judge_settings
from rag_tui.engine.evaluation.sweep_space import Space
from rag_tui.engine.evaluation.sweep_tries import Try, alone, fixed_knobs, tries_of
from rag_tui.engine.evaluation.sweep_types import (
    Measured,
    Phase,
    SettingScore,
    SweepProgress,
    SweepResult,
)
from rag_tui.engine.evaluation.sweep_variants import cut_anew
from rag_tui.engine.evaluation.types import EvalRun, QuestionSet, Resolved
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.knobs import column_request
from rag_tui.engine.stage_cache import MAX_ENTRIES, MAX_ROWS, StageCache
from rag_tui.engine.types import SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.sweep_store import SweepFile, SweepStore
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models
    from rag_tui.engine.settings import EngineSettings

__all__ = ["SweepProgress", "SweepResult", "sweep"]

_LISTS = 8
"""Lists a question that are remembered: the settings that share them follow each other."""
_MOST_ROWS = 2_000_000

_log = logging.getLogger("rag_tui.evaluation")


def sweep(
    space: Space,
    questions: QuestionSet,
    request: SearchRequest,
    settings: EngineSettings,
    index: Index,
    models: Models,
    *,
    metric: str = "nDCG@10",
    column: str = "hybrid",
    folds: int = 5,
    depth: int = DEFAULT_DEPTH,
    store: SweepStore | None = None,
    cancel: CancelToken | None = None,
) -> Iterator[SweepProgress | SweepResult]:
    """Progress, and at the end what every setting gave, the settings in force first.

    Labels are resolved anew for every way of cutting. Another way of cutting is an index in
    memory: the user's own is never touched. A setting that fails carries its reason and is not
    kept. Once the token is set, the result of what is finished is yielded and the generator
    ends; the next sweep goes on from there.

    Args:
        space: What is tried.
        questions: Labelled ones; unanswerable ones are asked, for prompts and times.
        request: The settings in force, with the column and the filter; the query does not count.
        settings: Of the index, and how prompts are made.
        index: The corpus as it is indexed now.
        models: What ranks; nothing that they remember is read or changed.
        metric: What the best setting is best in.
        column: Name of the column that is measured.
        folds: Parts of the questions that are held out in turn.
        depth: Candidates of each list where ``search.depth`` is not varied.
        store: Where finished settings are kept; None: nowhere.
        cancel: Polled all the time.

    Raises:
        UsageError: For a metric, column, knob or filter that makes no sense.
    """
    token = cancel if cancel is not None else CancelToken()
    measure = parse_measure(metric)
    check_folds(folds)
    tries, notes = tries_of(space, request, settings, column, depth)
    job = _Job(questions, request, settings, index, models, measure, depth, store, token)
    job.take_known(tries)
    yield job.progress("asking", len(tries))
    try:
        for chunking, group in groupby(tries, key=lambda one: one.chunking):
            missing = [one for one in group if one not in job.done]
            if missing:
                yield from job.measure_group(chunking, missing, len(tries))
    except Cancelled:
        _log.info("sweep cancelled after %d of %d settings", len(job.done), len(tries))
    told = judge_settings([job.done[t] for t in tries if t in job.done], measure, folds=folds)
    yield SweepResult(
        metric=measure.name,
        higher_is_better=measure.higher_is_better,
        column=column,
        method=tries[0].column.method,
        unit=questions.unit,
        n_sources=settings.answer.n_sources,
        settings=told.settings,
        best=told.best,
        front=told.front,
        cross_validation=told.cross_validation,
        noise=told.noise,
        n_questions=len(questions.questions),
        n_scored=len(told.qids),
        is_whole=len(job.done) == len(tries),
        notes=(*notes, *told.notes),
        folder=str(index.folder),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        index_fingerprint=job.index_fingerprint,
        questions_fingerprint=questions.fingerprint,
        depth=depth,
        folds=folds,
        knobs=fixed_knobs(space, request, settings, tries[0].column),
    )


class _Job:
    """What is measured, what is known, and what came of it."""

    def __init__(
        self,
        questions: QuestionSet,
        request: SearchRequest,
        settings: EngineSettings,
        index: Index,
        models: Models,
        measure: Measure,
        depth: int,
        store: SweepStore | None,
        token: CancelToken,
    ) -> None:
        n_lists = _LISTS * len(questions.questions)
        rows = min(n_lists * depth, _MOST_ROWS)
        self._models = models.afresh(
            StageCache(max_entries=max(MAX_ENTRIES, n_lists), max_rows=max(MAX_ROWS, rows))
        )
        self._questions = questions
        self._request = request
        self._settings = settings
        self._index = index
        self._measure = measure
        self._depth = depth
        self._token = token
        self._asked = store.asked if store is not None else None
        self._starts = TokenStarts(index, models.token_counter())
        self.index_fingerprint = index_fingerprint(index)
        self._file: SweepFile | None = None
        if store is not None:
            self._file = store.file(self._file_key())
        self.done: dict[Try, SettingScore] = {}
        self._n_known = 0

    def _file_key(self) -> str:
        answer = self._settings.answer
        return fingerprint(
            {
                "version": 1,
                "index": self.index_fingerprint,
                "documents": [(d.doc_id, d.sha256) for d in self._index.documents],
                "questions": self._questions.fingerprint,
                "metric": self._measure.name,
                "depth": self._depth,
                "prompt": [answer.n_sources, answer.template, answer.order],
            }
        )

    def _key(self, one: Try) -> str | None:
        column = column_fingerprint(
            alone(replace(self._request, depth=self._depth), one.column),
            one.column,
            self._index,
            self._models,
        )
        if column is None:
            return None
        own = column_request(self._request, one.column)
        cutting = one.chunking.fingerprint(self._models.token_counter())
        return fingerprint(
            {"column": column, "cutting": cutting, "neighbours": own.post.neighbours}
        )

    def take_known(self, tries: Sequence[Try]) -> None:
        """Take what an earlier sweep has measured."""
        for one in tries if self._file is not None else ():
            key = self._key(one)
            measured = self._file.get(key) if self._file is not None and key else None
            if measured is not None:
                self.done[one] = SettingScore(one.setting, measured, one.is_present, is_known=True)
        self._n_known = len(self.done)

    def progress(
        self, phase: Phase, total: int, setting: str = "", done: int = 0, of: int = 0,
        latest: SettingScore | None = None,
    ) -> SweepProgress:  # fmt: skip
        """Where the sweep is."""
        return SweepProgress(len(self.done), total, self._n_known, phase, setting, done, of, latest)

    def measure_group(
        self, chunking: ChunkingSettings, tries: Sequence[Try], total: int
    ) -> Iterator[SweepProgress]:
        """Measure settings that share an index."""
        index = self._index
        if chunking != self._settings.chunking:
            made: Index | None = None
            try:
                for item in cut_anew(
                    self._index, chunking, self._settings, self._models,
                    with_vectors=tries[0].column.method != "bm25", cancel=self._token,
                ):  # fmt: skip
                    if isinstance(item, Progress):
                        phase: Phase = "embedding" if item.stage == "embed" else "cutting"
                        name = tries[0].setting.name
                        yield self.progress(phase, total, name, item.done, item.total)
                    else:
                        made = item
            except Cancelled:
                raise
            except RagTuiError as error:
                for one in tries:
                    yield self._finish(one, Measured({}), total, reason=error.message)
                return
            if made is None:
                raise RagTuiError("Cutting the documents ended without an index.", "Try again.")
            index = made
        resolved = resolve_all(self._questions.questions, index)
        for one in tries:
            yield from self._measure_one(one, index, resolved, total)

    def _measure_one(
        self, one: Try, index: Index, resolved: Mapping[str, Resolved], total: int
    ) -> Iterator[SweepProgress]:
        name = one.setting.name
        request = alone(self._request, one.column)
        run: EvalRun | None = None
        for item in evaluate(
            self._questions, request, index, self._models,
            store=self._asked, depth=self._depth, cancel=self._token,
        ):  # fmt: skip
            if isinstance(item, EvalProgress):
                yield self.progress("asking", total, name, item.done, item.total)
            else:
                run = item
        self._token.check()
        if run is None:
            raise RagTuiError("Asking the questions ended without a run.", "Try again.")
        measured = measure_column(
            run.columns[0], request, index, resolved, self._measure, self._questions.unit,
            self._starts, self._settings.answer,
        )  # fmt: skip
        if measured.values and not measured.failed:
            yield self.progress("timing", total, name)
            asked = replace(request, depth=self._depth)
            latency = latency_ms(self._questions.questions, asked, index, self._models, self._token)
            measured = replace(measured, latency_ms=latency)
        yield self._finish(one, measured, total)

    def _finish(
        self, one: Try, measured: Measured, total: int, *, reason: str = ""
    ) -> SweepProgress:
        score = SettingScore(one.setting, measured, one.is_present, reason=reason)
        self.done[one] = score
        if self._file is not None and measured.values and not measured.failed:
            key = self._key(one)
            try:
                if key is not None:
                    self._file.put(key, measured)
            except OSError:  # a full disk costs measuring again, never the sweep
                _log.warning("a finished setting could not be kept", exc_info=True)
                self._file = None
        return self.progress("done", total, one.setting.name, latest=score)
