"""Presets: applied, saved, copied; steps after ranking and cut passages on the lists."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from textual.widgets import Input

from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.results import result_rows
from rag_tui.tui.screens.presets import PresetsScreen
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts

WIDE = (160, 45)
QUESTION = "Where can I leave my luggage before check-in?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two documents that say the same, and a third."""
    text = "# Luggage\n\nBags can be left at reception before check-in and after check-out.\n"
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.md").write_text(text)
    (made / "b.md").write_text(text)
    (made / "c.md").write_text("# Dogs\n\nSmall dogs are welcome before noon.\n")
    (made / "rag-tui.toml").write_text('# kept\n[presets."wide net"]\n"search.depth" = 200\n')
    return made


async def test_a_preset_is_applied_over_the_settings_and_taken_back(
    folder: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("P")
        assert "wide net" in screen_text(pilot)
        assert "search.depth 200" in screen_text(pilot)
        assert "now: all knobs as in the settings" in screen_text(pilot)
        await pilot.press("s")
        assert "There is nothing to save" in screen_text(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert backend.requests[-1].depth == 200
        assert "Applied wide net" in toasts(pilot)
        await pilot.press("z")
        await settle(pilot)
        assert screen.knobs.depth == 50


async def test_the_present_knobs_are_saved_in_the_project_file_and_copied(
    folder: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("Y", "t")
        assert "There is nothing to copy" in toasts(pilot)
        changed = screen.knobs.__class__("", depth=70, columns=screen.knobs.columns)
        await screen.change_knobs(changed)
        await settle(pilot)
        await pilot.press("P", "s")
        app.screen.query_one("#preset-name", Input).value = "[/b] mine"
        await pilot.press("enter")
        await settle(pilot)
        path = folder / "rag-tui.toml"
        assert path.read_text().startswith("# kept\n")
        saved = tomllib.loads(path.read_text())["presets"]
        assert saved == {"wide net": {"search.depth": 200}, "[/b] mine": {"search.depth": 70}}
        assert "✓ saved [/b] mine" in screen_text(pilot)
        await pilot.press("t")
        await pilot.pause()
        assert app.clipboard == "[search]\ndepth = 70\n"
        await pilot.press("Y", "p")
        await pilot.pause()
        assert "Copied the script" in toasts(pilot)
        assert repr(QUESTION) in app.clipboard
        compile(app.clipboard, "copied", "exec")
        await pilot.press("z", "P", "home", "enter")
        await settle(pilot)
        assert backend.requests[-1].depth == 70


async def test_what_cannot_be_saved_says_why_and_what_to_do(
    folder: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        path = folder / "rag-tui.toml"
        path.unlink()
        path.mkdir()  # rights do not hold back the user that tests may run as
        await screen.change_knobs(screen.knobs.__class__("", depth=70))
        await pilot.press("escape", "P", "s", *"mine", "enter")
        await settle(pilot)
        shown = " ".join(screen_text(pilot).replace("│", " ").split())
        assert "✗ not saved" in shown
        assert "t copies the knobs as TOML instead" in shown
        await pilot.press("escape")
        await screen.change_knobs(screen.knobs.__class__("", reranker="voyage/rerank-2"))
        await settle(pilot)
        await pilot.press("P", "s")
        await pilot.pause()
        assert isinstance(app.screen, PresetsScreen)
        assert not app.screen.query(Input)
        assert "sends texts to a service" in screen_text(pilot)


async def test_folded_rows_dropped_rows_and_cut_passages_are_told(
    folder: Path, backend: SmallBackend
) -> None:
    overrides = {"post.fold": True, "post.min_bm25": 0.2, "search.top_k": 2}
    app = RagTuiApp(folder, backend=backend, overrides=overrides)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        first = screen.lists["bm25"].rows[0]
        assert first.badge == "×2"
        assert first.place.startswith("same text in 2 places · ")
        assert "same text in 2 places" in screen_text(pilot)
        assert screen.results is not None
        steps = screen.results.rankings["bm25"].steps
        assert "threshold" in {step.name for step in steps}
        for step in steps:
            assert f"{step.name}: {step.note}" in screen.lists["bm25"].message
            assert f"{step.name}: {step.note}" in str(screen.lists["bm25"].tooltip)
        assert not first.label.startswith("✂")
        index = screen.results.index
        longest = index.n_tokens.copy()
        longest[:] = 513
        object.__setattr__(index, "n_tokens", longest)
        cut = {c: result_rows(c, screen.results)[0].label[0] == "✂" for c in screen.lists}
        # the reranker of these tests reads 512 tokens, the hashing embedder has a limit too
        assert cut["reranked"]
        assert cut["vector"] == (0 < index.manifest.max_tokens < 513)
        assert not cut["bm25"]
