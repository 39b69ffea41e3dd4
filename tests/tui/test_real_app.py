"""The real app: real models, real index on disk, and every kind of bad input it must survive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.events import Progress
from rag_tui.engine.loading import Models
from rag_tui.engine.stores import local
from rag_tui.engine.types import METHODS
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.backend import Backend, Settings
from rag_tui.tui.widgets.answer_view import AnswerView
from tests.conftest import CORPUS, ROOT
from tests.sse_server import Script, replay_server, text_events
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts, until

WIDE = (160, 45)
QUESTIONS = ("Can I bring my dog?", "Where is the lockbox?", "What time is breakfast?")


@pytest.fixture
def real_cache(model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run's cache, where the real model has been exported."""
    monkeypatch.setenv("RAG_TUI_CACHE_DIR", str(model_cache))
    return model_cache


@pytest.mark.parametrize("question", QUESTIONS)
async def test_the_app_shows_the_lists_and_numbers_of_the_search_command(
    question: str, real_cache: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rag_tui", "search", question, "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "RAG_TUI_CACHE_DIR": str(real_cache)},
    )
    told = json.loads(done.stdout)["methods"]
    app = RagTuiApp(CORPUS)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.status.phase == "fresh")
        screen = await ask(pilot, question)
        assert screen.results is not None
        for method in METHODS:
            rows = screen.lists[method].rows
            assert [row.chunk_id for row in rows] == [
                hit["chunk_id"] for hit in told[method]["hits"]
            ]
            for row, hit in zip(
                screen.results.rankings[method].hits, told[method]["hits"], strict=False
            ):
                assert row.score == pytest.approx(hit["score"], abs=1e-6)


async def test_the_reranked_list_names_the_model_that_really_ran(real_cache: Path) -> None:
    app = RagTuiApp(CORPUS)
    async with app.run_test(size=(240, 45)) as pilot:
        await until(pilot, lambda: app.status.phase == "fresh")
        await ask(pilot, QUESTIONS[0])
        shown = screen_text(pilot)
        assert "RERANKED logit · ms-marco-MiniLM-L-12-v2 (int8 w" in shown
        assert "VECTOR cosine · all-MiniLM-L6-v2" in shown


