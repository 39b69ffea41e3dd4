"""The bump chart: the picture as text, and the screen that walks through it."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from rag_tui.engine.types import METHODS
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.bump import BumpScreen
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.widgets.bump_chart import BumpChart, BumpColumn, bump_lines, layout_of
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts, until

DOG = "Can I bring my dog?"


def column(name: str, rows: str, below: str = "") -> BumpColumn:
    """A list that shows some rows and has others below them; each letter is a chunk."""
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(rows + below, start=1)}
    return BumpColumn(name, name.upper(), tuple(rows), ranks)


def picture(
    *columns: BumpColumn, picked: str | None = None, active: str = "", width: int = 60, height: int
) -> list[str]:
    chart = BumpChart(columns, {letter: f"Chunk {letter}" for letter in "abcdefgh"})
    layout = layout_of(chart, width, height)
    lines = bump_lines(chart, layout, picked=picked, active=active)
    return ["".join(text for text, _ in runs).rstrip() for runs in lines]


def test_the_picked_chunk_is_a_heavy_line_and_the_others_are_dots() -> None:
    drawn = picture(column("x", "abc"), column("y", "bca"), picked="a", active="y", height=4)
    assert drawn[0].split() == ["X", "[Y]"]
    assert drawn[1].startswith(" 1 ●━")
    assert drawn[1].endswith("•  Chunk b")
    assert "┓" in drawn[1]
    assert drawn[2].startswith(" 2 •⠤")
    assert "┃" in drawn[2]
    assert drawn[3].endswith("━●  Chunk a")
    assert "┗━" in drawn[3]
    # Without colour nothing else is heavy.
    assert not any(heavy in "".join(drawn[1:]).replace("●", "", 2) for heavy in "●")
    level = picture(column("x", "ab"), column("y", "ab"), picked="b", height=3)
    assert level[2] == " 2 ●" + "━" * (level[2].rindex("●") - 4) + "●  Chunk b"


def test_a_chunk_that_leaves_ends_with_a_cross_and_its_rank_there() -> None:
    drawn = picture(column("x", "abc"), column("y", "ad", "xxb"), picked="b", height=4)
    assert drawn[2].startswith(" 2 ●━×5 ")  # further down in the list
    assert drawn[3].startswith(" 3 •─×")  # not in it at all
    assert drawn[3][6:].strip() == ""
    assert drawn[2].endswith("+─•  Chunk d")
    gone = picture(column("x", "abc"), column("y", "ad", "xxb"), picked=None, height=4)
    assert gone[2].startswith(" 2 •─×5 ")


@pytest.mark.parametrize(("height", "spacing"), [(4, 1), (7, 2), (10, 3), (60, 3)])
def test_ranks_stand_as_far_apart_as_there_is_room(height: int, spacing: int) -> None:
    drawn = picture(column("x", "abc"), column("y", "cba"), height=height)
    ranks = [line[:2].strip() for line in drawn[1:]]
    assert ranks == ["1", *[""] * (spacing - 1), "2", *[""] * (spacing - 1), "3"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("n_columns", [1, 2, 4, 6])
def test_the_picture_is_never_wider_than_its_place_and_names_stay_apart(
    width: int, n_columns: int
) -> None:
    columns = [column(f"list {i}", "abcdefgh"[i % 3 :]) for i in range(n_columns)]
    drawn = picture(*columns, picked="c", active="list 0", width=width, height=12)
    assert len(drawn) == 9
    # So narrow that the nodes touch, it is cut off at the right by the widget.
    assert max(map(cell_len, drawn)) <= max(width, 2 * n_columns + 16)
    if width >= 60:
        assert all(f"LIST {i}" in drawn[0] or "…" in drawn[0] for i in range(n_columns))


def test_a_wide_chart_names_the_first_list_too_and_an_empty_one_is_blank() -> None:
    drawn = picture(column("x", "ab"), column("y", "ba"), width=130, height=4)
    assert drawn[1].lstrip().startswith("Chunk a  1 •")
    assert picture(height=5) == ["", ""]
    one = picture(column("x", "ab"), column("y", ""), picked="a", height=4)
    assert one[1].startswith(" 1 ●━×")


async def test_v_shows_the_lists_as_lines_and_its_cursor_is_the_selection(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        search_screen(pilot).lists["hybrid"].focus()
        await pilot.press("v")
        assert "There are no lists yet." in toasts(pilot)
        screen = await ask(pilot, DOG)
        assert screen.results is not None
        hits = screen.results.rankings["hybrid"].hits
        await pilot.press("v")
        bump = app.screen
        assert isinstance(bump, BumpScreen)
        await pilot.pause()
        assert bump.view.active == screen.active == "hybrid"
        shown = screen_text(pilot)
        assert DOG in shown
        assert "[HYBRID]" in shown
        assert "●━" in shown or "━●" in shown
        await pilot.press("g", "j", "j")
        assert screen.selected == hits[2].chunk_id
        assert {one.selected for one in screen.lists.values()} == {hits[2].chunk_id}
        where = [
            str(screen.results.rankings[method].rank_of(hits[2].chunk_id) or "–")
            for method in METHODS
        ]
        told = f"VECTOR {where[0]} → BM25 {where[1]} → HYBRID 3 → RERANKED {where[3]}"
        assert told in bump.picked_text
        await pilot.press("right", "g")
        assert bump.view.active == "reranked"
        first = screen.results.rankings["reranked"].hits[0].chunk_id
        assert screen.selected == first
        n_rows = bump.n_rows
        await pilot.press("minus", "minus")
        assert bump.n_rows == n_rows - 2
        assert len(bump.view.chart.columns[2].rows) <= n_rows - 2
        # a click picks what is nearest: the first row of the first list
        await pilot.click(bump.view, offset=(3, 1))
        assert bump.view.active == "vector"
        assert screen.selected == screen.results.rankings["vector"].hits[0].chunk_id
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, SearchScreen)
        assert screen.tabs.active == "chunk"
        assert screen.selected == screen.results.rankings["vector"].hits[0].chunk_id


async def test_lists_that_come_late_or_fail_are_told(app: RagTuiApp, backend: SmallBackend) -> None:
    from rag_tui.engine.events import StageError

    backend.broken["bm25"] = StageError("no [/b] words")
    gate = backend.gate(DOG, "reranked")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, DOG, wait=False)
        await until(pilot, gate.reached.is_set)
        await until(pilot, lambda: "hybrid" in screen.results.rankings)  # type: ignore[union-attr]
        await pilot.press("v")
        bump = app.screen
        assert isinstance(bump, BumpScreen)
        await pilot.pause()
        assert [one.name for one in bump.view.chart.columns] == ["vector", "hybrid"]
        assert "✗ bm25: no [/b] words" in bump.picked_text
        gate.opened.set()
        await settle(pilot)
        assert [one.name for one in bump.view.chart.columns] == ["vector", "hybrid", "reranked"]
        assert "RERANKED" in screen_text(pilot)


async def test_hostile_names_stay_text_in_the_chart(app: RagTuiApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await ask(pilot, DOG)
        await pilot.press("v")
        bump = app.screen
        assert isinstance(bump, BumpScreen)
        texts = [*HOSTILE, LONG_LINE]
        rows = tuple(str(i) for i in range(len(texts)))
        labels = dict(zip(rows, texts, strict=True))
        from rag_tui.tui import format as fmt

        columns = [
            BumpColumn(text, fmt.one_line(text), rows[i:] + rows[:i], {})
            for i, text in enumerate(HOSTILE[:5])
        ]
        bump.view.show(BumpChart(tuple(columns), labels), picked="3", active=HOSTILE[0])
        for _ in range(3):
            await pilot.pause()
            shown = screen_text(pilot)
            assert [c for c in FORBIDDEN if c in shown] == []
            assert all(cell_len(line) <= 120 for line in shown.split("\n"))
            bump.view.scroll_page_down(animate=False)
