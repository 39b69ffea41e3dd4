"""Columns: named pipelines side by side, what they reuse, and how reranking streams."""

from __future__ import annotations

import gc
import itertools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import Cancelled, ModelError, UsageError
from rag_tui.engine.events import CancelToken, StageResult
from rag_tui.engine.fusion import fused_parts
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import make_column, with_knobs
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.reranking import INTERVAL_S, sigmoid, stream_reranking
from rag_tui.engine.searching import final_results, search, stage_rankings
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.stage_cache import StageCache
from rag_tui.engine.stage_keys import bm25_key
from rag_tui.engine.types import (
    DEFAULT_COLUMNS,
    BM25Params,
    Column,
    Document,
    Hit,
    Ranking,
    ScoreKind,
    SearchRequest,
)
from tests.engine.small_index import index_of

WORDS = ("pump", "valve", "tank", "sensor", "water", "noise", "filter", "seal")
TEXT = "\n\n".join(
    f"{a} {b} {c}" + f" {a}" * n
    for n, (a, b, c) in enumerate(itertools.islice(itertools.permutations(WORDS, 3), 0, 120, 5))
)
INDEX = index_of((Document("a.md", "Manual", TEXT, ""),))
QUESTION = "pump water noise"


class CountingReranker:
    """Scores a passage by the words it shares with the question, one pair a batch."""

    info = RerankerInfo("counting", "counting", 512, ScoreKind("logit", "no fixed ends"))

    def __init__(self) -> None:
        self.read: list[str] = []

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        wanted = set(query.split())
        for passage in passages:
            self.read.append(passage)
            yield float(sum(word in wanted for word in passage.split()))


def made_of(reranker: CountingReranker | None = None) -> Models:
    return Models(
        ModelSettings(embedder="hashing"),
        Path("no-cache"),
        embedder=HashingEmbedder(),
        reranker=reranker if reranker is not None else CountingReranker(),
    )


def lists(request: SearchRequest, models: Models, index: Index = INDEX) -> dict[str, Ranking]:
    found = {}
    for result in final_results(search(request, index, models)):
        assert result.ranking is not None, result.error
        found[result.stage] = result.ranking
    return found


COLUMNS = (
    make_column("mine", "reranked", {"search.rerank_depth": 7}),
    make_column("sharp", "bm25", {"bm25.k1": 0.4, "bm25.b": 0.1}),
    make_column("plain", "bm25", {}),
    make_column("sum", "hybrid", {"search.fusion": "minmax", "search.weight_bm25": 0.3}),
    make_column("near", "vector", {}),
)


def test_columns_come_by_cost_and_are_named_as_they_were_asked_for() -> None:
    request = SearchRequest(QUESTION, columns=COLUMNS)
    results = list(final_results(search(request, INDEX, made_of())))
    assert [r.stage for r in results] == ["sharp", "plain", "near", "sum", "mine"]
    for result in results:
        assert result.ranking is not None
        assert result.ranking.column == result.stage


def test_only_columns_of_the_methods_asked_for_come() -> None:
    request = SearchRequest(QUESTION, columns=COLUMNS, methods=("bm25",))
    assert list(lists(request, made_of())) == ["sharp", "plain"]


def test_a_column_is_the_search_with_its_knobs_set_for_all() -> None:
    found = lists(SearchRequest(QUESTION, columns=COLUMNS), made_of())
    alone = lists(
        SearchRequest(QUESTION, bm25=BM25Params(k1=0.4, b=0.1), methods=("bm25",)), made_of()
    )
    assert found["sharp"].hits == alone["bm25"].hits
    assert found["sharp"].hits != found["plain"].hits


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_the_numbers_do_not_depend_on_the_order_of_columns_or_what_is_cached(
    order: tuple[int, ...],
) -> None:
    expected = lists(SearchRequest(QUESTION, columns=COLUMNS), made_of())
    models = made_of()
    request = SearchRequest(QUESTION, columns=tuple(COLUMNS[i] for i in order))
    lists(replace(request, rrf_k=3.0, bm25=BM25Params(k1=0.1)), models)  # other lists in the cache
    for _ in range(2):
        found = lists(request, models)
        assert {n: r.hits for n, r in found.items()} == {n: r.hits for n, r in expected.items()}