class SlowModelBackend(SmallBackend):
    """The model comes only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.let_it_load = threading.Event()

    def models(self, settings: Settings, report: Callable[[Progress], None]) -> Models:
        inner = super().models(settings, report)
        gate = self.let_it_load

        class Slow(Models):
            def embedder(self, name: str = "") -> Embedder:
                gate.wait(20)
                return inner.embedder(name)

            def rerank_scores(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
                return inner.rerank_scores(*args, **kwargs)  # type: ignore[arg-type]

            def reranker(self, name: str = ""):  # type: ignore[no-untyped-def]
                return inner.reranker(name)

        return Slow(settings.engine.models, settings.engine.cache_dir, report=report)


async def test_bm25_answers_while_the_model_is_still_loading() -> None:
    backend = SlowModelBackend()
    app = RagTuiApp(CORPUS, backend=backend)
    try:
        async with app.run_test(size=WIDE) as pilot:
            await until(pilot, lambda: app.index is not None)
            assert app.status.phase == "embedding"
            screen = await ask(pilot, "Where is the lockbox?", wait=False)
            await until(pilot, lambda: bool(screen.lists["bm25"].rows))
            assert screen.lists["bm25"].rows[0].label == "Washing machine"
            backend.let_it_load.set()
            await until(pilot, lambda: app.status.phase == "fresh")
            await until(pilot, lambda: bool(screen.lists["vector"].rows))
    finally:
        backend.let_it_load.set()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "good.md").write_text("# Good\n\nThe pump runs at night.\n")
    return root


@pytest.mark.parametrize("kind", ["missing", "empty", "nothing usable"])
async def test_a_corpus_that_cannot_be_used_is_told_with_the_fix(
    kind: str, tmp_path: Path, backend: SmallBackend
) -> None:
    folder = tmp_path / "corpus"
    if kind != "missing":
        folder.mkdir()
    if kind == "nothing usable":
        (folder / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
        (folder / "blank.md").write_bytes(b"")
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.status.phase == "failed")
        assert {
            "missing": "does not exist",
            "empty": "holds no files",
            "nothing usable": "None of the 2 files",
        }[kind] in app.status.message
        assert app.status.hint
        shown = screen_text(pilot)
        assert app.status.hint.split()[0] in shown
        assert "failed" in shown
        await ask(pilot, "pump")
        assert app.is_running


async def test_odd_files_are_indexed_or_named_and_the_rest_works(
    folder: Path, backend: SmallBackend
) -> None:
    (folder / "blank.md").write_bytes(b"")
    (folder / "latin.md").write_bytes("# Caf\xe9\n\nna\xefve\n".encode("latin-1"))
    (folder / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.status.phase == "fresh")
        screen = await ask(pilot, "pump")
        assert screen.lists["bm25"].rows[0].label == "Good"
        await pilot.press("2")
        await pilot.press("f")
        await pilot.pause()
        shown = screen_text(pilot)
        for name, sign in (("blank.md", "–"), ("latin.md", "◐"), ("good.md", "✓")):
            lines = [line for line in shown.splitlines() if name in line]
            assert any(sign in line for line in lines), lines


async def test_a_damaged_index_is_rebuilt_and_told(folder: Path, backend: SmallBackend) -> None:
    first = RagTuiApp(folder, backend=backend)
    async with first.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: first.status.phase == "fresh")
        assert first.session is not None
        cache = first.session.settings.engine.cache_dir
    directory = local.index_dir(cache, folder)
    generation = directory / (directory / "CURRENT").read_text()
    (generation / "chunks.json").write_text("{")
    second = RagTuiApp(folder, backend=SmallBackend())
    async with second.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: second.status.phase == "fresh")
        assert "damaged" in toasts(pilot)
        screen = await ask(pilot, "pump")
        assert screen.lists["vector"].rows


class OtherModelBackend(SmallBackend):
    """Settings that name another model than the one that made the index."""

    def load_settings(self, folder: Path, overrides: Mapping[str, object]) -> Settings:
        return super().load_settings(folder, {**overrides, "models.embedder": "other/model"})


async def test_an_index_of_another_model_is_told_with_the_fix_and_bm25_works(
    folder: Path, backend: SmallBackend
) -> None:
    first = RagTuiApp(folder, backend=backend)
    async with first.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: first.status.phase == "fresh")
    second = RagTuiApp(folder, backend=OtherModelBackend())
    async with second.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: second.status.phase == "not refreshed")
        assert "was made with hashing" in toasts(pilot)
        assert "--embedder other/model" in toasts(pilot)
        screen = await ask(pilot, "pump")
        assert screen.lists["bm25"].rows


async def test_without_any_model_keyword_search_works_and_the_lists_say_why(
    folder: Path,
) -> None:
    overrides = {"models.embedder": "no/such-model", "models.reranker": "no/such-reranker"}
    app = RagTuiApp(folder, overrides=overrides, backend=Backend())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.status.phase == "keyword only")
        assert "no/such-model" in toasts(pilot)
        screen = await ask(pilot, "pump")
        assert screen.lists["bm25"].rows
        assert screen.lists["hybrid"].rows
        assert screen.results is not None
        assert set(screen.results.errors) == {"vector", "reranked"}
        assert "no/such-reranker" in screen.results.errors["reranked"].message


@pytest.mark.parametrize("knobs", [{"search.top_k": 40}, {"search.top_k": 50, "search.depth": 500}])
async def test_top_k_larger_than_the_corpus_shows_what_there_is(
    knobs: dict[str, object], folder: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(folder, overrides=knobs, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.status.phase == "fresh")
        screen = await ask(pilot, "pump")
        assert [len(screen.lists[m].rows) for m in METHODS] == [1, 1, 1, 1]


async def test_an_invalid_key_is_told_without_being_shown_and_the_lists_stay(
    folder: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-secret-value-789"
    backend_answer = Backend()
    with replay_server(Script(status=401)) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        backend.answer = backend_answer.answer  # type: ignore[method-assign,assignment]
        app = RagTuiApp(folder, backend=backend)
        async with app.run_test(size=WIDE) as pilot:
            await until(pilot, lambda: app.status.phase == "fresh")
            screen = await ask(pilot, "pump")
            await pilot.press("a")
            await settle(pilot)
            answer = screen.query_one(AnswerView).answer
            assert answer is not None
            assert answer.state == "failed"
            shown = screen_text(pilot)
            assert "ANTHROPIC_API_KEY" in shown
            assert key not in shown
            assert screen.lists["bm25"].rows


async def test_a_streamed_answer_shows_its_citations_and_marks_unknown_ones(
    folder: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend_answer = Backend()
    with replay_server(Script(text_events("At ni", "ght [1] and [", "9]."))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        backend.answer = backend_answer.answer  # type: ignore[method-assign,assignment]
        app = RagTuiApp(folder, backend=backend)
        async with app.run_test(size=WIDE) as pilot:
            await until(pilot, lambda: app.status.phase == "fresh")
            await ask(pilot, "pump")
            await pilot.press("a")
            await settle(pilot)
            answer = search_screen(pilot).query_one(AnswerView).answer
            assert answer is not None
            assert (answer.state, answer.cited, answer.unknown) == ("complete", (1,), (9,))
            assert "At night [1] and [9]" in screen_text(pilot)
