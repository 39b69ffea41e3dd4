"""Vectors of an index by another embedder than its own, made once and kept while it is open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing_vectors import embed_chunks

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

_POLL_S = 0.05


class SideVectors:
    """Matrices by (index, embedder), each made by whoever needs it first; safe for threads.

    They pass through the embedding cache: what was embedded once is only read the next time,
    and a cancelled run goes on where it stopped. A matrix lives as long as its index.

    Args:
        cache_dir: Where the embedding cache lies.
        report: Told how far it has come, in the thread that embeds.
    """

    def __init__(self, cache_dir: Path, report: Callable[[Progress], None]) -> None:
        self._cache_dir = cache_dir
        self._report = report
        self._lock = Lock()
        self._made: WeakKeyDictionary[Index, dict[str, Vectors]] = WeakKeyDictionary()
        self._busy: WeakKeyDictionary[Index, dict[str, Lock]] = WeakKeyDictionary()

    def get(
        self, index: Index, embedder: Embedder, *, cancel: CancelToken | None = None
    ) -> Vectors:
        """Vectors of all chunks: float32 ``(n_chunks, dimensions)``, by position, not writeable.

        Raises:
            ModelError: When the embedder fails.
            Cancelled: Soon after the token was set, also while another thread embeds.
        """
        token = cancel if cancel is not None else CancelToken()
        fingerprint = embedder.info.fingerprint
        if index.vectors is not None and index.manifest.embedder_fingerprint == fingerprint:
            return index.vectors
        with self._lock:
            made = self._made.setdefault(index, {})
            busy = self._busy.setdefault(index, {}).setdefault(fingerprint, Lock())
        if fingerprint in made:
            return made[fingerprint]
        while not busy.acquire(timeout=_POLL_S):
            token.check()
        try:
            if fingerprint not in made:  # the thread that was waited for may have been cancelled
                made[fingerprint] = self._embed(index, embedder, token)
            return made[fingerprint]
        finally:
            busy.release()

    def is_made(self, index: Index, fingerprint: str) -> bool:
        """Whether `get` answers at once."""
        if index.vectors is not None and index.manifest.embedder_fingerprint == fingerprint:
            return True
        with self._lock:
            return fingerprint in self._made.get(index, {})

    def _embed(self, index: Index, embedder: Embedder, cancel: CancelToken) -> Vectors:
        for item in embed_chunks(index.chunks, embedder, self._cache_dir, cancel):
            if not isinstance(item, Progress):
                return item[0]
            self._report(
                Progress("embed", item.done, item.total, note=f"with {embedder.info.name}")
            )
        raise ModelError(f"{embedder.info.name} gave no vectors", "Choose another embedder.")
