"""The library rank_bm25 on the same terms, to compare with: its scores, by its own code."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rag_tui.engine.errors import UsageError
from rag_tui.engine.retrievers.bm25_formulas import Floats, check_bm25_params, delta_of
from rag_tui.engine.retrievers.postings import BM25Postings
from rag_tui.engine.types import BM25Params

_CLASSES = {"okapi": "BM25Okapi", "bm25l": "BM25L", "bm25plus": "BM25Plus"}

_lock = threading.Lock()
# One corpus is kept in the library's form per index: it is several times as large as ours.
_made: WeakKeyDictionary[BM25Postings, tuple[str, float, Any]] = WeakKeyDictionary()


def library_scores(
    postings: BM25Postings, query_terms: Sequence[str], params: BM25Params
) -> Floats:
    """rank_bm25's scores of all chunks, float64 ``(n_chunks,)``.

    The first call with a corpus, a variant or an epsilon builds the library's index: about as long
    as making ours, and several times its memory.

    Raises:
        UsageError: When parameters are out of range, the library lacks the variant or is missing.
    """
    check_bm25_params(params)
    if not postings.positions.size:  # the library divides by the number of terms
        return np.zeros(postings.n_chunks, dtype=np.float64)
    with _lock:
        made = _made.get(postings)
        if made is None or made[:2] != (params.variant, params.epsilon):
            made = (params.variant, params.epsilon, _make(postings, params))
            _made[postings] = made
    # A copy takes the knobs, so that two threads cannot turn them for each other.
    ranker = copy.copy(made[2])
    ranker.k1, ranker.b = params.k1, params.b
    if params.variant != "okapi":
        ranker.delta = delta_of(params)
    scores: Floats = ranker.get_scores(list(query_terms))
    return scores


def library_note(params: BM25Params) -> str:
    """Who made the scores, for the list's note."""
    version = metadata.version("rank-bm25")
    return f"scored by the library rank_bm25 {version} ({_CLASSES[params.variant]})"


def _make(postings: BM25Postings, params: BM25Params) -> Any:
    try:
        import rank_bm25
    except ImportError as error:
        raise UsageError(
            "the library rank_bm25 is not installed",
            "Run `pip install rank-bm25`, or set bm25.backend to own.",
        ) from error
    extra = {"epsilon": params.epsilon} if params.variant == "okapi" else {}
    return getattr(rank_bm25, _CLASSES[params.variant])(_token_lists(postings), **extra)


def _token_lists(postings: BM25Postings) -> Iterator[list[str]]:
    """The terms of each chunk; their order, which BM25 does not read, is that of the rows."""
    terms = postings.terms
    order = np.argsort(postings.positions, kind="stable")
    rows = np.repeat(np.arange(len(terms)), np.diff(postings.offsets))[order]
    tfs = postings.tfs[order]
    ends = np.cumsum(np.bincount(postings.positions, minlength=postings.n_chunks))
    start = 0
    for end in ends.tolist():
        yield [terms[row] for row in np.repeat(rows[start:end], tfs[start:end]).tolist()]
        start = end
