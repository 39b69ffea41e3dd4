"""Knobs: turned, typed, set back, taken back; what a turn moved is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Input

from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import KNOBS, knob, make_column, with_knobs
from rag_tui.engine.movement import movement
from rag_tui.engine.types import Column, KnobValue, SearchRequest
from rag_tui.tui import knob_values as values
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.moved import arrows, summaries
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.widgets.knob_table import LINES
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import SmallBackend, ask, screen_text, settle, toasts

WIDE = (160, 45)
QUESTION = "Where can I leave my luggage before check-in?"


def go_to(screen: SearchScreen, name: str) -> None:
    """Put the cursor on a knob."""
    screen.knobs_panel.table.focus()
    screen.knobs_panel.table.cursor = LINES.index(name)


# -- values ------------------------------------------------------------------------------------


def test_the_panel_has_a_line_for_every_knob_there_is() -> None:
    names = [line for line in LINES if line not in values.SECTIONS]
    assert sorted(names) == sorted(spec.name for spec in KNOBS)


@pytest.mark.parametrize(
    ("name", "before", "direction", "after"),
    [
        ("bm25.k1", 1.5, 1, 1.6),
        ("bm25.k1", 0.0, -1, 0.0),
        ("bm25.b", 1.0, 1, 1.0),
        ("bm25.b", 0.75, -1, 0.7),
        ("search.rrf_k", 60.0, -1, 50.0),
        ("search.depth", 50, 1, 60),
        ("search.top_k", 1, -1, 1),
        ("search.rerank", True, 1, False),
        ("search.fusion", "rrf", -1, "zscore"),
        ("search.weight_bm25", 1.0, 1, 1.1),
        ("bm25.analyzer", "cjk", 1, "words"),
        ("bm25.analyzer", "german", 1, "words"),
        ("post.mmr", None, 1, 0.7),
        ("post.mmr", 1.0, 1, None),
        ("post.mmr", 0.0, -1, None),
        ("post.min_vector", None, 1, 0.0),
        ("post.min_vector", 0.25, 1, 0.3),
        ("post.min_hybrid", 0.01, 1, 0.012),
        ("bm25.delta", 0.0, -1, None),
    ],
)
def test_a_turn_is_a_sensible_step_and_stops_or_is_off_at_the_ends(
    name: str, before: KnobValue, direction: int, after: KnobValue
) -> None:
    request = with_knobs(SearchRequest(""), {name: before})
    assert values.turned(request, name, direction) == after


def test_any_number_of_turns_stays_within_what_the_engine_accepts() -> None:
    for spec in KNOBS:
        for direction in (-1, 1):
            request = SearchRequest("")
            for _ in range(30):
                value = values.turned(request, spec.name, direction)
                request = values.with_value(request, spec.name, value)
                assert request.top_k <= request.depth


def test_typed_values_are_read_as_they_are_shown_and_others_are_refused() -> None:
    request = with_knobs(SearchRequest(""), {"post.mmr": 0.5, "bm25.k1": 0.9})
    for spec in KNOBS:
        value = knob(request, spec.name)
        assert values.typed(spec.name, values.shown(spec.name, value)) == value
    with pytest.raises(UsageError, match=r"search.top_k must be 1,000 or less"):
        values.typed("search.top_k", "1e9")
    with pytest.raises(UsageError, match=r"bm25.b must be 1 or less"):
        values.typed("bm25.b", "2")


def test_a_columns_name_follows_its_knobs_unless_it_was_given_another() -> None:
    columns = (Column("bm25", "bm25"), Column("bm25 2", "bm25"), Column("mine", "bm25"))
    request = replace(SearchRequest(""), columns=columns)
    now, name = values.with_column_value(request, columns[1], "bm25.k1", 0.9)
    assert name == "bm25 k1=0.9"
    assert now.columns[1] == make_column("bm25 k1=0.9", "bm25", {"bm25.k1": 0.9})
    assert now.bm25.k1 == 1.5
    now, name = values.with_column_value(now, now.columns[2], "bm25.k1", 0.9)
    assert (name, dict(now.columns[2].knobs)) == ("mine", {"bm25.k1": 0.9})
    now, name = values.with_column_value(now, now.columns[1], "bm25.k1", 1.5)
    assert now.columns[1] == Column("bm25 2", "bm25")  # the first one has the plain name


def test_arrows_and_summary_tell_what_moved() -> None:
    found = movement(["a", "b", "c", "d"], ["b", "a", "x", "d"], rows=3)
    assert arrows(found) == {"b": "↑1", "a": "↓1", "x": "+new"}
    assert summaries(found)[1] == "1 in, 1 out"
    assert summaries(found)[0].startswith("1 in, 1 out · RBO .")
    assert summaries(movement(["a"], ["a"])) == ("no change",)


# -- on screen ---------------------------------------------------------------------------------


async def test_a_turned_knob_moves_rows_says_so_and_undo_brings_all_back(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        before = [row.chunk_id for row in screen.lists["hybrid"].rows]
        assert all(not row.moved for row in screen.lists["hybrid"].rows)
        go_to(screen, "search.weight_bm25")
        await pilot.press("space", *"0", "enter")
        await settle(pilot)
        rows = screen.lists["hybrid"].rows
        now = [row.chunk_id for row in rows]
        assert now == [row.chunk_id for row in screen.lists["vector"].rows]
        assert now != before
        found = screen.movement("hybrid")
        assert found is not None
        for row in rows:
            is_known = row.chunk_id in before
            up = before.index(row.chunk_id) + 1 - row.rank if is_known else 0
            if up:
                assert row.moved == (f"↑{up}" if up > 0 else f"↓{-up}")
        assert "no change" in str(screen.lists["bm25"].border_subtitle)
        assert summaries(found)[-1] in str(screen.lists["hybrid"].border_subtitle)
        assert "≠1" in screen_text(pilot)
        assert "changed; settings: 1" in screen_text(pilot)
        # it stays while the rows are walked through, and goes with another question
        screen.lists["hybrid"].focus()
        await pilot.press("j", "j")
        assert any(row.moved for row in screen.lists["hybrid"].rows)
        await pilot.press("z")
        await settle(pilot)
        assert [row.chunk_id for row in screen.lists["hybrid"].rows] == before
        assert "Undone: search.weight_bm25 0 → 1" in toasts(pilot)
        assert screen.knobs.weight_bm25 == 1
        await pilot.press("Z")
        await settle(pilot)
        assert "Redone: search.weight_bm25 1 → 0" in toasts(pilot)
        assert backend.requests[-1].weight_bm25 == 0
        await ask(pilot, "dog")
        assert screen.movement("hybrid") is None
        assert not any(row.moved for row in screen.lists["hybrid"].rows)
        await pilot.press("Z")
        assert "There is nothing to redo" in toasts(pilot)


async def test_one_knob_or_all_go_back_to_the_settings(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        go_to(screen, "bm25.k1")
        await pilot.press("right", "down", "left")
        await settle(pilot)
        assert (screen.knobs.bm25.k1, screen.knobs.bm25.b) == (1.6, 0.7)
        await pilot.press("0")
        await settle(pilot)
        assert (screen.knobs.bm25.k1, screen.knobs.bm25.b) == (1.6, 0.75)
        await pilot.press("left", "backspace")
        await settle(pilot)
        assert app.session is not None
        assert screen.knobs == app.session.settings.request("")


async def test_the_cursor_passes_over_the_names_of_groups_and_a_text_is_typed(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        table = screen.knobs_panel.table
        go_to(screen, "search.embedder")
        await pilot.press("down")
        assert table.name_at_cursor == "search.fusion"
        await pilot.press("up")
        assert table.name_at_cursor == "search.embedder"
        await pilot.press("home", "up")
        assert table.name_at_cursor == "search.top_k"
        assert "── search ─" in screen_text(pilot)
        go_to(screen, "bm25.epsilon")
        await pilot.pause()
        assert "no effect: the variant is lucene" in screen_text(pilot)
        go_to(screen, "search.embedder")
        await pilot.press("right")
        value = screen.query_one("#knob-value", Input)
        assert value.has_focus
        value.value = "no/such/[/b]model"
        await pilot.press("enter")
        await settle(pilot)
        assert screen.knobs.embedder == "no/such/[/b]model"
        assert screen.lists["vector"].rows == ()
        assert screen.lists["vector"].message
        assert screen.lists["bm25"].rows


def test_a_copy_of_a_copy_is_counted_on_and_other_numbers_belong_to_the_name() -> None:
    assert values.copy_name("bm25", ["vector", "bm25"]) == "bm25 2"
    assert values.copy_name("bm25 2", ["bm25", "bm25 2"]) == "bm25 3"
    assert values.copy_name("top 5", ["bm25", "top 5"]) == "top 5 2"


async def test_a_border_that_tells_what_moved_still_tells_where_the_chunks_stand(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "Can I bring my dog?")
        known = {row.chunk_id for row in screen.lists["bm25"].rows}
        strange = [row for row in screen.lists["vector"].rows if row.chunk_id not in known]
        screen.selected = strange[0].chunk_id
        await pilot.press("full_stop")
        screen.lists["bm25"].focus()
        await pilot.press("home")
        await screen.change_knobs(replace(screen.knobs, top_k=6))
        await settle(pilot)
        assert str(screen.lists["bm25"].border_subtitle) == "● at 1 · ◆ – · no change"


async def test_the_knobs_key_goes_to_knobs_in_sight_and_hides_them_only_from_there(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        table = screen.knobs_panel.table
        seen = [(screen.knobs_panel.display, table.has_focus)]
        for _ in range(2):
            await pilot.press("t")
            await settle(pilot)
            seen.append((screen.knobs_panel.display, table.has_focus))
        assert seen == [(True, False), (True, True), (False, False)]
        assert screen.lists[screen.active].has_focus
        await pilot.press("t")
        await settle(pilot)
        assert table.has_focus


async def test_columns_with_hostile_names_and_knobs_are_only_text(app: RagTuiApp) -> None:
    texts = [*HOSTILE, LONG_LINE]
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("t", "s")
        for start in range(0, len(texts), 6):
            batch = texts[start : start + 6]
            columns = tuple(make_column(one, "bm25", {"search.embedder": one}) for one in batch)
            go_to(screen, "search.embedder")
            await screen.change_knobs(replace(screen.knobs, columns=columns), active=batch[0])
            await settle(pilot)
            assert all(screen.lists[one].rows for one in batch)
            await pilot.press("m")
            await pilot.pause()
            assert [char for char in FORBIDDEN if char in screen_text(pilot)] == []
            await pilot.press("r", "escape", "escape", "P", "escape")
            await settle(pilot)
            assert app.screen is screen
            assert [char for char in FORBIDDEN if char in screen_text(pilot)] == []
        await pilot.press("z")
        await settle(pilot)
        assert list(screen.lists) == texts[-11:-5]
