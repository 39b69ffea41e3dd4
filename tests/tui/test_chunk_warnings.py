"""Warnings, corpus health and the random sample on the Chunks screen, from real lint and health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from rag_tui.engine.index import Index
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_notes import HealthNote, collect, joined, known_kinds
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.corpus_facts import CorpusFactsScreen
from rag_tui.tui.screens.warnings import WarningsScreen
from rag_tui.tui.warning_commands import WarningCommands
from rag_tui.tui.widgets.chunk_list import ChunkList
from rag_tui.tui.widgets.chunk_view import ChunkView
from rag_tui.tui.widgets.document_map import DocumentMap
from tests.hostile import FORBIDDEN, HOSTILE
from tests.tui.chunk_samples import IndexApp, guesthouse, make_document, make_index, screen_text

LONG = "Guests may borrow a bicycle from the shed whenever the weather is dry and the day is long."
OTHER = "Breakfast is served from seven until ten in the room that looks out over the garden."


def faulty() -> Index:
    """Four chunks: fine, tiny, fine, the same as the first."""
    sections = [("A", LONG), ("B", "Ask us."), ("C", OTHER), ("A", LONG)]
    return make_index([make_document("a.md", sections, title="T")], n_tokens=[30, 8, 30, 30])


def with_vectors(index: Index, vectors: Sequence[Sequence[float]]) -> Index:
    matrix = np.array(vectors, dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return replace(index, vectors=matrix)


def make_app(index: Index) -> IndexApp:
    return IndexApp(ChunksScreen(), index)


async def settle(pilot: Pilot[None]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


def positions(app: IndexApp) -> list[int]:
    return list(app.screen.query_one(ChunkList).positions)


async def test_findings_are_counted_in_the_header_marked_in_the_list_and_told_with_the_chunk() -> (
    None
):
    async with (app := make_app(faulty())).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        shown = screen_text(app)
        assert "▁ 1 tiny" in shown
        assert "= 1 duplicate" in shown
        rows = [line for line in shown.split("\n") if "a.md:" in line]
        assert ["▁" in row for row in rows[:4]] == [False, True, False, False]
        assert ["=" in row for row in rows[:4]] == [False, False, False, True]
        await pilot.press("j")
        await settle(pilot)
        assert "⚠ tiny: " in screen_text(app)


async def test_a_corpus_without_faults_is_said_to_have_none() -> None:
    index = make_index([make_document("a.md", [("A", LONG), ("B", OTHER)], title="T")])
    async with (app := make_app(index)).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        assert "✓ no warnings" in screen_text(app)


async def test_a_kind_is_chosen_by_key_and_escape_shows_all_again() -> None:
    async with (app := make_app(faulty())).run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("v")
        await settle(pilot)
        assert isinstance(app.screen, WarningsScreen)
        shown = screen_text(app)
        for kind in known_kinds():
            assert kind in shown
        await pilot.press("j", "j")
        await settle(pilot)
        kind = app.screen._kinds[2].kind
        await pilot.press("enter")
        await settle(pilot)
        assert positions(app) == {"tiny": [1], "duplicate": [3]}[kind]
        assert f"only {kind}" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert positions(app) == [0, 1, 2, 3]
        await pilot.press("v", "escape")
        await settle(pilot)
        assert positions(app) == [0, 1, 2, 3]


async def test_the_palette_has_an_entry_for_each_kind_that_was_found() -> None:
    async with (app := make_app(faulty())).run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = app.screen
        found = {c.title: c for c in WarningCommands(screen).commands()}
        assert set(found) == {"Only tiny", "Only duplicate"}
        found["Only duplicate"].run()
        await settle(pilot)
        assert positions(app) == [3]
        app.action_command_palette()
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*"only tiny")
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert positions(app) == [1]


async def test_filter_warning_and_sample_combine_and_escape_leaves_them_one_by_one() -> None:
    index = make_index([make_document("a.md", [(f"S{i}", "Short.") for i in range(30)], title="T")])
    async with (app := make_app(index)).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ChunksScreen)
        screen.show_warning("tiny")
        await settle(pilot)
        n_tiny = len(positions(app))
        assert n_tiny > 10
        draws = []
        for _ in range(2):
            await pilot.press("w")
            await settle(pilot)
            draws.append(positions(app))
            assert len(set(draws[-1])) == 10
        assert draws[0] != draws[1]
        assert "10 at random, draw 2" in screen_text(app)
        assert "Chunks 10 of 30" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert len(positions(app)) == n_tiny
        await pilot.press("escape")
        await settle(pilot)
        assert positions(app) == list(range(30))
        assert not screen.check_action("back", ())


async def test_health_adds_hubs_and_numbers_when_it_is_asked_for() -> None:
    # The first chunk points between the others, which point in three different directions.
    index = with_vectors(faulty(), [[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    async with (app := make_app(index)).run_test(size=(200, 45)) as pilot:
        await settle(pilot)
        assert "×" not in screen_text(app)
        await pilot.press("j", "H")
        await settle(pilot)
        shown = screen_text(app)
    # cos((1,1,1), (1,0,0)) = 1/sqrt(3) = 0.577; with four chunks all others are neighbours.
    assert "among the nearest of 3 other chunks" in shown
    assert "nearest to chunk 1 (a.md:3-5), cosine 0.577" in shown
    assert shown.count("   3× 0.58") == 4


async def test_health_of_an_index_without_vectors_says_what_is_missing() -> None:
    async with make_app(faulty()).run_test(size=(160, 45), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("H")
        await settle(pilot)
        told = [n.message for n in pilot.app._notifications]
        assert any("need vectors" in message for message in told)


async def test_facts_answer_whether_retrieval_is_needed() -> None:
    async with (app := make_app(guesthouse())).run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        await pilot.press("i")
        await settle(pilot)
        assert isinstance(app.screen, CorpusFactsScreen)
        shown = screen_text(app)
        assert "fit into a context window of 200,000" in shown
        assert "⚠ 20% of the chunks (1) are over the limit: 44 tokens not read" in " ".join(
            shown.replace("│", " ").split()
        )
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, ChunksScreen)


async def test_the_document_view_follows_the_list_and_a_click_moves_the_list() -> None:
    async with (app := make_app(guesthouse())).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("j", "d")
        await settle(pilot)
        document_map = app.screen.query_one(DocumentMap)
        assert document_map.display
        assert document_map.chosen == 1
        shown = screen_text(app)
        assert "2 ┏━ 300 tokens · Lockbox" in shown
        assert "# Check-in" in shown
        assert "in no chunk" in shown  # the title, which no chunk of this index holds
        await pilot.press("G")
        await settle(pilot)
        assert "5 ┏━ 90 tokens · Quiet" in screen_text(app)
        assert "Lockbox  " not in screen_text(app).split("Document")[-1]
        await pilot.press("tab")
        await settle(pilot)
        assert document_map.has_focus
        await pilot.press("left_square_bracket")
        await settle(pilot)
        assert app.screen.query_one(ChunkList).position == 3
        await pilot.press("d")
        await settle(pilot)
        assert app.screen.query_one(ChunkView).has_focus
        assert "Dogs sleep in the kitchen." in screen_text(app)


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24), (40, 10), (1, 1)])
async def test_document_and_dialogs_open_at_every_size(size: tuple[int, int]) -> None:
    index = with_vectors(faulty(), [[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    async with (app := make_app(index)).run_test(size=size) as pilot:
        await settle(pilot)
        for key in ("d", "tab", "tab", "tab", "v", "escape", "i", "escape", "H", "w", "d", "x"):
            await pilot.press(key)
            await settle(pilot)
        if size[0] >= 80:
            await pilot.press("d")
            await settle(pilot)
            assert app.screen.query_one(DocumentMap).region.area > 0
        assert isinstance(app.screen, ChunksScreen)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_harmless_in_document_warnings_and_remarks(text: str) -> None:
    document = replace(make_document(f"{text}.md", [(text, "")], title=text), metadata={text: text})
    async with (app := make_app(make_index([document]))).run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ChunksScreen)
        screen.take_notes(collect([HealthNote(0, "tiny", text), HealthNote(0, text, text)]))
        for key in ("d", "tab", "v"):
            await pilot.press(key)
            await settle(pilot)
            shown = screen_text(app)
            assert [char for char in FORBIDDEN if char in shown] == []
        await pilot.press("escape")
        await settle(pilot)
        assert f"tiny: {fmt.display(text)}" in screen_text(app)
        app.screen.query_one("#filter", Input).value = f"warning:{text}"
        await settle(pilot)
        assert not app._exit


def test_notes_are_joined_without_repeating_any() -> None:
    one = collect(
        [HealthNote(2, "tiny", "a"), HealthNote(2, "tiny", "a"), HealthNote(1, "hub", "")]
    )
    both = joined(one, collect([HealthNote(1, "tiny", "b"), HealthNote(2, "tiny", "a")]))
    assert dict(both.counts) == {"tiny": 2, "hub": 1}
    assert [note.kind for note in both.of(1)] == ["hub", "tiny"]
    assert both.symbols(1) == "▁*"
    assert both.of(7) == ()
