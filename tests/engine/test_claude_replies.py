"""Replies beyond plain text: native citations, thinking, counts, retries, odd cuts."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.answering import answer, cancelled
from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.llms.claude import ClaudeAnswerer
from rag_tui.engine.llms.claude_reply import Reply
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import NOT_FOUND, Answer, Chunk, Prompt, Quote
from tests.sse_server import (
    ReplayServer,
    Script,
    block_events,
    citation_delta,
    event,
    replay_server,
    text_delta,
    text_events,
    thinking_delta,
)

KEY = "sk-test-0123456789-secret"
TEXTS = ("Grass is green. Sky is blue.", "Snow is white.")


def prompt_of(template: str = "native") -> Prompt:
    chunks = [Chunk(f"c{n}", "a.md", n, 0, len(t), t) for n, t in enumerate(TEXTS, start=1)]
    return build_prompt("What colour?", chunks, max_sources=9, template=template)


async def seen_of(
    server: ReplayServer, prompt: Prompt | None = None, **values: Any
) -> list[Answer]:
    settings = AnswerSettings(model="m", base_url=server.base_url, **values)
    answerer = ClaudeAnswerer(settings, environ={"ANTHROPIC_API_KEY": KEY})
    return [item async for item in answer(prompt or prompt_of(), answerer)]


async def final_of(script: Script, prompt: Prompt | None = None, **values: Any) -> Answer:
    with replay_server(script) as server:
        return (await seen_of(server, prompt, **values))[-1]


NATIVE = block_events(
    [text_delta("By the notes, ")],
    [
        text_delta("grass is "),
        text_delta("green. "),
        citation_delta(0, "Grass is green. "),
        citation_delta(1, "Snow is white."),
    ],
    [text_delta("So [7] it is, and "), text_delta("that is all.")],
    [text_delta("Snow is white."), citation_delta(1, "Snow is  white.")],
)


async def test_native_citations_become_markers_and_keep_their_quotes() -> None:
    final = await final_of(Script(events=NATIVE))
    assert final.state == "complete"
    assert final.text == (
        "By the notes, grass is green. [1][2] So [7] it is, and that is all.Snow is white. [2]"
    )
    assert [(q.number, q.chunk_id, q.quoted) for q in final.quotes] == [
        (1, "c1", "Grass is green. "),
        (2, "c2", "Snow is white."),
        (2, "c2", "Snow is  white."),
    ]
    assert [final.text[q.start : q.end] for q in final.quotes] == [
        "grass is green.", "grass is green.", "Snow is white.",
    ]  # fmt: skip
    assert all(q.is_in_source for q in final.quotes)
    # What the model writes in brackets is text: its citations come beside it.
    assert [final.text[c.start : c.end] for c in final.citations] == ["[1]", "[2]", "[2]"]
    assert (final.cited, final.unknown) == ((1, 2), ())


async def test_the_native_answer_only_grows_and_a_citation_once_shown_stays() -> None:
    with replay_server(Script(events=NATIVE)) as server:
        seen = await seen_of(server)
    for earlier, later in pairwise(seen):
        assert later.text.startswith(earlier.text)
        assert set(earlier.citations) <= set(later.citations)
    stopped = cancelled(seen[5], prompt_of())
    assert "[7]" in stopped.text
    assert stopped.cited == (1, 2)
    assert stopped.unknown == ()


@given(st.lists(st.integers(0, 40), max_size=6), st.booleans())
def test_where_pieces_are_cut_changes_neither_text_nor_quotes(
    cuts: list[int], is_late: bool
) -> None:
    text = " grass is\n green. \n"

    def read(pieces: list[str]) -> Reply:
        deltas = [text_delta(piece) for piece in pieces]
        named = [citation_delta(0, "Grass is green. ")]
        blocks = [deltas + named if is_late else named + deltas, [text_delta("End")]]
        reply = Reply(prompt_of())
        for raw in block_events(*blocks):
            reply.read(_Event(_data_of(raw)))
        return reply

    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    cut = read([text[a:b] for a, b in pairwise(edges)])
    whole = read([text])
    assert (cut.text, cut.quotes, cut.citations) == (whole.text, whole.quotes, whole.citations)
    assert whole.text == " grass is\n green. [1] \nEnd"


class _Event:
    """An event's data with attributes, as the SDK gives it."""

    def __init__(self, data: dict[str, Any]) -> None:
        for name, value in data.items():
            setattr(self, name, _Event(value) if isinstance(value, dict) else value)


