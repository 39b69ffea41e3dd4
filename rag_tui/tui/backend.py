"""The engine as the app sees it; every heavy import happens inside a method, in a thread."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rag_tui.engine.corpus_facts import Prices
    from rag_tui.engine.events import CancelToken, Progress, StageResult
    from rag_tui.engine.explain import Explanation
    from rag_tui.engine.index import Index
    from rag_tui.engine.indexing import IndexReady
    from rag_tui.engine.llms.base import Answerer
    from rag_tui.engine.loading import Models
    from rag_tui.engine.settings import AnswerSettings, EngineSettings
    from rag_tui.engine.types import Answer, Chunk, Method, Prompt, Ranking, SearchRequest


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

    def load_settings(self, folder: Path, overrides: Mapping[str, object]) -> Settings:
        """The settings for a folder."""
        from rag_tui.config import load_settings

        return load_settings(folder, overrides)

    def sample_questions(self, folder: Path) -> tuple[str, ...]:
        """The questions of the corpus's ``questions.jsonl``, if it has one."""
        from rag_tui.engine.samples import sample_questions

        return sample_questions(folder)

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
    ) -> Explanation:
        """Why a chunk stands where it stands."""
        from rag_tui.engine.explain import explain

        # Only a question that was embedded for the list is sure to be answered from memory.
        vector = models.embed_query(request.query) if "vector" in rankings else None
        return explain(chunk_id, request, index, rankings, query_vector=vector)

    def query_terms(self, query: str) -> frozenset[str]:
        """The words of a question as the lexical index sees them."""
        from rag_tui.engine.analysis import Analyzer

        return frozenset(Analyzer().tokens(query))

    def build_prompt(self, question: str, chunks: Sequence[Chunk], n_sources: int) -> Prompt:
        """The exact request text."""
        from rag_tui.engine.prompting import build_prompt

        return build_prompt(question, chunks, max_sources=n_sources)

    def estimate_tokens(self, text: str) -> int:
        """About how many tokens a text is for the answering model."""
        from rag_tui.engine.prompting import estimate_tokens

        return estimate_tokens(text)

    def make_answerer(self, settings: AnswerSettings, models: Models) -> Answerer:
        """Who answers."""
        from rag_tui.engine.answering import make_answerer

        return make_answerer(settings, models, os.environ)

    def answer(self, prompt: Prompt, answerer: Answerer) -> AsyncIterator[Answer]:
        """The growing answer, then the finished one."""
        from rag_tui.engine.answering import answer

        return answer(prompt, answerer)
