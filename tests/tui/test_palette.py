"""The palette finds documents, saved questions, lists and presets, also in large corpora."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from textual.command import Hit
from textual.content import Content
from textual.pilot import Pilot

from rag_tui.engine.types import Document
from rag_tui.tui import format as fmt
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.palette import MAX_HITS, CorpusCommands, find_documents
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.search import SearchScreen
from tests.hostile import FORBIDDEN, HOSTILE
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts

WIDE = (160, 45)
DOG = "Can I bring my dog?"


def document(path: str, title: str = "") -> Document:
    return Document(path, title, "", "")


async def hits(provider: CorpusCommands, typed: str) -> list[Hit]:
    found = [hit async for hit in provider.search(typed)]
    assert all(isinstance(hit, Hit) for hit in found)
    return [hit for hit in found if isinstance(hit, Hit)]


async def choose(pilot: Pilot[None], typed: str) -> None:
    await pilot.press("ctrl+p", *typed)
    await pilot.pause(0.3)  # the palette itself waits before it searches
    await settle(pilot)
    await pilot.press("enter")
    await settle(pilot)


def test_documents_are_found_by_name_then_path_then_title_then_scattered_letters() -> None:
    documents = [
        document("a/b/check-in-late.md"),
        document("z/check-in.md"),
        document("check-in/other.md"),
        document("x.md", "About Check-In"),
        document("c/h/e/c/k/-/i/n"),
        document("nothing.md"),
        document("late-check-in.md"),
    ]
    found = [one.doc_id for one in find_documents(documents, "CHECK-in")]
    assert found == [
        "z/check-in.md",
        "a/b/check-in-late.md",
        "late-check-in.md",
        "check-in/other.md",
        "x.md",
        "c/h/e/c/k/-/i/n",
    ]
    assert [one.doc_id for one in find_documents(documents, "late in")][:1] == ["late-check-in.md"]
    assert find_documents(documents, "  ") == ()


def test_of_ten_thousand_documents_at_most_fifty_are_offered_best_first() -> None:
    documents = [document(f"docs/part{i % 100}/page-{i:05}.md") for i in range(10_000)]
    assert len(find_documents(documents, "page")) == MAX_HITS == 50
    assert [one.doc_id for one in find_documents(documents, "page-07777")] == [
        "docs/part77/page-07777.md"
    ]


async def test_a_document_is_gone_to_and_from_there_a_saved_question_is_asked(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        search_screen(pilot)
        await choose(pilot, "house-rules")
        assert isinstance(app.screen, ChunksScreen)
        assert app.screen.chunk is not None
        assert app.screen.chunk.doc_id == "house-rules.md"
        await choose(pilot, "bring my dog")
        assert search_screen(pilot).question == DOG
        assert search_screen(pilot).lists["bm25"].rows


async def test_lists_presets_and_exports_are_entries_and_nothing_over_a_dialog(
    corpus: Path, backend: SmallBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(shutil.copytree(corpus, tmp_path / "docs"))
    (folder / "rag-tui.toml").write_text('[presets."wide [/b] net"]\n"search.depth" = 13\n')
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, DOG)
        commands = {one.title: one.run for one in CorpusCommands(app.screen).commands()}
        assert [title for title in commands if title.startswith("Go to list: ")] == [
            "Go to list: VECTOR", "Go to list: BM25", "Go to list: HYBRID", "Go to list: RERANKED",
        ]  # fmt: skip
        await choose(pilot, "list: BM25")
        assert screen.active == "bm25"
        await pilot.press("2")
        await choose(pilot, "wide net")
        assert isinstance(app.screen, SearchScreen)
        assert screen.knobs.depth == 13
        await choose(pilot, "export this search")
        await pilot.press("enter")
        await settle(pilot)
        target = tmp_path / "docs-search.json"
        assert f"1 search written to {target}" in toasts(pilot)
        written = json.loads(target.read_text())
        assert (written["query"], written["knobs"]) == (DOG, {"search.depth": 13})
        await pilot.press("H")
        await settle(pilot)
        assert list(CorpusCommands(app.screen).commands()) == []
        assert await hits(CorpusCommands(app.screen), "house") == []


async def test_hostile_file_names_are_shown_and_opened(
    corpus: Path, tmp_path: Path, backend: SmallBackend
) -> None:
    folder = Path(shutil.copytree(corpus, tmp_path / "docs"))
    names = [text.replace("/", "∕").replace("\0", "␀") for text in HOSTILE]
    for i, name in enumerate(names):
        text = f"# Number {i}\n\nText {i}.\n"
        (folder / f"odd {i} {name}.md").write_text(text, "utf-8")
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        found = await hits(CorpusCommands(app.screen), "odd")
        assert len(found) == len(names)
        for hit in found:
            assert isinstance(hit.match_display, Content)
            assert [c for c in FORBIDDEN if c in f"{hit.match_display.plain}{hit.help}"] == []
        shown = {hit.match_display.plain for hit in found if isinstance(hit.match_display, Content)}
        assert {fmt.one_line(f"odd {i} {name}.md") for i, name in enumerate(names)} == shown
        await choose(pilot, "odd 3 ")
        assert isinstance(app.screen, ChunksScreen)
        assert app.screen.chunk is not None
        assert app.screen.chunk.doc_id == f"odd 3 {names[3]}.md"
        assert [c for c in FORBIDDEN if c in screen_text(pilot)] == []