def _data_of(raw: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(raw.split("data: ", 1)[1])
    return data


async def test_a_quote_that_is_not_in_its_source_and_a_source_that_is_not_there_are_flagged() -> (
    None
):
    events = block_events(
        [text_delta("Grass is red."), citation_delta(0, "Grass is red.")],
        [text_delta(" Sea is wet."), citation_delta(8, "Sea is wet.")],
    )
    final = await final_of(Script(events=events))
    assert final.text == "Grass is red. [1] Sea is wet. [9]"
    assert [q.is_in_source for q in final.quotes] == [False, False]
    assert final.quotes[1] == Quote(9, "", "Sea is wet.", 18, 29, is_in_source=False)
    assert (final.cited, final.unknown) == ((1,), (9,))


async def test_a_marker_behind_a_code_fence_stands_in_a_paragraph_of_its_own() -> None:
    fence = "```\nx\n```"
    events = block_events([text_delta(fence), citation_delta(0, "Grass is green. ")])
    assert (await final_of(Script(events=events))).text == f"{fence}\n\n[1]"


async def test_citations_of_a_broken_block_are_kept() -> None:
    start, *_ = NATIVE
    events = [
        start,
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=0, delta=text_delta("Green")),
        event("content_block_delta", index=0, delta=citation_delta(0, "Grass is green. ")),
    ]
    final = await final_of(Script(events=events, ending="drop"))
    assert (final.state, final.text, final.cited) == ("ended early", "Green [1]", (1,))


async def test_citations_of_another_kind_are_passed_over() -> None:
    other = {"type": "char_location", "cited_text": "x", "document_index": 0}
    delta = {"type": "citations_delta", "citation": other}
    events = block_events([text_delta("Green."), delta])
    final = await final_of(Script(events=events))
    assert (final.state, final.text, final.quotes) == ("complete", "Green.", ())


async def test_the_not_found_sentence_of_a_native_answer_is_recognised() -> None:
    final = await final_of(Script(events=text_events(NOT_FOUND)))
    assert final.state == "not found"


async def test_thinking_is_kept_apart_from_the_text_and_grows() -> None:
    events = block_events(
        [thinking_delta("See [2], "), thinking_delta("then.")], [text_delta("Green [1].")]
    )
    prompt = prompt_of("numbered")
    with replay_server(Script(events=events)) as server:
        seen = await seen_of(server, prompt, thinking=True)
        assert server.requests[0].body["thinking"]["display"] == "summarized"
    assert [one.thinking for one in seen][:2] == ["See [2], ", "See [2], then."]
    assert [one.text for one in seen] == ["", "", "Green [1].", "Green [1]."]
    assert seen[-1].cited == (1,)
    assert seen[-1].state == "complete"
    assert seen[-1].first_token_s is not None
    assert seen[-1].opened_s is not None
    assert seen[-1].opened_s <= seen[-1].first_token_s


@pytest.mark.parametrize(
    ("shown", "reason", "state", "told"),
    [
        ("hm", "end_turn", "empty answer", "thought and then ended without text"),
        ("", "end_turn", "empty answer", "thought and then ended without text"),
        ("", "max_tokens", "cut at the token limit", "All of it went into thinking"),
    ],
)
async def test_thinking_alone_is_told(shown: str, reason: str, state: str, told: str) -> None:
    events = block_events([thinking_delta(shown)])
    events[-2] = events[-2].replace("end_turn", reason)
    final = await final_of(Script(events=events))
    assert (final.state, final.text, final.thinking) == (state, "", shown)
    assert told in final.detail


