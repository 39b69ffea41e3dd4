"""Models, loaded at most once each, on first use, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.base import TokenCounter
from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.errors import BadIndexError, ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.remembering import Lazy, Recent
from rag_tui.engine.rerankers.base import Reranker, read_part
from rag_tui.engine.rerankers.memory import ScoreMemory
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.stage_cache import StageCache
from rag_tui.engine.tokenizing import WordTokenCounter
from rag_tui.engine.voyage import is_voyage

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.embedders.tokens import Role, TokenVectors
    from rag_tui.engine.index import Index
    from rag_tui.engine.models import ModelFiles, ModelKind
    from rag_tui.engine.side_vectors import SideVectors
    from rag_tui.engine.voyage import VoyageService

HASHING = "hashing"
"""The embedder that needs no model."""
LATE_INTERACTION = "late_interaction"
"""The reranker that needs no weights but the embedder's."""

_N_QUERIES = 64


class Models:
    """The embedders, the rerankers and the token counter of one session.

    Safe to use from several threads: who comes second waits for the load and shares it. A
    failed load is remembered, so that not every keystroke tries again. Everywhere the name
    ``""`` means the model of the settings; another name is loaded once when it is first used.

    Args:
        settings: Which models, and how they may be found.
        cache_dir: Where exported models, checked hashes and embeddings are kept.
        report: Told, in the loading thread, before a load that takes seconds.
        embedder: An embedder to use instead of the one of the settings.
        reranker: A reranker to use instead of the one of the settings.
    """

    def __init__(
        self,
        settings: ModelSettings,
        cache_dir: Path,
        *,
        report: Callable[[Progress], None] | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._settings = settings
        self._cache_dir = cache_dir
        self._report = report if report is not None else _ignore
        self._lock = Lock()
        self._files = Lazy(lambda: self._resolve(settings.embedder, "embedder"))
        self._embedders = {"": Lazy(lambda: self._load_embedder(""), embedder)}
        self._rerankers = {"": Lazy(lambda: self._load_reranker(""), reranker)}
        self._token_counter = Lazy(self._load_token_counter)
        self._side: SideVectors | None = None
        self._stands_in = False
        self._has_own_embedder = embedder is not None
        self._query_vectors: Recent[tuple[str, str], Vectors] = Recent(_N_QUERIES)
        self._scores = ScoreMemory()
        self.stages = StageCache()
        """Lists of searches with these models."""

    def afresh(self, stages: StageCache | None = None) -> Models:
        """The same models, sharing what is loaded and remembering no question, list or score."""
        other = copy(self)
        other.stages = stages if stages is not None else StageCache()
        other._scores, other._query_vectors = ScoreMemory(), Recent(_N_QUERIES)
        return other

    @property
    def embedder_loaded(self) -> bool:
        """Whether `embedder` answers at once."""
        return self._embedders[""].is_loaded

    @property
    def reranker_loaded(self) -> bool:
        """Whether `reranker` answers at once."""
        return self._rerankers[""].is_loaded

    @property
    def embedder_error(self) -> ModelError | None:
        """The remembered failure of the embedder, if there is one."""
        return self._embedders[""].error

    @property
    def reranker_error(self) -> ModelError | None:
        """The remembered failure of the reranker, if there is one."""
        return self._rerankers[""].error

    def embedder(self, name: str = "") -> Embedder:
        """The embedder, loading it if need be.

        Raises:
            ModelError: When it cannot be had; the same error again until `forget` is called.
        """
        key = "" if name == self._settings.embedder else name
        with self._lock:
            lazy = self._embedders.setdefault(key, Lazy(lambda: self._load_embedder(key)))
        return lazy.get()

    def reranker(self, name: str = "") -> Reranker:
        """The reranker, loading it if need be; raises `ModelError` as `embedder` does."""
        key = "" if name == self._settings.reranker else name
        with self._lock:
            lazy = self._rerankers.setdefault(key, Lazy(lambda: self._load_reranker(key)))
        return lazy.get()

    def token_counter(self) -> TokenCounter:
        """The embedding model's own tokenizer, or a stated stand-in; never loads torch."""
        return self._token_counter.get()

    def embed_query(self, text: str, name: str = "") -> Vectors:
        """The question's vector, float32 ``(dim,)``; remembered, so knobs cost no embedding."""
        embedder = self.embedder(name)
        key = (embedder.info.fingerprint, text)
        known = self._query_vectors.get(key)
        if known is not None:
            return known
        vector = embedder.embed_query(text)
        vector.setflags(write=False)
        self._query_vectors.put(key, vector)
        return vector

    def vectors(
        self, index: Index, name: str = "", *, cancel: CancelToken | None = None
    ) -> Vectors:
        """Vectors of all chunks by position: float32 ``(n_chunks, dim)``, not writeable.

        Without a name these are the index's own. Those of another embedder are made when they
        are first wanted, through the embedding cache, and kept with the index; progress goes to
        ``report``.

        Raises:
            BadIndexError: When no name is given and the index has no vectors.
            ModelError: When the embedder cannot be had or fails.
            Cancelled: Soon after the token was set; what was embedded by then is in the cache.
        """
        if not name:
            if index.vectors is None:
                raise BadIndexError(
                    "This index has no vectors yet.",
                    "Index the folder again (ctrl+r in the app, or `rag-tui index`) to make them; "
                    "`rag-tui doctor` tells which models are found.",
                )
            return index.vectors
        embedder = self.embedder(name)
        with self._lock:
            if self._side is None:
                from rag_tui.engine.side_vectors import SideVectors

                self._side = SideVectors(self._cache_dir, self._report)
        return self._side.get(index, embedder, cancel=cancel)

    def token_vectors(self, texts: Sequence[str], role: Role, name: str = "") -> list[TokenVectors]:
        """The word pieces of each text that the embedder reads, and a vector for each.

        Raises:
            ModelError: When the embedder cannot be had, or gives no vectors of tokens.
        """
        from rag_tui.engine.embedders.tokens import token_vectors

        return token_vectors(self.embedder(name), texts, role)

    def rerank_scores(
        self,
        query: str,
        passages: Sequence[str],
        *,
        name: str = "",
        cancel: CancelToken | None = None,
    ) -> Iterator[float]:
        """Scores in order; a (question, passage) pair is scored once a session.

        Raises:
            ModelError: When the reranker cannot be had or gives something that is no number.
            Cancelled: Soon after the token was set; the scores known by then are kept.
        """
        yield from self._scores.in_order(self.reranker(name), query, passages, cancel=cancel)

    def rerank_batches(
        self,
        query: str,
        passages: Sequence[str],
        *,
        name: str = "",
        cancel: CancelToken | None = None,
    ) -> Iterator[dict[int, float]]:
        """Index of passage to score: first what is remembered, then each batch when it is done.

        Every index comes once, in any order; raises as `rerank_scores` does, at most one batch
        after a cancel.
        """
        yield from self._scores.batches(self.reranker(name), query, passages, cancel=cancel)

    def read_part(self, query: str, passage: str, name: str = "") -> int:
        """Characters at the start of a passage that the reranker reads behind this question."""
        return read_part(self.reranker(name), query, passage)

    def forget(self) -> None:
        """Forget remembered failures, so that the next use tries again."""
        if self._stands_in:
            self._token_counter.reset()
        self._files.forget()
        with self._lock:
            embedders, rerankers = list(self._embedders.values()), list(self._rerankers.values())
        for embedder in embedders:
            embedder.forget()
        for reranker in rerankers:
            reranker.forget()

    def _resolve(self, name: str, kind: ModelKind) -> ModelFiles | None:
        if name == HASHING or is_voyage(name):
            return None
        from rag_tui.engine.models import resolve

        return resolve(
            name,
            kind,
            cache_dir=self._cache_dir,
            allow_download=self._settings.allow_download,
            report=self._report,
        )

    def _load_embedder(self, name: str) -> Embedder:
        asked_for = name or self._settings.embedder
        if is_voyage(asked_for):
            from rag_tui.engine.embedders.voyage import VoyageEmbedder

            return VoyageEmbedder(
                asked_for, self._voyage(asked_for), truncate_dim=self._settings.truncate_dim
            )
        from rag_tui.engine.embedders.load import load_embedder

        files = self._resolve(name, "embedder") if name else self._files.get()
        return load_embedder(
            files,
            self._cache_dir,
            backend=self._settings.backend,
            device=self._settings.device,
            precision=self._settings.precision,
            truncate_dim=self._settings.truncate_dim,
            report=self._report,
        )

    def _load_reranker(self, name: str) -> Reranker:
        asked_for = name or self._settings.reranker
        if asked_for == LATE_INTERACTION:
            from rag_tui.engine.rerankers.late_interaction import LateInteractionReranker

            return LateInteractionReranker(self.embedder())
        if is_voyage(asked_for):
            from rag_tui.engine.rerankers.voyage import VoyageReranker

            return VoyageReranker(asked_for, self._voyage(asked_for))
        from rag_tui.engine.rerankers.load import load_reranker

        files = self._resolve(asked_for, "reranker")
        if files is None:
            raise ModelError(
                f"{asked_for} is no reranker",
                "Name a cross-encoder, its folder, late_interaction or voyage.",
            )
        return load_reranker(
            files,
            self._cache_dir,
            backend=self._settings.backend,
            device=self._settings.device,
            precision=self._settings.precision,
            report=self._report,
        )

    def _voyage(self, name: str) -> VoyageService:
        from rag_tui.engine.voyage import VoyageService

        return VoyageService(name, base_url=self._settings.voyage_base_url)

    def _load_token_counter(self) -> TokenCounter:
        from rag_tui.engine.token_counting import token_counter_of

        if self._has_own_embedder:
            return WordTokenCounter(limit=self.embedder().info.max_tokens)
        counter, self._stands_in = token_counter_of(self._settings.embedder, self._files.get)
        return counter


def _ignore(progress: Progress) -> None:
    del progress
