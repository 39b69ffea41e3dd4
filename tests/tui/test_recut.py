"""The re-cut panel: a preview by the real chunkers, bad values, and indexing again with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.chunkers.factory import make_chunker
from rag_tui.engine.errors import UsageError
from rag_tui.engine.tokenizing import WordTokenCounter
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.recut import RecutScreen
from rag_tui.tui.widgets.chunk_list import ChunkList
from rag_tui.tui.widgets.chunk_view import UNREAD_STYLE, ChunkView
from rag_tui.tui.widgets.document_map import DocumentMap
from tests.hostile import FORBIDDEN, HOSTILE
from tests.tui.chunk_samples import IndexApp, guesthouse, make_document, make_index
from tests.tui.chunk_samples import screen_text as text_of
from tests.tui.conftest import screen_text, settle, until


async def open_recut(pilot: Pilot[None]) -> RecutScreen:
    """The panel for the first document of the demo corpus."""
    await settle(pilot)
    await pilot.press("escape", "2")
    await settle(pilot)
    await pilot.press("x")
    screen = await the_panel(pilot)
    await until(pilot, lambda: screen.preview is not None)
    return screen


async def the_panel(pilot: Pilot[None]) -> RecutScreen:
    await until(pilot, lambda: isinstance(pilot.app.screen, RecutScreen))
    screen = pilot.app.screen
    if not isinstance(screen, RecutScreen):
        raise AssertionError(f"{screen} is on top")
    return screen


def message(screen: RecutScreen) -> str:
    return str(screen.query_one("#message", Static).render())


async def set_knobs(
    pilot: Pilot[None], screen: RecutScreen, *, size: str, overlap: str, is_done: Callable[[], bool]
) -> None:
    screen.query_one("#size", Input).value = size
    screen.query_one("#overlap", Input).value = overlap
    await until(pilot, is_done)


async def test_the_first_preview_is_the_present_cut(app: RagTuiApp) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_recut(pilot)
        index = app.index
        assert index is not None
        assert screen.preview is not None
        doc_id = screen.preview.document.doc_id
        ids = [chunk.chunk_id for chunk in screen.preview.chunks]
        assert ids == [chunk.chunk_id for chunk in index.chunks if chunk.doc_id == doc_id]
        facts = [
            str(screen.query_one(f"#{s}-facts", Static).render()) for s in ("present", "preview")
        ]
        assert facts[0] == facts[1]
        assert f"{len(ids)} chunks" in facts[0]


async def test_other_settings_are_cut_as_the_engine_cuts_them(app: RagTuiApp) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_recut(pilot)
        screen.query_one("#strategy", Select).value = "words"
        screen.query_one("#unit", Select).value = "words"
        wanted = ChunkingSettings("words", 20, 5, "words")
        session = app.session
        assert session is not None
        chunker = make_chunker(wanted, session.models.token_counter())
        document = screen._present.document
        expected = [(c.start, c.end) for c in chunker.chunk(document)]
        await set_knobs(
            pilot, screen, size="20", overlap="5",
            is_done=lambda: screen.preview is not None
            and [(c.start, c.end) for c in screen.preview.chunks] == expected,
        )  # fmt: skip
        assert f"{len(expected)} chunks" in screen_text(pilot)
        assert "shared with 1" in screen_text(pilot)


@pytest.mark.parametrize(
    ("size", "overlap", "told"),
    [
        ("64", "80", "got overlap 80 >= size 64"),
        ("0", "0", "chunk size must be at least 1 (got 0)"),
        ("", "0", "size must be a whole number (got '')"),
    ],
)
async def test_bad_values_are_named_and_there_is_no_preview(
    app: RagTuiApp, size: str, overlap: str, told: str
) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_recut(pilot)
        await set_knobs(
            pilot, screen, size=size, overlap=overlap, is_done=lambda: told in message(screen)
        )
        assert screen.preview is None
        assert "No preview." in screen_text(pilot)
        await pilot.press("ctrl+j")
        await settle(pilot)
        assert app.screen is screen
        assert told in message(screen)
        await set_knobs(
            pilot, screen, size="64", overlap="8", is_done=lambda: screen.preview is not None
        )
        assert message(screen) == ""


async def test_indexing_again_asks_first_and_then_keeps_models_and_place(app: RagTuiApp) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_recut(pilot)
        before, session = app.index, app.session
        assert before is not None
        assert session is not None
        await set_knobs(
            pilot, screen, size="40", overlap="5",
            is_done=lambda: screen.preview is not None and screen.wanted().size == 40
            and max(screen.preview.n_tokens) <= 40,
        )  # fmt: skip
        await pilot.press("ctrl+j")
        await until(pilot, lambda: "embedded anew" in message(screen))
        asked = message(screen)
        assert app.index is before
        await pilot.press("ctrl+j")
        await until(pilot, lambda: app.index is not before and app.status.phase == "fresh")
        await settle(pilot)
        index = app.index
        assert index is not None
        assert isinstance(app.screen, ChunksScreen)
        assert index.manifest.chunking["size"] == 40
        assert f"Re-index the folder: {len(index.chunks):,} chunks" in asked
        texts = {chunk.embedded_text for chunk in before.chunks}
        n_new = len({chunk.embedded_text for chunk in index.chunks} - texts)
        assert f"{n_new} texts must be embedded anew" in asked
        assert app.session is not None
        assert app.session.models is session.models
        assert app.session.settings.engine.chunking.size == 40
        list_ = app.screen.query_one(ChunkList)
        assert list_.position is not None
        first = list_.positions.index(list_.position)
        assert index.chunks[first].doc_id == before.chunks[0].doc_id


async def test_a_changed_knob_asks_again(app: RagTuiApp) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_recut(pilot)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: "Re-index the folder" in message(screen))
        assert "all are in the embedding cache" in message(screen)
        before = app.index
        await set_knobs(
            pilot, screen, size="50", overlap="5", is_done=lambda: message(screen) == ""
        )
        await pilot.press("ctrl+j")
        await until(pilot, lambda: "Re-index the folder" in message(screen))
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, ChunksScreen)
        assert app.index is before


async def test_settings_that_cannot_be_are_refused_and_nothing_changes(app: RagTuiApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        session = app.session
        with pytest.raises(UsageError, match="overlap"):
            app.reindex_with({"chunking.size": 5, "chunking.overlap": 9})
        assert app.session is session
        await settle(pilot)
        assert app.status.phase == "fresh"


async def test_choosing_on_one_side_scrolls_the_other_to_the_same_text(app: RagTuiApp) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_recut(pilot)
        await set_knobs(
            pilot, screen, size="40", overlap="0",
            is_done=lambda: screen.preview is not None
            and len(screen.preview.chunks) > len(screen._present.chunks),
        )  # fmt: skip
        present = screen.query_one("#present", DocumentMap)
        preview = screen.query_one("#preview", DocumentMap)
        present.focus()
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert screen.preview is not None
        place = screen._present.chunks[present.chosen].start
        chunk = screen.preview.chunks[preview.chosen]
        assert chunk.start <= place < chunk.end
        preview.focus()
        await pilot.press("G", "right_square_bracket")
        await settle(pilot)
        place = screen.preview.chunks[preview.chosen].start
        chunk = screen._present.chunks[present.chosen]
        assert chunk.start <= place < chunk.end


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24), (60, 20), (40, 10)])
async def test_both_sides_are_on_screen_at_every_size(
    app: RagTuiApp, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        screen = await open_recut(pilot)
        await settle(pilot)
        for name in ("present", "preview"):
            region = screen.query_one(f"#{name}-side").region
            assert region.width > 0
            if size[1] > 15:
                assert region.height >= 4
                assert region.bottom <= size[1]
            assert region.right <= size[0]


def session_with(limit: int) -> SimpleNamespace:
    """What the screens read of a session, with a tokenizer of one token a word."""
    counter = WordTokenCounter(limit=limit, n_special=0)
    engine = SimpleNamespace(chunking=ChunkingSettings(), cache_dir=Path(os.devnull))
    settings = SimpleNamespace(engine=engine)
    return SimpleNamespace(models=SimpleNamespace(token_counter=lambda: counter), settings=settings)


async def test_what_the_model_does_not_read_is_dimmed_in_chunk_and_document() -> None:
    # Context "T > Part": three tokens; the body has six words, and seven tokens are read.
    index = make_index(
        [make_document("a.md", [("Part", "one two tree four five six")], title="T")],
        n_tokens=[9],
        limit=7,
    )
    app = IndexApp(ChunksScreen(), index)
    app.session = session_with(7)  # type: ignore[attr-defined]
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        shown = text_of(app)
        assert "⚠ 2 tokens beyond the limit are not read" in shown
        assert "… 2 tokens not read:" in shown
        text = app.screen.query_one(ChunkView)._body.render()
        assert isinstance(text, Content)
        dim = [text.plain[s.start : s.end] for s in text.spans if s.style == UNREAD_STYLE]
        assert "".join(dim).strip() == "five six"
        await pilot.press("d")
        await settle(pilot)
        assert "1 ╎ … 2 tokens not read" in text_of(app)
        assert "1 ╎ five six" in text_of(app)


async def test_no_document_and_no_session_is_said_and_nothing_opens() -> None:
    async with (app := IndexApp(ChunksScreen(), guesthouse())).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("x")
        await settle(pilot)
        assert isinstance(app.screen, ChunksScreen)
        assert any("no document" in n.message for n in app._notifications)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_documents_are_previewed_safely(text: str) -> None:
    made = make_document(f"{text}.md", [(text, f"{text} twice {text}")], title=text)
    app = IndexApp(ChunksScreen(), make_index([replace(made, metadata={text: text})]))
    app.session = session_with(3)  # type: ignore[attr-defined]
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("x")
        screen = await the_panel(pilot)
        await until(pilot, lambda: screen.preview is not None or bool(message(screen)))
        await settle(pilot)
        assert screen.preview is not None
        shown = text_of(app)
        assert [char for char in FORBIDDEN if char in shown] == []
        assert not app._exit
