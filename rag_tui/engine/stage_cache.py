"""Finished stages of searches, so that a moved knob computes only what depends on it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from threading import Lock
from types import MappingProxyType

from rag_tui.engine.stage_keys import StageKey
from rag_tui.engine.types import Ranking

MAX_ENTRIES = 512
MAX_ROWS = 300_000
"""Rows of all kept lists together, about 40 MB: lists over a whole corpus are long."""


class StageCache:
    """Rankings by what they depend on, the most recently used ones; safe for threads.

    Two threads that want the same new list may both compute it: they get equal ones.

    Args:
        max_entries: How many lists are kept.
        max_rows: How many rows they may have together; the newest list is always kept.
    """

    def __init__(self, *, max_entries: int = MAX_ENTRIES, max_rows: int = MAX_ROWS) -> None:
        self._max_entries = max_entries
        self._max_rows = max_rows
        self._lock = Lock()
        self._entries: OrderedDict[StageKey, Ranking] = OrderedDict()
        self._n_rows = 0
        self._n_computed: Counter[str] = Counter()

    @property
    def n_computed(self) -> Mapping[str, int]:
        """How many lists of each stage were computed so far, rather than found here."""
        with self._lock:
            return MappingProxyType(dict(self._n_computed))

    def get(self, key: StageKey) -> Ranking | None:
        """The list of a key, or None when it is not known."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: StageKey, ranking: Ranking) -> None:
        """Keep a list that was computed just now; those used longest ago make room."""
        with self._lock:
            self._n_computed[key.stage] += 1
            before = self._entries.pop(key, None)
            self._n_rows += len(ranking.hits) - (len(before.hits) if before else 0)
            self._entries[key] = ranking
            while len(self._entries) > 1 and (
                len(self._entries) > self._max_entries or self._n_rows > self._max_rows
            ):
                _, oldest = self._entries.popitem(last=False)
                self._n_rows -= len(oldest.hits)