def test_the_numbers_do_not_depend_on_the_thread() -> None:
    models = made_of()
    request = SearchRequest(QUESTION, columns=COLUMNS)
    expected = {n: r.hits for n, r in lists(request, made_of()).items()}
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: lists(request, models), range(8)):
            assert {n: r.hits for n, r in found.items()} == expected


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((), "1 to 6 columns (got 0)"),
        (tuple(Column(f"c{i}", "bm25") for i in range(7)), "1 to 6 columns (got 7)"),
        ((Column("a", "bm25"), Column("a", "vector")), "Two columns are called 'a'"),
        ((Column(" ", "bm25"),), "no name"),
        ((Column("a", "magic"),), "method of column 'a'"),  # type: ignore[arg-type]
        ((Column("a", "bm25", (("bm25.k2", 1.0),)),), "no knob 'bm25.k2'"),
        ((Column("a", "bm25", (("search.depth", 3),)),), "Column 'a': top_k must not be larger"),
    ],
)
def test_columns_that_make_no_sense_are_refused(columns: tuple[Column, ...], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        list(search(SearchRequest(QUESTION, columns=columns), INDEX, made_of()))
    assert words in str(caught.value)


def test_the_depth_changes_only_how_far_lists_reach() -> None:
    models = made_of()
    shown = [lists(SearchRequest(QUESTION, top_k=k, depth=9), models) for k in (1, 9)]
    assert {n: r.hits for n, r in shown[0].items()} == {n: r.hits for n, r in shown[1].items()}
    assert len(shown[0]["vector"].hits) == 9


def computed(models: Models, change: SearchRequest) -> dict[str, int]:
    before = models.stages.n_computed
    lists(change, models)
    after = models.stages.n_computed
    return {stage: n - before.get(stage, 0) for stage, n in after.items() if n != before.get(stage)}


@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        ({}, {}),
        ({"search.top_k": 2}, {}),
        ({"search.rrf_k": 7.0}, {"fusion"}),
        ({"search.weight_bm25": 0.2}, {"fusion"}),
        ({"search.fusion": "zscore"}, {"fusion"}),
        ({"bm25.k1": 0.9}, {"bm25", "fusion"}),
        ({"bm25.b": 0.2}, {"bm25", "fusion"}),
        ({"search.rerank_scale": "sigmoid"}, set()),
        ({"post.fold": True}, set()),
        ({"search.depth": 6}, {"vector", "bm25", "fusion"}),
    ],
)
def test_a_turned_knob_computes_only_what_depends_on_it(
    knobs: dict[str, object], expected: set[str]
) -> None:
    models = made_of()
    request = SearchRequest(QUESTION)
    lists(request, models)
    found = computed(models, with_knobs(request, knobs))
    # Other candidates are other pairs to read.
    found.pop("rerank", None)
    assert set(found) == set(expected)
    assert set(found.values()) <= {1}


def test_four_columns_share_their_lists() -> None:
    models = made_of()
    lists(SearchRequest(QUESTION), models)
    assert models.stages.n_computed == {"bm25": 1, "vector": 1, "fusion": 1, "rerank": 1}


def test_the_reranker_reads_only_pairs_that_it_has_not_read() -> None:
    reranker = CountingReranker()
    models = made_of(reranker)
    request = SearchRequest(QUESTION, rerank_depth=4, top_k=4)
    first = lists(request, models)["reranked"]
    assert len(reranker.read) == 4
    more = lists(replace(request, rerank_depth=9), models)["reranked"]
    assert len(reranker.read) == len(set(reranker.read)) == 9
    assert {h.chunk_id: h.score for h in first.hits}.items() <= {
        h.chunk_id: h.score for h in more.hits
    }.items()


def test_another_index_of_the_same_folder_shares_nothing() -> None:
    models = made_of()
    lists(SearchRequest(QUESTION), models)
    other = index_of((Document("a.md", "Manual", TEXT.replace("pump", "gate"), ""),))
    again = lists(SearchRequest(QUESTION), models, other)
    assert models.stages.n_computed["bm25"] == 2
    assert again["bm25"].hits != lists(SearchRequest(QUESTION), models)["bm25"].hits


def test_the_cache_keeps_no_index_alive_and_forgets_what_was_used_longest_ago() -> None:
    cache = StageCache(max_entries=3, max_rows=25)
    index = index_of((Document("a.md", "Manual", TEXT, ""),))
    keys = [bm25_key(SearchRequest(f"question {i}"), index) for i in range(4)]

    def long(n: int) -> Ranking:
        return Ranking(
            "bm25", tuple(Hit(f"c{i}", i, 0.0, i + 1) for i in range(n)), n, ScoreKind("", "")
        )

    for key in keys[:3]:
        cache.put(key, long(5))
    assert cache.get(keys[0]) is not None
    cache.put(keys[3], long(5))
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True]
    cache.put(keys[1], long(30))
    assert [cache.get(key) is not None for key in keys] == [False, True, False, False]
    alive = keys[0].index
    assert alive() is index
    del index
    gc.collect()
    assert alive() is None


class BrokenOnce(HashingEmbedder):
    """Fails at its first question, as a server may."""

    def __init__(self) -> None:
        super().__init__()
        self.n_asked = 0

    def embed_query(self, text: str):  # type: ignore[no-untyped-def]
        self.n_asked += 1
        if self.n_asked == 1:
            raise ModelError("The line is down.", "Try again.")
        return super().embed_query(text)