@pytest.mark.parametrize(
    ("reason", "state", "can_resend", "told"),
    [
        ("pause_turn", "ended early", True, "pause_turn"),
        ("tool_use", "ended early", True, "tool_use"),
        ("something_new", "ended early", True, "something_new"),
        ("max_tokens", "cut at the token limit", False, "answer.max_tokens"),
        ("model_context_window_exceeded", "cut: context window full", False, "fewer sources"),
        ("refusal", "refused by the model", False, "declined"),
        ("stop_sequence", "complete", False, ""),
    ],
)
async def test_each_stop_reason_is_told_with_the_text_kept(
    reason: str, state: str, can_resend: bool, told: str
) -> None:
    events = text_events("Grass [1]", stop_reason=reason)
    final = await final_of(Script(events=events), prompt_of("numbered"))
    assert (final.state, final.text, final.cited) == (state, "Grass [1]", (1,))
    assert final.can_resend is can_resend
    assert told in final.detail


async def test_counts_of_the_cache_are_told_and_priced() -> None:
    usage = {"output_tokens": 200, "cache_creation_input_tokens": 2000,
             "cache_read_input_tokens": 4000}  # fmt: skip
    events = block_events([text_delta("Green [1].")], usage=usage)
    prices = Prices(input=5.0, cache_write=6.25, cache_read=0.5, output=25.0)
    with replay_server(Script(events=events)) as server:
        settings = AnswerSettings(model="m", base_url=server.base_url, cache_prompt=True)
        answerer = ClaudeAnswerer(settings, environ={})
        seen = [one async for one in answer(prompt_of("numbered"), answerer, prices=prices)]
    final = seen[-1]
    assert (final.input_tokens, final.output_tokens) == (100, 200)
    assert (final.cache_write_tokens, final.cache_read_tokens) == (2000, 4000)
    # 100 * 5 + 2000 * 6.25 + 4000 * 0.5 + 200 * 25 = 20,000 millionths
    assert final.cost == pytest.approx(0.02)
    assert seen[0].cost is None


def test_tokens_a_second_are_counted_from_the_first_sign_of_a_reply() -> None:
    final = Answer("x", "complete", "m", output_tokens=90, elapsed_s=5.0, opened_s=2.0)
    assert final.tokens_per_s == 30.0
    assert Answer("x", "complete", "m", elapsed_s=5.0, opened_s=2.0).tokens_per_s is None
    assert Answer("x", "complete", "m", output_tokens=9, opened_s=2.0).tokens_per_s is None


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_a_retry_is_told_while_it_is_waited_for(status: int) -> None:
    script = Script(status=status, times=2, retry_after="0.01", events=text_events("Green [1]."))
    with replay_server(script) as server:
        seen = await seen_of(server, prompt_of("numbered"))
        assert len(server.requests) == 3
    waiting = [one for one in seen if one.state == "streaming" and not one.text]
    assert any(f"answered {status} to try 1 of 3" in one.detail for one in waiting)
    assert any("0.01 s it asks for" in one.detail for one in waiting)
    assert seen[-1].state == "complete"
    assert seen[-1].attempts == 3
    assert all(one.detail == "" for one in seen if one.text)


async def test_the_number_of_tries_can_be_set_and_a_refusal_says_whether_to_ask_again() -> None:
    with replay_server(Script(status=529)) as server:
        busy = (await seen_of(server, max_retries=0))[-1]
        assert len(server.requests) == 1
    assert (busy.state, busy.can_resend, busy.attempts) == ("failed", True, 1)
    wrong = await final_of(Script(status=401))
    assert (wrong.state, wrong.can_resend) == ("failed", False)
    wait = await final_of(Script(status=429, retry_after="7"), max_retries=0)
    assert "wait 7 s" in wait.detail


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ("thinking.type.adaptive is not supported for this model", "answer.thinking"),
        ("output_config.effort: unsupported", "answer.effort"),
        ("search_result blocks are not supported", "answer.template"),
        ("max_tokens: 99 > 64", "answer.max_tokens"),
    ],
)
async def test_a_request_the_model_cannot_take_names_the_setting(message: str, fix: str) -> None:
    final = await final_of(Script(status=400, message=message))
    assert final.state == "failed"
    assert message in final.detail
    assert fix in final.detail


