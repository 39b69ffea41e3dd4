from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.errors import UsageError
from rag_tui.engine.fusion import fused_parts, reciprocal_rank_fusion, weighted_sum_fusion
from rag_tui.engine.types import FusionKind, Hit, Method, Ranking, ScoreKind

ID_LISTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), max_size=4)


def ranking(ids: Sequence[str]) -> Ranking:
    hits = tuple(
        Hit(chunk_id=name, position=ord(name[0]), score=-float(rank), rank=rank)
        for rank, name in enumerate(ids, start=1)
    )
    return Ranking("bm25", hits, len(hits), ScoreKind("", ""))


def about(rows: Sequence[tuple[str, float]]) -> list[tuple[str, object]]:
    return [(name, pytest.approx(score, abs=1e-15)) for name, score in rows]


def fuse(
    lists: Sequence[Sequence[str]], *, k: float = 60, depth: int = 50, weights: object = None
) -> list[tuple[str, float]]:
    assert weights is None or isinstance(weights, list)
    fused = reciprocal_rank_fusion([ranking(x) for x in lists], k=k, depth=depth, weights=weights)
    assert [hit.rank for hit in fused.hits] == list(range(1, len(fused.hits) + 1))
    return [(hit.chunk_id, hit.score) for hit in fused.hits]


def test_the_numbers_of_the_shared_fusion_cases_hold(shared: Path) -> None:
    cases = json.loads((shared / "cases" / "22-rrf" / "cases.json").read_text())
    for case in cases:
        found = fuse(case["lists"], k=case["k"], weights=case.get("weights"))
        assert [name for name, _ in found] == [name for name, _ in case["expected"]]
        for (_, score), (_, expected) in zip(found, case["expected"], strict=True):
            assert score == pytest.approx(expected, abs=5.1e-8)


def test_two_lists_fuse_to_the_sums_computed_by_hand() -> None:
    assert fuse(["pqr", "rst"]) == about(
        [
            ("r", 1 / 63 + 1 / 61),
            ("p", 1 / 61),
            ("q", 1 / 62),
            ("s", 1 / 62),
            ("t", 1 / 63),
        ]
    )


def test_a_repeated_id_counts_once_and_the_ranks_below_close_up() -> None:
    assert fuse(["ppq", "q"]) == about(
        [
            ("q", 1 / 62 + 1 / 61),
            ("p", 1 / 61),
        ]
    )


def test_k_zero_is_allowed() -> None:
    assert fuse(["p", "p"], k=0) == [("p", 2.0)]


def test_lists_and_result_are_cut_at_the_depth() -> None:
    assert fuse(["pqr", "rst"], depth=2) == about(
        [
            ("p", 1 / 61),
            ("r", 1 / 61),
        ]
    )


def test_a_list_of_weight_zero_is_left_out() -> None:
    assert [name for name, _ in fuse(["pq", "rs"], weights=[1, 0])] == ["p", "q"]


def test_the_result_says_what_it_was_made_with() -> None:
    fused = reciprocal_rank_fusion([ranking("p")], k=60, depth=7)
    assert fused.score_kind.name == "RRF k=60"
    assert dict(fused.params) == {
        "fusion": "rrf",
        "k": 60,
        "depth": 7,
        "methods": ("bm25",),
        "weights": (1.0,),
    }


@given(ID_LISTS, st.randoms(use_true_random=False), st.floats(0, 100))
def test_the_order_of_the_lists_makes_no_difference(lists, random, k) -> None:  # type: ignore[no-untyped-def]
    named = [[chr(65 + i) for i in ids] for ids in lists]
    mixed = random.sample(named, len(named))
    assert fuse(named, k=k) == fuse(mixed, k=k)


@given(ID_LISTS)
def test_scores_descend_and_ties_are_in_corpus_order(lists: list[list[int]]) -> None:
    found = fuse([[chr(65 + i) for i in ids] for ids in lists])
    assert found == sorted(found, key=lambda row: (-row[1], row[0]))
    assert {name for name, _ in found} == {chr(65 + i) for ids in lists for i in ids}


