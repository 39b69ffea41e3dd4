"""Hostile strings in text, headings, file names and reasons, on every pane of the browser."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from rag_tui.engine.index import Index
from rag_tui.engine.types import EMPTY, Document, FileReport
from rag_tui.tui import format as fmt
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.files import FilesScreen
from rag_tui.tui.screens.help import HelpScreen
from rag_tui.tui.widgets.chunk_list import ChunkList
from rag_tui.tui.widgets.chunk_view import DISPLAYED, ChunkView
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.chunk_samples import IndexApp, make_document, make_index, screen_text


def hostile_index(text: str) -> Index:
    """One document whose name, title, heading, text, front matter and report are the string."""
    made = make_document(f"{text}.md", [(text, f"{text} twice {text}")], title=text)
    document = Document(
        made.doc_id,
        made.title,
        made.text,
        made.sha256,
        made.headings,
        metadata={text: text} if text else EMPTY,
        warnings=(f"warned: {text}",),
    )
    reports = [
        FileReport(document.doc_id, "indexed", n_chunks=1),
        FileReport(f"lost {text}", "failed", f"because {text}"),
    ]
    return make_index([document], reports=reports)


async def settle(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


def check_harmless(app: IndexApp) -> None:
    shown = screen_text(app)
    assert [char for char in FORBIDDEN if char in shown] == []
    assert not app._exit


@pytest.mark.parametrize("text", HOSTILE)
async def test_every_pane_shows_the_string_and_sends_none_of_it_raw(text: str) -> None:
    app = IndexApp(ChunksScreen(), hostile_index(text))
    readable = fmt.display(text)
    async with app.run_test(size=(250, 40), notifications=True) as pilot:
        await settle(pilot)
        shown = screen_text(app)
        check_harmless(app)
        assert f"{readable} twice {readable}" in shown  # text
        assert f"{readable}.md:3-5" in shown  # location
        assert f"{readable} › {readable}" in shown  # context
        assert f"warned: {readable}" in shown
        await pilot.press("tab", "tab", "down", "right", "right", "y")
        await settle(pilot)
        shown = screen_text(app)
        check_harmless(app)
        assert fmt.clip(readable, 18).rstrip("…") in shown.split("twice")[0]  # tree
        assert app.clipboard.encode("utf-8").startswith(b"## ")
        await pilot.press("enter")
        await settle(pilot)
        check_harmless(app)
        await pilot.press("f")
        await settle(pilot)
        assert isinstance(app.screen, FilesScreen)
        shown = screen_text(app)
        check_harmless(app)
        assert f"✗ lost {readable}" in shown
        assert f"because {fmt.one_line(text)}" in shown
        await pilot.press("enter")
        await settle(pilot)
        check_harmless(app)


@pytest.mark.parametrize("text", HOSTILE)
async def test_filtering_for_the_string_finds_it_and_titles_show_it(text: str) -> None:
    app = IndexApp(ChunksScreen(), hostile_index(text))
    async with app.run_test(size=(250, 40)) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ChunksScreen)
        from rag_tui.tui.chunk_selection import Selection

        screen.selection = Selection(needle=text)
        await settle(pilot)
        check_harmless(app)
        assert list(app.screen.query_one(ChunkList).positions) == [0]
        assert f"with “{fmt.display(text)}”" in screen_text(app)


async def test_help_over_a_hostile_index_is_harmless() -> None:
    app = IndexApp(ChunksScreen(), hostile_index("".join(HOSTILE)))
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.push_screen(HelpScreen())
        await settle(pilot)
        check_harmless(app)
        assert "esc: close" in screen_text(app)


async def test_a_very_long_line_is_cut_on_screen_but_copied_whole() -> None:
    app = IndexApp(ChunksScreen(), hostile_index(LONG_LINE))
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        chunk = app.screen.query_one(ChunkView).chunk
        assert chunk is not None
        await pilot.press("enter", "end")
        await settle(pilot)
        hidden = len(chunk.text) - DISPLAYED
        assert f"… {hidden:,} more characters; copying gives all of them" in screen_text(app)
        await pilot.press("y")
        await settle(pilot)
        assert app.clipboard == chunk.text


async def test_query_words_are_marked_in_hostile_text_without_changing_it() -> None:
    from rag_tui.tui.widgets.chunk_view import MATCH_STYLE, body

    for text in HOSTILE:
        chunk = hostile_index(text).chunks[0]
        marked = body(chunk, query_terms=frozenset({"twice", "words"}))
        assert marked.plain == fmt.display(chunk.text, newlines=True)
        found = [
            marked.plain[span.start : span.end]
            for span in marked.spans
            if span.style == MATCH_STYLE
        ]
        assert found.count("twice") == 1


def test_every_spelling_of_a_query_word_is_marked_and_overlapping_pairs_are_joined() -> None:
    from rag_tui.tui.widgets.chunk_view import MATCH_STYLE, body

    chunk = hostile_index("Wi-Fi 東京都 words Words").chunks[0]
    # The word pairs of 東京都 are 東京 and 京都: together they cover all three characters.
    marked = body(chunk, query_terms=frozenset({"words", "東京", "京都"}))
    once = ["東京", "都", "words", "Words"]
    found = [
        marked.plain[span.start : span.end] for span in marked.spans if span.style == MATCH_STYLE
    ]
    assert found == once * 3  # heading line, then twice in the body
