"""An index searched with the analyzer it was made with, and with others."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from rag_tui.engine.analysis import make_analyzer
from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing import IndexReady, open_index, refresh_index
from rag_tui.engine.lexical import postings_for, search_lexically
from rag_tui.engine.loading import Models
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.settings import EngineSettings
from rag_tui.engine.types import BM25Params, Document
from tests.engine.small_index import index_of


def small() -> Index:
    text = "Pumps need priming.\n\nCall getUserName first.\n\nThe tank leaks."
    return index_of([Document("a.txt", "", text, "0")])


def refreshed(folder: Path, settings: EngineSettings, models: Models) -> IndexReady:
    *_, last = refresh_index(folder, settings, models)
    assert not isinstance(last, Progress)
    return last


def test_the_index_own_postings_are_used_and_others_are_made_once() -> None:
    index = small()
    assert postings_for(index, "words") is index.bm25
    english = postings_for(index, "english")
    assert english is postings_for(index, "english")
    assert english is not index.bm25
    assert english.df("pump") == 1
    assert postings_for(index, "code").df("user") == 1


def test_postings_are_forgotten_with_their_index() -> None:
    index = small()
    gone = weakref.ref(postings_for(index, "english"))
    del index
    gc.collect()
    assert gone() is None


def test_a_second_thread_waits_for_the_first_instead_of_making_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = small()
    started, go_on = threading.Event(), threading.Event()
    n_built: list[int] = []
    build = BM25Postings.build

    def slow(lists: object) -> BM25Postings:
        n_built.append(1)
        started.set()
        assert go_on.wait(20)
        return build(lists)  # type: ignore[arg-type]

    monkeypatch.setattr(BM25Postings, "build", slow)
    made: list[BM25Postings] = []
    threads = [
        threading.Thread(target=lambda: made.append(postings_for(index, "english")))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert len(made) == 3
    assert len(set(map(id, made))) == 1
    assert len(n_built) == 1


def test_cancelling_remembers_nothing() -> None:
    index = small()
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        postings_for(index, "english", cancel=token)
    assert postings_for(index, "english").df("pump") == 1


def test_a_search_uses_the_analyzer_and_operators_of_its_request() -> None:
    index = small()
    assert search_lexically("pump", index, BM25Params(), depth=5).hits == ()
    found = search_lexically("pump", index, BM25Params(analyzer="english"), depth=5)
    assert [hit.position for hit in found.hits] == [0]
    assert found.params["analyzer"] == "english"
    phrase = search_lexically('tank "user name"', index, BM25Params(analyzer="code"), depth=5)
    assert [hit.position for hit in phrase.hits] == [1]
    with pytest.raises(UsageError, match="klingon"):
        search_lexically("pump", index, BM25Params(analyzer="klingon"), depth=5)


def test_another_analyzer_counts_the_words_again_and_embeds_nothing(
    tmp_path: Path, hashing_settings: EngineSettings, hashing_models: Models
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Pumps\n\nPumps need priming.\n")
    first = refreshed(folder, hashing_settings, hashing_models)
    assert first.index.bm25.df("pumps") == 1
    assert first.n_embedded == 1
    english = replace(hashing_settings, analyzer="english")
    second = refreshed(folder, english, hashing_models)
    assert second.index.bm25.df("pump") == 1
    assert second.index.bm25.df("pumps") == 0
    assert second.n_embedded == 0
    assert any("english" in note for note in second.notes)
    assert second.index.chunks == first.index.chunks
    third = refreshed(folder, english, hashing_models)
    assert third.notes == ()
    assert third.index.manifest.created == second.index.manifest.created
    # Opened with other settings, the index still answers in both ways.
    opened = open_index(folder, hashing_settings)
    assert opened is not None
    assert opened.manifest.analyzer_fingerprint == make_analyzer("english").fingerprint
    assert postings_for(opened, "english") is opened.bm25
    assert postings_for(opened, "words").df("pumps") == 1


def test_an_unknown_analyzer_stops_indexing_before_anything_is_read(
    tmp_path: Path, hashing_settings: EngineSettings, hashing_models: Models
) -> None:
    settings = replace(hashing_settings, analyzer="klingon")
    with pytest.raises(UsageError, match="klingon"):
        next(refresh_index(tmp_path / "nowhere", settings, hashing_models))
