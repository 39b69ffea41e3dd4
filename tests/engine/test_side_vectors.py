"""Vectors of an index by another embedder than its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_tui.engine.embedders.base import EmbedderInfo
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import BadIndexError, Cancelled, ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.side_vectors import SideVectors
from rag_tui.engine.types import Document
from tests.engine.small_index import index_of

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors


class Other:
    """The hashing embedder with other dimensions, counting what it embeds; may be stopped."""

    def __init__(self, dimensions: int = 64) -> None:
        self._inner = HashingEmbedder(dimensions=dimensions)
        self.embedded: list[str] = []
        self.started = Event()
        self.go_on = Event()
        self.go_on.set()

    @property
    def info(self) -> EmbedderInfo:
        return replace(self._inner.info, name="other")

    def embed_query(self, text: str) -> Vectors:
        return self._inner.embed_query(text)

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        self.started.set()
        self.go_on.wait(20)
        if cancel is not None:
            cancel.check()
        self.embedded += texts
        return self._inner.embed_documents(texts)


@pytest.fixture
def index() -> Index:
    text = "\n\n".join(f"paragraph {i} about subject {i % 7}" for i in range(50))
    return index_of([Document("a.md", "A", text, "0")])


def nothing(_: Progress) -> None:
    pass


def test_every_chunk_gets_the_vector_of_its_embedded_text(index: Index, tmp_path: Path) -> None:
    reports: list[Progress] = []
    other = Other()
    side = SideVectors(tmp_path, reports.append)
    assert not side.is_made(index, other.info.fingerprint)
    vectors = side.get(index, other)
    expected = HashingEmbedder(dimensions=64).embed_documents(
        [chunk.embedded_text for chunk in index.chunks]
    )
    np.testing.assert_array_equal(vectors, expected)
    assert side.is_made(index, other.info.fingerprint)
    assert not vectors.flags.writeable
    assert {(p.stage, p.total, p.note) for p in reports} == {("embed", 50, "with other")}


def test_a_second_time_costs_nothing_and_another_session_only_reads(
    index: Index, tmp_path: Path
) -> None:
    other = Other()
    side = SideVectors(tmp_path, nothing)
    first = side.get(index, other)
    assert side.get(index, other) is first
    assert len(other.embedded) == 50
    fresh = Other()
    np.testing.assert_array_equal(SideVectors(tmp_path, nothing).get(index, fresh), first)
    assert fresh.embedded == []


def test_the_indexs_own_embedder_gives_the_indexs_own_vectors(index: Index, tmp_path: Path) -> None:
    assert SideVectors(tmp_path, nothing).get(index, HashingEmbedder()) is index.vectors
    assert not (tmp_path / "embeddings.sqlite").exists()


def test_threads_that_ask_at_once_embed_once(index: Index, tmp_path: Path) -> None:
    other = Other()
    other.go_on.clear()
    side = SideVectors(tmp_path, nothing)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(side.get, index, other) for _ in range(3)]
        assert other.started.wait(10)
        other.go_on.set()
        found = [future.result(timeout=20) for future in asked]
    assert found[0] is found[1] is found[2]
    assert len(other.embedded) == 50


def test_who_waits_for_another_thread_can_be_cancelled_and_take_over(
    index: Index, tmp_path: Path
) -> None:
    other = Other()
    other.go_on.clear()
    side = SideVectors(tmp_path, nothing)
    first_token, second_token = CancelToken(), CancelToken()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(side.get, index, other, cancel=first_token)
        assert other.started.wait(10)
        second = pool.submit(side.get, index, other, cancel=second_token)
        third = pool.submit(side.get, index, other)
        second_token.cancel()
        with pytest.raises(Cancelled):
            second.result(timeout=20)
        first_token.cancel()
        other.go_on.set()
        with pytest.raises(Cancelled):
            first.result(timeout=20)
        assert third.result(timeout=20).shape == (50, 64)


def test_what_was_embedded_before_a_cancel_is_kept(index: Index, tmp_path: Path) -> None:
    token = CancelToken()
    other = Other()

    def stop_in_the_second_group(progress: Progress) -> None:
        if progress.done:
            token.cancel()

    with pytest.raises(Cancelled):
        SideVectors(tmp_path, stop_in_the_second_group).get(index, other, cancel=token)
    assert len(other.embedded) == 32
    SideVectors(tmp_path, nothing).get(index, other)
    assert len(other.embedded) == 50


def test_models_give_the_vectors_of_a_named_embedder(index: Index, tmp_path: Path) -> None:
    reports: list[Progress] = []
    models = Models(
        ModelSettings(embedder="somebody/else", allow_download=False),
        tmp_path,
        report=reports.append,
        embedder=Other(),
    )
    assert models.vectors(index) is index.vectors
    assert models.vectors(index, "hashing") is index.vectors
    assert models.vectors(index, "somebody/else").shape == (50, 64)
    assert reports[-1].note == "with other"
    with pytest.raises(ModelError, match="nobody/nothing"):
        models.vectors(index, "nobody/nothing")


def test_an_index_without_vectors_says_how_to_make_them(index: Index, tmp_path: Path) -> None:
    bare = replace(index, vectors=None)
    models = Models(ModelSettings(embedder="hashing"), tmp_path)
    with pytest.raises(BadIndexError, match="no vectors yet"):
        models.vectors(bare)
    assert models.vectors(bare, "hashing").shape == (50, 256)


def test_a_dead_index_lets_its_vectors_go(tmp_path: Path) -> None:
    import gc
    import weakref

    index = index_of([Document("a.md", "A", "one\n\ntwo", "0")])
    side = SideVectors(tmp_path, nothing)
    vectors = weakref.ref(side.get(index, Other()))
    del index
    gc.collect()
    assert vectors() is None
