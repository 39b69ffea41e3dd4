"""A document in rows with the borders of its chunks: numbers by hand, and the widget on screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import on
from textual.app import App, ComposeResult

from rag_tui.display import display
from rag_tui.engine.chunkers.reach import Unread, unread
from rag_tui.engine.tokenizing import WordTokenCounter
from rag_tui.engine.types import Chunk
from rag_tui.tui.document_layout import DocumentLayout, Gap, Piece
from rag_tui.tui.widgets.chunk_view import UNREAD_STYLE, body
from rag_tui.tui.widgets.document_map import DocumentMap
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.chunk_samples import rows_on_screen, screen_text

TEXT = "zero one two\nthree four five six\nseven\n"
#       0    5   9    13    19   24   29  33   -> "three" is 13:18, "seven" 33:38


def test_rows_are_cut_at_borders_line_ends_and_widths() -> None:
    layout = DocumentLayout(TEXT, [Piece(1, 0, 24), Piece(2, 19, 39, unread_start=29)])
    rows, rule_of = layout.rows(11)
    assert rows == [
        ("rule", 0, 0),
        ("text", 0, 9),  # "zero one " and no more than 11 cells
        ("text", 9, 12),
        ("text", 13, 19),  # the line goes on behind the border
        ("rule", 1, 0),
        ("text", 19, 29),  # "four five "
        ("unread", 1, 0),
        ("text", 29, 32),
        ("text", 33, 38),
    ]
    assert rule_of == [0, 4]


def test_intervals_say_who_holds_the_text_and_who_reads_it() -> None:
    pieces = [Piece(1, 5, 24, unread_start=20), Piece(2, 19, 33, unread_start=29)]
    layout = DocumentLayout(TEXT, pieces, [Gap(0, 4, "front matter")])
    found = [
        (one.start, one.end, one.owner, one.is_shared, one.is_unread) for one in layout.intervals
    ]
    assert found == [
        (0, 4, -1, False, False),
        (4, 5, -1, False, False),
        (5, 19, 0, False, False),
        (19, 20, 1, True, False),
        (20, 24, 1, True, False),  # the second reads what the first does not
        (24, 29, 1, False, False),
        (29, 33, 1, False, True),
        (33, 39, -1, False, False),
    ]
    assert layout.first_interval(0) == 0
    assert layout.first_interval(19) == 3
    assert layout.first_interval(38) == 7


@given(
    text=st.text(alphabet=st.sampled_from("ab \n漢é\u0301\t\x1b\u200b👩\udcff"), max_size=60),
    cuts=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4),
    width=st.integers(1, 12),
)
def test_every_character_but_line_ends_is_in_exactly_one_row(
    text: str, cuts: list[tuple[int, int]], width: int
) -> None:
    spans = sorted((min(a, b, len(text)), min(max(a, b), len(text))) for a, b in cuts)
    layout = DocumentLayout(text, [Piece(i, a, b) for i, (a, b) in enumerate(spans)])
    rows, rule_of = layout.rows(width)
    shown = [offset for kind, a, b in rows if kind == "text" for offset in range(a, b)]
    assert shown == [i for i, character in enumerate(text) if character != "\n"]
    assert [rows[row] for row in rule_of] == [("rule", i, 0) for i in range(len(spans))]
    for kind, start, end in rows:
        n_visible = sum(cell_len(display(character)) > 0 for character in text[start:end])
        if kind == "text" and n_visible > 1:
            # A single character, with the marks on it, may be wider than the pane; its escape
            # cannot be cut.
            assert cell_len(display(text[start:end])) <= width


def test_a_long_line_without_a_break_is_cut_at_the_width() -> None:
    rows, _ = DocumentLayout(LONG_LINE, []).rows(80)
    assert len(rows) == len(LONG_LINE) // 80
    assert rows[-1] == ("text", len(LONG_LINE) - 80, len(LONG_LINE))


def chunk_of(text: str, *, body_offset: int = 0, path: tuple[str, ...] = ()) -> Chunk:
    return Chunk("c", "d.md", 0, 0, len(text), text, heading_path=path, body_offset=body_offset)


def test_the_first_token_not_read_is_found_behind_the_context() -> None:
    # One token a word: embedded is "T > H\n\none two three", so T > H one two three = 6 tokens.
    chunk = chunk_of("# H\n\none two tree\n", body_offset=3, path=("T", "H"))
    assert unread(chunk, WordTokenCounter(limit=6, n_special=0)) is None
    # Two special tokens leave room for four: T > H one.
    found = unread(chunk, WordTokenCounter(limit=6, n_special=2))
    assert found == Unread(chunk.text.index("two"), 2)
    # The context alone fills the limit: nothing of the body is read.
    assert unread(chunk, WordTokenCounter(limit=2, n_special=0)) == Unread(5, 4)
    assert unread(chunk, WordTokenCounter(limit=None)) is None


@pytest.mark.parametrize("words", [frozenset(), frozenset({"two"}), frozenset({"one", "tree"})])
def test_the_chunk_view_dims_what_is_not_read_and_counts_it_once(words: frozenset[str]) -> None:
    chunk = chunk_of("one two tree four")
    marked = body(chunk, query_terms=words, unread=Unread(8, 7))
    assert marked.plain == "one two \n… 7 tokens not read:\ntree four"
    dim = "".join(marked.plain[s.start : s.end] for s in marked.spans if s.style == UNREAD_STYLE)
    assert dim == (" four" if "tree" in words else "tree four")


class MapApp(App[None]):
    """One document."""

    def __init__(self) -> None:
        super().__init__()
        self.map = DocumentMap()
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.map

    @on(DocumentMap.Chosen)
    def note(self, event: DocumentMap.Chosen) -> None:
        self.chosen.append(event.piece)


async def test_gutter_borders_overlap_gap_and_unread_text_are_told_by_symbols() -> None:
    text = "front\nalpha\nbeta\ngamma\ndelta\n"
    #       0      6      12    17     23
    pieces = [
        Piece(7, 6, 17, label="Part › A", n_tokens=9),
        Piece(8, 12, 29, label="B", n_tokens=12, unread_start=23, n_unread=34),
    ]
    layout = DocumentLayout(text, pieces, [Gap(0, 5, "front matter")])
    async with (app := MapApp()).run_test(size=(60, 12)) as pilot:
        app.map.show(layout, chosen=0)
        await pilot.pause()
        rows = [row.rstrip("─━ ") for row in rows_on_screen(app)]
    assert rows[:10] == [
        "  · in no chunk: front matter",
        "  · front",
        "7 ┏━ 9 tokens · Part › A",
        "7 ┃ alpha",
        "8 ┌─ 12 tokens · 5 characters shared with 7 · B",
        "8 ▒ beta",
        "8 │ gamma",
        "8 ╎ … 34 tokens not read",
        "8 ╎ delta",
        "",
    ]


def long_layout(n: int = 300) -> DocumentLayout:
    """As many pieces, each a line of its own and three more."""
    part = "words\n\n\n\n"
    return DocumentLayout(
        part * n, [Piece(i + 1, i * len(part), (i + 1) * len(part)) for i in range(n)]
    )


async def test_choosing_a_chunk_scrolls_to_it_and_brackets_walk() -> None:
    async with (app := MapApp()).run_test(size=(60, 20)) as pilot:
        app.map.show(long_layout(), chosen=200)
        app.map.focus()
        await pilot.pause()
        assert "201 ┏━" in screen_text(app)
        await pilot.press("right_square_bracket")
        await pilot.pause()
        assert "202 ┏━" in screen_text(app)
        await pilot.press("left_square_bracket", "left_square_bracket")
        await pilot.pause()
        assert "200 ┏━" in screen_text(app)
        app.map.choose(0)
        await pilot.pause()
        assert rows_on_screen(app)[0].startswith("  1 ┏━")
        await pilot.press("left_square_bracket", "G")
        await pilot.pause()
        assert "300 │ words" in screen_text(app)
    assert app.chosen == [201, 200, 199, 0]


async def test_a_click_chooses_the_chunk_under_it() -> None:
    async with (app := MapApp()).run_test(size=(60, 20)) as pilot:
        app.map.show(long_layout())
        await pilot.pause()
        await pilot.click(app.map, offset=(10, 6))  # five rows a chunk: the second one
        assert app.chosen == [1]
        assert app.map.chosen == 1


async def test_resizing_keeps_the_text_at_the_top_in_view() -> None:
    text = "".join(f"line {i} with some more words in it\n" for i in range(500))
    async with (app := MapApp()).run_test(size=(60, 20)) as pilot:
        app.map.show(DocumentLayout(text, [Piece(1, 0, len(text))]))
        await pilot.pause()
        app.map.scroll_to(y=251, animate=False, force=True)
        await pilot.pause()
        assert "line 250 " in rows_on_screen(app)[0]
        await pilot.resize_terminal(24, 20)
        await pilot.pause()
        await pilot.pause()
        assert "line 250 " in rows_on_screen(app)[0]


async def test_a_large_document_is_drawn_from_the_rows_in_view_only() -> None:
    asked: list[tuple[int, int]] = []

    class Watched(str):
        __slots__ = ()

        def __getitem__(self, key: object) -> str:
            if isinstance(key, slice):
                asked.append((key.start, key.stop))
            return super().__getitem__(key)  # type: ignore[index]

    async with (app := MapApp()).run_test(size=(60, 20)) as pilot:
        layout = long_layout(5000)
        app.map.show(layout, chosen=2500)
        await pilot.pause()
        layout.text = Watched(layout.text)
        app.map.scroll_end(animate=False)
        app.map.refresh()
        await pilot.pause()
    assert asked
    assert min(start for start, _ in asked) > len(layout.text) // 3


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 2), (9, 9), (200, 50)])
async def test_hostile_documents_are_drawn_safely_at_any_size(size: tuple[int, int]) -> None:
    text = "\n".join(HOSTILE)
    pieces = [Piece(i + 1, i * 9, i * 9 + 12, label=s) for i, s in enumerate(HOSTILE)]
    async with (app := MapApp()).run_test(size=size) as pilot:
        app.map.show(DocumentLayout(text, pieces, [Gap(400, 410, HOSTILE[0])]), chosen=3)
        app.map.focus()
        for _ in range(8):
            await pilot.press("pagedown")
            shown = screen_text(app)
            assert [char for char in FORBIDDEN if char in shown] == []


async def test_an_empty_pane_says_why() -> None:
    async with (app := MapApp()).run_test(size=(40, 5)) as pilot:
        app.map.show(None, note="Nothing here.")
        app.map.focus()
        await pilot.press("right_square_bracket", "left_square_bracket", "G", "j")
        await pilot.click(app.map, offset=(1, 1))
        assert "Nothing here." in screen_text(app)
    assert app.chosen == []
