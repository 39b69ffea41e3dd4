"""The engine as the app sees it; every heavy import happens inside a method, in a thread."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from rag_tui.engine.answer_diff import AnswerDiff, Answered
    from rag_tui.engine.chunkers.reach import Unread
    from rag_tui.engine.corpus_facts import Prices
    from rag_tui.engine.evaluation.agreement import AnswerLabels
    from rag_tui.engine.evaluation.answer_types import AnswerRow
    from rag_tui.engine.evaluation.drafts import Draft, DraftFailure, DraftPlan
    from rag_tui.engine.evaluation.evaluate import EvalProgress
    from rag_tui.engine.evaluation.resolving import Resolver
    from rag_tui.engine.evaluation.run_store import RunStore
    from rag_tui.engine.evaluation.sweep_types import SweepProgress, SweepResult
    from rag_tui.engine.evaluation.types import EvalRun, QuestionSet, Resolved
    from rag_tui.engine.events import CancelToken, Progress, StageResult
    from rag_tui.engine.explain import Explanation, HeatMap, SentenceScore
    from rag_tui.engine.faithfulness import ClaimCheck
    from rag_tui.engine.history import History, HistoryEntry, SearchLog
    from rag_tui.engine.index import Index
    from rag_tui.engine.indexing import IndexReady
    from rag_tui.engine.llms.base import Answerer
    from rag_tui.engine.llms.token_counts import TokenCounter
    from rag_tui.engine.loading import Models
    from rag_tui.engine.passage_places import PassageTarget
    from rag_tui.engine.passage_trace import PassageTrace
    from rag_tui.engine.prompt_size import PromptSize
    from rag_tui.engine.settings import AnswerSettings, EngineSettings
    from rag_tui.engine.types import (
        Answer,
        Chunk,
        KnobValue,
        Method,
        Prompt,
        Ranking,
        SearchRequest,
        Source,
    )
    from rag_tui.tui.labels import LabelBook
    from rag_tui.tui.sweep_jobs import SweepJob


class InterfaceSettings(Protocol):
    """The part of the settings that only the interface reads."""

    @property
    def theme(self) -> str:
        """Name of a theme; empty for the default one."""
        ...

    @property
    def search_as_you_type(self) -> bool:
        """Whether a pause in typing starts a search."""
        ...

    @property
    def keys(self) -> Mapping[str, str]:
        """Binding id to keys, comma-separated."""
        ...


class Settings(Protocol):
    """What the app reads of the settings tree."""

    @property
    def engine(self) -> EngineSettings:
        """What the engine is told."""
        ...

    @property
    def ui(self) -> InterfaceSettings:
        """What only the interface reads."""
        ...

    @property
    def context_window(self) -> int:
        """Tokens that the answering model reads at once."""
        ...

    @property
    def token_prices(self) -> Prices:
        """What tokens cost."""
        ...

    @property
    def presets(self) -> Mapping[str, Mapping[str, object]]:
        """Sets of knobs by name, as they were written."""
        ...

    @property
    def keeps_history(self) -> bool:
        """Whether finished searches are kept."""
        ...

    def request(self, query: str) -> SearchRequest:
        """A search with the default knobs."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """Everything that is loaded once: settings and models."""

    settings: Settings
    models: Models
    samples: tuple[str, ...] = ()
    """Questions that come with the corpus."""


class Backend:
    """The engine's functions; tests pass a subclass that answers what they need."""

    _counter: tuple[AnswerSettings, TokenCounter] | None = None
    """Remembers what it has counted for these settings."""

    def load_settings(self, folder: Path, overrides: Mapping[str, object]) -> Settings:
        """The settings for a folder."""
        from rag_tui.config import load_settings

        return load_settings(folder, overrides)

    def sample_questions(self, folder: Path) -> tuple[str, ...]:
        """The questions of the corpus's ``questions.jsonl``, if it has one."""
        from rag_tui.engine.samples import sample_questions

        return sample_questions(folder)

    def read_labels(self, folder: Path, known: LabelBook | None) -> LabelBook:
        """The labelled questions of a folder; ``known`` again while its files are the same."""
        from rag_tui.tui.labels import read_book

        return read_book(folder, known)

    def read_question_set(
        self, folder: Path, index: Index
    ) -> tuple[QuestionSet, Mapping[str, Resolved]]:
        """The questions of a folder as an evaluation takes them, and where their evidence is."""
        from rag_tui.engine.evaluation.questions import read_questions
        from rag_tui.engine.evaluation.resolving import resolve_all

        found = read_questions(folder, index=index)
        return found, resolve_all(found.questions, index)

    def run_store(self, settings: Settings, folder: Path) -> RunStore:
        """The kept runs of a corpus."""
        from rag_tui.engine.evaluation.run_store import RunStore

        return RunStore.of(settings.engine.cache_dir, folder)

    def evaluate(
        self,
        questions: QuestionSet,
        request: SearchRequest,
        index: Index,
        models: Models,
        store: RunStore,
        *,
        cancel: CancelToken,
    ) -> Iterator[EvalProgress | EvalRun]:
        """Ask every question in every column; what the store knows is not asked again."""
        from rag_tui.engine.evaluation.evaluate import evaluate

        return evaluate(questions, request, index, models, store=store, cancel=cancel)

    def sweep(
        self, job: SweepJob, session: Session, folder: Path, *, cancel: CancelToken
    ) -> Iterator[SweepProgress | SweepResult]:
        """Try settings on the questions; what earlier sweeps have measured is taken."""
        from rag_tui.engine.evaluation.sweep import sweep
        from rag_tui.engine.evaluation.sweep_store import SweepStore

        engine = session.settings.engine
        return sweep(
            job.space, job.labelled.questions, job.request, engine, job.labelled.index,
            session.models, metric=job.metric, column=job.column,
            store=SweepStore.of(engine.cache_dir, folder), cancel=cancel,
        )  # fmt: skip

    def plan_drafts(
        self,
        index: Index,
        n: int,
        session: Session,
        *,
        seed: int,
        judged: Collection[int],
        excluded: Collection[int],
        from_headings: bool,
    ) -> DraftPlan:
        """Who would draft questions for which passages, and for how much."""
        from rag_tui.engine.evaluation.drafts import plan_drafts

        settings = session.settings
        return plan_drafts(
            index,
            n,
            settings.engine.answer,
            prices=settings.token_prices,
            environ=os.environ,
            seed=seed,
            judged=judged,
            excluded=excluded,
            from_headings=from_headings,
        )

    def draft_questions(
        self, plan: DraftPlan, resolver: Resolver, session: Session, *, cancel: CancelToken
    ) -> Iterator[Draft | DraftFailure]:
        """The questions of a plan, one after the other."""
        from rag_tui.engine.evaluation.drafts import draft_questions

        answer = session.settings.engine.answer
        return draft_questions(plan, resolver, answer, environ=os.environ, cancel=cancel)

    def save_preset(self, path: Path, name: str, knobs: Mapping[str, KnobValue]) -> None:
        """Write a preset into a settings file, whose other lines stay."""
        from rag_tui.engine.preset_file import save_preset

        save_preset(path, name, knobs)

    def models(self, settings: Settings, report: Callable[[Progress], None]) -> Models:
        """The models of a session; nothing is loaded yet."""
        from rag_tui.engine.loading import Models

        engine = settings.engine
        return Models(engine.models, engine.cache_dir, report=report)

    def open_index(self, folder: Path, settings: Settings) -> Index | None:
        """The index as it lies on disk."""
        from rag_tui.engine.indexing import open_index

        return open_index(folder, settings.engine)

    def refresh_index(
        self, folder: Path, session: Session, *, cancel: CancelToken, rebuild: bool
    ) -> Iterator[Progress | IndexReady]:
        """Bring the index up to date."""
        from rag_tui.engine.indexing import refresh_index

        return refresh_index(
            folder, session.settings.engine, session.models, cancel=cancel, rebuild=rebuild
        )

    def search(
        self, request: SearchRequest, index: Index, models: Models, *, cancel: CancelToken
    ) -> Iterator[StageResult]:
        """The four lists, each when it is done."""
        from rag_tui.engine.searching import search

        return search(request, index, models, cancel=cancel)

    def explain(
        self,
        chunk_id: str,
        request: SearchRequest,
        index: Index,
        rankings: Mapping[Method, Ranking],
        models: Models,
        shown: Ranking | None = None,
    ) -> Explanation:
        """Why a chunk stands where it stands; ``shown``: the list after all steps."""
        from rag_tui.engine.explain import explain

        return explain(chunk_id, request, index, rankings, models=models, shown=shown)

    def sentence_scores(
        self,
        chunk_id: str,
        request: SearchRequest,
        index: Index,
        models: Models,
        *,
        by: Literal["vector", "reranked"],
        report: Callable[[int, int], object] | None = None,
        cancel: CancelToken,
    ) -> tuple[SentenceScore, ...]:
        """Each sentence of a chunk scored on its own, in the order of the text."""
        from rag_tui.engine.explain import explain_rerank_sentences, explain_sentences

        if by == "vector":
            return explain_sentences(chunk_id, request, index, models, cancel=cancel)
        return explain_rerank_sentences(
            chunk_id, request, index, models, report=report, cancel=cancel
        )

    def heat_map(
        self, chunk_id: str, request: SearchRequest, index: Index, models: Models
    ) -> HeatMap:
        """How near each word of a chunk is to a word of the question."""
        from rag_tui.engine.explain import heat_map

        return heat_map(chunk_id, request, index, models)

    def unread(self, chunk: Chunk, models: Models) -> Unread | None:
        """What the index's embedder does not read of a chunk."""
        from rag_tui.engine.chunkers.reach import unread

        return unread(chunk, models.token_counter())

    def reranker_end(self, chunk: Chunk, request: SearchRequest, models: Models) -> int | None:
        """Where the reranker stops reading a chunk; None: it reads all of it."""
        from rag_tui.engine.explain_fusion import reranker_unread_from

        return reranker_unread_from(chunk, request, models)

    def find_passage(self, wanted: str, index: Index) -> PassageTarget:
        """What a sentence, a place in a file or a chunk's id means."""
        from rag_tui.engine.passage_target import find_passage

        return find_passage(wanted, index)

    def trace_passage(
        self,
        target: PassageTarget,
        request: SearchRequest,
        index: Index,
        models: Models,
        *,
        sources: Sequence[Source] | None,
        answer: Answer | None,
        with_remedies: bool,
        report: Callable[[str], object],
        cancel: CancelToken,
    ) -> PassageTrace:
        """Follow a passage through every column of a search."""
        from rag_tui.engine.passage_trace import trace_passage

        return trace_passage(
            request.query,
            target,
            request,
            index,
            models,
            prompt_sources=sources,
            answer=answer,
            with_remedies=with_remedies,
            report=report,
            cancel=cancel,
        )

    def search_log(self, settings: Settings) -> SearchLog:
        """What keeps finished searches."""
        from rag_tui.engine.history import SearchLog

        return SearchLog(settings.engine.cache_dir, is_enabled=settings.keeps_history)

    def read_history(self, settings: Settings, folder: Path) -> History:
        """The kept searches of a corpus."""
        from rag_tui.engine.history import history_file, read_history

        return read_history(history_file(settings.engine.cache_dir, folder))

    def export_history(self, settings: Settings, folder: Path, target: Path) -> int:
        """Copy the kept searches to a file; how many there are."""
        from rag_tui.engine.history import export_history, history_file

        return export_history(history_file(settings.engine.cache_dir, folder), target)

    def export_search(
        self, request: SearchRequest, index: Index, results: Sequence[StageResult], target: Path
    ) -> int:
        """Write one search to a file, as the history would keep it; gives back 1."""
        import json
        from datetime import UTC, datetime

        from rag_tui.engine.errors import UsageError
        from rag_tui.engine.evaluation.fingerprints import index_fingerprint
        from rag_tui.engine.history import entry_as_json
        from rag_tui.engine.history_entries import make_entry

        now, made_of = datetime.now(UTC), index_fingerprint(index)
        entry = make_entry(request, index, results, time=now, index_fingerprint=made_of)
        text = json.dumps(entry_as_json(entry), ensure_ascii=False, indent=1)
        try:
            target.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise UsageError(
                f"{target} cannot be written: {error.strerror}.", "Choose another place."
            ) from error
        return 1

    def clear_history(self, settings: Settings, folder: Path) -> None:
        """Forget the kept searches of a corpus."""
        from rag_tui.engine.history import clear_history, history_file

        clear_history(history_file(settings.engine.cache_dir, folder))

    def ask_entry(
        self, request: SearchRequest, index: Index, models: Models, *, cancel: CancelToken
    ) -> HistoryEntry:
        """A search made now, as the history would keep it; it is not kept."""
        from datetime import UTC, datetime

        from rag_tui.engine.evaluation.fingerprints import index_fingerprint
        from rag_tui.engine.history_entries import make_entry
        from rag_tui.engine.searching import final_results

        results = list(final_results(self.search(request, index, models, cancel=cancel)))
        cancel.check()
        now, made_of = datetime.now(UTC), index_fingerprint(index)
        return make_entry(request, index, results, time=now, index_fingerprint=made_of)

    def query_terms(self, query: str) -> frozenset[str]:
        """The words of a question as the lexical index sees them."""
        from rag_tui.engine.analysis import Analyzer

        return frozenset(Analyzer().tokens(query))

    def build_prompt(
        self, question: str, chunks: Sequence[Chunk], n_sources: int, **options: Any
    ) -> Prompt:
        """The exact request text; options as of the engine's function."""
        from rag_tui.engine.prompting import build_prompt

        return build_prompt(question, chunks, max_sources=n_sources, **options)

    def closed_book_prompt(self, question: str) -> Prompt:
        """The question without any source."""
        from rag_tui.engine.answer_diff import closed_book_prompt

        return closed_book_prompt(question)

    def request_body(self, prompt: Prompt, settings: AnswerSettings) -> Mapping[str, Any]:
        """The body that is sent."""
        from rag_tui.engine.prompt_request import request_body

        return request_body(prompt, settings)

    def request_text(self, kind: str, prompt: Prompt, settings: AnswerSettings) -> str:
        """The request as ``json``, ``curl`` or ``python``."""
        from rag_tui.engine.llms.claude_client import BASE_URL_VARIABLE
        from rag_tui.engine.prompt_request import as_curl, as_json, as_python

        address = os.environ.get(BASE_URL_VARIABLE, "")
        if kind == "curl":
            return as_curl(prompt, settings, base_url=address)
        if kind == "python":
            return as_python(prompt, settings, base_url=address)
        return as_json(prompt, settings)

    def estimate_size(self, prompt: Prompt, settings: Settings) -> PromptSize:
        """About how large a prompt is, and what it costs."""
        from rag_tui.engine.prompt_size import estimate_size

        return estimate_size(
            prompt,
            settings.engine.answer,
            context_window=settings.context_window,
            prices=settings.token_prices,
        )

    async def prompt_size(self, prompt: Prompt, settings: Settings) -> PromptSize:
        """The same, by the service's own count where there is a key."""
        answer = settings.engine.answer
        if answer.provider == "extractive":
            return self.estimate_size(prompt, settings)
        from rag_tui.engine.llms.token_counts import TokenCounter

        if self._counter is None or self._counter[0] != answer:
            self._counter = (answer, TokenCounter(answer))
        return await self._counter[1].size(
            prompt, context_window=settings.context_window, prices=settings.token_prices
        )

    def make_answerer(self, settings: AnswerSettings, models: Models) -> Answerer:
        """Who answers."""
        from rag_tui.engine.answering import make_answerer

        return make_answerer(settings, models, os.environ)

    def answer(self, prompt: Prompt, answerer: Answerer) -> AsyncIterator[Answer]:
        """The growing answer, then the finished one."""
        from rag_tui.engine.answering import answer

        return answer(prompt, answerer)

    def check_answer(
        self, answer: Answer, prompt: Prompt, models: Models, *, cancel: CancelToken
    ) -> tuple[ClaimCheck, ...]:
        """Whether the sentences of an answer stand in its sources."""
        from rag_tui.engine.faithfulness import check_faithfulness

        return check_faithfulness(answer, prompt, models, cancel=cancel)

    def compare_answers(self, first: Answered, second: Answered) -> AnswerDiff:
        """What two answers have in common and what only one has."""
        from rag_tui.engine.answer_diff import compare_answers

        return compare_answers(first, second)

    def answer_cost(self, answer: Answer, settings: Settings) -> float | None:
        """What an answer has cost, where the service counts tokens."""
        from rag_tui.engine.prompt_size import answer_cost

        return answer_cost(answer, settings.token_prices)

    def answer_label(
        self, cache_dir: Path, folder: Path, answer: Answer, prompt: Prompt
    ) -> tuple[AnswerLabels, AnswerRow]:
        """People's labels of a corpus's answers, and the row by which they know this one."""
        from rag_tui.engine.evaluation.agreement import AnswerLabels
        from rag_tui.engine.evaluation.answer_store import AnswerStore
        from rag_tui.engine.evaluation.answer_types import AnswerRow
        from rag_tui.engine.evaluation.refusals import answer_kind

        row = AnswerRow(
            key="",
            qid="",
            question=prompt.question,
            is_answerable=True,
            text=answer.text,
            state=answer.state,
            kind=answer_kind(answer, prompt.not_found),
            outcome="unjudged",
            answerer=answer.answerer,
        )
        return AnswerLabels(AnswerStore.of(cache_dir, folder).folder), row
