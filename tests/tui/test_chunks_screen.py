"""The chunk browser, driven by keys on a small index made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from rag_tui.engine.index import Index
from rag_tui.tui.chunk_selection import Selection, facts, length_histogram, select
from rag_tui.tui.editor import editor_command
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.files import FilesScreen
from rag_tui.tui.widgets.chunk_list import ChunkList
from rag_tui.tui.widgets.chunk_view import ChunkView
from rag_tui.tui.widgets.document_tree import DocumentTree, TreeTarget
from tests.tui.chunk_samples import IndexApp, chunks_of, guesthouse, make_index, screen_text


def make_app(index: Index | None = None) -> IndexApp:
    return IndexApp(ChunksScreen(), index if index is not None else guesthouse())


async def settle(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


def the_list(app: IndexApp) -> ChunkList:
    return app.screen.query_one(ChunkList)


def the_chunk(app: IndexApp) -> str | None:
    chunk = app.screen.query_one(ChunkView).chunk
    return None if chunk is None else chunk.chunk_id


async def test_first_chunk_is_shown_with_its_place_and_length() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        shown = screen_text(app)
    assert "5 chunks · 2 documents · ⚠ 1 (20%) over the limit · – 2 files left out" in shown
    assert "◐ 1 file in part · median 40, longest 300 of 256 tokens" in shown
    assert "check-in.md:3-5" in shown
    assert "40 of 256 tokens" in shown
    assert "Come between 15:00 and 21:00." in shown


async def test_a_chunk_over_the_limit_says_what_is_not_read() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        assert "not read" not in screen_text(app)
        await pilot.press("j")
        await settle(pilot)
        shown = screen_text(app)
    assert "⚠ 44 tokens beyond the limit are not read" in shown
    assert "⚠ 300" in shown


async def test_keys_move_the_cursor_and_the_text_follows() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        seen = []
        for key in ("down", "j", "k", "G", "g", "end", "up"):
            await pilot.press(key)
            await pilot.pause()
            seen.append(the_chunk(app))
    expected = (1, 2, 1, 4, 0, 4, 3)
    assert seen == [guesthouse().chunks[i].chunk_id for i in expected]


async def test_sorting_keeps_the_chunk_and_ties_in_corpus_order() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("j", "j", "s")
        await settle(pilot)
        assert list(the_list(app).positions) == [1, 4, 0, 2, 3]
        assert the_chunk(app) == "check-in.md#2"
        await pilot.press("s")
        await settle(pilot)
        assert list(the_list(app).positions) == [2, 3, 0, 4, 1]
        await pilot.press("s")
        await settle(pilot)
        assert list(the_list(app).positions) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("LOCKBOX", [1]),
        ("rules/", [3, 4]),
        ("house rules", [3, 4]),
        ("[/b]", []),
        (".", [0, 1, 2, 3, 4]),
    ],
)
async def test_filter_finds_plain_text_in_text_path_and_headings(
    needle: str, expected: list[int]
) -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("/")
        await settle(pilot)
        app.screen.query_one("#filter", Input).value = needle
        await settle(pilot)
        assert list(the_list(app).positions) == expected
        assert (the_chunk(app) is None) == (not expected)
        await pilot.press("escape")
        await settle(pilot)
        assert list(the_list(app).positions) == [0, 1, 2, 3, 4]
        assert app.focused is the_list(app)


async def test_letters_typed_into_the_filter_do_nothing_else() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("/")
        await settle(pilot)
        await pilot.press(*"syfo?")
        await settle(pilot)
        assert app.screen.query_one("#filter", Input).value == "syfo?"
        assert isinstance(app.screen, ChunksScreen)
        assert app.screen.selection == Selection(needle="syfo?")


async def test_enter_goes_to_the_text_and_escape_comes_back() -> None:
    async with (app := make_app()).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        focused = [app.focused]
        await pilot.press("escape")
        await settle(pilot)
        focused.append(app.focused)
        assert focused == [app.screen.query_one(ChunkView), the_list(app)]


async def test_a_heading_of_the_tree_narrows_the_list_to_its_section() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        tree = app.screen.query_one(DocumentTree)
        tree.focus()
        # Root, folder rules/, document check-in.md (folders first); open it: title, then sections.
        await pilot.press("down", "down", "right")
        await settle(pilot)
        assert "Lockbox  1" in screen_text(app)
        await pilot.press("down", "down", "down", "enter")
        await settle(pilot)
        assert list(the_list(app).positions) == [1]
        assert app.focused is the_list(app)
        await pilot.press("escape")
        await settle(pilot)
        assert list(the_list(app).positions) == [0, 1, 2, 3, 4]


async def test_tab_walks_the_panes_and_narrow_shows_one_at_a_time() -> None:
    async with (app := make_app()).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for pane in ("view", "tree", "list"):
            await pilot.press("tab")
            await settle(pilot)
            assert app.focused is not None
            assert app.focused.id == pane
            shown = {p for p in ("tree", "list", "view") if app.screen.query_one(f"#{p}").display}
            assert shown == {pane}


async def test_files_with_trouble_come_first_and_say_why() -> None:
    async with (app := make_app()).run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        assert isinstance(app.screen, FilesScreen)
        shown = screen_text(app)
        for text in ("✗ secret.md", "permission denied", "– photo.jpg", "not a text format"):
            assert text in shown
        assert shown.index("✗ secret.md") < shown.index("◐ rules/house.md")
        assert shown.index("◐ rules/house.md") < shown.index("✓ check-in.md")
        await pilot.press("down", "enter")
        await settle(pilot)
        assert list(the_list(app).positions) == [3, 4]


async def test_copy_gives_the_stored_text_letter_for_letter() -> None:
    async with (app := make_app()).run_test(size=(40, 20)) as pilot:
        await settle(pilot)
        await pilot.press("j", "y")
        await pilot.pause()
        assert app.clipboard == "## Lockbox\n\nThe lockbox beside the door holds a key.\n\n"


async def test_a_chunk_can_be_shown_from_elsewhere_although_a_filter_hides_it() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ChunksScreen)
        await pilot.press("/")
        await settle(pilot)
        await pilot.press(*"lockbox", "enter")
        await settle(pilot)
        assert list(the_list(app).positions) == [1]
        screen.show_chunk("rules/house.md#0", query_terms=frozenset({"kitchen"}))
        await settle(pilot)
        assert the_chunk(app) == "rules/house.md#0"
        assert list(the_list(app).positions) == [0, 1, 2, 3, 4]
        screen.show_chunk("no such chunk")
        await settle(pilot)
        assert the_chunk(app) == "rules/house.md#0"


async def test_a_chunk_wanted_before_there_is_an_index_is_shown_when_it_comes() -> None:
    screen = ChunksScreen()
    screen.show_chunk("check-in.md#2")
    async with (app := IndexApp(screen, None)).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        assert "No index yet" in screen_text(app)
        for key in ("s", "f", "y", "o", "enter", "j", "G", "/"):
            await pilot.press(key)
        await settle(pilot)
        app.index = guesthouse()
        await settle(pilot)
        assert the_chunk(app) == "check-in.md#2"


async def test_a_new_index_keeps_the_chunk_under_the_cursor() -> None:
    old = guesthouse()
    async with (app := make_app(old)).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("G")
        await settle(pilot)
        assert the_chunk(app) == "rules/house.md#1"
        app.index = make_index(old.documents[1:], n_tokens=[20, 90])
        await settle(pilot)
        assert the_chunk(app) == "rules/house.md#1"
        assert the_list(app).position == 1


async def test_an_index_with_the_same_content_can_replace_the_old_one() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("j")
        await settle(pilot)
        app.index = guesthouse()
        await settle(pilot)
        assert the_chunk(app) == "check-in.md#1"


async def test_an_empty_index_is_said_to_be_empty() -> None:
    async with (app := make_app(make_index([]))).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        assert "The index holds no chunks." in screen_text(app)
        await pilot.press("j", "enter", "y", "o", "s")
        await settle(pilot)


SIZES = [(200, 60), (160, 45), (100, 30), (80, 24), (66, 20), (40, 10), (20, 5), (2, 2), (1, 1)]


@pytest.mark.parametrize("size", SIZES)
async def test_every_pane_survives_every_size(size: tuple[int, int]) -> None:
    async with (app := make_app()).run_test(size=size) as pilot:
        await settle(pilot)
        for key in ("tab", "tab", "tab", "/", "escape", "f", "escape", "s", "j", "enter"):
            await pilot.press(key)
            await settle(pilot)
        assert the_chunk(app) is not None


async def test_selection_and_pane_survive_shrinking_and_growing() -> None:
    async with (app := make_app()).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("j", "j", "j")
        await settle(pilot)
        for size in [*SIZES, *reversed(SIZES)]:
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert the_chunk(app) == "rules/house.md#0"
        assert app.focused is the_list(app)
        assert "Dogs sleep in the kitchen." in screen_text(app)


async def test_the_editor_is_named_when_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    (tmp_path / "check-in.md").write_text("# Check-in\n", encoding="utf-8")
    app = make_app(guesthouse(tmp_path))
    async with app.run_test(size=(160, 45), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("o")
        await settle(pilot)
        assert "Set $VISUAL or $EDITOR" in screen_text(app)


@pytest.mark.parametrize(
    ("visual", "editor", "expected"),
    [
        ("", "vi", ["vi", "+7", "/d/a b.md"]),
        ("", "/usr/bin/nano -w", ["/usr/bin/nano", "-w", "+7", "/d/a b.md"]),
        ("code --wait", "vi", ["code", "--wait", "-g", "/d/a b.md:7"]),
        ("hx", "", ["hx", "/d/a b.md:7"]),
        ("", "unheard-of", ["unheard-of", "/d/a b.md"]),
    ],
)
def test_each_editor_gets_the_line_in_its_own_way(
    visual: str, editor: str, expected: list[str]
) -> None:
    environ = {"VISUAL": visual, "EDITOR": editor}
    assert editor_command(environ, Path("/d/a b.md"), 7) == expected


def test_facts_and_histogram_are_those_of_the_lengths() -> None:
    index = guesthouse()
    counts = length_histogram(index)
    # Bins of 300 / 24 = 12.5 tokens: 20 and 20 in bin 1, 40 in bin 3, 90 in bin 7, 300 in bin 23.
    assert {i: n for i, n in enumerate(counts) if n} == {1: 2.0, 3: 1.0, 7: 1.0, 23: 1.0}
    assert facts(make_index(index.documents, n_tokens=[1] * 5)) == (
        "5 chunks · 2 documents · none over the limit · median 1, longest 1 of 256 tokens"
        " · 5 tokens in all"
    )
    assert facts(make_index(index.documents, n_tokens=[1] * 5, limit=0)) == (
        "5 chunks · 2 documents · median 1, longest 1 tokens · 5 tokens in all"
    )


def test_selecting_everything_looks_at_no_chunk() -> None:
    class Unreadable(tuple[object, ...]):
        def __iter__(self) -> object:  # type: ignore[override]
            raise AssertionError("a chunk was read")

    index = guesthouse()
    object.__setattr__(index, "chunks", Unreadable(index.chunks))
    assert select(index, Selection()) == range(5)


def test_selecting_stops_when_it_is_cancelled() -> None:
    assert list(select(guesthouse(), Selection(needle="e"), is_cancelled=lambda: True)) == []


def test_a_section_holds_the_chunks_that_lie_in_it_in_part() -> None:
    chunk = chunks_of(guesthouse().documents[0])[1]
    assert TreeTarget("heading", "check-in.md", chunk.end - 1, chunk.end + 9).holds(chunk)
    assert not TreeTarget("heading", "check-in.md", chunk.end, chunk.end + 9).holds(chunk)
    assert not TreeTarget("heading", "other.md", chunk.start, chunk.end).holds(chunk)
    assert TreeTarget("folder", "").holds(chunk)
    assert not TreeTarget("folder", "rules/").holds(chunk)
