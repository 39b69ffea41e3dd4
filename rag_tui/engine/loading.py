"""Models, loaded at most once each, on first use, from any thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from rag_tui.engine.chunkers.base import TokenCounter
from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.ids import text_hash
from rag_tui.engine.rerankers.base import Reranker
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.tokenizing import ModelTokenCounter, WordTokenCounter

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.models import ModelFiles

HASHING = "hashing"
"""The embedder that needs no model."""

_N_QUERIES = 64
_N_SCORES = 20_000
_USUAL_LIMIT = 256
_Value = TypeVar("_Value")


class Models:
    """The embedder, the reranker and the token counter of one session.

    Safe to use from several threads: who comes second waits for the load and shares it. A
    failed load is remembered, so that not every keystroke tries again.

    Args:
        settings: Which models, and how they may be found.
        cache_dir: Where exported models and checked hashes are kept.
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
        self._embedder_files = _Lazy(self._resolve_embedder)
        self._embedder = _Lazy(self._load_embedder, embedder)
        self._reranker = _Lazy(self._load_reranker, reranker)
        self._token_counter = _Lazy(self._load_token_counter)
        self._stands_in = False
        self._has_own_embedder = embedder is not None
        self._query_vectors: _Recent[tuple[str, str], Vectors] = _Recent(_N_QUERIES)
        self._scores: _Recent[tuple[str, str, str], float] = _Recent(_N_SCORES)

    @property
    def embedder_loaded(self) -> bool:
        """Whether `embedder` answers at once."""
        return self._embedder.is_loaded

    @property
    def reranker_loaded(self) -> bool:
        """Whether `reranker` answers at once."""
        return self._reranker.is_loaded

    @property
    def embedder_error(self) -> ModelError | None:
        """The remembered failure of the embedder, if there is one."""
        return self._embedder.error

    @property
    def reranker_error(self) -> ModelError | None:
        """The remembered failure of the reranker, if there is one."""
        return self._reranker.error

    def embedder(self) -> Embedder:
        """The embedder, loading it if need be.

        Raises:
            ModelError: When it cannot be had; the same error again until `forget` is called.
        """
        return self._embedder.get()

    def reranker(self) -> Reranker:
        """The reranker, loading it if need be; raises `ModelError` as `embedder` does."""
        return self._reranker.get()

    def token_counter(self) -> TokenCounter:
        """The embedding model's own tokenizer, or a stated stand-in; never loads torch."""
        return self._token_counter.get()

    def embed_query(self, text: str) -> Vectors:
        """The question's vector, float32 ``(dim,)``; remembered, so knobs cost no embedding."""
        embedder = self.embedder()
        key = (embedder.info.fingerprint, text)
        known = self._query_vectors.get(key)
        if known is not None:
            return known
        vector = embedder.embed_query(text)
        vector.setflags(write=False)
        self._query_vectors.put(key, vector)
        return vector

    def rerank_scores(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """Scores in order; a (question, passage) pair is scored once a session.

        Raises:
            ModelError: When the reranker cannot be had or gives something that is no number.
            Cancelled: Soon after the token was set; the scores known by then are kept.
        """
        reranker = self.reranker()
        question = text_hash(query)
        keys = [(reranker.info.fingerprint, question, text_hash(text)) for text in passages]
        # Held here as well: the shared memory may push a score out before its turn comes.
        known = {key: score for key in keys if (score := self._scores.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, passages, strict=True) if key not in known}
        fresh = zip(
            missing, reranker.score(query, list(missing.values()), cancel=cancel), strict=True
        )
        for key in keys:
            if cancel is not None:
                cancel.check()
            while key not in known:
                scored, score = next(fresh)
                known[scored] = score
                self._scores.put(scored, score)
            yield known[key]

    def forget(self) -> None:
        """Forget remembered failures, so that the next use tries again."""
        if self._stands_in:
            self._token_counter.reset()
        for lazy in (self._embedder_files, self._embedder, self._reranker):
            lazy.forget()

    def _resolve_embedder(self) -> ModelFiles | None:
        if self._settings.embedder == HASHING:
            return None
        from rag_tui.engine.models import resolve

        return resolve(
            self._settings.embedder,
            "embedder",
            cache_dir=self._cache_dir,
            allow_download=self._settings.allow_download,
            report=self._report,
        )

    def _load_embedder(self) -> Embedder:
        from rag_tui.engine.embedders.load import load_embedder

        files = self._embedder_files.get()
        return load_embedder(
            files,
            self._cache_dir,
            backend=self._settings.backend,
            device=self._settings.device,
            report=self._report,
        )

    def _load_reranker(self) -> Reranker:
        from rag_tui.engine.models import resolve
        from rag_tui.engine.rerankers.load import load_reranker

        files = resolve(
            self._settings.reranker,
            "reranker",
            cache_dir=self._cache_dir,
            allow_download=self._settings.allow_download,
            report=self._report,
        )
        return load_reranker(
            files,
            self._cache_dir,
            backend=self._settings.backend,
            device=self._settings.device,
            report=self._report,
        )

    def _load_token_counter(self) -> TokenCounter:
        self._stands_in = False
        if self._has_own_embedder:
            return WordTokenCounter(limit=self.embedder().info.max_tokens)
        limit = _USUAL_LIMIT
        try:
            files = self._embedder_files.get()
            if files is None:
                return WordTokenCounter(n_special=0)
            from rag_tui.engine.embedders.profile import read_profile

            profile = read_profile(files)
            limit = profile.max_tokens
            return ModelTokenCounter(
                files.folder / "tokenizer.json",
                limit=limit,
                document_prompt=profile.document_prompt,
            )
        except Exception:  # a broken folder breaks libraries anywhere; the embedder will say how
            self._stands_in = True
            return WordTokenCounter(limit=limit)


class _Lazy(Generic[_Value]):
    """A value made once by whoever needs it first; a failure is kept until it is forgotten."""

    def __init__(self, make: Callable[[], _Value], value: _Value | None = None) -> None:
        self._make = make
        self._lock = Lock()
        self._is_made = value is not None
        self._value = value
        self.error: ModelError | None = None

    @property
    def is_loaded(self) -> bool:
        return self._is_made

    def get(self) -> _Value:
        if not self._is_made:
            with self._lock:
                if self.error is not None:
                    raise ModelError(self.error.message, self.error.hint) from self.error
                if not self._is_made:
                    try:
                        self._value = self._make()
                    except ModelError as error:
                        self.error = error
                        raise
                    except Exception as error:  # a broken model folder breaks libraries anywhere
                        self.error = ModelError(
                            f"The model cannot be loaded: {type(error).__name__}: {error}",
                            "Check its folder, or choose another model; `rag-tui doctor` tells "
                            "where models are looked for.",
                        )
                        raise ModelError(self.error.message, self.error.hint) from error
                    self._is_made = True
        return self._value  # type: ignore[return-value]  # None only where _Value allows it

    def forget(self) -> None:
        with self._lock:
            self.error = None

    def reset(self) -> None:
        with self._lock:
            self.error, self._value, self._is_made = None, None, False


_Key = TypeVar("_Key")


class _Recent(Generic[_Key, _Value]):
    """A mapping that keeps the most recently used entries, safe for threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._entries: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: _Key, value: _Value) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


def _ignore(progress: Progress) -> None:
    del progress
