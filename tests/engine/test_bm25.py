from __future__ import annotations

import json
import math
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from rag_tui.engine.errors import BadIndexError, UsageError
from rag_tui.engine.retrievers.bm25 import BM25Postings, retrieve_bm25
from rag_tui.engine.types import BM25Params, BM25Variant

FOUR = [
    "reset the pump valve",
    "pump noise at night",
    "drain the tank slowly",
    "tank level sensor",
]


def postings(texts: list[str]) -> BM25Postings:
    return BM25Postings.build(text.split() for text in texts)


def random_texts(seed: int, n: int = 60) -> list[list[str]]:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(40)]
    weights = [1 / (i + 1) for i in range(40)]
    return [rng.choices(words, weights, k=rng.randint(0, 30)) for _ in range(n)]


def test_a_word_in_half_of_a_small_folder_scores_by_the_stated_formula() -> None:
    scores, is_match = postings(FOUR).scores(["pump"], BM25Params(k1=1.2))
    # idf = ln(1 + 2.5/2.5) = ln 2; both chunks have 4 terms, the mean is 15/4.
    expected = math.log(2) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4 / 3.75))
    assert scores.tolist() == pytest.approx([expected, expected, 0, 0], abs=1e-12)
    assert is_match.tolist() == [True, True, False, False]


def test_the_numbers_of_the_shared_small_folder_case_hold(shared: Path) -> None:
    case = shared / "cases" / "19-bm25-zero-idf"
    texts = [json.loads(line)["text"] for line in (case / "docs.jsonl").read_text().splitlines()]
    expected = json.loads((case / "expected.json").read_text())
    params = BM25Params(k1=1.2)
    for word in ("pump", "noise"):
        scores, _ = postings(texts).scores([word], params)
        numbers = [expected[word].get(name, 0.0) for name in "abcd"]
        assert scores.tolist() == pytest.approx(numbers, abs=1e-6)
    scores, _ = postings(texts).scores(["pump"], BM25Params(k1=1.5))
    assert scores[:2].tolist() == pytest.approx(list(expected["k1=1.5 pump"].values()), abs=1e-6)
    for name in ("two documents, word in one of them", "word in every document"):
        scores, _ = postings(expected[name]["docs"]).scores(["pump"], params)
        assert scores.tolist() == pytest.approx(expected[name]["scores"], abs=1e-6)


def test_equal_scores_are_listed_in_corpus_order_and_others_are_absent() -> None:
    for depth, ids in ((1, ["a"]), (2, ["a", "b"]), (10, ["a", "b"])):
        ranking = retrieve_bm25("Pump", postings(FOUR), "abcd", BM25Params(), depth=depth)
        assert [hit.chunk_id for hit in ranking.hits] == ids
        assert [hit.rank for hit in ranking.hits] == list(range(1, len(ids) + 1))


def test_a_match_with_score_zero_is_listed_all_the_same() -> None:
    # okapi: ln 2.5 - ln 2.5 = 0 for a word in exactly half of the chunks.
    ranking = retrieve_bm25("pump", postings(FOUR), "abcd", BM25Params("okapi"), depth=5)
    assert [(hit.chunk_id, hit.score) for hit in ranking.hits] == [("a", 0.0), ("b", 0.0)]


@pytest.mark.parametrize("seed", range(12))
def test_okapi_equals_rank_bm25(seed: int) -> None:
    rng = random.Random(seed + 100)
    texts = random_texts(seed)
    k1, b, epsilon = rng.choice([(1.5, 0.75, 0.25), (0.9, 0.4, 0.1), (2.0, 0.99, 0.5)])
    reference = BM25Okapi(texts, k1=k1, b=b, epsilon=epsilon)
    ours = BM25Postings.build(texts)
    for _ in range(10):
        query = rng.choices([f"w{i}" for i in range(45)], k=rng.randint(1, 8))
        scores, is_match = ours.scores(query, BM25Params("okapi", k1, b, epsilon))
        assert scores == pytest.approx(reference.get_scores(query), abs=1e-9)
        assert is_match.tolist() == [bool(set(query) & set(text)) for text in texts]


@pytest.mark.parametrize("seed", range(6))
def test_lucene_equals_bm25s(seed: int) -> None:
    bm25s = pytest.importorskip("bm25s")
    texts = [text or ["w0"] for text in random_texts(seed)]
    reference = bm25s.BM25(method="lucene", k1=1.3, b=0.6)
    reference.index(texts, show_progress=False)
    ours = BM25Postings.build(texts)
    rng = random.Random(seed)
    for _ in range(10):
        query = rng.choices([f"w{i}" for i in range(40)], k=rng.randint(1, 6))
        query = [term for term in query if term in ours.vocabulary] or ["w0"]
        scores, _ = ours.scores(query, BM25Params("lucene", k1=1.3, b=0.6))
        # bm25s leaves out the constant factor k1 + 1, as Lucene does since version 8.
        assert scores / 2.3 == pytest.approx(reference.get_scores(query), rel=1e-5, abs=1e-5)


