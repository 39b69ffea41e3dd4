"""The virtual list: constant cost, cursor, messages, any width."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual import on
from textual.app import App, ComposeResult

from rag_tui.engine.types import Chunk
from rag_tui.tui.widgets.chunk_list import ChunkList, ChunkRow
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.chunk_samples import rows_on_screen, screen_text

CHUNK = Chunk("id", "notes.md", 0, 0, 5, "words", heading_path=("Notes", "Part"), line_end=2)
N = 100_000


class ListApp(App[None]):
    """A list of many chunks that are made when they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.chunk_list = ChunkList()
        self.asked: list[int] = []
        self.highlighted: list[int] = []
        self.selected: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.chunk_list

    def row(self, position: int) -> ChunkRow:
        self.asked.append(position)
        return ChunkRow(replace(CHUNK, text=f"words of {position}"), n_tokens=position, limit=256)

    @on(ChunkList.Highlighted)
    def note_highlighted(self, event: ChunkList.Highlighted) -> None:
        self.highlighted.append(event.position)

    @on(ChunkList.Selected)
    def note_selected(self, event: ChunkList.Selected) -> None:
        self.selected.append(event.position)


async def test_only_the_lines_in_view_are_asked_for() -> None:
    async with (app := ListApp()).run_test(size=(80, 20)) as pilot:
        app.chunk_list.show(range(N), app.row)
        app.chunk_list.focus()
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause()
        assert app.chunk_list.position == N - 1
        assert f"words of {N - 1}" in screen_text(app)
        assert set(app.asked) <= {*range(20), *range(N - 20, N)}


async def test_cursor_stays_in_the_list_and_each_move_is_told_once() -> None:
    async with (app := ListApp()).run_test(size=(80, 12)) as pilot:
        app.chunk_list.show([7, 3, 5], app.row)
        app.chunk_list.focus()
        await pilot.pause()
        await pilot.press("up", "j", "down", "down", "pagedown", "g", "G", "pageup", "enter")
        await pilot.pause()
    assert app.highlighted == [7, 3, 5, 7, 5, 7]
    assert app.selected == [7]


async def test_page_keys_move_by_what_is_in_view_and_the_cursor_stays_visible() -> None:
    async with (app := ListApp()).run_test(size=(80, 11)) as pilot:
        app.chunk_list.show(range(100), app.row)
        app.chunk_list.focus()
        await pilot.pause()
        for key, expected in (("pagedown", 10), ("pagedown", 20), ("pageup", 10), ("end", 99)):
            await pilot.press(key)
            await pilot.pause()
            assert app.chunk_list.position == expected
            lines = [line for line in rows_on_screen(app) if line.startswith("❯")]
            assert len(lines) == 1
            assert f"words of {expected}" in lines[0]


async def test_a_click_moves_the_cursor_and_a_double_click_opens() -> None:
    async with (app := ListApp()).run_test(size=(80, 11)) as pilot:
        app.chunk_list.show(range(100, 200), app.row, position=150)
        await pilot.pause()
        top = round(app.chunk_list.scroll_y)
        assert top > 0
        await pilot.click(app.chunk_list, offset=(5, 4))
        assert app.chunk_list.position == 100 + top + 4
        assert app.selected == []
        await pilot.double_click(app.chunk_list, offset=(5, 6))
        assert app.selected == [100 + top + 6]


async def test_an_empty_list_says_why_and_takes_all_keys() -> None:
    async with (app := ListApp()).run_test(size=(80, 12)) as pilot:
        app.chunk_list.show((), app.row, empty_note="Nothing here.")
        app.chunk_list.focus()
        await pilot.press("up", "down", "pageup", "pagedown", "g", "G", "enter")
        await pilot.click(app.chunk_list, offset=(1, 1))
        assert "Nothing here." in screen_text(app)
    assert app.highlighted == []
    assert app.selected == []


async def test_other_rows_under_the_same_cursor_are_told() -> None:
    async with (app := ListApp()).run_test(size=(80, 12)) as pilot:
        app.chunk_list.show([1, 2, 3], app.row)
        await pilot.pause()
        app.chunk_list.show([4, 5], app.row)
        await pilot.pause()
        app.chunk_list.show([9, 8, 4], app.row, position=4)
        await pilot.pause()
        assert app.chunk_list.move_to(8)
        assert not app.chunk_list.move_to(77)
        await pilot.pause()
    assert app.highlighted == [1, 4, 4, 8]


async def test_a_row_over_the_limit_is_marked_and_one_at_the_limit_is_not() -> None:
    async with (app := ListApp()).run_test(size=(80, 12)) as pilot:
        app.chunk_list.show([256, 257], app.row)
        await pilot.pause()
        at_limit, over = rows_on_screen(app)[:2]
    assert "⚠" not in at_limit
    assert "⚠ 257" in over


@pytest.mark.parametrize("width", [0, 1, 2, 3, 5, 8, 13, 20, 36, 50, 80, 200])
def test_rows_of_any_text_fit_any_width(width: int) -> None:
    chunk_list = ChunkList()
    chunks = [
        Chunk(text, text, 0, 0, len(text), text, heading_path=(text, text))
        for text in (*HOSTILE, LONG_LINE, "")
    ]
    chunk_list._positions = range(len(chunks))
    chunk_list._row = lambda position: ChunkRow(chunks[position], n_tokens=12_345, limit=256)
    from rich.cells import cell_len

    for row in range(len(chunks)):
        drawn = "".join(text for text, _ in chunk_list.draw_row(row, width))
        assert cell_len(drawn) <= width
        assert not set(drawn) & {*FORBIDDEN, "\n"}


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 2), (300, 50)])
async def test_the_list_is_drawn_at_any_size(size: tuple[int, int]) -> None:
    async with (app := ListApp()).run_test(size=size) as pilot:
        app.chunk_list.show(range(N), app.row, position=N // 2)
        app.chunk_list.focus()
        await pilot.press("down", "pagedown", "end", "home")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert "❯ 1" in screen_text(app).replace("     ", "")
