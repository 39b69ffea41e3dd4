"""Intervals and tests: against enumeration and numbers worked out by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.statistics import (
    bootstrap_interval,
    compare,
    paired,
    paired_test,
    same_rankings,
)
from rag_tui.engine.evaluation.types import Retrieved


def enumerated(differences: list[float]) -> tuple[float, float]:
    """p and noise by going through every sign pattern one by one."""
    n = len(differences)
    observed = abs(sum(differences)) / n
    sizes = sorted(
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) / n
        for signs in product((1, -1), repeat=n)
    )
    p = sum(size >= observed - 1e-12 for size in sizes) / len(sizes)
    within = next(x for x in sizes if sum(s <= x + 1e-12 for s in sizes) >= 0.95 * len(sizes))
    return p, within


@pytest.mark.parametrize(
    "differences",
    [[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [0.5, 0.2, 0.0, -0.1, 0.3], [0.25] * 8 + [-0.5] * 2],
)
def test_few_questions_are_tested_exactly(differences: list[float]) -> None:
    p, noise = paired_test(differences)
    expected_p, expected_noise = enumerated(differences)
    assert p == pytest.approx(expected_p)
    assert noise == pytest.approx(expected_noise)


def test_three_wins_of_three_prove_nothing() -> None:
    # Two of eight sign patterns are as extreme.
    assert paired_test([1.0, 1.0, 1.0])[0] == 0.25


def test_many_questions_are_tested_with_random_signs_near_the_exact_value() -> None:
    differences = [1.0] * 15 + [-1.0] * 5
    # Sum 10 or beyond means at most 5 or at least 15 of 20 coins alike:
    # 2 * (1 + 20 + 190 + 1140 + 4845 + 15504) / 2 ** 20
    p, _ = paired_test(differences)
    assert p == pytest.approx(2 * 21700 / 2**20, abs=0.006)
    assert paired_test(differences) == paired_test(differences)
    assert paired_test(differences, seed=1)[0] != p


def test_a_random_test_never_says_that_p_is_zero() -> None:
    assert paired_test([1.0] * 200)[0] == pytest.approx(1 / 10_001)


def test_no_difference_is_no_evidence_and_no_noise() -> None:
    assert paired_test([0.0] * 30) == (1.0, 0.0)


def test_questions_without_a_difference_make_the_noise_smaller_and_leave_p() -> None:
    p, noise = paired_test([1.0, 1.0, -1.0])
    same_p, smaller = paired_test([1.0, 1.0, -1.0, 0.0, 0.0, 0.0])
    assert same_p == p
    assert smaller == pytest.approx(noise / 2)


def test_a_comparison_counts_wins_ties_and_losses() -> None:
    found = compare("R@1", [1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.5])
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert found.delta == pytest.approx(0.125)
    assert not found.is_identical


def test_a_lower_failure_rate_is_a_win_and_the_difference_keeps_its_sign() -> None:
    found = compare("Failure@20", [0.0, 0.5], [1.0, 0.5], higher_is_better=False)
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)
    assert found.delta == -0.5


def test_lists_that_do_not_pair_are_refused() -> None:
    with pytest.raises(UsageError, match="got 1 and 2 values"):
        compare("R@1", [1.0], [1.0, 0.0])


def test_only_questions_that_both_were_scored_on_are_paired() -> None:
    ours = {"a": 1.0, "b": None, "c": 0.5, "d": 0.0}
    theirs = {"d": 1.0, "c": 0.25, "b": 1.0}
    assert paired(ours, theirs) == (("c", "d"), (0.5, 0.0), (0.25, 1.0))


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    values = [0.0] * 40 + [1.0] * 60
    found = bootstrap_interval(values)
    # The standard error is sqrt(0.6 * 0.4 / 100) = 0.049; 1.96 of it on either side.
    assert found.mean == pytest.approx(0.6)
    assert found.low == pytest.approx(0.6 - 0.096, abs=0.015)
    assert found.high == pytest.approx(0.6 + 0.096, abs=0.015)
    assert found.n == 100
    assert bootstrap_interval(values) == found
    assert bootstrap_interval(values, level=0.5).low > found.low


def test_the_interval_of_two_values_is_that_of_their_three_sample_means() -> None:
    # 0, 0.5 and 1 come with chances 1/4, 1/2, 1/4: both ends are in the outer ones.
    found = bootstrap_interval([0.0, 1.0])
    assert (found.low, found.mean, found.high) == (0.0, 0.5, 1.0)


def test_equal_values_have_an_interval_without_width() -> None:
    found = bootstrap_interval([1.0] * 9)
    assert (found.low, found.mean, found.high, found.n) == (1.0, 1.0, 1.0, 9)


@pytest.mark.parametrize("values", [[], [0.5, float("nan")]])
def test_a_mean_of_nothing_is_refused(values: list[float]) -> None:
    with pytest.raises(UsageError, match="at least one value"):
        bootstrap_interval(values)


def test_the_mean_is_exact_where_a_running_sum_would_not_be() -> None:
    values = [0.1] * 7 + [0.2] * 3
    assert bootstrap_interval(values).mean == pytest.approx(float(np.mean(values)), abs=1e-15)


def test_rankings_are_the_same_when_rows_and_order_are_whatever_the_scores() -> None:
    def rows(*ids: str, score: float = 1.0) -> tuple[Retrieved, ...]:
        return tuple(Retrieved(i, "a.md", 0, 5, score) for i in ids)

    ours = {"q1": rows("a", "b"), "q2": rows("c")}
    assert same_rankings(ours, {"q1": rows("a", "b", score=9.0), "q2": rows("c")})
    assert not same_rankings(ours, {"q1": rows("b", "a"), "q2": rows("c")})
    assert not same_rankings(ours, {"q1": rows("a", "b"), "q2": None})
    assert not same_rankings(ours, {"q1": rows("a", "b")})
