"""Columns: added, doubled, named, moved, removed; knobs of one alone."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from rag_tui.engine.events import Progress, StageError
from rag_tui.engine.types import DEFAULT_COLUMNS, Column
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.messages import JobProgress
from rag_tui.tui.screens.columns import ColumnsScreen
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.widgets.knob_table import LINES
from rag_tui.tui.widgets.result_list import ResultList
from tests.tui.conftest import SmallBackend, ask, screen_text, settle, toasts, until

WIDE = (160, 45)
QUESTION = "Where can I leave my luggage before check-in?"


async def test_a_doubled_column_with_a_knob_of_its_own_is_searched_beside_the_first(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        first_list = screen.lists["bm25"]
        screen.lists["bm25"].focus()
        await pilot.press("m", "d", "enter")
        await settle(pilot)
        assert list(screen.lists) == ["vector", "bm25", "bm25 2", "hybrid", "reranked"]
        assert screen.lists["bm25"] is first_list
        assert list(screen.grid.children) == list(screen.lists.values())
        assert screen.active == "bm25 2"
        assert screen.lists["bm25"].rows == screen.lists["bm25 2"].rows
        panel = screen.knobs_panel
        panel.table.focus()
        panel.table.cursor = LINES.index("bm25.k1")
        await pilot.press("s")
        assert str(panel.border_title) == "Knobs · column bm25 2"
        await pilot.press("left", "left", "left", "left", "left", "left")
        await settle(pilot)
        assert screen.active == "bm25 k1=0.9"
        assert str(panel.border_title) == "Knobs · column bm25 k1=0.9"
        assert screen.knobs.bm25.k1 == 1.5
        assert screen.knobs.columns[2] == Column("bm25 k1=0.9", "bm25", (("bm25.k1", 0.9),))
        assert backend.requests[-1].columns == screen.knobs.columns
        scores = {name: screen.lists[name].rows[0].score for name in ("bm25", "bm25 k1=0.9")}
        assert len(set(scores.values())) == 2
        # only the list whose knob was turned is compared with what it was
        assert screen.movement("bm25 k1=0.9") is not None
        assert screen.movement("bm25") is None
        assert "all columns: 1.5" in screen_text(pilot)
        await pilot.press("s")
        assert str(panel.border_title) == "Knobs · all columns"
        assert "stays in: bm25 k1=0.9" in " ".join(screen_text(pilot).replace("│", " ").split())
        for _ in range(7):
            await pilot.press("z")
        await settle(pilot)
        assert screen.knobs.columns == DEFAULT_COLUMNS
        assert "columns: vector, bm25, hybrid, reranked" in toasts(pilot)


async def test_columns_are_added_named_moved_and_removed_up_to_six(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("m")
        dialog = app.screen
        assert isinstance(dialog, ColumnsScreen)
        await pilot.press("end", "a", "b")
        await settle(pilot)
        assert list(screen.lists)[-1] == "bm25 2"
        await pilot.press("r")
        dialog.query_one("#column-name", Input).value = "bm25"
        await pilot.press("enter")
        assert "Another column is called bm25" in screen_text(pilot)
        dialog.query_one("#column-name", Input).value = "[/b] mine"
        await pilot.press("enter")
        await settle(pilot)
        assert list(screen.lists)[-1] == "[/b] mine"
        await pilot.press("left", "left")
        await settle(pilot)
        assert list(screen.lists) == ["vector", "bm25", "[/b] mine", "hybrid", "reranked"]
        await pilot.press("d", "d", "a")
        await settle(pilot)
        assert dialog.is_current
        assert len(screen.lists) == 6
        # they are scrolled sideways then: a line above them names them all
        assert screen.query_one("#list-strip").display
        assert "There are 6 columns, the most there can be" in screen_text(pilot)
        await pilot.press("f")
        await settle(pilot)
        assert screen.knobs.columns == DEFAULT_COLUMNS
        await pilot.press("x", "x", "x", "x")
        await settle(pilot)
        assert "The last column stays" in screen_text(pilot)
        assert list(screen.lists) == ["reranked"]
        assert backend.requests[-1].columns == (Column("reranked", "reranked"),)
        await pilot.press("escape")
        await settle(pilot)
        assert screen.is_current
        assert screen.lists["reranked"].rows


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_the_list_that_is_gone_to_is_in_sight_also_among_six(
    app: RagTuiApp, backend: SmallBackend, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("m", "home", "d", "d", "escape")
        await settle(pilot)
        assert len(screen.lists) == 6
        for _ in screen.lists:
            await pilot.press("right_square_bracket")
            await until(pilot, lambda: _is_in_sight(screen, screen.lists[screen.active]))


def _is_in_sight(screen: SearchScreen, one: ResultList) -> bool:
    is_whole = screen.grid.content_region.contains_region(one.region)
    return one.has_focus and one.size.height > 2 and is_whole


async def test_a_column_that_fails_says_why_and_the_others_stand(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    backend.broken["vector 2"] = StageError("no such model", "install it")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("m", "home", "d", "enter")
        await settle(pilot)
        assert screen.lists["vector 2"].message == "no such model\ninstall it"
        assert all(one.rows for name, one in screen.lists.items() if name != "vector 2")
        assert screen.active == "vector 2"
        assert "no such model" in screen_text(pilot)


async def test_a_column_that_waits_for_its_own_vectors_says_how_far_they_are(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        gate = backend.gate(QUESTION, "bm25")
        column = Column("other", "vector", (("search.embedder", "some/model"),))
        changed = (*screen.knobs.columns, column)
        await screen.change_knobs(screen.knobs.__class__("", columns=changed))
        await ask(pilot, QUESTION, wait=False)
        await until(pilot, gate.reached.is_set)
        app.post_message(JobProgress(Progress("embed", 3, 13, "with some/model")))
        await until(pilot, lambda: "3/13" in screen.lists["other"].message)
        assert "with some/model" in screen.lists["other"].message
        assert "3/13" not in screen.lists["vector"].message
        gate.opened.set()
        await settle(pilot)
        assert screen.lists["vector"].rows


@pytest.mark.parametrize("key", ["escape", "q", "m"])
async def test_the_dialog_closes_with_each_of_its_keys(app: RagTuiApp, key: str) -> None:
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("m", "r", "escape", key)
        await pilot.pause()
        assert app.screen is screen
