"""Two answers side by side: how they are made, what differs, what they have in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from textual.content import Content
from textual.pilot import Pilot

from rag_tui.engine.types import Answer, Citation, Prompt
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.messages import AnswerGrew
from rag_tui.tui.screens.compare_answers import CompareAnswersScreen
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts, until

QUESTION = "Where can I leave my luggage before check-in?"
WIDE = (160, 45)


async def by_sources(prompt: Prompt) -> AsyncIterator[Answer]:
    """The same sentence but for one word, which is the number of sources."""
    n = len(prompt.sources)
    text = f"Leave the bags with {n} people [1]."
    at = text.index("[1]")
    yield Answer(text[:9], "streaming", "tester")
    yield Answer(text, "complete", "tester", citations=(Citation(at, at + 3, (1,)),))


async def open_compare(pilot: Pilot[None]) -> CompareAnswersScreen:
    await settle(pilot)
    await ask(pilot, QUESTION)
    await pilot.press("A")
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, CompareAnswersScreen)
    return screen


def underlined(content: Content) -> list[str]:
    return [content.plain[s.start : s.end] for s in content.spans if s.style == "bold underline"]


async def test_both_answers_stream_and_what_only_one_says_is_marked(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    backend.answers = by_sources
    async with app.run_test(size=WIDE) as pilot:
        screen = await open_compare(pilot)
        left, right = screen.sides["left"], screen.sides["right"]
        assert left.way.column == "reranked"
        assert right.way.column != "reranked"
        assert "enter asks both" in left.state_text
        await pilot.press("tab", "minus", "minus", "enter")
        await settle(pilot)
        assert left.body.raw == "Leave the bags with 5 people [1]."
        assert right.body.raw == "Leave the bags with 3 people [1]."
        for side, word in ((left, "5"), (right, "3")):
            pieces = [static.visual for static in side.body.query("Static")]  # type: ignore[attr-defined]
            assert [mark for piece in pieces for mark in underlined(piece)] == [word]
        found = screen.difference
        assert found is not None
        assert left.prompt is not None
        assert right.prompt is not None
        n_shared = len(
            {s.chunk_id for s in left.prompt.sources} & {s.chunk_id for s in right.prompt.sources}
        )
        assert f"{n_shared} source" in screen.difference_text
        # 7 of 8 words and signs are the same: Leave the bags with N people [1] .
        assert "88% alike" in screen.difference_text
        assert "cited by both: " in screen.difference_text
        assert "an aid, not a verdict" in screen.difference_text


async def test_a_side_that_broke_off_names_the_key_of_this_dialog_to_ask_again(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async def broken(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("Half", "ended early", "tester", detail="It broke.", can_resend=True)

    backend.answers = broken
    async with app.run_test(size=WIDE) as pilot:
        screen = await open_compare(pilot)
        await pilot.press("enter")
        await settle(pilot)
        state = screen.sides["left"].state_text
        assert "enter asks again" in state
        assert "a asks again" not in state


async def test_each_side_is_chosen_by_key_and_by_mouse(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    backend.answers = by_sources
    async with app.run_test(size=WIDE) as pilot:
        screen = await open_compare(pilot)
        left, right = screen.sides["left"], screen.sides["right"]
        before = right.way
        seen = [left.way.column]
        for _ in range(5):
            await pilot.press("c")
            seen.append(left.way.column)
        assert set(seen) == {"vector", "bm25", "hybrid", "reranked", "no retrieval"}
        assert seen[0] == seen[-1]
        await pilot.press("t", "plus")
        assert (left.way.template, left.way.n_sources) == ("documents", 6)
        assert right.way == before
        await pilot.click(".side--way", offset=(2, 0))
        assert left.way.column != seen[0]
        assert "no retrieval (c)" in screen_text(pilot)
        assert len(backend.requests) == 1


async def test_no_retrieval_needs_a_model_and_says_so_or_asks_without_sources(
    app: RagTuiApp, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.answers = by_sources
    async with app.run_test(size=WIDE) as pilot:
        screen = await open_compare(pilot)
        await pilot.press("c")
        assert screen.sides["left"].way.is_closed_book
        await pilot.press("enter")
        await settle(pilot)
        assert "No retrieval needs a language model" in screen.sides["left"].state_text
        assert screen.sides["right"].body.raw.startswith("Leave the bags")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-a-real-key")
        await pilot.press("enter")
        await settle(pilot)
        prompt = screen.sides["left"].prompt
        assert prompt is not None
        assert prompt.is_closed_book
        assert screen.sides["left"].body.raw == "Leave the bags with 0 people [1]."


async def test_escape_stops_both_then_closes_and_late_pieces_are_dropped(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async def endless(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("so far", "streaming", "tester")
        await asyncio.Event().wait()

    backend.answers = endless
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_compare(pilot)
        left, right = screen.sides["left"], screen.sides["right"]
        assert right.region.y >= left.region.bottom  # one above the other
        await pilot.press("enter")
        await until(pilot, lambda: all(s.body.raw == "so far" for s in (left, right)))
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is screen
        assert "✗ cancelled" in left.state_text
        screen.post_message(AnswerGrew(2, Answer("so far and more", "streaming", "tester")))
        await settle(pilot)
        assert left.body.raw == "so far"
        await pilot.press("escape")
        await settle(pilot)
        assert search_screen(pilot).answer_view.answer is None  # nothing beneath has changed


async def test_without_lists_there_is_nothing_to_compare(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.screen.set_focus(None)
        await pilot.press("A")
        assert "Ask a question first" in toasts(pilot)


async def test_hostile_answers_are_compared_without_harm(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async def hostile(prompt: Prompt) -> AsyncIterator[Answer]:
        pieces = HOSTILE if len(prompt.sources) == 5 else (*reversed(HOSTILE), LONG_LINE[:9_000])
        yield Answer("\n\n".join(pieces), "complete", "tester", detail=HOSTILE[3])

    backend.answers = hostile
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await open_compare(pilot)
        await pilot.press("plus", "enter")
        await settle(pilot)
        assert screen.difference is not None
        shown = screen_text(pilot)
        assert [char for char in FORBIDDEN if char in shown] == []
        assert "see [/etc/hosts] for names" in "".join(s.body.shown for s in screen.sides.values())
