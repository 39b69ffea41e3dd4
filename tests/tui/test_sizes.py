"""Every size, from the start and by resizing: no traceback, and all comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.screens.too_small import TooSmallScreen
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, until

SIZES = (
    (120, 40),
    (80, 24),
    (66, 20),
    (60, 15),
    (40, 10),
    (39, 10),
    (40, 9),
    (20, 5),
    (10, 3),
    (2, 2),
    (1, 1),
    (200, 60),
    (300, 8),
)
TOO_SMALL = frozenset({(39, 10), (40, 9), (20, 5), (10, 3), (2, 2), (1, 1), (300, 8)})
QUESTION = "Can I bring my dog?"


@pytest.mark.parametrize("size", SIZES)
async def test_the_app_starts_at_any_size(app: RagTuiApp, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, TooSmallScreen) == (size in TOO_SMALL)
        lines = screen_text(pilot).split("\n")
        assert len(lines) == size[1]
        if size in TOO_SMALL:
            notice = lines[0].strip().removesuffix("…")
            assert notice or size[0] == 1
            assert "terminal too small: 40x10 needed".startswith(notice)
        await pilot.resize_terminal(100, 30)
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert all(result_list.rows for result_list in screen.lists.values())


async def test_resizing_through_all_sizes_while_searching_keeps_focus_and_selection(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        screen.lists["bm25"].focus()
        await pilot.press("g", "j")
        chosen = screen.selected
        gate = backend.gate(QUESTION, "vector")
        screen.search(QUESTION)
        await until(pilot, gate.reached.is_set)
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            screen_text(pilot)
        gate.opened.set()
        await settle(pilot)
        await pilot.resize_terminal(160, 45)
        await settle(pilot)
        assert search_screen(pilot) is screen
        assert screen.focused is screen.lists["bm25"]
        assert screen.selected == chosen
        assert all(result_list.rows for result_list in screen.lists.values())


async def test_the_notice_says_which_size_is_needed(app: RagTuiApp) -> None:
    async with app.run_test(size=(38, 12)) as pilot:
        await settle(pilot)
        assert "terminal too small: 40x10 needed" in screen_text(pilot)
        assert "VECTOR" not in screen_text(pilot)


async def test_keys_do_nothing_while_the_notice_is_up(app: RagTuiApp) -> None:
    async with app.run_test(size=(20, 5)) as pilot:
        await settle(pilot)
        await pilot.press("2", "q", "a", "question_mark", "escape")
        assert isinstance(app.screen, TooSmallScreen)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert isinstance(app.screen, SearchScreen)


@pytest.mark.parametrize(
    ("size", "n_visible", "n_columns"), [((160, 45), 4, 4), ((100, 30), 4, 2), ((80, 24), 1, 1)]
)
async def test_lists_stand_side_by_side_as_far_as_the_width_allows(
    app: RagTuiApp, size: tuple[int, int], n_visible: int, n_columns: int
) -> None:
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        visible = [r for r in screen.lists.values() if r.region.area > 0]
        assert len(visible) == n_visible
        assert len({result_list.region.x for result_list in visible}) == n_columns
        for result_list in visible:
            assert result_list.size.height >= screen.knobs.top_k
            assert result_list.region.bottom <= size[1]
            assert result_list.region.right <= size[0]
        assert screen.chunk_view.region.height >= 5


async def test_in_a_narrow_terminal_all_four_lists_can_be_reached(app: RagTuiApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        seen = []
        for _ in range(4):
            await pilot.press("right_square_bracket")
            await settle(pilot)
            seen.append([m for m, r in screen.lists.items() if r.region.area > 0])
            assert screen.focused is screen.lists[screen.active]
        assert seen == [["reranked"], ["vector"], ["bm25"], ["hybrid"]]
        await pilot.press("h")
        await settle(pilot)
        assert screen.active == "bm25"


async def test_a_list_that_scrolls_keeps_the_ends_of_its_rows(app: RagTuiApp) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await screen.change_knobs(replace(screen.knobs, top_k=13))
        await settle(pilot)
        shown = screen.lists["hybrid"]
        assert shown.show_vertical_scrollbar
        area = shown.scrollable_content_region
        lines = screen_text(pilot).splitlines()[area.y : area.bottom]
        for row, line in zip(shown.rows, lines, strict=False):
            assert line[area.x : area.right].rstrip().endswith(row.badge)
        # cut off, the ranks of the longest badges would be other ranks
        assert max(len(row.badge) for row in shown.rows[: area.height]) > 5


async def test_where_one_list_is_shown_its_first_row_is_the_one_that_is_read(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        firsts = {name: one.rows[0].chunk_id for name, one in screen.lists.items()}
        assert len(set(firsts.values())) > 1
        assert screen.selected == firsts[screen.active]
        assert "1 ●" in screen_text(pilot)


@pytest.mark.parametrize("key", ["e", "p", "t", "c", "enter"])
async def test_at_the_smallest_size_each_half_can_be_reached(app: RagTuiApp, key: str) -> None:
    async with app.run_test(size=(40, 10)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert screen.lists[screen.active].region.height >= 3
        await pilot.press(key)
        await settle(pilot)
        assert screen.query_one("#detail").region.height >= 3
        await pilot.press("escape")
        await settle(pilot)
        assert screen.lists[screen.active].region.height >= 3


async def test_the_sizes_of_the_shared_case_are_all_survived(
    shared: Path, backend: SmallBackend
) -> None:
    case = shared / "cases" / "07-narrow-terminal"
    sizes = [
        tuple(int(part) for part in line.split("x"))
        for line in (case / "sizes.txt").read_text().split()
    ]
    app = RagTuiApp(case / "docs", backend=backend, question="titel")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for width, height in sizes:
            await pilot.resize_terminal(width, height)
            await pilot.press("e")
            await pilot.pause()
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert search_screen(pilot).lists["bm25"].rows
