"""The four lists: their numbers against other libraries, and how stages fail alone."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rank_bm25 import BM25Okapi

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.errors import Cancelled, ModelError, RagTuiError, UsageError
from rag_tui.engine.events import CancelToken, StageResult
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.base import Reranker
from rag_tui.engine.searching import final_results, search
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.types import BM25Params, Method, Ranking, SearchRequest
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

DOG = "Can I bring my dog?"


def lists(request: SearchRequest, index: Index, models: Models) -> dict[Method, Ranking]:
    found = {}
    for result in search(request, index, models):
        assert result.ranking is not None, result.error
        found[result.ranking.method] = result.ranking
    return found


def test_stages_arrive_in_the_order_of_their_cost(guesthouse: Index, models: Models) -> None:
    results = final_results(search(SearchRequest(DOG), guesthouse, models))
    stages = [r.stage for r in results]
    assert stages == ["bm25", "vector", "hybrid", "reranked"]


def test_vector_scores_are_those_of_sentence_transformers_called_directly(
    guesthouse: Index, models: Models
) -> None:
    from sentence_transformers import SentenceTransformer

    from rag_tui.engine.models import resolve

    files = resolve("sentence-transformers/all-MiniLM-L6-v2", "embedder", allow_download=False)
    reference = SentenceTransformer(str(files.folder), device="cpu")
    ranking = lists(SearchRequest(DOG), guesthouse, models)["vector"]
    query = reference.encode_query(DOG, normalize_embeddings=True)
    for hit in ranking.hits:
        text = guesthouse.chunks[hit.position].embedded_text
        passage = reference.encode_document(text, normalize_embeddings=True)
        assert hit.score == pytest.approx(float(query @ passage), abs=1e-5)
    assert ranking.hits[0].score == max(hit.score for hit in ranking.hits)
    assert len(ranking.hits) == len(guesthouse.chunks)


def test_okapi_scores_are_those_of_rank_bm25(guesthouse: Index, models: Models) -> None:
    tokens = [re.findall(r"\w+", chunk.embedded_text.lower()) for chunk in guesthouse.chunks]
    reference = BM25Okapi(tokens, k1=1.2, b=0.5)
    expected = reference.get_scores(re.findall(r"\w+", DOG.lower()))
    request = SearchRequest(DOG, bm25=BM25Params("okapi", k1=1.2, b=0.5), methods=("bm25",))
    ranking = lists(request, guesthouse, models)["bm25"]
    assert ranking.hits
    for hit in ranking.hits:
        assert hit.score == pytest.approx(float(expected[hit.position]), abs=1e-9)


def test_hybrid_is_the_reciprocal_rank_sum_of_the_two_lists(
    guesthouse: Index, models: Models
) -> None:
    found = lists(SearchRequest("I land at midnight. How do I get in?"), guesthouse, models)
    for hit in found["hybrid"].hits:
        ranks = [found[m].rank_of(hit.chunk_id) for m in ("vector", "bm25")]
        expected = sum(1 / (60 + rank) for rank in ranks if rank is not None)
        assert hit.score == pytest.approx(expected, abs=1e-12)


def test_reranked_is_a_permutation_of_the_top_of_the_hybrid_list(
    guesthouse: Index, models: Models
) -> None:
    found = lists(SearchRequest(DOG, rerank_depth=5), guesthouse, models)
    read = {hit.chunk_id for hit in found["hybrid"].hits[:5]}
    assert {hit.chunk_id for hit in found["reranked"].hits} == read
    scores = [hit.score for hit in found["reranked"].hits]
    assert scores == sorted(scores, reverse=True)


def test_scores_of_a_pair_do_not_depend_on_how_many_others_were_read(
    guesthouse: Index, models: Models
) -> None:
    few = lists(SearchRequest(DOG, rerank_depth=3, top_k=3), guesthouse, models)["reranked"]
    many = lists(SearchRequest(DOG, rerank_depth=13), guesthouse, models)["reranked"]
    for hit in few.hits:
        other = many.hit_of(hit.chunk_id)
        assert other is not None
        assert other.score == hit.score


@pytest.mark.parametrize("query", [DOG, "Where is the lockbox?", "What time is breakfast?"])
def test_the_first_rows_do_not_change_with_the_number_of_rows_shown(
    query: str, guesthouse: Index, models: Models
) -> None:
    few = lists(SearchRequest(query, top_k=3), guesthouse, models)
    many = lists(SearchRequest(query, top_k=10), guesthouse, models)
    for method, ranking in few.items():
        assert ranking.hits == many[method].hits


def test_a_chunk_without_a_query_word_is_absent_from_bm25(
    guesthouse: Index, models: Models
) -> None:
    ranking = lists(SearchRequest("lockbox", methods=("bm25",)), guesthouse, models)["bm25"]
    assert len(ranking.hits) == 1
    assert "lockbox" in guesthouse.chunks[ranking.hits[0].position].text


def test_a_question_of_unknown_words_finds_nothing_by_keyword_and_says_so(
    guesthouse: Index, models: Models
) -> None:
    found = lists(SearchRequest("xylophone", methods=("bm25",)), guesthouse, models)
    assert found["bm25"].hits == ()
    assert "no chunk holds" in found["bm25"].note


def test_the_same_search_gives_the_same_lists_every_time(
    guesthouse: Index, models: Models, model_cache: Path
) -> None:
    first = lists(SearchRequest(DOG), guesthouse, models)
    fresh = Models(ModelSettings(allow_download=False), model_cache)
    again = lists(SearchRequest(DOG), guesthouse, fresh)
    assert {m: r.hits for m, r in first.items()} == {m: r.hits for m, r in again.items()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": ""}, "question is empty"),
        ({"query": " \n\t"}, "question is empty"),
        ({"query": "word " * 10_000}, "10,000 words"),
        ({"top_k": 0}, "top_k must be at least 1 (got 0)"),
        ({"depth": 0}, "depth must be at least 1 (got 0)"),
        ({"rerank_depth": -1}, "rerank_depth must be at least 1 (got -1)"),
        ({"top_k": 60}, "top_k must not be larger than depth (got top_k 60 > depth 50)"),
        ({"rrf_k": -1.0}, "rrf_k must be a number of at least 0"),
        ({"rrf_k": float("nan")}, "rrf_k must be a number of at least 0"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_value_rule_and_fix(
    change: dict[str, object], words: str, guesthouse: Index, models: Models
) -> None:
    request = dataclasses.replace(SearchRequest(DOG), **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        list(search(request, guesthouse, models))
    assert words in caught.value.message
    assert caught.value.hint


def test_bm25_parameters_out_of_range_fail_the_list_not_the_search(
    guesthouse: Index, models: Models
) -> None:
    results = {
        r.stage: r
        for r in search(
            SearchRequest(DOG, bm25=BM25Params(b=2.0), rerank=False), guesthouse, models
        )
    }
    assert results["bm25"].error is not None
    assert "got 2" in results["bm25"].error.message
    assert results["vector"].ranking is not None


def test_top_k_larger_than_the_corpus_shows_all_that_there_is(
    guesthouse: Index, models: Models
) -> None:
    found = lists(SearchRequest(DOG, top_k=500, depth=500), guesthouse, models)
    assert len(found["vector"].hits) == 13


class Broken(Models):
    """Models whose embedder, reranker or both cannot be had."""

    def __init__(self, inner: Models, *broken: str) -> None:
        super().__init__(ModelSettings(), Path(os.devnull))
        self._inner = inner
        self._broken = broken

    def embedder(self, name: str = "") -> Embedder:
        if "embedder" in self._broken:
            raise ModelError("The embedder is gone.", "Install it.")
        return self._inner.embedder(name)

    def reranker(self, name: str = "") -> Reranker:
        return self._inner.reranker(name)

    def embed_query(self, text: str, name: str = "") -> Vectors:
        return self._inner.embed_query(text, name)

    def rerank_batches(
        self,
        query: str,
        passages: Sequence[str],
        *,
        name: str = "",
        cancel: CancelToken | None = None,
    ) -> Iterator[dict[int, float]]:
        if "reranker" in self._broken:
            raise RuntimeError("a fault [/] of ours")
        return self._inner.rerank_batches(query, passages, name=name, cancel=cancel)


def by_stage(results: Iterator[StageResult]) -> dict[str, StageResult]:
    return {result.stage: result for result in results}


def test_without_an_embedder_the_other_lists_stand_and_hybrid_says_keyword_only(
    guesthouse: Index, models: Models
) -> None:
    results = by_stage(search(SearchRequest(DOG), guesthouse, Broken(models, "embedder")))
    assert results["vector"].error is not None
    assert results["vector"].error.message == "The embedder is gone."
    assert results["vector"].error.hint == "Install it."
    hybrid = results["hybrid"].ranking
    assert hybrid is not None
    assert hybrid.note == "keyword only: The embedder is gone."
    assert results["reranked"].ranking is not None
    assert "keyword only" in results["reranked"].ranking.note


def test_a_failing_reranker_leaves_the_other_three(guesthouse: Index, models: Models) -> None:
    results = by_stage(search(SearchRequest(DOG), guesthouse, Broken(models, "reranker")))
    assert results["reranked"].error is not None
    assert results["reranked"].error.message == "RuntimeError: a fault [/] of ours"
    assert all(results[m].ranking for m in ("bm25", "vector", "hybrid"))


def test_an_index_of_another_model_is_refused_by_the_vector_list_with_both_names(
    guesthouse: Index, models: Models
) -> None:
    other = dataclasses.replace(
        guesthouse,
        manifest=dataclasses.replace(
            guesthouse.manifest, embedder_name="other/model", embedder_fingerprint="x", dimensions=3
        ),
    )
    results = by_stage(search(SearchRequest(DOG, rerank=False), other, models))
    error = results["vector"].error
    assert error is not None
    assert "other/model (3 dimensions)" in error.message
    assert "384 dimensions" in error.message
    assert "rag-tui index" in error.hint
    assert results["bm25"].ranking is not None


def test_a_cancelled_search_stops_between_stages(guesthouse: Index, models: Models) -> None:
    token = CancelToken()
    seen = []
    with pytest.raises(Cancelled):
        for result in search(SearchRequest(DOG), guesthouse, models, cancel=token):
            seen.append(result.stage)
            token.cancel()
    assert seen == ["bm25"]


def test_errors_are_the_kind_a_command_can_tell(guesthouse: Index) -> None:
    assert issubclass(UsageError, RagTuiError)
    assert guesthouse.folder == CORPUS
