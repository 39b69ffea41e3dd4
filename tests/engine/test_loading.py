from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import numpy as np
import pytest

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.loading import Models
from rag_tui.engine.remembering import Recent
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.rerankers.scores import logit_kind
from rag_tui.engine.settings import DEFAULT_EMBEDDER, ModelSettings
from rag_tui.engine.tokenizing import ModelTokenCounter, WordTokenCounter
from tests.engine.test_models import offline_folder

HASHING = ModelSettings(embedder="hashing", allow_download=False)
MISSING = ModelSettings(embedder="nobody/nothing", reranker="nobody/no", allow_download=False)


class CountingReranker:
    """Scores a passage by its length and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.info = RerankerInfo("counting", "f", 512, logit_kind())

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        for passage in passages:
            if cancel is not None:
                cancel.check()
            self.asked.append(passage)
            yield float(len(passage))


class CountingEmbedder(HashingEmbedder):
    """The hashing embedder, counting questions."""

    def __init__(self) -> None:
        super().__init__()
        self.n_queries = 0

    def embed_query(self, text: str) -> np.ndarray:
        self.n_queries += 1
        return super().embed_query(text)


def loaded(models: Models) -> tuple[bool, bool]:
    return models.embedder_loaded, models.reranker_loaded


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    models = Models(HASHING, tmp_path)
    assert loaded(models) == (False, False)
    assert isinstance(models.embedder(), HashingEmbedder)
    assert loaded(models) == (True, False)
    assert list(tmp_path.glob("models/*")) == []


def test_a_missing_model_is_remembered_until_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def resolve(name: str, kind: str, **_: object) -> None:
        calls.append(name)
        raise ModelError(f"{name} is missing", "the fix")

    monkeypatch.setattr("rag_tui.engine.models.resolve", resolve)
    models = Models(MISSING, tmp_path)
    for _ in range(3):
        with pytest.raises(ModelError, match="nobody/nothing is missing") as caught:
            models.embedder()
        assert caught.value.hint == "the fix"
    assert calls == ["nobody/nothing"]
    remembered = models.embedder_error
    assert remembered is not None
    models.forget()
    forgotten = models.embedder_error
    assert forgotten is None
    with pytest.raises(ModelError):
        models.embedder()
    assert calls == ["nobody/nothing"] * 2


def test_one_missing_model_leaves_the_other_usable(tmp_path: Path) -> None:
    models = Models(MISSING, tmp_path, embedder=HashingEmbedder())
    with pytest.raises(ModelError, match="nobody/no"):
        models.reranker()
    assert models.embed_query("a dog").shape == (256,)


def test_threads_that_ask_at_once_share_one_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_loads = 0
    two_loads = Barrier(2)

    def load_embedder(*_: object, **__: object) -> Embedder:
        nonlocal n_loads
        n_loads += 1
        with suppress(BrokenBarrierError):  # a second load would come through at once
            two_loads.wait(timeout=0.3)
        return HashingEmbedder()

    monkeypatch.setattr("rag_tui.engine.embedders.load.load_embedder", load_embedder)
    models = Models(HASHING, tmp_path)
    start = Barrier(4)

    def ask() -> Embedder:
        start.wait(timeout=10)
        return models.embedder()

    with ThreadPoolExecutor(4) as pool:
        embedders = [future.result() for future in [pool.submit(ask) for _ in range(4)]]
    assert n_loads == 1
    assert all(embedder is embedders[0] for embedder in embedders)


def test_a_question_is_embedded_once_and_its_vector_cannot_be_changed(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    models = Models(HASHING, tmp_path, embedder=embedder)
    first = models.embed_query("Can I bring my dog?")
    assert models.embed_query("Can I bring my dog?") is first
    assert embedder.n_queries == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0
    for i in range(64):
        models.embed_query(f"another question {i}")
    models.embed_query("Can I bring my dog?")
    assert embedder.n_queries == 1 + 64 + 1


def test_a_pair_is_scored_once_and_scores_stand_in_order(tmp_path: Path) -> None:
    reranker = CountingReranker()
    models = Models(HASHING, tmp_path, reranker=reranker)
    assert list(models.rerank_scores("q", ["aa", "b", "aa", ""])) == [2, 1, 2, 0]
    assert reranker.asked == ["aa", "b", ""]
    assert list(models.rerank_scores("q", ["b", "cccc", "aa"])) == [1, 4, 2]
    assert reranker.asked == ["aa", "b", "", "cccc"]
    assert list(models.rerank_scores("another", ["b"])) == [1]
    assert reranker.asked[-1] == "b"
    assert list(models.rerank_scores("q", [])) == []


def test_scores_come_as_soon_as_they_are_known(tmp_path: Path) -> None:
    reranker = CountingReranker()
    scores = Models(HASHING, tmp_path, reranker=reranker).rerank_scores("q", ["a", "bb", "ccc"])
    assert next(scores) == 1
    assert reranker.asked == ["a"]


def test_cancelled_reranking_keeps_the_scores_it_had(tmp_path: Path) -> None:
    reranker = CountingReranker()
    models = Models(HASHING, tmp_path, reranker=reranker)
    cancel = CancelToken()
    scores = models.rerank_scores("q", ["a", "bb", "ccc"], cancel=cancel)
    next(scores)
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(scores)
    assert list(models.rerank_scores("q", ["a", "bb", "ccc"])) == [1, 2, 3]
    assert reranker.asked == ["a", "bb", "ccc"]


def test_the_oldest_entry_leaves_a_full_memory_first() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (1, None, 3)


def test_the_token_counter_is_the_models_own(tmp_path: Path) -> None:
    offline_folder(DEFAULT_EMBEDDER)
    models = Models(ModelSettings(allow_download=False), tmp_path)
    counter = models.token_counter()
    assert isinstance(counter, ModelTokenCounter)
    assert (counter.limit, counter.n_special) == (256, 2)
    assert not models.embedder_loaded
    assert models.token_counter() is counter


def test_a_missing_model_leaves_a_stated_estimate_that_forgetting_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline_folder(DEFAULT_EMBEDDER)
    models = Models(ModelSettings(allow_download=False), tmp_path)

    def missing(*_: object, **__: object) -> None:
        raise ModelError("missing")

    with monkeypatch.context() as patch:
        patch.setattr("rag_tui.engine.models.resolve", missing)
        counter = models.token_counter()
    assert isinstance(counter, WordTokenCounter)
    assert counter.name.startswith("estimate")
    assert models.token_counter() is counter
    models.forget()
    assert isinstance(models.token_counter(), ModelTokenCounter)


def test_hashing_needs_no_model_to_count(tmp_path: Path) -> None:
    counter = Models(HASHING, tmp_path).token_counter()
    assert isinstance(counter, WordTokenCounter)
    assert counter.limit is None


def test_a_given_embedder_gives_the_limit_of_the_estimate(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    counter = Models(MISSING, tmp_path, embedder=embedder).token_counter()
    assert counter.limit == embedder.info.max_tokens


# --- models by name ---------------------------------------------------------------------------


def test_a_named_model_is_loaded_once_beside_that_of_the_settings(tmp_path: Path) -> None:
    embedder, reranker = CountingEmbedder(), CountingReranker()
    models = Models(
        ModelSettings(embedder="nobody/nothing", reranker="nobody/no", allow_download=False),
        tmp_path,
        embedder=embedder,
        reranker=reranker,
    )
    assert models.embedder() is models.embedder("nobody/nothing") is embedder
    assert models.reranker() is models.reranker("nobody/no") is reranker
    other = models.embedder("hashing")
    assert isinstance(other, HashingEmbedder)
    assert other is not embedder
    assert models.embedder("hashing") is other


def test_a_named_model_that_is_missing_is_remembered_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def resolve(name: str, kind: str, **_: object) -> None:
        calls.append(name)
        raise ModelError(f"{name} is missing", "the fix")

    monkeypatch.setattr("rag_tui.engine.models.resolve", resolve)
    models = Models(MISSING, tmp_path, embedder=HashingEmbedder(), reranker=CountingReranker())
    for _ in range(2):
        with pytest.raises(ModelError, match="some/one is missing"):
            models.embed_query("a dog", "some/one")
        with pytest.raises(ModelError, match="an/other is missing"):
            next(models.rerank_scores("q", ["p"], name="an/other"))
    assert calls == ["some/one", "an/other"]
    assert models.embedder_error is None
    assert models.reranker_error is None
    models.forget()
    with pytest.raises(ModelError):
        models.embedder("some/one")
    assert calls == ["some/one", "an/other", "some/one"]


def test_questions_of_two_embedders_are_remembered_apart(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    models = Models(MISSING, tmp_path, embedder=embedder)
    same = models.embed_query("a dog", "hashing")
    # One fingerprint means the same vectors: whoever asked first has paid for both.
    assert models.embed_query("a dog") is same
    assert embedder.n_queries == 0


class BatchingReranker(CountingReranker):
    """Scores longest first, two at a time, and knows that it reads three characters."""

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        order = sorted(range(len(passages)), key=lambda i: -len(passages[i]))
        for at in range(0, len(order), 2):
            if cancel is not None:
                cancel.check()
            self.asked += [passages[i] for i in order[at : at + 2]]
            yield {i: float(len(passages[i])) for i in order[at : at + 2]}

    def read_part(self, query: str, passage: str) -> int:
        return min(3, len(passage))


def test_batches_come_as_they_are_made_and_what_is_remembered_comes_first(tmp_path: Path) -> None:
    reranker = BatchingReranker()
    models = Models(HASHING, tmp_path, reranker=reranker)
    passages = ["a", "bbb", "cc", "a", "dddd"]
    batches = models.rerank_batches("q", passages)
    assert next(batches) == {4: 4.0, 1: 3.0}
    assert reranker.asked == ["dddd", "bbb"]
    assert list(batches) == [{2: 2.0, 0: 1.0, 3: 1.0}]
    again = list(models.rerank_batches("q", [*passages, "eeeee"]))
    assert again == [{0: 1.0, 1: 3.0, 2: 2.0, 3: 1.0, 4: 4.0}, {5: 5.0}]
    assert list(models.rerank_scores("q", [*passages, "eeeee"])) == [1, 3, 2, 1, 4, 5]
    assert len(reranker.asked) == 5
    assert list(models.rerank_batches("q", [])) == []


def test_a_cancel_costs_at_most_one_batch_and_keeps_what_is_done(tmp_path: Path) -> None:
    reranker = BatchingReranker()
    models = Models(HASHING, tmp_path, reranker=reranker)
    cancel = CancelToken()
    batches = models.rerank_batches("q", ["a", "bb", "ccc", "dddd", "eeeee"], cancel=cancel)
    next(batches)
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(batches)
    assert reranker.asked == ["eeeee", "dddd"]
    first = next(models.rerank_batches("q", ["a", "bb", "ccc", "dddd", "eeeee"]))
    assert first == {3: 4.0, 4: 5.0}


def test_a_reranker_that_knows_no_batches_still_gives_them(tmp_path: Path) -> None:
    models = Models(HASHING, tmp_path, reranker=CountingReranker())
    assert list(models.rerank_batches("q", ["a", "bb"])) == [{0: 1.0}, {1: 2.0}]
    assert models.read_part("q", "a long passage") == 14
    models = Models(HASHING, tmp_path, reranker=BatchingReranker())
    assert models.read_part("q", "a long passage") == 3
