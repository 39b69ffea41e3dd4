"""Exact nearest neighbours of all chunks among themselves, a block of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import UsageError
from rag_tui.engine.events import CancelToken

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

_BLOCK_VALUES = 2_000_000
"""Similarities held at a time: 8 MB, and well under 100 ms of work between two polls."""


@dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """Who is near whom. Arrays are non-writeable; row i belongs to position i."""

    k: int
    """Neighbours counted: what was asked for, or all others where there are fewer."""
    n_occurrences: npt.NDArray[np.int64]
    """int64 ``(n,)``: in how many others' k nearest a row is; the mean is k."""
    nearest: npt.NDArray[np.int64]
    """int64 ``(n,)``: position of the nearest other row, -1 where there is no other."""
    cosine: npt.NDArray[np.float32]
    """float32 ``(n,)``: cosine of the nearest, -1 to 1; NaN where there is no other."""
    skewness: float
    """Third standardised moment of ``n_occurrences``; 0 when all occur equally often."""


def nearest_neighbours(
    vectors: Vectors, k: int, *, cancel: CancelToken | None = None
) -> Neighbours:
    """The k nearest other rows of every row by cosine, exactly, and how often each row is one.

    k-occurrence N_k and its skewness as a measure of hubness: M. Radovanović, A. Nanopoulos,
    M. Ivanović (2010), "Hubs in space: popular nearest neighbors in high-dimensional data", JMLR
    11:2487-2531. Of equally near rows the lower position is the nearer one. The time grows with
    the square of the number of rows.

    Args:
        vectors: float32 ``(n, dimensions)``, rows L2 norm 1.
        k: Neighbours a row.
        cancel: Polled after every block.

    Raises:
        UsageError: When k is below 1.
        Cancelled: Soon after the token was set.
    """
    if k < 1:
        raise UsageError(f"the number of neighbours must be at least 1 (got {k})", "Ask for 10.")
    token = cancel if cancel is not None else CancelToken()
    n = len(vectors)
    k = min(k, max(n - 1, 0))
    counts = np.zeros(n, np.int64)
    nearest = np.full(n, -1, np.int64)
    cosine = np.full(n, np.nan, np.float32)
    size = max(1, _BLOCK_VALUES // max(n, 1))
    for low in range(0, n if k else 0, size):
        token.check()
        similarity = vectors[low : low + size] @ vectors.T
        rows = np.arange(len(similarity))
        similarity[rows, low + rows] = -np.inf
        near = _k_largest(similarity, k)
        counts += np.bincount(near.ravel(), minlength=n)
        values = np.take_along_axis(similarity, near, axis=1)
        best = values.max(axis=1)
        nearest[low : low + size] = np.where(values == best[:, None], near, n).min(axis=1)
        cosine[low : low + size] = np.clip(best, -1.0, 1.0)
    for array in (counts, nearest, cosine):
        array.setflags(write=False)
    return Neighbours(k, counts, nearest, cosine, _skewness(counts))


def _k_largest(values: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """Columns of the k largest values of each row, in no order; of equals, the first ones."""
    n = values.shape[1]
    columns = np.argpartition(values, n - k, axis=1)[:, n - k :]
    least = np.take_along_axis(values, columns, axis=1).min(axis=1)
    n_at_least = (values >= least[:, None]).sum(axis=1)
    for row in np.flatnonzero(n_at_least > k):
        tied = np.flatnonzero(values[row] >= least[row])
        columns[row] = tied[np.argsort(-values[row, tied], kind="stable")[:k]]
    return columns


def _skewness(counts: npt.NDArray[np.int64]) -> float:
    deviations = counts - counts.mean() if counts.size else np.zeros(0)
    spread = float(np.sqrt((deviations**2).mean())) if counts.size else 0.0
    return float((deviations**3).mean() / spread**3) if spread > 0 else 0.0
