"""Finished searches are kept and can be asked again, compared, exported and deleted."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from rag_tui.engine.history import (
    HistoryColumn,
    HistoryEntry,
    HistoryRow,
    append_entry,
    compare_entries,
    history_file,
    read_history,
)
from rag_tui.engine.knobs import with_knobs
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.history_text import comparison, details, haystack, local_time, question_of
from rag_tui.tui.screens.history import HistoryScreen
from rag_tui.tui.screens.history_changes import ChangesSinceScreen
from rag_tui.tui.screens.search import SearchScreen
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts, until

WIDE = (160, 45)
DOG = "Can I bring my dog?"
BAGS = "Where can I leave my luggage?"


def kept_file(app: RagTuiApp) -> Path:
    assert app.session is not None
    return history_file(app.session.settings.engine.cache_dir, app.folder)


def kept(app: RagTuiApp) -> list[str]:
    return [entry.query for entry in read_history(kept_file(app)).entries]


async def open_history(pilot: Pilot[None]) -> HistoryScreen:
    search_screen(pilot).lists["hybrid"].focus()
    await pilot.press("H")
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, HistoryScreen)
    return screen


def row(place: str, score: float = 1.0) -> HistoryRow:
    return HistoryRow(place, f"{place}.md:1-2", score)


def entry(
    query: str = DOG,
    *,
    rows: str = "abc",
    time: str = "2026-05-04T17:03:00Z",
    made_of: str = "index",
    knobs: Mapping[str, float] = MappingProxyType({}),
) -> HistoryEntry:
    return HistoryEntry(
        time=time,
        query=query,
        where="",
        knobs=knobs,
        knob_fingerprint=str(sorted(knobs.items())),
        index_fingerprint=made_of,
        folder="docs",
        model="small",
        columns=(HistoryColumn("bm25", "bm25", tuple(map(row, rows)), "BM25 lucene"),),
    )


# -- keeping ---------------------------------------------------------------------------------


async def test_a_finished_search_is_kept_in_a_file_that_only_its_owner_reads(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, DOG)
        screen = await ask(pilot, f"{BAGS} where: path~*.md")
        assert kept(app) == [DOG, BAGS]
        last = read_history(kept_file(app)).entries[-1]
        assert last.where == "path~*.md"
        assert screen.results is not None
        for column in last.columns:
            hits = screen.results.rankings[column.name].hits
            assert [one.chunk_id for one in column.rows] == [h.chunk_id for h in hits[:20]]
        assert stat.S_IMODE(kept_file(app).stat().st_mode) == 0o600


async def test_what_is_asked_while_typing_and_what_is_cancelled_is_not_kept(
    corpus: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_tui.tui.widgets.query_bar.PAUSE_S", 0.001)
    app = RagTuiApp(corpus, backend=backend, overrides={"ui.search_as_you_type": True})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        screen.query_bar.question = "luggage"
        await until(pilot, lambda: bool(backend.requests))
        await settle(pilot)
        assert screen.results is not None
        assert kept(app) == []
        # from here on nothing is asked but with enter
        monkeypatch.setattr("rag_tui.tui.widgets.query_bar.PAUSE_S", 600)
        gate = backend.gate(DOG, "reranked")
        await ask(pilot, DOG, wait=False)
        await until(pilot, gate.reached.is_set)
        await pilot.press("escape", "escape")
        gate.opened.set()
        await settle(pilot)
        assert kept(app) == []
        await ask(pilot, BAGS)
        assert kept(app) == [BAGS]


async def test_switched_off_nothing_is_kept_and_the_history_says_so(
    corpus: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(corpus, backend=backend, overrides={"history.enabled": False})
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await ask(pilot, DOG)
        assert not kept_file(app).exists()
        await open_history(pilot)
        assert "switched off" in screen_text(pilot)
        assert "history.enabled is false" in screen_text(pilot)


async def test_a_history_that_cannot_be_written_disturbs_no_search_and_is_told_once(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        kept_file(app).parent.parent.mkdir(parents=True, exist_ok=True)
        kept_file(app).parent.write_text("a file where the folder should be")
        await ask(pilot, DOG)
        screen = await ask(pilot, BAGS)
        assert screen.lists["reranked"].rows
        assert toasts(pilot).count("searches are not kept") == 1


# -- looking back ----------------------------------------------------------------------------


async def test_an_empty_history_says_what_to_do(app: RagTuiApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = await open_history(pilot)
        assert "No searches are kept yet." in screen_text(pilot)
        assert "ask something (/)" in screen_text(pilot)
        await pilot.press("enter", "s", "c", "space", "D", "e")
        await settle(pilot)
        assert app.screen is screen
        assert "No searches are kept yet." in toasts(pilot)
        await pilot.press("escape")
        assert isinstance(app.screen, SearchScreen)


async def test_the_newest_search_is_first_and_words_find_one(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, DOG)
        await ask(pilot, BAGS)
        screen = await open_history(pilot)
        assert [one.query for one in screen.searches.entries] == [BAGS, DOG]
        shown = screen_text(pilot)
        assert "History · 2 searches" in shown
        assert shown.index(BAGS) < shown.index(DOG)
        assert "reranked  1 " in shown  # the first rows of each list of the one under the cursor
        await pilot.press("slash", *"dog BRING")
        assert [one.query for one in screen.searches.entries] == [DOG]
        assert "1 of 2 searches" in screen_text(pilot)
        await pilot.press(*"zzz")
        assert "Nothing has these words in it." in screen_text(pilot)
        await pilot.press("escape")
        assert len(screen.searches.entries) == 2
        await pilot.press("escape")
        assert isinstance(app.screen, SearchScreen)


async def test_enter_asks_again_with_todays_settings_and_s_with_those_it_had(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, f"{DOG} where: path~*.md")
        now = screen.knobs
        assert app.session is not None
        other = app.session.settings.request("")
        await screen.change_knobs(with_knobs(other, {"bm25.k1": 0.9, "search.top_k": 3}))
        await ask(pilot, BAGS)
        await screen.change_knobs(now)
        await settle(pilot)
        await open_history(pilot)
        await pilot.press("G", "enter")
        await settle(pilot)
        assert screen.question == screen.query_bar.question == f"{DOG} where: path~*.md"
        assert backend.requests[-1].where == "path~*.md"
        assert backend.requests[-1].bm25.k1 == now.bm25.k1
        history = await open_history(pilot)
        place = [bool(one.knobs) for one in history.searches.entries].index(True)
        await pilot.press(*["j"] * place)
        assert "bm25.k1 0.9" in screen_text(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert screen.question == BAGS
        assert (screen.knobs.bm25.k1, screen.knobs.top_k) == (0.9, 3)
        assert (backend.requests[-1].query, backend.requests[-1].bm25.k1) == (BAGS, 0.9)
        assert len(screen.lists["bm25"].rows) <= 3
        screen.lists["bm25"].focus()
        await pilot.press("z")  # the settings before can be taken back
        await settle(pilot)
        assert screen.knobs.bm25.k1 == now.bm25.k1


async def test_settings_of_another_version_are_refused_with_the_way_out(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        append_entry(kept_file(app), entry(knobs={"bm25.gone": 3.0}))
        screen = await open_history(pilot)
        await pilot.press("s")
        assert app.screen is screen
        assert "bm25.gone" in toasts(pilot)
        assert "Enter asks it with today's settings." in toasts(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert search_screen(pilot).question == DOG


# -- what changed ----------------------------------------------------------------------------


async def changes(pilot: Pilot[None]) -> list[str]:
    screen = pilot.app.screen
    assert isinstance(screen, ChangesSinceScreen)
    await settle(pilot)
    return [text for text, _ in screen.lines]


async def test_c_tells_what_changed_since_the_documents_did(
    corpus: Path, tmp_path: Path, backend: SmallBackend
) -> None:
    folder = Path(shutil.copytree(corpus, tmp_path / "docs"))
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, DOG)
        screen = await open_history(pilot)
        await pilot.press("c")
        same = await changes(pilot)
        assert "same question, settings and index" in same
        assert "bm25 · no change" in same
        await pilot.press("escape", "escape")
        (folder / "dogs.md").write_text("# Dogs\n\nBring my dog, bring your dog, can I? A dog!\n")
        await pilot.press("ctrl+r")
        await settle(pilot)
        n_kept = len(kept(app))
        screen = await open_history(pilot)
        await pilot.press("G", "c")
        told = await changes(pilot)
        assert "the index changed" in told
        assert any(line.startswith("  new     at 1") and "dogs.md" in line for line in told)
        assert any(line.startswith("now     just asked") for line in told)
        assert len(kept(app)) == n_kept  # asking for a comparison keeps nothing
        await pilot.press("y")
        assert "the index changed" in app.clipboard
        await pilot.press("escape")
        assert app.screen is screen


async def test_two_marked_searches_are_compared_older_first_and_c_as_then_keeps_the_knobs(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, DOG)
        await screen.change_knobs(with_knobs(screen.knobs, {"bm25.b": 0.0}))
        await settle(pilot)
        history = await open_history(pilot)
        await pilot.press("space", "j", "c")
        told = await changes(pilot)
        assert "settings differ" in told
        assert "  bm25.b 0.75 → 0" in told
        await pilot.press("escape", "k", "space")  # the mark is gone again
        assert history.searches.marked is None
        await pilot.press("j", "c")
        told = await changes(pilot)  # with today's: b is 0
        assert "settings differ" in told
        assert any("C in the history" in line for line in told)
        await pilot.press("escape", "C")
        assert "same question, settings and index" in await changes(pilot)  # with its own


def test_the_comparison_names_what_came_left_and_moved_by_hand() -> None:
    before = entry(rows="abcd")
    now = entry(rows="bae", time="2026-05-05T17:03:00Z", made_of="other", knobs={"bm25.k1": 0.9})
    told = [
        text for text, _ in comparison(before, now, compare_entries(before, now), is_fresh=False)
    ]
    assert told[0].startswith("before  ")
    assert told[2] == "settings differ; the index changed"
    assert told[3] == "  bm25.k1 1.5 → 0.9"
    assert told[4] == ""
    assert told[5].startswith("bm25 · 1 in, 2 out, RBO 0.")
    assert [line.split() for line in told[6:]] == [
        ["▲1", "2→1", "b.md:1-2"],
        ["▼1", "1→2", "a.md:1-2"],
        ["new", "at", "3", "e.md:1-2"],
        ["gone", "was", "3", "c.md:1-2"],
        ["gone", "was", "4", "d.md:1-2"],
    ]


# -- keeping house ---------------------------------------------------------------------------


async def test_searches_are_exported_to_a_new_file_and_deleted_after_a_question(
    app: RagTuiApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await ask(pilot, DOG)
        screen = await open_history(pilot)
        target = tmp_path / "corpus-searches.jsonl"
        target.write_text("mine\n")
        await pilot.press("e", "enter")
        await settle(pilot)
        assert "exists already" in screen_text(pilot)
        assert target.read_text() == "mine\n"
        target.unlink()
        await pilot.press("enter")
        await settle(pilot)
        assert f"1 search written to {target}" in toasts(pilot)
        assert json.loads(target.read_text())["query"] == DOG
        await pilot.press("D")
        assert "Delete 1 search of this corpus?" in screen_text(pilot)
        await pilot.press("enter")  # the safe answer
        await settle(pilot)
        assert kept(app) == [DOG]
        await pilot.press("D", "y")
        await settle(pilot)
        assert app.screen is screen
        assert kept(app) == []
        assert "No searches are kept yet." in screen_text(pilot)


async def test_damaged_lines_are_counted_and_the_rest_is_shown(app: RagTuiApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        append_entry(kept_file(app), entry())
        with kept_file(app).open("a") as file:
            file.write('{"torn": \n')
        await open_history(pilot)
        assert "1 search · ⚠ 1 line cannot be read" in screen_text(pilot)


@pytest.mark.parametrize("size", [(160, 45), (60, 15)])
async def test_hostile_entries_stay_text_at_every_size(
    app: RagTuiApp, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        texts = [*HOSTILE, LONG_LINE]
        for text in texts:
            one = entry(text, rows="ab")
            column = HistoryColumn(text, "bm25", (HistoryRow(text, text, 1.0),), text, error=text)
            bad = HistoryEntry(
                text, text, text, {text: text}, "", "", text, text, (*one.columns, column)
            )
            append_entry(kept_file(app), bad)
        screen = await open_history(pilot)
        assert len(screen.searches.entries) == len(texts)
        for _ in texts:
            shown = screen_text(pilot)
            assert [c for c in FORBIDDEN if c in shown] == []
            assert all(cell_len(line) <= size[0] for line in shown.split("\n"))
            await pilot.press("j")
        await pilot.press("g", "space", "j", "c")
        await settle(pilot)
        assert isinstance(app.screen, ChangesSinceScreen)
        assert [c for c in FORBIDDEN if c in screen_text(pilot)] == []


def test_texts_of_an_entry_say_time_settings_and_first_rows() -> None:
    one = entry("  spaced\nquestion ", knobs={"bm25.k1": 0.9})
    there = datetime(2026, 5, 4, 17, 3, tzinfo=UTC).astimezone()
    assert local_time(one) == f"{there:%Y-%m-%d %H:%M}"
    lines = [text for text, _ in details(one)]
    assert lines[2] == "bm25.k1 0.9"
    assert lines[3] == "bm25  1 a.md:1-2 1.000   2 b.md:1-2 1.000   3 c.md:1-2 1.000"
    assert "bm25.k1 0.9" in haystack(one)
    assert question_of(one) == "  spaced\nquestion "
