from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.errors import UsageError
from rag_tui.engine.topk import top_k


def by_full_sort(scores: list[float], k: int, candidates: list[bool] | None = None) -> list[int]:
    positions = [i for i in range(len(scores)) if candidates is None or candidates[i]]
    return sorted(positions, key=lambda i: (-scores[i], i))[:k]


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, 0.5, -2.0, float("inf")]), max_size=60), st.data())
def test_it_equals_a_full_stable_sort_with_many_ties(
    scores: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, 70))
    candidates = data.draw(
        st.none() | st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))
    )
    mask = None if candidates is None else np.array(candidates, dtype=np.bool_)
    found = top_k(np.array(scores), k, candidates=mask)
    assert found.dtype == np.int64
    assert found.tolist() == by_full_sort(scores, k, candidates)


@pytest.mark.parametrize("n_different", [3, 40, 10_000])
@pytest.mark.parametrize("k", [1, 10, 50, 400, 9_999, 20_000])
def test_it_equals_a_full_stable_sort_on_large_rows(n_different: int, k: int) -> None:
    rng = np.random.default_rng(n_different + k)
    scores = rng.integers(0, n_different, 10_007).astype(np.float32)
    candidates = rng.random(scores.size) < 0.6
    assert top_k(scores, k).tolist() == by_full_sort(scores.tolist(), k)
    assert top_k(scores, k, candidates=candidates).tolist() == by_full_sort(
        scores.tolist(), k, candidates.tolist()
    )


def test_a_shorter_list_is_the_beginning_of_a_longer_one() -> None:
    scores = np.random.default_rng(1).integers(0, 5, 5000).astype(np.float64)
    assert top_k(scores, 3).tolist() == top_k(scores, 10).tolist()[:3]


def test_scores_that_differ_in_the_last_bit_are_not_a_tie() -> None:
    assert top_k(np.array([1.0, np.nextafter(1.0, 2.0)]), 2).tolist() == [1, 0]


def test_a_score_that_is_not_a_number_is_refused_by_its_position() -> None:
    with pytest.raises(ValueError, match="chunk 1"):
        top_k(np.array([0.0, np.nan]), 1)


def test_a_score_that_is_not_a_number_outside_the_candidates_does_no_harm() -> None:
    assert top_k(np.array([0.0, np.nan]), 1, candidates=np.array([True, False])).tolist() == [0]


@pytest.mark.parametrize("k", [0, -3])
def test_k_below_one_is_refused(k: int) -> None:
    with pytest.raises(UsageError, match=str(k)):
        top_k(np.array([1.0]), k)


def test_the_scores_are_not_changed() -> None:
    scores = np.array([1.0, 3.0, 2.0])
    top_k(scores, 2)
    assert scores.tolist() == [1.0, 3.0, 2.0]