def test_okapi_equals_rank_bm25_on_scientific_abstracts(shared: Path) -> None:
    folder = shared / "data" / "ir" / "scifact"
    if not (folder / "corpus.jsonl").is_file():
        pytest.skip("the scifact abstracts are not beside this checkout")
    with (folder / "corpus.jsonl").open() as lines:
        texts = [json.loads(line)["text"].lower().split() for line in islice(lines, 600)]
    queries = (folder / "queries.jsonl").read_text().splitlines()[:25]
    reference = BM25Okapi(texts)
    ours = BM25Postings.build(texts)
    n_positive = 0
    for line in queries:
        query = json.loads(line)["text"].lower().split()
        scores, _ = ours.scores(query, BM25Params("okapi"))
        np.testing.assert_allclose(scores, reference.get_scores(query), rtol=0, atol=1e-9)
        n_positive += int((scores > 0).any())
    assert n_positive == len(queries)


def test_a_repeated_query_word_counts_as_often_as_it_stands_there() -> None:
    once, _ = postings(FOUR).scores(["pump"], BM25Params())
    twice, _ = postings(FOUR).scores(["pump", "pump"], BM25Params())
    assert twice.tolist() == pytest.approx((2 * once).tolist(), abs=1e-15)


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_the_parts_of_every_chunk_sum_to_its_score(variant: BM25Variant) -> None:
    texts = random_texts(7)
    ours = BM25Postings.build(texts)
    query = ["w0", "w3", "w3", "w17", "unknown"]
    params = BM25Params(variant, k1=0.7, b=0.9)
    scores, _ = ours.scores(query, params)
    for position, text in enumerate(texts):
        parts = ours.term_parts(query, position, params)
        assert math.fsum(p.contribution for p in parts) == pytest.approx(
            scores[position], abs=1e-12
        )
        assert [p.tf for p in parts] == [text.count(t) for t in ("w0", "w3", "w17", "unknown")]
        assert [p.df for p in parts] == [
            sum(t in other for other in texts) for t in ("w0", "w3", "w17", "unknown")
        ]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_a_corpus_without_words_gives_an_empty_list(texts: list[str], variant: BM25Variant) -> None:
    ids = [str(i) for i in range(len(texts))]
    ranking = retrieve_bm25("pump", postings(texts), ids, BM25Params(variant), depth=5)
    assert ranking.hits == ()
    assert ranking.params["unknown"] == ("pump",)


def test_a_question_without_words_gives_an_empty_list_with_a_note() -> None:
    ranking = retrieve_bm25("?!", postings(FOUR), "abcd", BM25Params(), depth=5)
    assert (ranking.hits, bool(ranking.note)) == ((), True)


def test_length_does_not_matter_with_b_zero_nor_frequency_with_k1_zero() -> None:
    ours = postings(["pump", "pump pump a b c d"])
    no_length, _ = ours.scores(["pump"], BM25Params(b=0))
    assert no_length[1] > no_length[0]
    binary, _ = ours.scores(["pump"], BM25Params(k1=0))
    assert binary[0] == binary[1] == pytest.approx(math.log(1 + 0.5 / 2.5))


@pytest.mark.parametrize(
    ("params", "value"),
    [
        (BM25Params(k1=-0.1), "-0.1"),
        (BM25Params(k1=math.inf), "inf"),
        (BM25Params(k1=math.nan), "nan"),
        (BM25Params(b=1.5), "1.5"),
        (BM25Params(b=math.nan), "nan"),
        (BM25Params(epsilon=-1), "-1"),
    ],
)
def test_parameters_out_of_range_are_refused_by_value(params: BM25Params, value: str) -> None:
    with pytest.raises(UsageError, match=value) as raised:
        retrieve_bm25("pump", postings(FOUR), "abcd", params, depth=5)
    assert raised.value.hint


def test_stored_arrays_give_the_same_postings_back() -> None:
    ours = BM25Postings.build(random_texts(3))
    copy = BM25Postings.from_arrays(ours.terms, ours.to_arrays())
    query = ["w1", "w2"]
    assert copy.scores(query, BM25Params())[0].tolist() == (
        ours.scores(query, BM25Params())[0].tolist()
    )
    assert not any(values.flags.writeable for values in copy.to_arrays().values())


@pytest.mark.parametrize("name", ["offsets", "positions", "tfs", "lengths"])
def test_stored_arrays_that_are_missing_or_cut_are_refused(name: str) -> None:
    ours = postings(FOUR)
    arrays = ours.to_arrays()
    with pytest.raises(BadIndexError):
        BM25Postings.from_arrays(ours.terms, {k: v for k, v in arrays.items() if k != name})
    with pytest.raises(BadIndexError):
        BM25Postings.from_arrays(ours.terms, {**arrays, name: arrays[name][:-1]})


def test_postings_of_another_corpus_are_refused() -> None:
    with pytest.raises(BadIndexError, match="4"):
        retrieve_bm25("pump", postings(FOUR), "abc", BM25Params(), depth=5)
