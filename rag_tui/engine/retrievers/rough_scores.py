"""The best chunks of a query quickly: float32 scores of all, float64 scores of the few that count.

Rounding in float32 is bounded, so all chunks that could be among the best k by exact score are
kept, scored again exactly, and ordered by that: the result is the exact one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rag_tui.engine.retrievers.bm25_formulas import check_bm25_params, delta_of
from rag_tui.engine.topk import at_least_kth, top_k
from rag_tui.engine.types import BM25Params

if TYPE_CHECKING:
    from rag_tui.engine.retrievers.postings import BM25Postings

_Single = npt.NDArray[np.float32]

_SMALL = 4096
"""Fewer chunks are scored exactly at once."""
_DENSE_SHARE = 16
"""A term in more than one of so many chunks is read as a column instead of a list."""
_MOST_COLUMNS = 256
"""Columns kept, of one byte a chunk each."""
_WITH_DELTA = ("bm25l", "bm25plus")
"""A chunk without the term must get 0 from these, which a column would not give."""
_WIDEST = 1e4
"""With a larger k1 or delta, float32 is not trusted."""


class RoughScorer:
    """Finds the best chunks of one corpus; remembers columns of frequent terms."""

    def __init__(self, postings: BM25Postings) -> None:
        self._postings = postings
        mean = postings.mean_length or 1.0
        self._relative = postings.lengths.astype(np.float32) / np.float32(mean)
        self._columns: dict[int, npt.NDArray[np.integer]] = {}

    def best(
        self,
        query_terms: Sequence[str],
        params: BM25Params,
        k: int,
        candidates: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The k best chunks that hold a query term: positions and exact scores, best first.

        Equal to the first k of `BM25Postings.scores`, ordered by score, then by position.

        Args:
            query_terms: Repeated ones count as often as they stand there.
            params: Any variant; the backend must be ``own``.
            k: At least 1.
            candidates: bool ``(n_chunks,)``: only these; None: all.

        Raises:
            UsageError: When the parameters are out of range.
        """
        check_bm25_params(params)
        postings = self._postings
        weights = {
            row: count * postings.idf(term, params)
            for term, count in Counter(query_terms).items()
            if (row := postings.vocabulary.get(term)) is not None
        }
        if not self._is_safe(weights, params):
            scores, is_match = postings.scores(query_terms, params)
            best = top_k(
                scores, k, candidates=is_match if candidates is None else is_match & candidates
            )
            return best, scores[best]
        rough = self._scores(weights, params)
        if candidates is not None:
            rough *= candidates
        # Every part is positive: relative rounding of the sum is that of its worst part and of
        # as many additions as there are terms. Twice for both sides of the comparison.
        margin = 2 * (len(weights) + 16) * float(np.finfo(np.float32).eps)
        kept = at_least_kth(rough, k, margin)
        exact = postings.scores_at(query_terms, kept, params)
        order = np.argsort(-exact, kind="stable")[:k]
        return kept[order], exact[order]

    def _is_safe(self, weights: dict[int, float], params: BM25Params) -> bool:
        """Whether a positive float32 score means a match, and its error is bounded."""
        return (
            self._postings.n_chunks >= _SMALL
            and bool(weights)
            and min(weights.values()) > 1e-9
            and params.k1 <= _WIDEST
            and delta_of(params) <= _WIDEST
            and params.backend == "own"
        )

    def _scores(self, weights: dict[int, float], params: BM25Params) -> _Single:
        """float32 ``(n_chunks,)``: 0 where no term is, else nearly the exact score."""
        n = self._postings.n_chunks
        norms = self._relative * np.float32(params.k1 * params.b)
        norms += np.float32(params.k1 * (1 - params.b))
        if params.k1 == 0 or params.b == 1:
            np.maximum(norms, np.float32(1e-30), out=norms)  # 0 / 0 in a column
        scores = np.zeros(n, dtype=np.float32)
        counts = np.empty(n, dtype=np.float32)
        buffer = np.empty(n, dtype=np.float32)
        has_columns = params.variant not in _WITH_DELTA
        gain = 1.0 if params.variant == "robertson" else params.k1 + 1
        for row, weight in weights.items():
            column = self._column(row) if has_columns else None
            if column is None:
                holders, tfs = self._postings.row(row)
                at = holders.astype(np.intp)  # once, instead of at each of three uses
                scores[at] += self._list_part(tfs.astype(np.float32), at, norms, weight, params)
                continue
            np.copyto(counts, column, casting="unsafe")  # once, instead of in both steps
            np.add(counts, norms, out=buffer)
            np.divide(counts, buffer, out=buffer)
            buffer *= np.float32(weight * gain)
            scores += buffer
        return scores

    def _list_part(
        self,
        tf: _Single,
        at: npt.NDArray[np.intp],
        norms: _Single,
        weight: float,
        params: BM25Params,
    ) -> _Single:
        gain = 1.0 if params.variant == "robertson" else params.k1 + 1
        if params.variant == "bm25l":
            factors = self._relative[at]
            factors *= np.float32(params.b)
            factors += np.float32(1 - params.b)
            tf /= factors
            tf += np.float32(delta_of(params))
            tf /= tf + np.float32(params.k1)
        else:
            norm = norms[at]
            norm += tf
            tf /= norm
        tf *= np.float32(weight * gain)
        if params.variant == "bm25plus":
            tf += np.float32(weight * delta_of(params))
        return tf

    def _column(self, row: int) -> npt.NDArray[np.integer] | None:
        """How often each chunk holds the term of a row; None for a term that few chunks hold."""
        column = self._columns.get(row)
        if column is not None:
            return column
        at, tfs = self._postings.row(row)
        n = self._postings.n_chunks
        if at.size * _DENSE_SHARE <= n or len(self._columns) >= _MOST_COLUMNS:
            return None
        column = np.zeros(n, dtype=np.uint8 if int(tfs.max()) < 2**8 else tfs.dtype)
        column[at] = tfs
        self._columns[row] = column
        return column
