"""The quick way to the best chunks gives what scoring every chunk exactly gives."""

from __future__ import annotations

import random
from typing import get_args

import numpy as np
import pytest

from rag_tui.engine.retrievers import rough_scores
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.topk import at_least_kth, top_k
from rag_tui.engine.types import BM25Params, BM25Variant

N = 9000
VARIANTS: tuple[BM25Variant, ...] = get_args(BM25Variant)


@pytest.fixture(scope="module")
def postings() -> BM25Postings:
    """Words of every frequency; many chunks are copies, so that many scores are equal."""
    rng = random.Random(5)
    words = [f"w{i}" for i in range(3000)]
    weights = [1 / (i + 1) for i in range(3000)]
    different = [rng.choices(words, weights, k=rng.randint(0, 60)) for _ in range(N // 3)]
    texts = [rng.choice(different) for _ in range(N - 1)]
    return BM25Postings.build([*texts, ["often"] * 700 + ["w0"]])


def queries() -> list[list[str]]:
    rng = random.Random(11)
    fixed = [["w0"], ["w2999", "w2500"], ["unknown"], [], ["often"], ["w0", "w0", "w1", "often"]]
    return (
        fixed
        + [rng.choices([f"w{i}" for i in range(3000)], k=k) for k in (1, 3, 5, 8)]
        + [[f"w{int(rng.paretovariate(0.4)) % 3000}" for _ in range(k)] for k in (2, 4, 6, 12)]
    )


def exact(
    postings: BM25Postings, query: list[str], params: BM25Params, k: int, mask: np.ndarray | None
) -> tuple[list[int], list[float]]:
    scores, is_match = postings.scores(query, params)
    best = top_k(scores, k, candidates=is_match if mask is None else is_match & mask)
    return best.tolist(), scores[best].tolist()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("k1", "b"), [(1.5, 0.75), (0.0, 0.5), (2.5, 1.0), (0.9, 0.0), (1e300, 1.0)]
)
def test_it_gives_the_same_chunks_in_the_same_order_with_the_same_scores_to_the_last_bit(
    postings: BM25Postings, variant: BM25Variant, k1: float, b: float
) -> None:
    params = BM25Params(variant, k1, b, delta=0.4)
    some = np.random.default_rng(3).random(N) < 0.3
    for query in queries():
        for k, mask in ((1, None), (10, None), (10, some), (2000, None), (20_000, some)):
            positions, scores = postings.rough.best(query, params, k, mask)
            assert (positions.tolist(), scores.tolist()) == exact(postings, query, params, k, mask)


def test_large_corpora_take_the_quick_way(
    postings: BM25Postings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("all chunks were scored exactly")

    monkeypatch.setattr(BM25Postings, "scores", refuse)
    positions, _ = postings.rough.best(["w0", "w7"], BM25Params(), 10)
    assert positions.size == 10
    # a weight of 0 would hide matches from it
    with pytest.raises(AssertionError):
        postings.rough.best(["w0"], BM25Params("okapi", epsilon=0), 10)


def test_columns_of_frequent_terms_are_limited(
    postings: BM25Postings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rough_scores, "_MOST_COLUMNS", 2)
    scorer = rough_scores.RoughScorer(postings)
    query = [f"w{i}" for i in range(6)]
    found, _ = scorer.best(query, BM25Params(), 10)
    assert len(scorer._columns) == 2
    assert found.tolist() == exact(postings, query, BM25Params(), 10, None)[0]


def test_values_close_below_the_kth_are_kept_and_zeros_never_are() -> None:
    values = np.zeros(5000, np.float32)
    values[[7, 2000, 4000]] = [1.0, 0.9999, 0.5]
    assert at_least_kth(values, 1, 0.001).tolist() == [7, 2000]
    assert at_least_kth(values, 10, 0.001).tolist() == [7, 2000, 4000]


def test_building_in_blocks_gives_the_same_postings(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_tui.engine.retrievers import collecting

    rng = random.Random(2)
    texts = [rng.choices("abcdefgh", k=rng.randint(0, 20)) for _ in range(80)]
    whole = BM25Postings.build(texts)
    monkeypatch.setattr(collecting, "_BLOCK", 30)
    blocks = BM25Postings.build(iter(texts))
    assert blocks.terms == whole.terms
    for name, values in whole.to_arrays().items():
        assert blocks.to_arrays()[name].tolist() == values.tolist()
    for i, text in enumerate(texts):
        assert {t: whole.tf(t, i) for t in whole.terms} == {t: text.count(t) for t in whole.terms}


def test_frequencies_take_the_smallest_type_that_holds_them() -> None:
    for most, expected in ((255, np.uint8), (256, np.uint16), (70_000, np.int32)):
        built = BM25Postings.build([["a"] * most + ["b"]])
        assert built.tfs.dtype == expected
        assert built.tf("a", 0) == most
        copy = BM25Postings.from_arrays(built.terms, built.to_arrays())
        assert copy.tf("a", 0) == most


def test_numbers_too_wide_to_sort_as_one_are_ordered_all_the_same() -> None:
    from rag_tui.engine.retrievers.collecting import _by_row

    rows = np.array([2**30, 1, 2**30, 0], np.int32)
    chunks = np.array([0, 1, 2**30, 2**30], np.int32)
    tfs = np.array([1, 2, 3, 4], np.int32)
    positions, counts = _by_row(rows, chunks, tfs)
    assert positions.tolist() == [2**30, 1, 0, 2**30]
    assert counts.tolist() == [4, 2, 1, 3]