def test_a_failure_is_met_once_a_search_and_not_remembered_for_the_next() -> None:
    embedder = BrokenOnce()
    models = Models(
        ModelSettings(embedder="hashing"),
        Path("no-cache"),
        embedder=embedder,
        reranker=CountingReranker(),
    )
    results = {r.stage: r for r in final_results(search(SearchRequest(QUESTION), INDEX, models))}
    assert results["vector"].error is not None
    assert embedder.n_asked == 1
    hybrid = results["hybrid"].ranking
    assert hybrid is not None
    assert hybrid.note == "keyword only: The line is down."
    assert set(results["hybrid"].inputs) == {"bm25", "hybrid"}
    again = lists(SearchRequest(QUESTION), models)
    assert again["hybrid"].note == ""
    assert len(again["hybrid"].params["methods"]) == 2


def test_a_result_brings_the_lists_that_it_was_made_of() -> None:
    request = SearchRequest(QUESTION, post=replace(SearchRequest("").post, max_per_document=1))
    results = {r.stage: r for r in final_results(search(request, INDEX, made_of()))}
    assert set(results["reranked"].inputs) == {"vector", "bm25", "hybrid", "reranked"}
    assert len(results["reranked"].inputs["reranked"].hits) == 20
    ranking = results["reranked"].ranking
    assert ranking is not None
    assert len(ranking.hits) == 1
    column = Column("r", "reranked", (("search.rerank_from", "bm25"),))
    assert set(stage_rankings(request, column, INDEX, made_of())) == {"bm25", "reranked"}


def test_stage_rankings_are_those_of_the_search_and_cost_nothing_after_it() -> None:
    models = made_of()
    request = SearchRequest(QUESTION, columns=COLUMNS)
    found = {r.stage: r for r in final_results(search(request, INDEX, models))}
    before = dict(models.stages.n_computed)
    for column in COLUMNS:
        made = stage_rankings(request, column, INDEX, models)
        inputs = found[column.name].inputs
        assert {m: r.hits for m, r in made.items()} == {m: r.hits for m, r in inputs.items()}
    assert models.stages.n_computed == before


@pytest.mark.parametrize("source", ["hybrid", "vector", "bm25"])
def test_the_reranker_reads_the_first_rows_of_the_list_that_was_named(source: str) -> None:
    request = with_knobs(
        SearchRequest(QUESTION), {"search.rerank_from": source, "search.rerank_depth": 6}
    )
    found = lists(request, made_of())
    read = {hit.chunk_id for hit in found[source].hits[:6]}
    assert {hit.chunk_id for hit in found["reranked"].hits} == read
    assert found["reranked"].params["from"] == source


@pytest.mark.parametrize("kind", ["rrf", "minmax", "zscore"])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.7, 0.3), (2.0, 0.0)])
def test_the_addends_of_a_fused_score_sum_to_it(kind: str, weights: tuple[float, float]) -> None:
    request = with_knobs(
        SearchRequest(QUESTION, depth=10),
        {
            "search.fusion": kind,
            "search.weight_vector": weights[0],
            "search.weight_bm25": weights[1],
        },
    )
    results = {r.stage: r for r in search(request, INDEX, made_of())}
    hybrid = results["hybrid"].ranking
    assert hybrid is not None
    assert hybrid.hits
    for hit in hybrid.hits:
        parts = fused_parts(hit.chunk_id, hybrid, results["hybrid"].inputs)
        assert hit.score == pytest.approx(math.fsum(p.addend for p in parts), abs=1e-9)


def test_the_real_hybrid_scores_are_the_sums_of_their_parts(
    guesthouse: Index, models: Models
) -> None:
    for kind in ("rrf", "minmax", "zscore"):
        request = with_knobs(
            SearchRequest("Can I bring my dog?", methods=("hybrid",)), {"search.fusion": kind}
        )
        (result,) = search(request, guesthouse, models)
        assert result.ranking is not None
        for hit in result.ranking.hits:
            parts = fused_parts(hit.chunk_id, result.ranking, result.inputs)
            assert hit.score == pytest.approx(math.fsum(p.addend for p in parts), abs=1e-9)


def test_the_sigmoid_shows_the_order_of_the_logits_on_another_scale() -> None:
    class Saturated(CountingReranker):
        """Logits that differ and whose sigmoids are all 1.0."""

        def score(
            self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
        ) -> Iterator[float]:
            for i, _ in enumerate(passages):
                yield 50.0 + i

    request = SearchRequest(QUESTION)
    logits = lists(request, made_of(Saturated()))["reranked"]
    shown = lists(replace(request, rerank_scale="sigmoid"), made_of(Saturated()))["reranked"]
    assert [h.chunk_id for h in shown.hits] == [h.chunk_id for h in logits.hits]
    assert {h.score for h in shown.hits} == {1.0}
    assert shown.score_kind.name == "sigmoid"
    assert dict(shown.params["logits"]) == {h.chunk_id: h.score for h in logits.hits}


