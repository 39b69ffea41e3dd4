"""The answer pane: how it goes, what it rests on, and what people call it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from rag_tui.engine.events import CancelToken
from rag_tui.engine.faithfulness import ClaimCheck
from rag_tui.engine.loading import Models
from rag_tui.engine.types import Answer, Citation, Prompt, Quote
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.widgets.chunk_view import PASSAGE_STYLE
from rag_tui.tui.widgets.growing_text import PIECE, GrowingText
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import Gate, SmallBackend, ask, screen_text, settle, until

QUESTION = "Where can I leave my luggage before check-in?"
WIDE = (160, 45)
Answers = Callable[[Prompt], AsyncIterator[Answer]]


def always(*steps: Answer) -> Answers:
    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        for step in steps:
            yield step

    return answers


def cited(text: str, state: str = "complete", **more: object) -> Answer:
    """An answer whose ``[1]`` are citations."""
    spans = [i for i in range(len(text)) if text.startswith("[1]", i)]
    citations = tuple(Citation(i, i + 3, (1,)) for i in spans)
    return Answer(text, state, "tester", citations=citations, **more)  # type: ignore[arg-type]


async def answered(pilot: Pilot[None], backend: SmallBackend, answers: Answers) -> SearchScreen:
    backend.answers = answers
    await settle(pilot)
    screen = await ask(pilot, QUESTION)
    await pilot.press("a")
    await settle(pilot)
    return screen


async def test_the_state_line_tells_speed_tokens_cache_and_cost_and_thinking_is_folded(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    final = cited(
        "Reception [1].",
        elapsed_s=3.0,
        opened_s=1.0,
        first_token_s=1.5,
        input_tokens=1_000,
        output_tokens=100,
        cache_write_tokens=400,
        cache_read_tokens=2_000,
        thinking="They ask about [/b] bags.",
    )
    async with app.run_test(size=WIDE) as pilot:
        screen = await answered(pilot, backend, always(final))
        state = screen.answer_view.state_text
        assert "complete · by tester · 3.0 s · first text after 1.5 s · 50 tokens/s" in state
        assert "1,000 tokens in, 100 out · cache 400 written, 2,000 read" in state
        # The default prices a million: 5 in, 6.25 written, 0.5 read, 25 out.
        assert "0.0110 USD" in state
        assert "▸ thinking, 5 words (T)" in screen_text(pilot)
        assert "bags." not in screen_text(pilot)
        await pilot.press("T")
        await pilot.pause()
        assert "They ask about [/b] bags." in screen_text(pilot)
        await pilot.press("T")
        await pilot.pause()
        assert "bags." not in screen_text(pilot)


async def test_a_retry_is_told_while_it_is_waited_for(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    hold = Gate()

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("", "streaming", "tester", detail="Retrying: try 2 of 3.", attempts=2)
        await asyncio.to_thread(hold.hold)
        yield cited("Now [1].", attempts=2)

    async with app.run_test(size=WIDE) as pilot:
        backend.answers = answers
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await until(pilot, lambda: "↻ Retrying: try 2 of 3." in screen.answer_view.state_text)
        hold.opened.set()
        await settle(pilot)
        assert "Retrying" not in screen.answer_view.state_text
        assert screen.answer_view.text.startswith("Now [1].")


async def test_an_answer_that_breaks_off_keeps_its_text_and_offers_to_ask_again(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    broken = cited("Half of it [1]", "ended early", detail="The line [/b] broke.", can_resend=True)
    async with app.run_test(size=WIDE) as pilot:
        screen = await answered(pilot, backend, always(cited("Half", "streaming"), broken))
        state = screen.answer_view.state_text
        assert screen.answer_view.text.startswith("Half of it [1]")
        assert "✗ ended early" in state
        assert "The line [/b] broke." in state
        assert "a asks again" in state
        backend.answers = always(cited("All of it [1]."))
        await pilot.press("a")
        await settle(pilot)
        assert screen.answer_view.text.startswith("All of it [1].")
        assert "✗" not in screen.answer_view.state_text.split("\n")[0]


async def test_a_long_reason_leaves_the_key_to_ask_again_in_sight_on_a_small_screen(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    broken = cited(
        "Half of it [1]",
        "ended early",
        detail="The connection failed: " + "and that has a long story " * 20,
        can_resend=True,
        input_tokens=100,
        elapsed_s=2.0,
        opened_s=1.0,
        first_token_s=1.0,
    )
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await answered(pilot, backend, always(broken))
        assert "a asks again" in screen_text(pilot)
        state = screen.answer_view.state_text
        assert "100 tokens in, those out not counted" in state
        assert "tokens/s" not in state


async def test_a_failure_to_ask_is_told_in_the_pane(app: RagTuiApp, backend: SmallBackend) -> None:
    async with app.run_test(size=WIDE) as pilot:
        backend.answers = None  # raises a ModelError
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await settle(pilot)
        assert "✗ failed" in screen.answer_view.state_text
        assert "no answers were set" in screen.answer_view.state_text
        assert screen.lists["bm25"].rows


async def test_claims_are_marked_and_their_evidence_is_told_selected_and_opened(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    quoted: list[str] = []

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        quoted[:] = [prompt.sources[1].text.split(". ")[0] + "."]
        first = f"{' '.join(quoted[0].split())} [2]"
        text = f"{first}\n\nThe lockers cost 4711 euros a night [1]."
        at = text.index("[1]")
        marks = (
            Citation(len(first) - 3, len(first), (2,)),
            Citation(at, at + 3, (1,)),
        )
        yield Answer(text, "complete", "tester", citations=marks)

    async with app.run_test(size=WIDE) as pilot:
        screen = await answered(pilot, backend, answers)
        view = screen.answer_view
        assert view.claims.rows[0].mark[0] == "✓"
        assert view.claims.rows[1].mark[1] == "⚠"
        assert "4711⚠ euros" in view.text.replace("4711 euros⚠", "4711⚠ euros")
        assert "[2] ✓" in view.text
        assert "an aid, not a verdict" in screen_text(pilot)
        assert "1 ✓ supported" in view.state_text
        prompt = view.prompt
        assert prompt is not None
        view.claims.focus()
        await pilot.press("j")
        await settle(pilot)
        assert "4711" in view.evidence_text
        assert "is not in its sources" in view.evidence_text
        await pilot.press("k")
        await settle(pilot)
        assert "nearest [2] (word for word)" in view.evidence_text
        assert screen.selected == prompt.sources[1].chunk_id
        await pilot.press("enter")
        await settle(pilot)
        assert screen.tabs.active == "chunk"
        assert marked(screen) == " ".join(quoted[0].split())


def marked(screen: SearchScreen) -> str:
    """What is shown reversed in the chunk's text, as one line."""
    content = screen.chunk_view.query_one(".chunk-view--body").visual  # type: ignore[attr-defined]
    spans = [span for span in content.spans if PASSAGE_STYLE in str(span.style)]
    start = min((span.start for span in spans), default=0)
    end = max((span.end for span in spans), default=0)
    return " ".join(content.plain[start:end].split())