@given(ID_LISTS)
def test_the_inputs_are_unchanged(lists: list[list[int]]) -> None:
    rankings = [ranking([chr(65 + i) for i in ids]) for ids in lists]
    before = repr(rankings)
    reciprocal_rank_fusion(rankings, k=60, depth=3)
    assert repr(rankings) == before


@pytest.mark.parametrize("k", [-1, math.nan, math.inf])
def test_k_out_of_range_is_refused(k: float) -> None:
    with pytest.raises(UsageError, match="rrf_k"):
        fuse(["p"], k=k)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, math.nan]])
def test_weights_that_do_not_fit_are_refused(weights: list[float]) -> None:
    with pytest.raises(UsageError, match="weight"):
        fuse(["p", "q"], weights=weights)


def test_depth_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="depth"):
        fuse(["p"], depth=0)


def scored(method: Method, rows: dict[str, float]) -> Ranking:
    hits = tuple(
        Hit(chunk_id=name, position=ord(name[0]), score=score, rank=rank)
        for rank, (name, score) in enumerate(rows.items(), start=1)
    )
    return Ranking(method, hits, len(hits), ScoreKind("", ""))


VECTOR = scored("vector", {"a": 0.9, "b": 0.5, "c": 0.1})
BM25 = scored("bm25", {"b": 12.0, "d": 8.0, "a": 2.0})


def scores_of(fused: Ranking) -> dict[str, float]:
    return {hit.chunk_id: hit.score for hit in fused.hits}


def test_min_max_fusion_is_the_weighted_sum_computed_by_hand() -> None:
    fused = weighted_sum_fusion([VECTOR, BM25], kind="minmax", depth=50, weights=[0.7, 0.3])
    # vector: a 1, b 0.5, c 0; BM25: b 1, d 0.6, a 0; absent: 0
    assert scores_of(fused) == pytest.approx(
        {"a": 0.7, "b": 0.35 + 0.3, "d": 0.18, "c": 0.0}, abs=1e-12
    )
    assert [hit.chunk_id for hit in fused.hits] == ["a", "b", "d", "c"]
    assert fused.score_kind.name == "min-max sum"
    assert fused.score_kind.range == "0 to 1"


def test_z_score_fusion_is_the_weighted_sum_computed_by_hand() -> None:
    fused = weighted_sum_fusion([VECTOR, BM25], kind="zscore", depth=50, weights=[2, 1])
    # vector: mean 0.5, population deviation sqrt(0.32 / 3); absent: what c gets
    v = 0.4 / math.sqrt(0.32 / 3)
    # BM25: mean 22/3, deviation over 12, 8, 2; absent: what a gets
    mean, deviation = statistics.mean([12, 8, 2]), statistics.pstdev([12, 8, 2])
    z = {name: (score - mean) / deviation for name, score in (("b", 12), ("d", 8), ("a", 2))}
    assert scores_of(fused) == pytest.approx(
        {"a": 2 * v + z["a"], "b": z["b"], "c": -2 * v + z["a"], "d": -2 * v + z["d"]}, abs=1e-12
    )


@pytest.mark.parametrize("kind", ["minmax", "zscore"])
def test_a_list_of_equal_scores_says_only_who_is_in_it(kind: FusionKind) -> None:
    single = scored("bm25", {"c": 3.7})
    fused = weighted_sum_fusion([VECTOR, single], kind=kind, depth=50)
    alone = weighted_sum_fusion([VECTOR], kind=kind, depth=50)
    found, before = scores_of(fused), scores_of(alone)
    assert found["c"] == pytest.approx(before["c"] + 1)
    assert found["a"] == before["a"]


