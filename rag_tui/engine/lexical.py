"""Lexical search over an index, with any analyzer: postings are made once and remembered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rag_tui.engine.analysis import Analyzer, make_analyzer
from rag_tui.engine.events import CancelToken
from rag_tui.engine.retrievers.bm25 import retrieve_bm25
from rag_tui.engine.retrievers.postings import BM25Postings
from rag_tui.engine.types import BM25Params, Ranking

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rag_tui.engine.index import Index


class _Remembered:
    """One index's postings by analyzer, and what keeps two threads from making the same."""

    def __init__(self) -> None:
        self.by_name: dict[str, BM25Postings] = {}
        self.locks: dict[str, threading.Lock] = {}


_POLL_S = 0.1

_lock = threading.Lock()
_remembered: WeakKeyDictionary[Index, _Remembered] = WeakKeyDictionary()


def postings_for(
    index: Index, analyzer_name: str, *, cancel: CancelToken | None = None
) -> BM25Postings:
    """The postings of an index for an analyzer: its own, or made once and kept in memory.

    They are forgotten with the index. A second thread that asks meanwhile waits for the first.

    Raises:
        UsageError: When there is no such analyzer.
        Cancelled: Soon after the token was set; nothing is remembered then.
    """
    analyzer = make_analyzer(analyzer_name)
    if index.manifest.analyzer_fingerprint == analyzer.fingerprint:
        return index.bm25
    with _lock:
        remembered = _remembered.setdefault(index, _Remembered())
        lock = remembered.locks.setdefault(analyzer_name, threading.Lock())
    token = cancel if cancel is not None else CancelToken()
    while not lock.acquire(timeout=_POLL_S):
        token.check()
    try:
        known = remembered.by_name.get(analyzer_name)
        if known is None:
            known = BM25Postings.build(_token_lists(index, analyzer, token))
            remembered.by_name[analyzer_name] = known
        return known
    finally:
        lock.release()


def search_lexically(
    query: str,
    index: Index,
    params: BM25Params,
    *,
    depth: int,
    candidates: npt.NDArray[np.bool_] | None = None,
    cancel: CancelToken | None = None,
) -> Ranking:
    """The BM25 list of a question over an index, with the analyzer and operators it asks for.

    Raises:
        UsageError: When depth or parameters are out of range, or there is no such analyzer.
        Cancelled: Soon after the token was set.
    """
    return retrieve_bm25(
        query,
        postings_for(index, params.analyzer, cancel=cancel),
        index.chunk_ids,
        params,
        depth=depth,
        analyzer=make_analyzer(params.analyzer),
        candidates=candidates,
        text_of=lambda position: index.chunks[position].embedded_text,
        cancel=cancel,
    )


def _token_lists(index: Index, analyzer: Analyzer, cancel: CancelToken) -> Iterator[list[str]]:
    for chunk in index.chunks:
        cancel.check()
        yield analyzer.tokens(chunk.embedded_text)