@pytest.mark.parametrize(("x", "expected"), [(0.0, 0.5), (-800.0, 0.0), (800.0, 1.0)])
def test_the_sigmoid_never_overflows(x: float, expected: float) -> None:
    assert sigmoid(x) == pytest.approx(expected, abs=1e-12)


def test_scores_that_are_no_logits_are_shown_as_they_are_and_said_so() -> None:
    class Other(CountingReranker):
        info = RerankerInfo("other", "other", 512, ScoreKind("relevance", "0 to 1"))

    request = SearchRequest(QUESTION, rerank_scale="sigmoid")
    shown = lists(request, made_of(Other()))["reranked"]
    assert shown.score_kind.name == "relevance"
    assert "relevance is no logit" in shown.note


class Clock:
    """Time that passes only when a batch is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowReranker(CountingReranker):
    """Takes a fixed time for each pair."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self.clock = clock
        self.seconds = seconds

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        for score in super().score(query, passages, cancel=cancel):
            self.clock.now += self.seconds
            yield score


def streamed(seconds: float, cancel: CancelToken | None = None) -> Iterator[Ranking]:
    clock = Clock()
    models = made_of(SlowReranker(clock, seconds))
    request = SearchRequest(QUESTION)
    source = stage_rankings(request, DEFAULT_COLUMNS[2], INDEX, models)["hybrid"]
    token = cancel if cancel is not None else CancelToken()
    return stream_reranking(QUESTION, source, request, INDEX, models, cancel=token, clock=clock)


def test_a_slow_reranker_shows_what_it_has_scored_again_and_again() -> None:
    shown = list(streamed(0.25))
    assert [len(r.hits) for r in shown] == list(range(1, 21))
    assert [r.n_waiting for r in shown] == list(range(19, -1, -1))
    for ranking in shown:
        scores = [hit.score for hit in ranking.hits]
        assert scores == sorted(scores, reverse=True)
        assert [hit.rank for hit in ranking.hits] == list(range(1, len(scores) + 1))


def test_a_fast_reranker_is_shown_at_most_ten_times_a_second() -> None:
    assert [r.n_waiting for r in streamed(0.021)] == [15, 10, 5, 0]
    assert [r.n_waiting for r in streamed(0.0001)] == [0]


def test_a_reranked_column_comes_again_with_a_note_until_it_is_final(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag_tui.engine.reranking.INTERVAL_S", 0.0)
    request = SearchRequest(QUESTION, rerank_depth=5)
    shown: list[StageResult] = [
        r for r in search(request, INDEX, made_of()) if r.stage == "reranked"
    ]
    notes = [r.ranking.note for r in shown if r.ranking]
    assert notes[:2] == ["1 of 5 scored", "2 of 5 scored"]
    assert notes[-1] == ""
    assert [r.ranking.n_waiting for r in shown if r.ranking] == [4, 3, 2, 1, 0]
    assert len(list(final_results(shown))) == 1


def test_a_cancelled_reranker_stops_after_the_batch_it_is_reading() -> None:
    token = CancelToken()
    rows = streamed(INTERVAL_S, token)
    next(rows)
    token.cancel()
    with pytest.raises(Cancelled):
        next(rows)


def test_a_cancelled_column_leaves_nothing_half_done_in_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag_tui.engine.reranking.INTERVAL_S", 0.0)
    models = made_of()
    token = CancelToken()
    with pytest.raises(Cancelled):
        for result in search(SearchRequest(QUESTION), INDEX, models, cancel=token):
            if result.stage == "reranked":
                token.cancel()
    assert "rerank" not in models.stages.n_computed
    assert lists(SearchRequest(QUESTION), models)["reranked"].n_waiting == 0


def test_operators_restrict_bm25_and_the_models_read_the_question_without_them() -> None:
    read: list[str] = []

    class Reading(HashingEmbedder):
        def embed_query(self, text: str):  # type: ignore[no-untyped-def]
            read.append(text)
            return super().embed_query(text)

    models = Models(
        ModelSettings(embedder="hashing"),
        Path("no-cache"),
        embedder=Reading(),
        reranker=CountingReranker(),
    )
    found = lists(SearchRequest("pump +water -noise"), models)
    assert read == ["pump water"]
    texts = [INDEX.chunks[hit.position].text for hit in found["bm25"].hits]
    assert texts
    assert all("water" in text and "noise" not in text for text in texts)