@pytest.mark.parametrize("kind", ["minmax", "zscore"])
def test_an_empty_list_adds_nothing(kind: FusionKind) -> None:
    fused = weighted_sum_fusion([VECTOR, scored("bm25", {})], kind=kind, depth=50)
    assert scores_of(fused) == scores_of(weighted_sum_fusion([VECTOR], kind=kind, depth=50))


@pytest.mark.parametrize("kind", ["minmax", "zscore"])
def test_normalisation_is_over_the_candidates_within_the_depth(kind: FusionKind) -> None:
    long = scored("vector", {"a": 0.9, "b": 0.5, "c": 0.1, "d": -5.0})
    assert scores_of(weighted_sum_fusion([long, BM25], kind=kind, depth=3)) == scores_of(
        weighted_sum_fusion([VECTOR, BM25], kind=kind, depth=3)
    )


@pytest.mark.parametrize("kind", ["minmax", "zscore"])
def test_a_repeated_id_counts_once_in_a_weighted_sum(kind: FusionKind) -> None:
    hits = (VECTOR.hits[0], VECTOR.hits[0], *VECTOR.hits[1:])
    twice = replace(VECTOR, hits=hits)
    assert scores_of(weighted_sum_fusion([twice, BM25], kind=kind, depth=50)) == scores_of(
        weighted_sum_fusion([VECTOR, BM25], kind=kind, depth=50)
    )


@pytest.mark.parametrize("kind", ["minmax", "zscore"])
def test_a_weight_of_zero_leaves_the_list_and_its_chunks_out(kind: FusionKind) -> None:
    fused = weighted_sum_fusion([VECTOR, BM25], kind=kind, depth=50, weights=[1, 0])
    assert list(scores_of(fused)) == ["a", "b", "c"]


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-50, 50), max_size=8)


@given(SCORES, SCORES, st.floats(0, 5), st.floats(0, 5), st.sampled_from(["minmax", "zscore"]))
def test_parts_sum_to_the_score_and_the_order_of_the_lists_makes_no_difference(
    first: dict[str, float],
    second: dict[str, float],
    v: float,
    b: float,
    kind: FusionKind,
) -> None:
    def sorted_list(method: Method, rows: dict[str, float]) -> Ranking:
        return scored(method, dict(sorted(rows.items(), key=lambda row: (-row[1], row[0]))))

    vector, bm25 = sorted_list("vector", first), sorted_list("bm25", second)
    fused = weighted_sum_fusion([vector, bm25], kind=kind, depth=5, weights=[v, b])
    other = weighted_sum_fusion([bm25, vector], kind=kind, depth=5, weights=[b, v])
    assert fused.hits == other.hits
    for hit in fused.hits:
        assert math.isfinite(hit.score)
        parts = fused_parts(hit.chunk_id, fused, {"vector": vector, "bm25": bm25})
        assert hit.score == pytest.approx(math.fsum(p.addend for p in parts), abs=1e-9)
        for part in parts:
            assert part.normalised is not None
            assert part.addend == part.weight * part.normalised


def test_parts_show_the_arithmetic_of_a_chunk_that_one_list_lacks() -> None:
    fused = weighted_sum_fusion([VECTOR, BM25], kind="minmax", depth=50, weights=[0.7, 0.3])
    in_vector, in_bm25 = fused_parts("d", fused, {"vector": VECTOR, "bm25": BM25})
    assert (in_vector.rank, in_vector.score, in_vector.normalised, in_vector.addend) == (
        None, None, 0.0, 0.0,
    )  # fmt: skip
    assert (in_bm25.rank, in_bm25.score) == (2, 8.0)
    assert in_bm25.normalised == pytest.approx(0.6)
    assert in_bm25.addend == pytest.approx(0.18)
    norm = fused.params["normalisations"][1]
    assert (norm.offset, norm.scale, norm.absent) == (2.0, 10.0, 0.0)


def test_a_sum_needs_a_normalisation() -> None:
    with pytest.raises(UsageError, match="minmax or zscore"):
        weighted_sum_fusion([VECTOR], kind="rrf", depth=5)
