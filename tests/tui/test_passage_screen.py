"""Where is my passage? The dialog, the pinned chunk, and knobs that are applied from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Input

from rag_tui.engine.passage_places import PassageTarget
from rag_tui.engine.passage_trace import ColumnTrace, ListPlace, PassageTrace, Remedy, Verdict
from rag_tui.engine.types import Column, Method, SearchRequest
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.keys import checked_keymap, defaults_of
from rag_tui.tui.passage_text import drawn, pipeline, remedy_rows, verdict_line, with_remedy
from rag_tui.tui.screens.passage import PassageScreen, passage_keys
from rag_tui.tui.screens.search import SearchScreen
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import (
    Gate,
    SmallBackend,
    ask,
    screen_text,
    search_screen,
    settle,
    toasts,
    until,
)

QUESTION = "Where can I leave my luggage before check-in?"
WIDE = (160, 45)
TARGET = PassageTarget("a.md:3", "line", "exact", ())


def place(method: Method, rank: int | None, corpus_rank: int | None = 30) -> ListPlace:
    return ListPlace(method, 0.5, rank, corpus_rank if rank is None else rank, 99)


def way(
    verdict: Verdict,
    *places: ListPlace,
    where: str = "",
    number: int | None = None,
    is_cited: bool | None = None,
    has_prompt: bool = False,
) -> str:
    """The drawn pipeline of a column, with plain spaces."""
    column = ColumnTrace("c", "hybrid", verdict, "id", places=places) if places else None
    trace = PassageTrace("q", TARGET, verdict, number=number, is_cited=is_cited)
    request = SearchRequest("q", where=where)
    steps = pipeline(trace, column, request, has_prompt=has_prompt)
    return drawn(steps).plain.replace("\u00a0", " ")


def test_the_pipeline_ends_where_the_passage_was_lost() -> None:
    never = way(Verdict("never loaded", "too large"))
    assert never == "files ✗ → text – → chunks – → top_k – → prompt – → cited –"
    lost = way(Verdict("lost in cutting", "blank"))
    assert lost == "files ✓ → text ✓ → chunks ✗ → top_k – → prompt – → cited –"
    start = "files ✓ → text ✓ → chunks ✓ → "
    one_list = way(
        Verdict("fused down", ""), place("vector", 2), place("bm25", None), place("hybrid", 9)
    )
    assert one_list == (
        f"{start}vector 2 ✓ → BM25 30 of 99 ✗ → fusion 9 ✗ → top_k – → prompt – → cited –"
    )
    no_list = way(
        Verdict("below depth", ""), place("vector", None), place("bm25", None, None),
        place("hybrid", None),
    )  # fmt: skip
    assert no_list == (
        f"{start}vector 30 of 99 ✗ → BM25 ✗ → fusion – → top_k – → prompt – → cited –"
    )
    filtered = way(Verdict("excluded by the filter", ""), place("vector", None), where="path:b")
    assert filtered == (f"{start}filter ✗ → vector – → top_k – → prompt – → cited –")
    cut = way(Verdict("cut by top_k", ""), place("vector", 9))
    assert cut == f"{start}vector 9 ✓ → top_k ✗ → prompt – → cited –"
    folded = way(Verdict("removed by a step", ""), place("vector", 2))
    assert folded == f"{start}vector 2 ✓ → steps ✗ → top_k – → prompt – → cited –"


def test_behind_the_lists_prompt_and_citation_are_told_where_they_are_known() -> None:
    here = place("vector", 2)
    present = Verdict("present", "rank 2 of the 5 that are shown")
    assert way(present, here).endswith("top_k ✓ → prompt – → cited –")
    assert way(present, here, has_prompt=True).endswith("top_k ✓ → prompt ✗ → cited –")
    cited = way(present, here, has_prompt=True, number=2, is_cited=True)
    assert cited.endswith("prompt [2] ✓ → cited ✓")
    assert way(present, here, number=2, is_cited=False).endswith("prompt [2] ✓ → cited ✗")
    # what one list has cut may be in the prompt all the same
    cut = way(Verdict("cut by top_k", ""), here, has_prompt=True, number=2)
    assert "top_k ✗ → prompt [2] by another list ✓" in cut


def test_a_remedy_goes_to_the_column_where_the_column_has_the_knob_itself() -> None:
    own = Column("mine", "bm25", (("bm25.k1", 0.5),))
    request = SearchRequest("q", columns=(Column("bm25", "bm25"), own))
    changed = with_remedy(request, "mine", (("bm25.k1", 2.0), ("search.depth", 80)))
    assert changed.bm25.k1 == 1.5
    assert changed.depth == 80
    assert changed.columns == (request.columns[0], replace(own, knobs=(("bm25.k1", 2.0),)))
    assert with_remedy(request, "bm25", (("bm25.k1", 2.0),)).bm25.k1 == 2.0


def test_remedies_tell_the_change_from_what_the_column_has_now() -> None:
    own = Column("mine", "bm25", (("bm25.k1", 0.5),))
    remedy = Remedy((("bm25.k1", 3.0), ("bm25.b", 0.75), ("post.mmr", 0.5)), 4)
    trace = PassageTrace(
        "q",
        TARGET,
        Verdict("cut by top_k", ""),
        columns=(ColumnTrace("mine", "bm25", Verdict("cut by top_k", ""), remedies=(remedy,)),),
        remedies=(Remedy((("chunking.size", 400),), None, "one chunk holds it"),),
    )
    of_column, of_cutting = remedy_rows(trace, SearchRequest("q", columns=(own,)))
    assert of_column.change == "bm25.k1 0.5 → 3, post.mmr off → 0.5"
    assert of_column.outcome == "rank 4"
    assert (of_cutting.change, of_cutting.needs_index) == ("chunking.size 400", True)


async def dialog(pilot: object, screen: SearchScreen) -> PassageScreen:
    await pilot.press("w")  # type: ignore[attr-defined]
    await settle(pilot)  # type: ignore[arg-type]
    found = screen.app.screen
    assert isinstance(found, PassageScreen)
    return found


async def test_the_selected_chunk_is_followed_through_every_column(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("escape")
        await pilot.press("w")
        await pilot.pause()
        assert isinstance(app.screen, SearchScreen)
        assert "Ask a question first" in toasts(pilot)
        screen = await ask(pilot, QUESTION)
        results, chunk = screen.results, screen.chunk
        assert results is not None
        assert chunk is not None
        found = await dialog(pilot, screen)
        shown = screen_text(pilot)
        assert found.trace is not None
        assert [one.column for one in found.trace.columns] == list(screen.lists)
        for one in found.trace.columns:
            rank = results.rankings[one.column].rank_of(chunk.chunk_id)
            assert one.rank == rank
            whole = next(p for p in one.places if p.method == one.method)
            assert f"{whole.corpus_rank} of {whole.n_ranked}" in shown
        assert chunk.location in shown
        assert f"question: {QUESTION}" in shown
        assert verdict_line(found.trace.verdict).plain in shown
        assert "source [" in shown  # the prompt on show is known
        assert "files\u00a0✓ → text\u00a0✓ → chunks\u00a0✓" in shown
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is screen


async def test_enter_on_a_verified_knob_applies_it_pins_the_chunk_and_z_takes_it_back(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert screen.results is not None
        wanted = screen.results.rankings["vector"].hits[6]
        await pilot.press("w")
        await settle(pilot)
        await pilot.press("slash", *wanted.chunk_id, "enter")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "cut by top_k" in shown
        assert "enter: look for it" not in shown
        assert "search.top_k 5 → 7  ⇒ rank 7" in shown
        found = app.screen
        assert isinstance(found, PassageScreen)
        found.query_one("#passage-columns").focus()
        await pilot.pause()
        assert "enter: to the knobs   /: another passage" in screen_text(pilot)
        await pilot.press("g", "enter")
        await pilot.pause()
        assert "enter: apply this knob" in screen_text(pilot)
        await pilot.press("g", "enter")
        await settle(pilot)
        assert search_screen(pilot) is screen
        assert backend.requests[-1].top_k == 7
        assert wanted.chunk_id in [row.chunk_id for row in screen.lists["vector"].rows]
        assert screen.pinned == wanted.chunk_id
        assert "Set search.top_k 7. z takes it back." in toasts(pilot)
        await pilot.press("z")
        await settle(pilot)
        assert backend.requests[-1].top_k == 5


async def test_a_pinned_chunk_stays_marked_in_all_lists_and_says_where_it_stands(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        pinned = screen.selected
        await pilot.press("full_stop")
        await pilot.press("j")
        await settle(pilot)
        assert screen.selected != pinned
        assert screen_text(pilot).count("◆") >= 2 * len(screen.lists)  # a row and a border each
        await ask(pilot, "lockbox")
        await pilot.press("j")
        await settle(pilot)
        assert screen.results is not None
        for column, result_list in screen.lists.items():
            assert result_list.pinned == pinned
            rank = screen.results.rankings[column].rank_of(str(pinned))
            where = f"◆ at {rank}" if rank else "◆ no"
            assert where in str(result_list.border_subtitle)
        found = await dialog(pilot, screen)
        assert found.trace is not None
        assert found.trace.target.wanted == pinned  # the pinned one, not the selected one
        await pilot.press("escape")
        screen.selected = pinned
        await pilot.press("full_stop")
        await pilot.pause()
        assert "◆" not in screen_text(pilot).replace("Unpinned", "")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("house-rules.md:7", "house-rules.md:7-7"),
        ("house-rules.md#Pets", "house-rules.md:7-9"),
        ("Guide and assistance animals stay free", "house-rules.md:9-9"),
        ("not a word of this is in any of the documents", "✗ not found"),
        ("house-rules.md:999", "✗ "),
    ],
)
async def test_a_passage_can_be_pasted_or_named_by_its_place(
    wanted: str, told: str, app: RagTuiApp
) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "Can I bring my dog?")
        found = await dialog(pilot, screen)
        await pilot.press("slash")
        found.query_one(Input).post_message(events.Paste(wanted.replace(" stay", "\nstay")))
        await pilot.pause()
        assert found.query_one(Input).value == wanted
        await pilot.press("enter")
        await settle(pilot)
        assert told in screen_text(pilot)
        assert app.screen is found


async def test_escape_stops_the_trying_of_knobs_and_the_ranks_stay(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    gate = Gate()
    made = backend.trace_passage

    def slow(*args: object, with_remedies: bool, **more: object) -> PassageTrace:
        if with_remedies:
            more["report"]("column 2 of 4: [/b]")  # type: ignore[operator]
            gate.hold()
        return made(*args, with_remedies=with_remedies, **more)  # type: ignore[arg-type]

    backend.trace_passage = slow  # type: ignore[method-assign]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert screen.results is not None
        screen.selected = screen.results.rankings["vector"].hits[6].chunk_id
        await settle(pilot)
        await pilot.press("w")
        told = "trying which knobs bring it in, column 2 of 4: [/b]… (esc stops it)"
        await until(pilot, lambda: told in screen_text(pilot))
        assert "cut by top_k" in screen_text(pilot)  # the ranks are there before the knobs
        await pilot.press("escape")
        await pilot.pause()
        assert "Stopped before all knobs were tried" in screen_text(pilot)
        gate.opened.set()
        await settle(pilot)
        assert "⇒" not in screen_text(pilot)
        assert isinstance(app.screen, PassageScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert search_screen(pilot) is screen


async def test_another_way_of_cutting_is_applied_only_when_enter_is_pressed_twice(
    app: RagTuiApp, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, object]] = []
    monkeypatch.setattr(RagTuiApp, "reindex_with", lambda _, knobs: given.append(dict(knobs)))

    def split(target: PassageTarget, *_: object, **__: object) -> PassageTrace:
        remedy = Remedy((("chunking.size", 400),), None, "one chunk holds it whole")
        lost = Verdict("split across chunks", "two parts")
        column = ColumnTrace("vector", "vector", lost)
        return PassageTrace("q", target, lost, columns=(column,), remedies=(remedy,))

    backend.trace_passage = split  # type: ignore[method-assign]
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await dialog(pilot, screen)
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert "Enter again: index the folder with chunking.size 400" in screen_text(pilot)
        assert given == []
        await pilot.press("enter")
        await pilot.pause()
        assert given == [{"chunking.size": 400}]


async def test_a_hostile_trace_is_shown_and_nothing_is_sent_raw(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    text = "".join(HOSTILE) + LONG_LINE

    def hostile(target: PassageTarget, *_: object, **__: object) -> PassageTrace:
        lost = Verdict("never loaded", text)
        found = PassageTarget(text, "text", "", (), path=text)
        return PassageTrace(text, found, lost, notes=(text[:3000],))

    backend.trace_passage = hostile  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await dialog(pilot, screen)
        shown = screen_text(pilot)
        assert "[/etc/hosts]" in shown
        assert [char for char in FORBIDDEN if char in shown] == []


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24), (50, 14)])
async def test_the_verdict_is_in_view_at_every_size(size: tuple[int, int], app: RagTuiApp) -> None:
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await dialog(pilot, screen)
        assert "✓ present: source [" in screen_text(pilot)


def test_the_keys_of_the_dialog_and_of_the_heat_map_can_be_set() -> None:
    others = defaults_of(passage_keys())
    keymap, problems = checked_keymap({"passage.pin": "f5", "view.heat": "f6"}, others)
    assert problems == ()
    assert keymap == {"passage.pin": "f5", "view.heat": "f6"}
