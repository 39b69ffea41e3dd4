from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from rag_tui.engine.errors import BadIndexError, ModelError, UsageError
from rag_tui.engine.retrievers.dense import retrieve_dense

Vectors = npt.NDArray[np.float32]


def unit_rows(n: int, dim: int, seed: int = 0) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(n, dim))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def names(n: int) -> list[str]:
    return [f"c{i}" for i in range(n)]


def test_scores_are_cosines_of_hand_made_vectors() -> None:
    vectors = np.array([[1, 0], [0.6, 0.8], [0, 1], [-1, 0]], dtype=np.float32)
    ranking = retrieve_dense(vectors[0], vectors, "abcd", depth=4)
    assert [hit.chunk_id for hit in ranking.hits] == ["a", "b", "c", "d"]
    assert [hit.score for hit in ranking.hits] == pytest.approx([1, 0.6, 0, -1], abs=1e-7)
    assert (ranking.method, ranking.score_kind.name) == ("vector", "cosine")


def test_the_list_equals_a_full_sort_of_exact_cosines() -> None:
    vectors = unit_rows(5000, 96)
    query = unit_rows(1, 96, seed=9)[0]
    exact = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    expected = sorted(range(5000), key=lambda i: (-exact[i], i))[:50]
    ranking = retrieve_dense(query, vectors, names(5000), depth=50)
    assert [hit.position for hit in ranking.hits] == expected
    assert [hit.score for hit in ranking.hits] == pytest.approx(exact[expected], abs=1e-12)


def test_equal_vectors_tie_wherever_they_stand_and_keep_corpus_order() -> None:
    vectors = unit_rows(4099, 384)
    twins = [3, 1000, 2047, 4098]
    vectors[twins] = vectors[3]
    ranking = retrieve_dense(vectors[3], vectors, names(4099), depth=4)
    assert [hit.position for hit in ranking.hits] == twins
    assert len({hit.score for hit in ranking.hits}) == 1


def test_a_cosine_is_never_above_one() -> None:
    vectors = unit_rows(300, 384)
    tops = [retrieve_dense(v, vectors, names(300), depth=1).hits[0] for v in vectors]
    assert [hit.position for hit in tops] == list(range(300))
    assert max(hit.score for hit in tops) <= 1


def test_a_depth_above_the_corpus_lists_every_chunk_once() -> None:
    vectors = unit_rows(3, 4)
    ranking = retrieve_dense(vectors[0], vectors, names(3), depth=99)
    assert sorted(hit.position for hit in ranking.hits) == [0, 1, 2]


def test_an_empty_corpus_gives_an_empty_list() -> None:
    nothing = np.zeros((0, 4), dtype=np.float32)
    assert retrieve_dense(unit_rows(1, 4)[0], nothing, [], depth=5).hits == ()


def test_another_dimension_is_refused_naming_both_numbers() -> None:
    with pytest.raises(ModelError, match=r"384.*768") as raised:
        retrieve_dense(unit_rows(1, 768)[0], unit_rows(2, 384), names(2), depth=5)
    assert "rebuild" in raised.value.hint


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_question_vector_without_direction_is_refused(value: float) -> None:
    with pytest.raises(ModelError):
        retrieve_dense(np.full(4, value, dtype=np.float32), unit_rows(2, 4), names(2), depth=5)


def test_a_chunk_vector_that_is_not_a_number_is_refused_by_id() -> None:
    vectors = unit_rows(3, 4)
    vectors[1, 2] = np.nan
    with pytest.raises(ModelError, match="c1"):
        retrieve_dense(unit_rows(1, 4)[0], vectors, names(3), depth=5)


def test_depth_below_one_and_missing_ids_are_refused() -> None:
    vectors = unit_rows(3, 4)
    with pytest.raises(UsageError, match="0"):
        retrieve_dense(vectors[0], vectors, names(3), depth=0)
    with pytest.raises(BadIndexError):
        retrieve_dense(vectors[0], vectors, names(2), depth=1)
