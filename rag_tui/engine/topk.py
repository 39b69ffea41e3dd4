"""The one top-k with the one tie rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import UsageError

_BLOCKS_PER_HIT = 8
_SMALL = 2048


def top_k(
    scores: npt.NDArray[np.floating],
    k: int,
    *,
    candidates: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Positions of the k highest scores: by score descending, then by position ascending.

    The result equals the first k of a full stable sort. Scores are compared exactly: two that
    differ in the last bit are not a tie. Most scores of a lexical search are zero, where
    `numpy.argpartition` is slow; the maximum of every block of scores gives a bound instead.

    Args:
        scores: Floats ``(n,)``; infinities are allowed.
        k: How many; fewer come back when there are fewer candidates.
        candidates: Bool ``(n,)``: only these positions are considered; None: all.

    Returns:
        int64 ``(min(k, number of candidates),)``.

    Raises:
        UsageError: When k is below 1.
        ValueError: When a candidate's score is not a number, or the shapes differ.
    """
    if k < 1:
        raise UsageError(
            f"the number of results must be at least 1 (got {k})", "Ask for 1 or more."
        )
    if scores.ndim != 1 or (candidates is not None and candidates.shape != scores.shape):
        shape = None if candidates is None else candidates.shape
        raise ValueError(f"scores must be one row (got {scores.shape}, candidates {shape})")
    if candidates is None:
        positions = np.arange(scores.size, dtype=np.int64)
        values = scores
    else:
        positions = np.flatnonzero(candidates).astype(np.int64, copy=False)
        values = scores[positions]
    if np.isnan(values).any():
        at = int(positions[np.flatnonzero(np.isnan(values))[0]])
        raise ValueError(f"the score of chunk {at} is not a number")

    kept = _at_least_kth(values, k)
    if kept is not None:
        positions = positions[kept]
        values = values[kept]
    order = np.argsort(-values, kind="stable")[:k]
    return positions[order]


def at_least_kth(values: npt.NDArray[np.floating], k: int, margin: float) -> npt.NDArray[np.int64]:
    """Ascending positions of positive values, all of the k highest among them, and close ones.

    Args:
        values: Floats ``(n,)``, none negative; 0 is never among the positions.
        k: At least 1.
        margin: Values lower than the k-th by this share of it are still wanted.
    """
    bound = _bound(values, k)
    if bound is None or bound <= 0:
        return np.flatnonzero(values > 0).astype(np.int64, copy=False)
    lowest = values.dtype.type(bound * (1 - margin))
    return np.flatnonzero(values >= lowest).astype(np.int64, copy=False)


def _at_least_kth(values: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.intp] | None:
    """Ascending indices that hold all of the k highest values; None when it saves nothing."""
    bound = _bound(values, k)
    return None if bound is None else np.flatnonzero(values >= bound)


def _bound(values: npt.NDArray[np.floating], k: int) -> np.floating | None:
    """A number that at least k values reach; None when there are too few to look for one."""
    width = values.size // (k * _BLOCKS_PER_HIT)
    if values.size < _SMALL or width < 2:
        return None
    n_blocks = values.size // width
    maxima = values[: n_blocks * width].reshape(n_blocks, width).max(axis=1)
    # At least k values reach the k-th highest block maximum, so none below it is wanted.
    bound: np.floating = np.sort(maxima)[-k]
    return bound
