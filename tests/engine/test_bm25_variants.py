from __future__ import annotations

import json
import math
import random
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import rank_bm25

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.errors import UsageError
from rag_tui.engine.retrievers.bm25 import BM25Postings, bm25_score_kind, retrieve_bm25
from rag_tui.engine.types import BM25Params, BM25Variant

ALL: tuple[BM25Variant, ...] = get_args(BM25Variant)
LIBRARY = {
    "okapi": rank_bm25.BM25Okapi,
    "bm25l": rank_bm25.BM25L,
    "bm25plus": rank_bm25.BM25Plus,
}


def random_texts(seed: int, n: int = 60) -> list[list[str]]:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(40)]
    weights = [1 / (i + 1) for i in range(40)]
    return [rng.choices(words, weights, k=rng.randint(1, 30)) for _ in range(n)]


def random_queries(seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [rng.choices([f"w{i}" for i in range(45)], k=rng.randint(1, 7)) for _ in range(8)]


@pytest.fixture(scope="module")
def abstracts(shared: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Scientific abstracts and claims as lists of words."""
    folder = shared / "data" / "ir" / "scifact"
    with (folder / "corpus.jsonl").open() as lines:
        texts = [WORDS.tokens(json.loads(line)["text"]) for line in islice(lines, 500)]
    with (folder / "queries.jsonl").open() as lines:
        queries = [WORDS.tokens(json.loads(line)["text"]) for line in islice(lines, 12)]
    return texts, queries


def absent_part(
    texts: list[list[str]], query: list[str], variant: str, k1: float, delta: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What bm25s adds to a chunk for query words it lacks: idf * f(0)."""
    n = len(texts)
    total = np.zeros(n)
    for term in query:
        df = sum(term in text for text in texts)
        if df:
            idf = (
                math.log((n + 1) / df) if variant == "bm25plus" else math.log((n + 1) / (df + 0.5))
            )
            zero = delta if variant == "bm25plus" else (k1 + 1) * delta / (k1 + delta)
            total += [idf * zero * (term not in text) for text in texts]
    return total


def equal_to_bm25s(
    texts: list[list[str]], queries: list[list[str]], variant: BM25Variant, k1: float, b: float
) -> None:
    bm25s = pytest.importorskip("bm25s")
    method = "bm25+" if variant == "bm25plus" else variant
    delta = 0.7
    reference = bm25s.BM25(method=method, k1=k1, b=b, delta=delta, dtype="float64")
    reference.index(texts, show_progress=False)
    ours = BM25Postings.build(texts)
    params = BM25Params(variant, k1, b, delta=delta)
    n_positive = 0
    for words in queries:
        query = [term for term in words if term in ours.vocabulary] or [texts[0][0]]
        scores, _ = ours.scores(query, params)
        if variant == "lucene":  # bm25s leaves out the constant factor, as Lucene 8 does
            scores = scores / (k1 + 1)
        if variant in ("bm25l", "bm25plus"):
            scores = scores + absent_part(texts, query, variant, k1, delta)
        np.testing.assert_allclose(scores, reference.get_scores(query), rtol=1e-6, atol=1e-9)
        n_positive += int((scores > 0).any())
    assert n_positive > len(queries) / 2


BM25S_VARIANTS: tuple[BM25Variant, ...] = ("lucene", "robertson", "atire", "bm25l", "bm25plus")


@pytest.mark.parametrize("variant", BM25S_VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_variants_equal_bm25s_on_random_texts(variant: BM25Variant, seed: int) -> None:
    k1, b = [(1.5, 0.75), (0.9, 0.4), (2.0, 1.0)][seed]
    equal_to_bm25s(random_texts(seed), random_queries(seed), variant, k1, b)


@pytest.mark.parametrize("variant", BM25S_VARIANTS)
def test_variants_equal_bm25s_on_scientific_abstracts(
    variant: BM25Variant, abstracts: tuple[list[list[str]], list[list[str]]]
) -> None:
    equal_to_bm25s(*abstracts, variant, 1.2, 0.6)


def equal_to_rank_bm25(
    texts: list[list[str]], queries: list[list[str]], params: BM25Params
) -> None:
    """Ours by the library's formula, and the ranking that the library itself makes."""
    extra = {"epsilon": params.epsilon} if params.variant == "okapi" else {"delta": params.delta}
    reference = LIBRARY[params.variant](texts, k1=params.k1, b=params.b, **extra)
    ours = BM25Postings.build(texts)
    ids = [str(i) for i in range(len(texts))]
    for query in queries:
        expected = reference.get_scores(query)
        scores, is_match = ours.scores(query, params)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)
        ranking = retrieve_bm25(" ".join(query), ours, ids, params, depth=len(texts))
        assert {hit.position for hit in ranking.hits} == set(np.flatnonzero(is_match).tolist())
        assert [hit.score for hit in ranking.hits] == pytest.approx(
            [expected[hit.position] for hit in ranking.hits], abs=1e-9
        )
        for position in (0, 7, 23):
            parts = ours.term_parts(query, position, params)
            assert math.fsum(p.contribution for p in parts) == pytest.approx(
                expected[position], abs=1e-9
            )


@pytest.mark.parametrize("variant", LIBRARY)
@pytest.mark.parametrize("seed", range(3))
def test_the_library_itself_makes_the_list_and_our_parts_sum_to_its_scores(
    variant: BM25Variant, seed: int
) -> None:
    k1, b = [(1.5, 0.75), (0.9, 0.4), (2.0, 1.0)][seed]
    params = BM25Params(variant, k1, b, epsilon=0.3, delta=0.7, backend="rank_bm25")
    equal_to_rank_bm25(random_texts(seed), random_queries(seed), params)


@pytest.mark.parametrize("variant", LIBRARY)
def test_the_library_makes_the_list_of_scientific_abstracts(
    variant: BM25Variant, abstracts: tuple[list[list[str]], list[list[str]]]
) -> None:
    delta = 0.5 if variant == "bm25l" else 1.0
    params = BM25Params(variant, delta=delta, backend="rank_bm25")
    equal_to_rank_bm25(*abstracts, params)


def test_the_knobs_of_the_library_stay_live() -> None:
    texts = random_texts(1)
    ours = BM25Postings.build(texts)
    ids = [str(i) for i in range(len(texts))]
    for k1, epsilon in ((0.5, 0.25), (2.0, 0.25), (2.0, 0.9)):
        params = BM25Params(variant="okapi", k1=k1, epsilon=epsilon, backend="rank_bm25")
        reference = rank_bm25.BM25Okapi(texts, k1=k1, epsilon=epsilon)
        ranking = retrieve_bm25("w0 w3", ours, ids, params, depth=3)
        best = np.sort(reference.get_scores(["w0", "w3"]))[::-1][:3]
        assert [hit.score for hit in ranking.hits] == pytest.approx(best.tolist(), abs=1e-12)


def test_the_note_names_the_library_and_its_class() -> None:
    ours = BM25Postings.build([["pump"], ["tank"], ["valve"]])
    params = BM25Params("bm25plus", backend="rank_bm25")
    ranking = retrieve_bm25("pump", ours, "abc", params, depth=3)
    assert "rank_bm25" in ranking.note
    assert "BM25Plus" in ranking.note
    assert ranking.score_kind.name == "BM25 bm25plus (rank_bm25)"
    # The library gives every text the lower bound; one without the word is no match all the same.
    assert [hit.chunk_id for hit in ranking.hits] == ["a"]


@pytest.mark.parametrize("variant", ["lucene", "robertson", "atire"])
def test_a_variant_the_library_lacks_is_refused_with_both_ways_out(variant: BM25Variant) -> None:
    params = BM25Params(variant, backend="rank_bm25")
    with pytest.raises(UsageError, match=variant) as raised:
        retrieve_bm25("pump", BM25Postings.build([["pump"]]), "a", params, depth=1)
    assert "okapi, bm25l, bm25plus" in raised.value.hint
    assert "bm25.backend" in raised.value.hint


@pytest.mark.parametrize("variant", ["okapi", "bm25l", "bm25plus"])
def test_the_library_with_a_corpus_without_words_gives_an_empty_list(variant: BM25Variant) -> None:
    params = BM25Params(variant, backend="rank_bm25")
    assert retrieve_bm25("pump", BM25Postings.build([[], []]), "ab", params, depth=1).hits == ()


def test_bm25l_and_bm25plus_follow_the_papers_where_a_word_is_and_give_nothing_elsewhere() -> None:
    ours = BM25Postings.build([["pump", "pump", "valve"], ["tank"]])
    # length factor of the first: 0.25 + 0.75 * 3/2; N = 2, df = 1, tf = 2, k1 = 1.5.
    factor = 0.25 + 0.75 * 1.5
    c = 2 / factor
    long = math.log(3 / 1.5) * 2.5 * (c + 0.5) / (1.5 + c + 0.5)
    plus = math.log(3 / 1) * (1 + 2 * 2.5 / (2 + 1.5 * factor))
    for variant, expected in (("bm25l", long), ("bm25plus", plus)):
        scores, _ = ours.scores(["pump"], BM25Params(variant))  # type: ignore[arg-type]
        assert scores.tolist() == pytest.approx([expected, 0.0], abs=1e-12)


@pytest.mark.parametrize("variant", ALL)
def test_the_parts_sum_to_the_score_and_only_matches_are_listed(variant: BM25Variant) -> None:
    texts = random_texts(7)
    ours = BM25Postings.build(texts)
    query = ["w0", "w3", "w3", "w17", "unknown"]
    params = BM25Params(variant, k1=0.7, b=0.9, delta=0.3)
    ids = [str(i) for i in range(len(texts))]
    ranking = retrieve_bm25(" ".join(query), ours, ids, params, depth=len(texts))
    matching = [i for i, text in enumerate(texts) if set(text) & set(query)]
    assert sorted(hit.position for hit in ranking.hits) == matching
    assert 0 < len(matching) < len(texts)
    for hit in ranking.hits:
        parts = ours.term_parts(query, hit.position, params)
        assert math.fsum(p.contribution for p in parts) == pytest.approx(hit.score, abs=1e-9)


@pytest.mark.parametrize("variant", ["robertson", "atire"])
def test_a_match_that_scores_nothing_is_listed(variant: BM25Variant) -> None:
    # A word in every chunk: ln(N/df) = 0, and a negative idf is 0.
    ours = BM25Postings.build([["pump"], ["pump", "tank"]])
    ranking = retrieve_bm25("pump", ours, "ab", BM25Params(variant), depth=5)
    assert [(hit.chunk_id, hit.score) for hit in ranking.hits] == [("a", 0.0), ("b", 0.0)]
    assert "can score 0" in ranking.score_kind.range


def test_every_variant_names_its_scores() -> None:
    assert [bm25_score_kind(BM25Params(v)).name for v in ALL] == [f"BM25 {v}" for v in ALL]


def test_delta_is_read_only_by_the_variants_that_have_one_and_refused_below_zero() -> None:
    ours = BM25Postings.build(random_texts(2))
    for variant in ALL:
        low, _ = ours.scores(["w0"], BM25Params(variant, delta=0.1))
        high, _ = ours.scores(["w0"], BM25Params(variant, delta=2.0))
        assert (low.tolist() != high.tolist()) == (variant in ("bm25l", "bm25plus"))
    with pytest.raises(UsageError, match="-1"):
        ours.scores(["w0"], BM25Params("bm25l", delta=-1))
    with pytest.raises(UsageError, match="bm26"):
        ours.scores(["w0"], BM25Params("bm26"))  # type: ignore[arg-type]


def test_params_of_the_list_hold_the_knobs_that_the_variant_reads() -> None:
    ours = BM25Postings.build([["pump"]])
    plus = retrieve_bm25("pump", ours, "a", BM25Params("bm25plus"), depth=1).params
    okapi = retrieve_bm25("pump", ours, "a", BM25Params("okapi"), depth=1).params
    assert plus["delta"] == 1.0
    assert "epsilon" not in plus
    assert okapi["epsilon"] == 0.25
    assert "delta" not in okapi
