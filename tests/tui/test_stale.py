"""What comes too late is dropped: rows, answers and errors belong to the question in the box."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from rag_tui.engine.events import StageError, StageResult
from rag_tui.engine.types import METHODS, Answer, Prompt
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.messages import AnswerGrew, SearchFailed, SearchFinished, StageFinished
from tests.tui.conftest import Gate, SmallBackend, ask, search_screen, settle, until

OLD = "washing machine"
NEW = "Can I bring my dog?"
WIDE = (160, 45)


async def test_a_slow_old_search_never_replaces_the_rows_of_a_newer_one(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        reference = await ask(pilot, NEW)
        expected = {method: reference.lists[method].rows for method in METHODS}
        gate = backend.gate(OLD, "bm25")
        await ask(pilot, OLD, wait=False)
        await until(pilot, gate.reached.is_set)
        screen = await ask(pilot, NEW)
        assert {method: screen.lists[method].rows for method in METHODS} == expected
        gate.opened.set()
        await until(pilot, lambda: not _threads("search"))
        await settle(pilot)
        assert {method: screen.lists[method].rows for method in METHODS} == expected
        assert screen.results is not None
        assert screen.results.request.query == NEW
        assert screen.query_bar.question == NEW


async def test_a_message_of_an_older_generation_changes_nothing(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, OLD)
        screen = await ask(pilot, NEW)
        before = {m: (screen.lists[m].rows, screen.lists[m].message) for m in METHODS}
        old = screen.generation - 1
        error = StageError("too late")
        screen.post_message(StageFinished(old, StageResult("bm25", error=error)))
        screen.post_message(SearchFailed(old, error))
        screen.post_message(SearchFinished(old, 99.0))
        await settle(pilot)
        assert {m: (screen.lists[m].rows, screen.lists[m].message) for m in METHODS} == before


async def test_old_rows_stay_marked_as_old_until_theirs_are_replaced(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, OLD)
        gate = backend.gate(NEW, "hybrid")
        screen = await ask(pilot, NEW, wait=False)
        await until(pilot, gate.reached.is_set)
        assert not screen.lists["bm25"].is_stale
        assert not screen.lists["vector"].is_stale
        assert screen.lists["hybrid"].is_stale
        assert screen.lists["hybrid"].rows
        assert screen.lists["reranked"].is_stale
        assert "searching" in str(screen.lists["hybrid"].border_subtitle)
        gate.opened.set()
        await settle(pilot)
        assert not any(result_list.is_stale for result_list in screen.lists.values())


async def test_escape_cancels_a_search_and_no_row_of_another_question_stays(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, OLD)
        gate = backend.gate(NEW, "vector")
        screen = await ask(pilot, NEW, wait=False)
        await until(pilot, gate.reached.is_set)
        await pilot.press("escape")
        assert not screen.is_searching
        assert screen.lists["bm25"].rows
        for method in ("vector", "hybrid", "reranked"):
            assert screen.lists[method].rows == ()
            assert "cancelled" in screen.lists[method].message
        gate.opened.set()
        await until(pilot, lambda: not _threads("search"))
        await settle(pilot)
        assert screen.lists["vector"].rows == ()


async def test_pieces_of_an_old_answer_never_reach_the_next_question(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    hold = Gate()

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("old beginning", "streaming", "tester")
        await asyncio.to_thread(hold.hold)
        yield Answer("old beginning and end", "complete", "tester")

    backend.answers = answers
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, OLD)
        await pilot.press("a")
        await until(pilot, hold.reached.is_set)
        await until(pilot, lambda: screen.answer_view.text == "old beginning")
        old = screen.answer_generation
        await ask(pilot, NEW)
        assert screen.answer_view.text == ""
        hold.opened.set()
        screen.post_message(AnswerGrew(old, Answer("old beginning and", "streaming", "tester")))
        await until(pilot, lambda: not _threads("answer"))
        await settle(pilot)
        assert screen.answer_view.text == ""
        assert "Press a" in screen.answer_view.state_text


async def test_escape_cancels_an_answer_at_once_and_keeps_what_had_come(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    closed = Gate()

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        try:
            yield Answer("so far", "streaming", "tester")
            await asyncio.Event().wait()
        finally:
            closed.reached.set()

    backend.answers = answers
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, OLD)
        await pilot.press("a")
        await until(pilot, lambda: screen.answer_view.text == "so far")
        await pilot.press("escape")
        assert screen.answer_view.text == "so far"
        assert "cancelled" in screen.answer_view.state_text
        await until(pilot, closed.reached.is_set)


async def test_messages_for_a_screen_that_has_gone_are_dropped(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    gate = backend.gate(NEW, "bm25")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, NEW, wait=False)
        await until(pilot, gate.reached.is_set)
    gate.opened.set()
    assert screen.post_message(SearchFinished(screen.generation, 1.0)) is False


async def test_a_new_index_searches_the_present_question_again(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, NEW)
        chosen = screen.lists["hybrid"].rows[2].chunk_id
        screen.lists["hybrid"].focus()
        await pilot.press("g", "j", "j")
        n_before = len(backend.requests)
        app.action_rebuild()
        await settle(pilot)
        assert search_screen(pilot).selected == chosen
        assert {request.query for request in backend.requests[n_before:]} == {NEW}
        assert screen.results is not None
        assert screen.results.index is app.index


def _threads(name: str) -> list[str]:
    import threading

    return [t.name for t in threading.enumerate() if t.name == f"rag-tui {name}"]
