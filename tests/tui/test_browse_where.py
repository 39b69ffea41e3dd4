"""A filter on a question holds wherever the question leads; dialogs close once."""

from __future__ import annotations

from pathlib import Path

from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.widgets.chunk_list import ChunkList
from tests.tui.conftest import SmallBackend, ask, screen_text, settle, until

WIDE = (160, 45)


async def test_browsing_from_a_filtered_question_shows_no_chunk_the_filter_forbids(
    tmp_path: Path, backend: SmallBackend
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("---\nacl: public\n---\n# Open\n\nThe salary bands are public.\n")
    (folder / "b.md").write_text("---\nacl: secret\n---\n# Closed\n\nThe salary of TOPSECRET.\n")
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "salary where: acl=public")
        assert [row.label for row in screen.lists["bm25"].rows] == ["Open"]
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, ChunksScreen))
        await settle(pilot)
        assert list(app.screen.query_one(ChunkList).positions) == [0]
        assert "TOPSECRET" not in screen_text(pilot)


async def test_two_quick_enters_on_the_files_leave_the_app_whole(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await app.action_show_mode("chunks")
        await settle(pilot)
        for key in ("f", "v", "i"):
            await pilot.press(key)
            await settle(pilot)
            app.simulate_key("enter")
            app.simulate_key("enter")
            app.simulate_key("escape")
            app.simulate_key("escape")
            await settle(pilot)
            assert app.is_running
            assert isinstance(app.screen, ChunksScreen)


async def test_browsing_brings_the_chunk_into_view_however_far_down_it_is(
    tmp_path: Path, backend: SmallBackend
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    sections = "".join(f"## Section {i}\n\nword{i} text\n\n" for i in range(400))
    (folder / "long.md").write_text(f"# Long\n\n{sections}")
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, "word377")
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, ChunksScreen))
        await settle(pilot)
        chunks = app.screen.query_one(ChunkList)
        assert chunks.position == 377
        top = round(chunks.scroll_y)
        assert top <= 377 < top + chunks.size.height
        await pilot.press("d")
        await settle(pilot)
        top = round(chunks.scroll_y)
        assert top <= 377 < top + chunks.size.height


async def test_the_facts_use_the_window_and_prices_of_the_settings(
    tmp_path: Path, backend: SmallBackend
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\n" + "many words stand here " * 40)
    (folder / "rag-tui.toml").write_text(
        "[prices]\ncontext_window = 50\ninput = 1234\ncurrency = 'EUR'\n"
    )
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await app.action_show_mode("chunks")
        await settle(pilot)
        await pilot.press("i")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "context window of 50: retrieval is needed" in shown
        assert "1234 read" in shown
        assert "EUR" in shown
