from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rag_tui.engine.embedders.base import Similarity
from rag_tui.engine.errors import BadIndexError, ModelError, UsageError
from rag_tui.engine.retrievers import dense
from rag_tui.engine.retrievers.dense import COSINE, SCORE_KINDS, retrieve_dense

Vectors = npt.NDArray[np.float32]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "dot", "euclidean")


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


@pytest.mark.parametrize("has_vecdot", [True, False])
def test_a_matrix_beyond_the_cache_has_the_exact_list_with_every_numpy(
    has_vecdot: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if has_vecdot and dense._vecdot is None:
        pytest.skip("this numpy has no vecdot")
    monkeypatch.setattr(dense, "_CACHED_BYTES", 0)
    if not has_vecdot:
        monkeypatch.setattr(dense, "_vecdot", None)
    np.save(tmp_path / "vectors.npy", unit_rows(3000, 384))
    vectors = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    query = unit_rows(1, 384, seed=9)[0]
    exact = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    expected = sorted(range(3000), key=lambda i: (-exact[i], i))[:50]
    ranking = retrieve_dense(query, vectors, names(3000), depth=50)
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


# --- other similarities ---------------------------------------------------------------------


def raw_rows(n: int, dim: int, seed: int = 0) -> Vectors:
    """Vectors of very different lengths."""
    rng = np.random.default_rng(seed)
    rows: Vectors = (rng.normal(size=(n, dim)) * rng.uniform(0.1, 20, size=(n, 1))).astype(
        np.float32
    )
    return rows


def test_hand_made_vectors_have_other_orders_by_other_similarities() -> None:
    vectors = np.array([[1, 0], [10, 10], [2, 0]], dtype=np.float32)
    query = np.array([1, 0], dtype=np.float32)
    dot = retrieve_dense(query, vectors, "abc", depth=3, similarity="dot")
    assert [(hit.chunk_id, hit.score) for hit in dot.hits] == [("b", 10), ("c", 2), ("a", 1)]
    far = retrieve_dense(query, vectors, "abc", depth=3, similarity="euclidean")
    assert [hit.chunk_id for hit in far.hits] == ["a", "c", "b"]
    assert [hit.score for hit in far.hits] == pytest.approx([0, -1, -np.sqrt(181)])


def test_score_kinds_name_range_and_direction() -> None:
    for similarity, name in (("dot", "dot product"), ("euclidean", "−euclidean distance")):
        kind = SCORE_KINDS[similarity]
        assert kind.name == name
        assert kind.note.startswith("higher is better")
    assert SCORE_KINDS["euclidean"].range == "up to 0"
    assert SCORE_KINDS["cosine"] is COSINE


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_scores_and_order_are_the_librarys(similarity: Any) -> None:
    from sentence_transformers.util import dot_score, euclidean_sim

    vectors, query = raw_rows(3000, 48), raw_rows(1, 48, seed=9)[0]
    score = {"dot": dot_score, "euclidean": euclidean_sim}[similarity]
    expected = score(query.astype(np.float64), vectors.astype(np.float64))[0].numpy()
    ranking = retrieve_dense(query, vectors, names(3000), depth=50, similarity=similarity)
    order = sorted(range(3000), key=lambda i: (-expected[i], i))[:50]
    assert [hit.position for hit in ranking.hits] == order
    assert [hit.score for hit in ranking.hits] == pytest.approx(expected[order], rel=1e-6)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_rounding_in_float32_never_costs_a_row_of_the_exact_list(similarity: Any) -> None:
    # Far from the origin differences drown in float32: the first product orders them at random.
    base = np.full(64, 300.0)
    steps = np.random.default_rng(2).permutation(400)
    rows = (base + steps[:, None] * 1e-3 * np.eye(64)[0]).astype(np.float32)
    if similarity == "cosine":
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    query = rows[int(np.flatnonzero(steps == 0)[0])]
    ranking = retrieve_dense(query, rows, names(400), depth=10, similarity=similarity)
    exact = rows.astype(np.float64) @ query.astype(np.float64)
    if similarity == "euclidean":
        exact = -np.linalg.norm(rows.astype(np.float64) - query.astype(np.float64), axis=1)
    elif similarity == "cosine":
        exact = np.clip(exact, -1, 1)
    best = np.sort(exact)[::-1][:10]
    assert [hit.score for hit in ranking.hits] == pytest.approx(best, abs=1e-9)


def test_equal_vectors_tie_by_every_similarity() -> None:
    vectors = raw_rows(4099, 96)
    twins = [3, 1000, 2047, 4098]
    vectors[twins] = vectors[3]
    for similarity in SIMILARITIES:
        query = vectors[3] if similarity == "euclidean" else vectors[3] * 3
        ranking = retrieve_dense(query, vectors, names(4099), depth=4099, similarity=similarity)
        scores = {hit.position: hit.score for hit in ranking.hits}
        assert len({scores[twin] for twin in twins}) == 1
        kept = [hit.position for hit in ranking.hits if hit.position in twins]
        assert kept == twins


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_a_filter_keeps_the_scores_of_the_rows_it_leaves(similarity: Any) -> None:
    vectors, query = unit_rows(500, 16), unit_rows(1, 16, seed=4)[0]
    allowed = np.arange(500) % 3 == 0
    whole = retrieve_dense(query, vectors, names(500), depth=500, similarity=similarity)
    some = retrieve_dense(
        query, vectors, names(500), depth=20, candidates=allowed, similarity=similarity
    )
    expected = [hit for hit in whole.hits if allowed[hit.position]][:20]
    assert [(h.position, h.score) for h in some.hits] == [(h.position, h.score) for h in expected]


def test_the_matrix_is_searched_where_it_lies(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", unit_rows(40_000, 256))
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    query = unit_rows(1, 256, seed=1)[0]
    retrieve_dense(query, mapped, names(40_000), depth=10)
    ids = names(40_000)
    tracemalloc.start()
    try:
        for similarity in SIMILARITIES:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            retrieve_dense(query, mapped, ids, depth=10, similarity=similarity)
            assert tracemalloc.get_traced_memory()[1] - before < mapped.nbytes / 8
    finally:
        tracemalloc.stop()