async def test_an_interrupted_answer_says_that_it_is_kept_and_can_be_asked_again() -> None:
    error = event("error", error={"type": "rate_limit_error", "message": "slow down"})
    events = [*text_events("Grass [1]", stop_reason=None), error]
    final = await final_of(Script(events=events), prompt_of("numbered"))
    assert (final.state, final.text, final.can_resend) == ("ended early", "Grass [1]", True)
    assert "429" in final.detail
    assert "What had come is kept" in final.detail


async def test_the_tokens_of_a_broken_reply_are_unknown_not_those_of_its_first_piece() -> None:
    # the count in the first event is 1, whatever comes
    events = text_events("Grass [1]", " is green", " and grows", stop_reason=None)
    final = await final_of(Script(events=events, ending="drop"), prompt_of("numbered"))
    assert (final.state, final.input_tokens) == ("ended early", 100)
    assert final.output_tokens is None
    assert final.tokens_per_s is None


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7])
async def test_pieces_may_end_inside_a_character_or_a_marker(n_bytes: int) -> None:
    events = text_events("Grün 日本 🚀 [1", ", 2", "].")
    final = await final_of(Script(events=events, cut_every=n_bytes), prompt_of("numbered"))
    assert (final.state, final.text) == ("complete", "Grün 日本 🚀 [1, 2].")
    assert final.cited == (1, 2)


@pytest.mark.parametrize("ending", ["drop", "normal"])
async def test_a_stream_that_ends_inside_a_character_keeps_what_came(ending: Any) -> None:
    events = text_events("Grün [1]", stop_reason=None)
    tail = 'event: content_block_delta\ndata: {"type": "日'.encode()[:-1]
    final = await final_of(Script(events=events, tail=tail, ending=ending), prompt_of("numbered"))
    assert (final.state, final.text, final.cited) == ("ended early", "Grün [1]", (1,))
    assert final.can_resend


async def test_slow_tokens_come_one_by_one() -> None:
    script = Script(events=text_events("A", "B", "C [1]"), delay_s=0.02)
    with replay_server(script) as server:
        seen = await seen_of(server, prompt_of("numbered"))
    assert [one.text for one in seen] == ["A", "AB", "ABC [1]", "ABC [1]"]


async def test_a_server_that_never_answers_ends_the_wait() -> None:
    script = Script(ending="hang before headers")
    with replay_server(script) as server:
        final = (await seen_of(server, timeout_s=0.3))[-1]
        assert await asyncio.to_thread(server.client_gone.wait, 10)
    assert (final.state, final.can_resend) == ("failed", True)
    assert "0.3 s" in final.detail
    assert "answer.timeout_s" in final.detail


async def test_cancelling_before_anything_has_come_closes_the_connection() -> None:
    with replay_server(Script(ending="hang before headers")) as server:
        task = asyncio.create_task(seen_of(server))
        assert await asyncio.to_thread(server.sent.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_gone.wait, 10)


async def test_cancelling_while_a_retry_is_waited_for_ends_it_at_once() -> None:
    script = Script(status=429, retry_after="3600")
    with replay_server(script) as server:
        settings = AnswerSettings(model="m", base_url=server.base_url)
        growing = answer(prompt_of(), ClaudeAnswerer(settings, environ={}))
        first = await anext(growing)
        assert "3600 s it asks for" in first.detail
        await growing.aclose()  # type: ignore[attr-defined]
        assert len(server.requests) == 1
