"""Small things that decide whether somebody stays: knobs, copying, focus, names, odd sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandPalette

from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.screens.too_small import TooSmallScreen
from tests.tui.conftest import (
    SmallBackend,
    ask,
    screen_text,
    search_screen,
    settle,
    toasts,
    until,
)

WIDE = (160, 45)


@pytest.mark.parametrize("typed", ["inf", "nan", "1e999", "-inf"])
async def test_a_knob_value_that_is_no_finite_number_is_refused(typed: str, app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        screen.knobs_panel.table.focus()
        await pilot.press("space", "ctrl+u", *typed.replace("-", "minus "), "enter")
        await settle(pilot)
        assert app.is_running
        assert screen.knobs.top_k == 5
        assert "top_k must be" in toasts(pilot)


async def test_a_palette_over_the_size_notice_leaves_the_app_whole(app: RagTuiApp) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.resize_terminal(38, 12)
        await pilot.pause()
        assert isinstance(app.screen, TooSmallScreen)
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert isinstance(app.screen, TooSmallScreen)
        await app.action_show_mode("chunks")
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert isinstance(app.screen, SearchScreen)


async def test_a_dialog_that_was_open_when_the_terminal_shrank_is_there_again(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, SearchScreen)


async def test_a_dialog_that_opens_over_the_notice_does_not_keep_the_notice(
    app: RagTuiApp,
) -> None:
    from rag_tui.engine.events import StageError

    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        app.show_failure("Something failed", StageError("for a test"))
        await pilot.pause()
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, SearchScreen)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((), "Copied the chunk"),
        (("e",), "Copied the explanation"),
    ],
)
async def test_copying_takes_what_the_open_tab_shows(
    keys: tuple[str, ...], words: str, app: RagTuiApp
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, "dog")
        await pilot.press(*keys)
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        assert words in toasts(pilot)


async def test_the_prompt_can_be_scrolled_at_once_and_escape_goes_back_to_the_list(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        await pilot.press("p")
        await pilot.pause()
        await pilot.pause()
        assert screen.focused is not None
        assert screen.tabs in screen.focused.ancestors
        await pilot.press("escape")
        await pilot.pause()
        assert screen.focused is screen.lists[screen.active]


async def test_in_a_narrow_terminal_the_answer_key_closes_the_knobs(app: RagTuiApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        await pilot.press("t")
        await pilot.pause()
        await pilot.press("a")
        await settle(pilot)
        assert not screen.has_class("-tuning")
        assert screen.tabs.active == "answer"


async def test_escape_puts_the_question_back_that_the_lists_belong_to(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        screen.action_focus_query()
        await pilot.pause()
        await pilot.press(*"other")
        assert screen.query_bar.question == "other"
        await pilot.press("escape")
        await pilot.pause()
        assert screen.query_bar.question == "dog"
        screen.action_focus_query()
        await pilot.press("up")
        assert screen.query_bar.question == "other"


def has_prompt(screen: SearchScreen) -> bool:
    """Whether a prompt is shown."""
    return screen.prompt_preview.facts is not None


async def test_the_prompt_never_belongs_to_another_question(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        assert has_prompt(screen)
        gate = backend.gate("lockbox", "bm25")
        await ask(pilot, "lockbox", wait=False)
        await until(pilot, gate.reached.is_set)
        assert not has_prompt(screen)
        await pilot.press("escape")
        gate.opened.set()
        await settle(pilot)
        assert not has_prompt(screen)
        await ask(pilot, "word " * 1001)
        assert not has_prompt(screen)
        await pilot.press("a")
        await settle(pilot)
        assert screen.answer_view.answer is None


async def test_rows_say_in_which_file_and_lines_they_are(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "lockbox")
        place = screen.lists["bm25"].rows[0].place
        assert place == "wifi-and-appliances.md:7-9"
        assert place in screen_text(pilot)


async def test_rows_of_the_same_name_carry_the_heading_above(
    tmp_path: Path, backend: SmallBackend
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("Alpha", "Beta"):
        (folder / f"{name}.md").write_text(f"# {name}\n\n## Steps\n\nTurn the pump on.\n")
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "pump")
        labels = {row.label for row in screen.lists["bm25"].rows}
        assert labels == {"Steps · Alpha", "Steps · Beta"}


async def test_sample_questions_of_the_corpus_come_with_up(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "sample questions" in screen_text(pilot)
        screen = search_screen(pilot)
        screen.action_focus_query()
        await pilot.press("up")
        assert screen.query_bar.question.startswith("A typhoon cancelled my flight")


async def test_characters_that_hide_or_reorder_text_do_not_get_into_the_question(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        screen.query_bar.question = "A\u202edog\u200bY\x9b2J"
        assert screen.query_bar.question == "A dog Y 2J"


async def test_one_stray_leaving_key_only_asks(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, "dog")
        await pilot.press("q")
        await pilot.pause()
        assert app.is_running
        assert "again to leave" in toasts(pilot)


async def test_a_narrow_terminal_still_says_how_to_get_to_the_other_screen(
    corpus: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(corpus, backend=backend)
    async with app.run_test(size=(66, 24)) as pilot:
        await settle(pilot)
        app.status = replace(
            app.status, n_documents=155, n_chunks=3253, model="some/rather-long-model-name"
        )
        await pilot.pause()
        first = screen_text(pilot).splitlines()[0]
        assert "3,253 chunks" in first
        assert "1 Search  2 Chunks" in first
