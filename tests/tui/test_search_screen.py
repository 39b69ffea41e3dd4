"""The Search screen, with the real engine and small models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from textual.widgets import Input

from rag_tui.engine.events import CancelToken, StageError
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.searching import MAX_QUERY_WORDS, search
from rag_tui.engine.types import METHODS, Answer, Citation, Method, Prompt
from rag_tui.tui.app import RagTuiApp
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts, until

QUESTION = "Where can I leave my luggage before check-in?"
WIDE = (160, 45)


async def test_the_lists_show_the_rankings_of_the_engine(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert app.session is not None
        assert app.index is not None
        request = replace(app.session.settings.request(QUESTION))
        expected = {
            result.stage: [hit.chunk_id for hit in result.ranking.hits[: request.top_k]]
            for result in search(request, app.index, app.session.models, cancel=CancelToken())
            if result.ranking is not None
        }
        shown = {m: [row.chunk_id for row in screen.lists[m].rows] for m in METHODS}
        assert shown == expected
        assert all(len(rows) == request.top_k for rows in shown.values())


async def test_selecting_a_row_marks_its_chunk_in_all_lists_and_says_where_it_stands(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        screen.lists["vector"].focus()
        await pilot.press("g", "j")
        chosen = screen.lists["vector"].rows[1].chunk_id
        await settle(pilot)
        assert {result_list.selected for result_list in screen.lists.values()} == {chosen}
        assert screen.chunk_view.chunk is not None
        assert screen.chunk_view.chunk.chunk_id == chosen
        assert screen.results is not None
        for method, result_list in screen.lists.items():
            rank = screen.results.rankings[method].rank_of(chosen)
            where = f"● at {rank} " if rank else "● no"
            assert str(result_list.border_subtitle).startswith(where)


async def test_a_chunk_without_any_query_word_is_said_to_have_none(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "lockbox")
        assert screen.results is not None
        in_bm25 = {hit.chunk_id for hit in screen.results.rankings["bm25"].hits}
        absent = next(c for c in screen.results.index.chunks if c.chunk_id not in in_bm25)
        screen.selected = absent.chunk_id
        await settle(pilot)
        assert "● no query word" in str(screen.lists["bm25"].border_subtitle)


@pytest.mark.parametrize("broken", METHODS)
async def test_a_failing_list_says_why_and_the_others_stand(
    app: RagTuiApp, backend: SmallBackend, broken: Method
) -> None:
    backend.broken[broken] = StageError("the [/model] is missing", "install [it]")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert screen.lists[broken].message == "the [/model] is missing\ninstall [it]"
        assert screen.lists[broken].rows == ()
        assert all(screen.lists[method].rows for method in METHODS if method != broken)
        assert "✗ the [/model] is missing" in screen_text(pilot)
        assert "→ install [it]" in screen_text(pilot)


async def test_turning_a_knob_searches_again_and_keeps_the_selected_chunk(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        screen.lists["hybrid"].focus()
        await pilot.press("g", "j", "j")
        chosen = screen.selected
        screen.knobs_panel.table.focus()
        await pilot.press("g", "right")
        await settle(pilot)
        assert [request.top_k for request in backend.requests] == [5, 6]
        assert screen.selected == chosen
        assert len(screen.lists["hybrid"].rows) == 6


async def test_a_typed_knob_value_is_taken_and_a_senseless_one_is_refused(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        screen.knobs_panel.table.focus()
        await pilot.press("g", "enter", "0", "enter")
        assert "search.top_k must be 1 or more" in toasts(pilot)
        value = screen.query_one("#knob-value", Input)
        value.value = "2"
        await pilot.press("enter")
        await settle(pilot)
        assert backend.requests[-1].top_k == 2
        assert len(screen.lists["bm25"].rows) == 2
        await pilot.press("backspace")
        await settle(pilot)
        assert backend.requests[-1].top_k == 5


async def test_without_reranking_the_list_says_how_to_switch_it_on(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        screen.knobs_panel.table.focus()
        await pilot.press("g", *"jjjjjjj", "right")
        await settle(pilot)
        assert screen.lists["reranked"].rows == ()
        assert "Reranking is off" in screen.lists["reranked"].message
        assert screen.lists["hybrid"].rows


async def test_an_empty_question_is_refused_and_the_lists_stay(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        before = screen.lists["bm25"].rows
        await ask(pilot, "   ")
        assert "The question is empty" in toasts(pilot)
        assert screen.lists["bm25"].rows == before


async def test_a_question_of_too_many_words_is_refused_with_the_number(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "word " * (MAX_QUERY_WORDS * 10))
        assert "10,000 words" in screen.lists["bm25"].message
        await ask(pilot, QUESTION)
        assert screen.lists["bm25"].rows


async def test_letters_typed_in_the_input_do_nothing_else(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press(*"quick", "space", *"12/[e]yq", "question_mark")
        assert search_screen(pilot).query_bar.question == "quick 12/[e]yq?"
        assert app.current_mode == "search"


async def test_stray_letters_outside_the_input_do_no_harm(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        before = {method: screen.lists[method].rows for method in METHODS}
        chunks = app.index
        await pilot.press(*"dfisDEFIKLMX045")
        await settle(pilot)
        assert search_screen(pilot) is screen
        assert {method: screen.lists[method].rows for method in METHODS} == before
        assert app.index is chunks


async def test_earlier_questions_come_back_with_up_and_the_draft_with_down(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, "dog")
        screen = await ask(pilot, "lockbox")
        screen.action_focus_query()
        screen.query_bar.question = "draft"
        await pilot.press("up", "up")
        assert screen.query_bar.question == "dog"
        await pilot.press("down")
        assert screen.query_bar.question == "lockbox"
        await pilot.press("down", "down")
        assert screen.query_bar.question == "draft"


async def test_a_pause_in_typing_searches_without_the_reranker_when_set(
    corpus: object, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_tui.tui.widgets.query_bar.PAUSE_S", 0.001)
    app = RagTuiApp(corpus, backend=backend, overrides={"ui.search_as_you_type": True})  # type: ignore[arg-type]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        screen.query_bar.question = "luggage"
        await until(pilot, lambda: bool(backend.requests))
        await settle(pilot)
        assert backend.requests[-1].rerank is False
        assert screen.lists["hybrid"].rows
        assert "Press enter to rerank" in screen.lists["reranked"].message
        assert screen.query_bar.is_typing


async def test_the_explanation_shows_the_arithmetic_of_the_fusion(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("e")
        await settle(pilot)
        assert screen.results is not None
        assert screen.selected is not None
        vector = screen.results.rankings["vector"].rank_of(screen.selected)
        bm25 = screen.results.rankings["bm25"].rank_of(screen.selected)
        assert vector is not None
        assert bm25 is not None
        total = 1 / (60 + vector) + 1 / (60 + bm25)
        assert f"= {total:.4f}" in screen.explain_panel.text
        assert f"1/(60+{vector})" in screen.explain_panel.text
        assert f"1/(60+{bm25})" in screen.explain_panel.text
        assert "luggage" in screen.explain_panel.text


async def test_the_prompt_tab_holds_the_exact_request_text(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("p")
        await settle(pilot)
        assert screen.results is not None
        chunks = [
            screen.results.index.chunk(hit.chunk_id)
            for hit in screen.results.rankings["reranked"].hits[:5]
        ]
        prompt = build_prompt(QUESTION, chunks, max_sources=5)
        parts = screen.prompt_preview.text.parts[1:]  # behind the parameters
        assert "\n".join(text for _, text in parts) == f"{prompt.system}\n{prompt.user}"


async def test_a_citation_selects_its_chunk_and_an_unknown_one_is_marked(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    text = "Reception keeps bags [2].\n\nNobody said so [9]."

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        for end in range(0, len(text), 7):
            yield Answer(text[:end], "streaming", "tester")
        yield Answer(
            text,
            "complete",
            "tester",
            citations=(Citation(21, 24, (2,)), Citation(42, 45, (9,), unknown=(9,))),
        )

    backend.answers = answers
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await settle(pilot)
        assert "Reception keeps bags [2]." in screen.answer_view.text
        assert "\n\nNobody said so [9]?." in screen.answer_view.text
        assert "complete · by tester" in screen.answer_view.state_text
        assert "cites [9], which no source has" in screen.answer_view.state_text
        assert screen.results is not None
        second = screen.results.rankings["reranked"].hits[1].chunk_id
        assert screen.selected != second
        line = next(w for w in screen.query("#answer-text > Static") if "[2]" in str(w.render()))
        await pilot.click(line, offset=(22, 0))
        assert screen.selected == second
        assert {result_list.selected for result_list in screen.lists.values()} == {second}


async def test_a_source_can_be_followed_by_keyboard(app: RagTuiApp, backend: SmallBackend) -> None:
    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("Yes [3].", "complete", "tester", citations=(Citation(4, 7, (3,)),))

    backend.answers = answers
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await settle(pilot)
        screen.answer_view.sources.focus()
        await pilot.press("g", "j", "j", "enter")
        await settle(pilot)
        assert screen.results is not None
        assert screen.selected == screen.results.rankings["reranked"].hits[2].chunk_id


async def test_copying_gives_the_exact_text_of_the_chunk(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("y")
        assert screen.chunk is not None
        assert app.clipboard == screen.chunk.text
        assert "OSC 52" in toasts(pilot)


async def test_opening_the_source_without_an_editor_says_what_to_set(
    app: RagTuiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await ask(pilot, QUESTION)
        await pilot.press("o")
        assert "EDITOR" in toasts(pilot)


async def test_a_question_asked_before_the_index_is_there_is_answered_then(
    corpus: object, backend: SmallBackend
) -> None:
    app = RagTuiApp(corpus, backend=backend, question=QUESTION)  # type: ignore[arg-type]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        assert screen.query_bar.question == QUESTION
        assert all(screen.lists[method].rows for method in METHODS)


async def test_browsing_goes_to_the_chunk_among_all_chunks(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        label = screen.chunk.label if screen.chunk is not None else "no chunk"
        await pilot.press("b")
        await settle(pilot)
        assert app.current_mode == "chunks"
        assert label in screen_text(pilot)
