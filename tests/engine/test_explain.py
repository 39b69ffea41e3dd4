from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.errors import ModelError, UsageError
from rag_tui.engine.explain import explain
from rag_tui.engine.fusion import reciprocal_rank_fusion
from rag_tui.engine.index import Index, Manifest
from rag_tui.engine.retrievers.bm25 import BM25Postings, retrieve_bm25
from rag_tui.engine.retrievers.dense import retrieve_dense
from rag_tui.engine.types import (
    BM25Params,
    Chunk,
    Hit,
    Method,
    Ranking,
    ScoreKind,
    SearchRequest,
)

BODIES = ["reset the pump valve", "pump noise pump", "drain the tank", "tank level sensor"]
ANGLES = [0.0, 0.3, 1.2, 2.0]
QUERY = np.array([1, 0], dtype=np.float32)
REQUEST = SearchRequest("the pump pump zebra", depth=2, bm25=BM25Params(k1=1.2))


@pytest.fixture
def index() -> Index:
    chunks = tuple(
        Chunk(f"c{i}", "a.md", i, i, i + 1, body, ("Manual",)) for i, body in enumerate(BODIES)
    )
    manifest = Manifest("", "", {}, "", "", "", "", 2, 0, {})
    return Index(
        folder=Path(),
        manifest=manifest,
        documents=(),
        chunks=chunks,
        bm25=BM25Postings.build(WORDS.tokens(chunk.embedded_text) for chunk in chunks),
        vectors=np.array([[math.cos(a), math.sin(a)] for a in ANGLES], dtype=np.float32),
        n_tokens=np.zeros(4, dtype=np.int32),
        reports=(),
    )


@pytest.fixture
def rankings(index: Index) -> dict[Method, Ranking]:
    ids = [chunk.chunk_id for chunk in index.chunks]
    assert index.vectors is not None
    bm25 = retrieve_bm25(REQUEST.query, index.bm25, ids, REQUEST.bm25, depth=2)
    vector = retrieve_dense(QUERY, index.vectors, ids, depth=2)
    hybrid = reciprocal_rank_fusion([bm25, vector], k=60, depth=2)
    rerank_hits = (Hit("c1", 1, 2.0, 1), Hit("c0", 0, -800.0, 2))
    reranked = Ranking("reranked", rerank_hits, 2, ScoreKind("logit", ""))
    return {"bm25": bm25, "vector": vector, "hybrid": hybrid, "reranked": reranked}


def test_the_parts_of_every_listed_chunk_sum_to_the_shown_score(
    index: Index, rankings: dict[Method, Ranking]
) -> None:
    for hit in rankings["bm25"].hits:
        bm25 = explain(hit.chunk_id, REQUEST, index, rankings).bm25
        assert bm25 is not None
        assert bm25.score == pytest.approx(hit.score, abs=1e-9)
        assert math.fsum(t.contribution for t in bm25.terms) == pytest.approx(hit.score, abs=1e-9)
        assert math.fsum(t.share for t in bm25.terms) == pytest.approx(1, abs=1e-9)
    for hit in rankings["hybrid"].hits:
        hybrid = explain(hit.chunk_id, REQUEST, index, rankings).hybrid
        assert hybrid is not None
        assert math.fsum(p.addend for p in hybrid.parts) == hybrid.score == hit.score


def test_the_words_of_a_chunk_are_weighed_as_by_hand(
    index: Index, rankings: dict[Method, Ranking]
) -> None:
    bm25 = explain("c1", REQUEST, index, rankings).bm25
    assert bm25 is not None
    (pump,) = bm25.terms
    # "manual pump noise pump": 4 words, the mean is (5 + 4 + 4 + 4) / 4; "pump" asked twice.
    factor = 0.25 + 0.75 * 4 / 4.25
    assert (pump.term, pump.tf, pump.df) == ("pump", 2, 2)
    assert pump.idf == pytest.approx(math.log(2))
    assert pump.length_factor == pytest.approx(factor)
    assert pump.contribution == pytest.approx(
        2 * math.log(2) * 2 * 2.2 / (2 + 1.2 * factor), abs=1e-12
    )
    assert bm25.unmatched == (("the", 2), ("zebra", 0))
    assert (bm25.chunk_length, bm25.mean_length) == (4, 4.25)


def test_the_gap_to_the_next_row_is_told_and_none_for_the_last(
    index: Index, rankings: dict[Method, Ranking]
) -> None:
    first = explain("c0", REQUEST, index, rankings).vector
    last = explain("c1", REQUEST, index, rankings).vector
    assert first is not None
    assert last is not None
    assert (first.rank, first.n_ranked) == (1, 2)
    assert first.gap_to_next == pytest.approx(1 - math.cos(0.3), abs=1e-6)
    assert last.gap_to_next is None


def test_a_chunk_outside_all_lists_is_explained_too(
    index: Index, rankings: dict[Method, Ranking]
) -> None:
    found = explain("c3", REQUEST, index, rankings, query_vector=QUERY)
    assert found.bm25 is not None
    assert (found.bm25.score, found.bm25.terms) == (0.0, ())
    assert found.vector is not None
    assert found.vector.similarity == pytest.approx(math.cos(2.0), abs=1e-6)
    assert (found.vector.rank, found.vector.gap_to_next) == (None, None)
    assert found.hybrid is not None
    assert [(p.rank, p.addend) for p in found.hybrid.parts] == [(None, 0.0), (None, 0.0)]
    assert found.reranked is None
    assert explain("c3", REQUEST, index, rankings).vector is None


def test_reranking_tells_both_ranks_and_never_overflows(
    index: Index, rankings: dict[Method, Ranking]
) -> None:
    for chunk_id, rank_after, sigmoid in (("c1", 1, 1 / (1 + math.exp(-2))), ("c0", 2, 0.0)):
        reranked = explain(chunk_id, REQUEST, index, rankings).reranked
        assert reranked is not None
        assert reranked.rank_before == rankings["hybrid"].rank_of(chunk_id)
        assert reranked.rank_after == rank_after
        assert reranked.sigmoid == pytest.approx(sigmoid)


def test_fusion_is_explained_with_the_numbers_of_the_shown_list(
    index: Index, rankings: dict[Method, Ranking]
) -> None:
    lists = [rankings["bm25"], rankings["vector"]]
    weighted = reciprocal_rank_fusion(lists, k=1, depth=1, weights=[2.0, 1.0])
    shown: dict[Method, Ranking] = {**rankings, "hybrid": weighted}
    hybrid = explain("c1", REQUEST, index, shown).hybrid
    assert hybrid is not None
    top = rankings["bm25"].hits[0].chunk_id
    addend = 2 / (1 + 1) if top == "c1" else 0.0
    assert [(p.method, p.weight) for p in hybrid.parts] == [("bm25", 2.0), ("vector", 1.0)]
    assert (hybrid.k, hybrid.parts[0].addend) == (1, addend)


def test_without_lists_only_the_words_are_explained(index: Index) -> None:
    found = explain("c0", REQUEST, index, {})
    assert (found.vector, found.hybrid, found.reranked) == (None, None, None)
    assert found.bm25 is not None


def test_an_unknown_chunk_and_a_foreign_vector_are_refused(index: Index) -> None:
    with pytest.raises(UsageError, match="nope"):
        explain("nope", REQUEST, index, {})
    with pytest.raises(ModelError, match="3"):
        explain("c0", REQUEST, index, {}, query_vector=np.ones(3, dtype=np.float32))
