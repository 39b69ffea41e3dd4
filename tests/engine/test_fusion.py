from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.errors import UsageError
from rag_tui.engine.fusion import reciprocal_rank_fusion
from rag_tui.engine.types import Hit, Ranking, ScoreKind

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
    assert dict(fused.params) == {"k": 60, "depth": 7, "methods": ("bm25",), "weights": (1.0,)}


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
