"""How sure a mean is, and whether two columns differ: resampling, always with a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.types import Comparison, Interval, Retrieved

Floats = npt.NDArray[np.float64]

N_RESAMPLES = 2_000
N_PERMUTATIONS = 10_000
EXACT_UP_TO = 13
"""Differences above 0 in size; 2 ** 13 = 8,192 sign patterns are fewer than the random ones."""
_TIE = 1e-12
"""Differences smaller than this are rounding: no win, no loss."""
_BLOCK_VALUES = 1_000_000


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, seed: int = 0, n: int = N_RESAMPLES
) -> Interval:
    """The mean of some values with its percentile bootstrap interval.

    Efron and Tibshirani 1993, "An introduction to the bootstrap", chapter 13: n samples of the
    same size with replacement, and the quantiles of their means. One value gives an interval
    without width.

    Args:
        values: One a question, those that have none left out.
        level: Coverage, above 0 and below 1.
        seed: The same seed gives the same interval.
        n: Samples.

    Raises:
        UsageError: Without any value, or with one that is not finite.
    """
    data = np.asarray(values, np.float64)
    if data.size == 0 or not np.isfinite(data).all():
        raise UsageError(
            f"A mean needs at least one value, all of them numbers (got {data.size}).",
            "Leave out questions that could not be scored.",
        )
    mean = math.fsum(values) / data.size
    if data.size == 1 or bool((data == data[0]).all()):
        return Interval(mean, mean, mean, int(data.size))
    random = np.random.default_rng(seed)
    means = np.empty(n)
    step = max(1, _BLOCK_VALUES // data.size)
    for low in range(0, n, step):
        size = min(step, n - low)
        chosen = random.integers(0, data.size, (size, data.size))
        means[low : low + size] = data[chosen].mean(axis=1)
    low_end, high_end = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low_end), float(high_end), int(data.size))


def paired_test(
    differences: Sequence[float], *, seed: int = 0, n: int = N_PERMUTATIONS
) -> tuple[float, float]:
    """The two-sided paired randomisation test, and the size of differences that is noise.

    Fisher's test as Smucker, Allan and Carterette (2007, "A comparison of statistical
    significance tests for information retrieval evaluation") recommend it: if the two columns
    were alike, each question's difference could as well have the other sign. With at most
    `EXACT_UP_TO` questions that differ all sign patterns are counted and p is exact; else n
    random ones are, and p is (1 + those at least as extreme) / (1 + n).

    Returns:
        p, and the noise: the 95th percentile of the size of the mean difference over the sign
        patterns (the smallest that at least 95 % of them do not exceed).
    """
    data = np.asarray(differences, np.float64)
    moving = data[np.abs(data) > _TIE]
    if moving.size == 0:
        return 1.0, 0.0
    is_exact = moving.size <= EXACT_UP_TO
    sums = np.abs(_all_sums(moving) if is_exact else _random_sums(moving, seed, n))
    observed = abs(float(moving.sum()))
    n_extreme = int((sums >= observed - _TIE * moving.size).sum())
    p = n_extreme / sums.size if is_exact else (n_extreme + 1) / (sums.size + 1)
    noise = float(np.quantile(sums, 0.95, method="inverted_cdf")) / data.size
    return p, noise


def compare(
    measure: str,
    values: Sequence[float],
    baseline: Sequence[float],
    *,
    higher_is_better: bool = True,
    is_identical: bool = False,
    seed: int = 0,
) -> Comparison:
    """A column against a baseline, question by question.

    Args:
        measure: Its name.
        values: The column's values.
        baseline: The baseline's, of the same questions in the same order.
        higher_is_better: Whether a higher value is a win; the sign of ``delta`` stays.
        is_identical: Whether both ranked every question alike (`same_rankings`).
        seed: Of the sign patterns.

    Raises:
        UsageError: When the lists do not pair, or are empty.
    """
    if len(values) != len(baseline) or not values:
        raise UsageError(
            f"Two columns are compared on the questions that both were scored on "
            f"(got {len(values)} and {len(baseline)} values).",
            "Leave out questions that only one of them was scored on.",
        )
    differences = np.asarray(values, np.float64) - np.asarray(baseline, np.float64)
    n_up = int((differences > _TIE).sum())
    n_down = int((differences < -_TIE).sum())
    p_value, noise = paired_test(differences.tolist(), seed=seed)
    return Comparison(
        measure=measure,
        delta=math.fsum(differences.tolist()) / len(values),
        p_value=p_value,
        wins=n_up if higher_is_better else n_down,
        ties=len(values) - n_up - n_down,
        losses=n_down if higher_is_better else n_up,
        noise=noise,
        is_identical=is_identical,
    )


def paired(
    values: Mapping[str, float | None], baseline: Mapping[str, float | None]
) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    """The questions that both have a value for, in the order of the first, with both values."""
    qids = []
    mine: list[float] = []
    theirs: list[float] = []
    for qid, value in values.items():
        other = baseline.get(qid)
        if value is not None and other is not None:
            qids.append(qid)
            mine.append(value)
            theirs.append(other)
    return tuple(qids), tuple(mine), tuple(theirs)


def same_rankings(
    ours: Mapping[str, Sequence[Retrieved] | None],
    theirs: Mapping[str, Sequence[Retrieved] | None],
) -> bool:
    """Whether two columns ranked every question alike: the same rows in the same order.

    Scores do not matter. Questions without a list count only if just one of the two has none.
    """
    if ours.keys() != theirs.keys():
        return False
    return all(_ids(rows) == _ids(theirs[qid]) for qid, rows in ours.items())


def _ids(rows: Sequence[Retrieved] | None) -> list[tuple[str, str, int, int]] | None:
    return None if rows is None else [(r.chunk_id, r.document, r.start, r.end) for r in rows]


def _all_sums(values: Floats) -> Floats:
    """The sums of all sign patterns, ``(2 ** n,)``."""
    sums: Floats = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(values: Floats, seed: int, n: int) -> Floats:
    """The sums of n random sign patterns, ``(n,)``."""
    random = np.random.default_rng(seed)
    sums = np.empty(n)
    step = max(1, _BLOCK_VALUES // values.size)
    for low in range(0, n, step):
        size = min(step, n - low)
        flips = random.integers(0, 2, (size, values.size), dtype=np.int8)
        sums[low : low + size] = values.sum() - 2 * (flips @ values)
    return sums
