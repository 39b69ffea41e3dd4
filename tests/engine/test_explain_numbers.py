"""The parts of every score sum to the score shown: all methods, variants and kinds of fusion."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import get_args

import pytest

from rag_tui.engine.explain import Explanation
from rag_tui.engine.explain_columns import explain_column
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import make_column
from rag_tui.engine.loading import Models
from rag_tui.engine.searching import final_results, search, stage_rankings
from rag_tui.engine.types import (
    BM25Variant,
    Column,
    Document,
    FusionKind,
    Hit,
    Ranking,
    SearchRequest,
)
from tests.engine.small_index import index_of, small_models

VARIANTS: tuple[BM25Variant, ...] = get_args(BM25Variant)
FUSIONS: tuple[FusionKind, ...] = get_args(FusionKind)
QUESTIONS = ("Can I bring my dog?", "where is the lockbox, the grey one", "late checkout +fee")


def shown(request: SearchRequest, column: Column, index: Index, models: Models) -> Ranking:
    alone = SearchRequest(request.query, columns=(column,), depth=request.depth, bm25=request.bm25)
    (result,) = final_results(search(alone, index, models))
    assert result.ranking is not None, result.error
    return result.ranking


def check_bm25(found: Explanation, hit: Hit) -> None:
    part = found.bm25
    assert part is not None
    assert part.score == pytest.approx(hit.score, abs=1e-6)
    assert math.fsum(t.contribution for t in part.terms) == pytest.approx(hit.score, abs=1e-6)
    if hit.score:
        assert math.fsum(t.share for t in part.terms) == pytest.approx(1, abs=1e-6)
    assert part.rank == hit.rank


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_words_sum_to_the_bm25_score_in_every_variant(
    variant: BM25Variant, guesthouse: Index, models: Models
) -> None:
    n_checked = 0
    for question in QUESTIONS:
        for k1, b in ((1.5, 0.75), (0.0, 0.0), (3.0, 1.0)):
            knobs = {"bm25.variant": variant, "bm25.k1": k1, "bm25.b": b}
            column = make_column("c", "bm25", knobs)
            request = SearchRequest(question)
            for hit in shown(request, column, guesthouse, models).hits:
                found = explain_column(hit.chunk_id, request, column, guesthouse, models)
                check_bm25(found, hit)
                n_checked += 1
    assert n_checked > 20


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_words_sum_on_random_corpora_with_every_analyzer(variant: BM25Variant) -> None:
    chosen = random.Random(VARIANTS.index(variant))
    words = ["running", "runs", "RunState", "run_state", "pump", "the", "of", "E0277", "Ⅳ", "泵站"]
    models = small_models()
    n_checked = 0
    for number, analyzer in enumerate(("words", "english", "code", "cjk")):
        texts = [" ".join(chosen.choices(words, k=chosen.randint(1, 12))) for _ in range(30)]
        document = Document("a.md", "A", "\n\n".join(texts), str(number))
        index = index_of((document,))
        knobs = {"bm25.variant": variant, "bm25.analyzer": analyzer}
        column = make_column("c", "bm25", knobs)
        request = SearchRequest("the running pump run_state run 泵站 missing")
        for hit in shown(request, column, index, models).hits:
            check_bm25(explain_column(hit.chunk_id, request, column, index, models), hit)
            n_checked += 1
    assert n_checked > 60


@pytest.mark.parametrize("variant", ["okapi", "bm25l", "bm25plus"])
def test_the_words_sum_to_the_scores_of_the_library(
    variant: str, guesthouse: Index, models: Models
) -> None:
    knobs = {"bm25.variant": variant, "bm25.backend": "rank_bm25"}
    column = make_column("c", "bm25", knobs)
    request = SearchRequest(QUESTIONS[1])
    hits = shown(request, column, guesthouse, models).hits
    assert hits
    for hit in hits:
        check_bm25(explain_column(hit.chunk_id, request, column, guesthouse, models), hit)


@pytest.mark.parametrize(
    ("fusion", "weights"), product(FUSIONS, ((1.0, 1.0), (2.5, 0.5), (0.0, 1.0)))
)
def test_the_lists_sum_to_the_fused_score_in_every_kind_of_fusion(
    fusion: FusionKind, weights: tuple[float, float], guesthouse: Index, models: Models
) -> None:
    knobs = {
        "search.fusion": fusion,
        "search.weight_vector": weights[0],
        "search.weight_bm25": weights[1],
        "search.depth": 6,
    }
    column = make_column("c", "hybrid", knobs)
    request = SearchRequest(QUESTIONS[1])
    hits = shown(request, column, guesthouse, models).hits
    assert len(hits) == 6
    for hit in hits:
        found = explain_column(hit.chunk_id, request, column, guesthouse, models).hybrid
        assert found is not None
        assert math.fsum(part.addend for part in found.parts) == pytest.approx(hit.score, abs=1e-9)
        assert found.score == pytest.approx(hit.score, abs=1e-9)
        assert (found.rank, found.fusion) == (hit.rank, fusion)


@pytest.mark.parametrize("scale", ["logit", "sigmoid"])
def test_similarity_and_reranker_score_are_those_of_the_lists(
    scale: str, guesthouse: Index, models: Models
) -> None:
    column = make_column("c", "reranked", {"search.rerank_scale": scale})
    request = SearchRequest(QUESTIONS[0])
    lists = stage_rankings(request, column, guesthouse, models)
    for hit in shown(request, column, guesthouse, models).hits:
        found = explain_column(hit.chunk_id, request, column, guesthouse, models)
        assert found.vector is not None
        assert found.reranked is not None
        near = lists["vector"].hit_of(hit.chunk_id)
        assert near is not None
        assert found.vector.similarity == near.score
        value = found.reranked.sigmoid if scale == "sigmoid" else found.reranked.score
        assert value == pytest.approx(hit.score, abs=1e-6)
        assert found.reranked.rank_after == hit.rank
        assert found.reranked.rank_before == lists["hybrid"].rank_of(hit.chunk_id)


def test_without_one_list_a_chunk_stands_where_the_other_has_it(
    guesthouse: Index, models: Models
) -> None:
    column = make_column("c", "hybrid", {"search.depth": 5})
    request = SearchRequest(QUESTIONS[1])
    lists = stage_rankings(request, column, guesthouse, models)
    for chunk_id in guesthouse.chunk_ids:
        found = explain_column(chunk_id, request, column, guesthouse, models).hybrid
        assert found is not None
        assert dict(found.rank_without) == {
            "vector": lists["bm25"].rank_of(chunk_id),
            "bm25": lists["vector"].rank_of(chunk_id),
        }


def test_a_chunk_that_no_list_holds_has_no_fused_score(guesthouse: Index, models: Models) -> None:
    column = make_column("c", "hybrid", {"search.depth": 5, "search.fusion": "zscore"})
    request = SearchRequest(QUESTIONS[0])
    lists = stage_rankings(request, column, guesthouse, models)
    listed = {hit.chunk_id for method in ("vector", "bm25") for hit in lists[method].hits}
    outside = [chunk_id for chunk_id in guesthouse.chunk_ids if chunk_id not in listed]
    assert outside
    for chunk_id in outside:
        found = explain_column(chunk_id, request, column, guesthouse, models)
        assert found.hybrid is not None
        assert (found.hybrid.score, found.hybrid.rank) == (0.0, None)
        assert found.vector is not None
        assert found.vector.corpus_rank is not None
        assert found.vector.corpus_rank > 5