async def test_a_native_quote_is_opened_at_its_passage_and_an_invented_one_is_called_so(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    said: list[str] = []

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        source = prompt.sources[2]
        said[:] = [source.text.split(". ")[0]]
        quotes = (
            Quote(3, source.chunk_id, said[0], 0, 8),
            Quote(1, prompt.sources[0].chunk_id, "The moon is cheese.", 9, 12, is_in_source=False),
            Quote(6, "", "From nowhere.", 9, 12, is_in_source=False),
        )
        yield Answer("No claim", "complete", "tester", quotes=quotes, knows_citations=True)

    async with app.run_test(size=WIDE) as pilot:
        screen = await answered(pilot, backend, answers)
        view = screen.answer_view
        marks = [row.mark for row in view.claims.rows[-3:]]
        assert marks == ["❝ ", "✗❝", "✗❝"]
        view.claims.focus()
        await pilot.press("G")
        await settle(pilot)
        assert "[6], which no source has" in view.evidence_text
        await pilot.press("k")
        await settle(pilot)
        assert "source [1] does not hold this passage" in view.evidence_text
        await pilot.press("k", "enter")
        await settle(pilot)
        prompt = view.prompt
        assert prompt is not None
        assert screen.selected == prompt.sources[2].chunk_id
        assert marked(screen) == " ".join(said[0].split())


async def test_a_label_is_kept_for_the_same_answer_and_the_same_key_takes_it_back(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        screen = await answered(pilot, backend, always(cited("Reception [1].")))
        view = screen.answer_view
        assert "+ correct = partly - wrong" in view.state_text
        await pilot.press("equals_sign")
        await settle(pilot)
        assert "you: partly" in view.state_text
        await pilot.press("plus")
        await settle(pilot)
        assert "you: correct" in view.state_text
        await pilot.press("a")
        await settle(pilot)
        assert "you: correct" in view.state_text
        await pilot.press("plus")
        await settle(pilot)
        assert "you:" not in view.state_text
        await pilot.press("minus")
        await settle(pilot)
        backend.answers = always(cited("Elsewhere [1]."))
        await pilot.press("a")
        await settle(pilot)
        assert "you:" not in view.state_text


async def test_while_an_answer_streams_rows_can_be_walked_and_escape_keeps_its_text(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("so far [1] and", "streaming", "tester")
        await asyncio.Event().wait()

    async with app.run_test(size=WIDE) as pilot:
        backend.answers = answers
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await until(pilot, lambda: screen.answer_view.text == "so far [1] and")
        screen.lists["vector"].focus()
        await pilot.press("g", "j", "j")
        assert screen.selected == screen.lists["vector"].rows[2].chunk_id
        await pilot.press("escape")
        await settle(pilot)
        state = screen.answer_view.state_text
        assert "✗ cancelled" in state
        assert "Stopped by you" in state
        assert "a asks again" in state
        assert screen.answer_view.text == "so far [1] and"
        assert "● 1×" in screen_text(pilot)  # its citations are checked all the same


async def test_checks_that_come_too_late_are_dropped(
    app: RagTuiApp, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    real = backend.check_answer

    def slow(
        answer: Answer, prompt: Prompt, models: Models, *, cancel: CancelToken
    ) -> tuple[ClaimCheck, ...]:
        gate.hold()
        return real(answer, prompt, models, cancel=CancelToken())

    monkeypatch.setattr(backend, "check_answer", slow)
    async with app.run_test(size=WIDE) as pilot:
        backend.answers = always(cited("Bags stay at reception [1]."))
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await until(pilot, gate.reached.is_set)
        assert "checking its claims" in screen.answer_view.state_text
        await ask(pilot, "lockbox", wait=False)
        gate.opened.set()
        await settle(pilot)
        assert screen.answer_view.checks == ()
        assert screen.answer_view.claims.rows == ()
        assert "Press a" in screen.answer_view.state_text


async def test_an_answer_from_another_prompt_than_the_one_shown_says_so(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        screen = await answered(pilot, backend, always(cited("Reception [1].")))
        await pilot.press("p")
        await settle(pilot)
        await pilot.press("minus")
        await settle(pilot)
        assert "The prompt has changed since" in screen.answer_view.state_text
        await pilot.press("plus")
        await settle(pilot)
        assert "The prompt has changed since" not in screen.answer_view.state_text
        await pilot.press("minus", "a")
        await settle(pilot)
        assert screen.answer_view.prompt is not None
        assert len(screen.answer_view.prompt.sources) == 4
        assert "The prompt has changed since" not in screen.answer_view.state_text


@pytest.mark.parametrize("size", [(100, 30), (80, 24)])
async def test_hostile_answers_are_harmless_at_any_size(
    app: RagTuiApp, backend: SmallBackend, size: tuple[int, int]
) -> None:
    text = "\n\n".join(f"Luggage {one} [1]." for one in (*HOSTILE, LONG_LINE))
    final = cited(text, thinking=text, detail=text[:2_000])
    async with app.run_test(size=size) as pilot:
        screen = await answered(pilot, backend, always(cited(text[:500], "streaming"), final))
        for key in ("T", "T", "end", "tab", "end", "tab", "enter"):
            await pilot.press(key)
            await settle(pilot)
            shown = screen_text(pilot)
            assert [char for char in FORBIDDEN if char in shown] == []
        assert screen.answer_view.body.region.height >= 1


class Growing(App[None]):
    def compose(self) -> ComposeResult:
        yield GrowingText()


async def test_growing_text_shows_every_character_however_it_is_cut() -> None:
    text = f"one\n\n{'word ' * 1_000}\n{LONG_LINE[:5_000]}\nlast"
    async with Growing().run_test() as pilot:
        body = pilot.app.query_one(GrowingText)
        for end in range(0, len(text) + 101, 101):
            body.show(text[:end])
        assert body.shown == text
        assert body.raw == text
        offsets: list[tuple[str, int]] = []
        from textual.content import Content

        def render(piece: str, start: int) -> Content:
            offsets.append((piece, start))
            return Content(piece)

        body.annotate(render)
        assert all(text[start : start + len(piece)] == piece for piece, start in offsets)
        assert max(len(piece) for piece, _ in offsets) <= 2 * PIECE
        body.show("another")
        assert body.shown == "another"
