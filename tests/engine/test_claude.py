from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rag_tui.engine.answering import answer, cancelled, make_answerer
from rag_tui.engine.llms.claude import ClaudeAnswerer
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.loading import Models
from rag_tui.engine.prompting import NOT_FOUND, build_prompt
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, Chunk, Prompt
from tests.sse_server import ReplayServer, Script, event, read_events, replay_server, text_events

STREAMS = Path(__file__).parents[3] / "shared" / "cases" / "27-cut-answers"
KEY = "sk-test-0123456789-secret"
WITH_KEY = {"ANTHROPIC_API_KEY": KEY}
STATES = {
    "complete": "complete",
    "cut off at the token limit": "cut at the token limit",
    "cut off: context window full": "cut: context window full",
    "refused by the model": "refused by the model",
    "incomplete: the connection ended early": "ended early",
    "empty answer": "empty answer",
}


def prompt_of(n_sources: int = 3) -> Prompt:
    texts = [f"Text {n}." for n in range(1, n_sources + 1)]
    chunks = [Chunk(f"c{n}", "a.md", n, 0, len(t), t) for n, t in enumerate(texts)]
    return build_prompt("What now?", chunks, max_sources=max(n_sources, 1))


def answerer_for(
    server: ReplayServer | str,
    *,
    environ: Mapping[str, str] = WITH_KEY,
    timeout_s: float = 20.0,
    max_tokens: int = 77,
) -> ClaudeAnswerer:
    base_url = server if isinstance(server, str) else server.base_url
    settings = AnswerSettings(
        model="test-model", base_url=base_url, timeout_s=timeout_s, max_tokens=max_tokens
    )
    return ClaudeAnswerer(settings, environ=environ)


async def collect(answerer: Any, prompt: Prompt | None = None) -> list[Answer]:
    return [item async for item in answer(prompt or prompt_of(), answerer)]


async def final_of(script: Script, **options: Any) -> Answer:
    with replay_server(script) as server:
        return (await collect(answerer_for(server, **options)))[-1]


@pytest.mark.skipif(not STREAMS.exists(), reason="the recorded streams are not on this machine")
@pytest.mark.parametrize("name", sorted(path.name for path in STREAMS.glob("*.sse")))
async def test_recorded_streams_end_in_the_stated_state(name: str) -> None:
    expected = json.loads((STREAMS / "expected.json").read_text("utf-8"))[name]
    events = read_events((STREAMS / name).read_text("utf-8"))
    final = await final_of(Script(events=events))
    # Where the case names no state the stream is a whole answer.
    assert final.state == STATES[expected.get("state", "complete")]
    if "text" in expected:
        assert final.text == expected["text"]
    if "cited" in expected:
        assert list(final.cited) == expected["cited"]
    if "unknown" in expected:
        assert list(final.unknown) == expected["unknown"]
    if expected.get("text_kept") or expected.get("text_kept_but_marked"):
        assert final.text.startswith("Open the inlet ")
    if "shown" in expected:
        assert final.text.replace("\x1b", "␛").replace("\x07", "␇") == expected["shown"]
    assert bool(final.detail) == (final.state != "complete")


async def test_the_answer_grows_piece_by_piece_and_is_checked_at_the_end() -> None:
    with replay_server(Script(events=text_events("Yes [1", "] and", " [4]."))) as server:
        seen = await collect(answerer_for(server))
    assert [a.text for a in seen] == ["Yes [1", "Yes [1] and", "Yes [1] and [4].", seen[-1].text]
    assert [a.state for a in seen] == ["streaming"] * 3 + ["complete"]
    assert [a.cited for a in seen] == [(), (1,), (1,), (1,)]
    assert seen[-1].text == "Yes [1] and [4]."
    assert seen[-1].unknown == (4,)
    assert (seen[-1].input_tokens, seen[-1].output_tokens) == (100, 20)
    assert seen[-1].answerer == "test-model"
    assert seen[-1].elapsed_s >= seen[0].elapsed_s > 0


async def test_the_request_holds_exactly_the_prompt_and_the_settings() -> None:
    prompt = prompt_of()
    with replay_server(Script(events=text_events("ok [1]"))) as server:
        await collect(answerer_for(server, max_tokens=12), prompt)
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.body == {
        "model": "test-model",
        "max_tokens": 12,
        "stream": True,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
    }
    assert KEY in str(request.headers)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (NOT_FOUND, "not found"),
        (f"\n{NOT_FOUND} ", "not found"),
        (f"{NOT_FOUND} But [1] is close.", "complete"),
        (NOT_FOUND.lower(), "complete"),
        (" \n", "empty answer"),
    ],
)
async def test_not_found_is_the_exact_sentence_only(text: str, state: str) -> None:
    final = await final_of(Script(events=text_events(text)))
    assert final.state == state
    assert final.text == text


async def test_thinking_alone_is_an_empty_answer() -> None:
    start, _, *end = text_events()
    events = [
        start,
        event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        event(
            "content_block_delta",
            index=0,
            delta={"type": "thinking_delta", "thinking": "see [2]"},
        ),
        *end,
    ]
    final = await final_of(Script(events=events))
    assert (final.state, final.text, final.citations) == ("empty answer", "", ())


async def test_a_token_limit_spent_on_thinking_is_told_as_a_cut() -> None:
    final = await final_of(Script(events=text_events(stop_reason="max_tokens")), max_tokens=9)
    assert final.state == "cut at the token limit"
    assert "9 tokens" in final.detail
    assert "answer.max_tokens" in final.detail


async def test_the_reason_of_a_refusal_is_passed_on() -> None:
    start, *_ = text_events()
    details = {"type": "refusal", "category": None, "explanation": "Not about doors."}
    delta = {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    events = [start, event("message_delta", delta=delta, usage={"output_tokens": 0})]
    final = await final_of(Script(events=events))
    assert final.state == "refused by the model"
    assert "Not about doors." in final.detail


async def test_a_dropped_connection_keeps_the_text_and_is_not_complete() -> None:
    events = text_events("Open the valve [1] and", stop_reason=None)
    final = await final_of(Script(events=events, ending="drop"))
    assert final.state == "ended early"
    assert final.text == "Open the valve [1] and"
    assert final.cited == (1,)


async def test_a_server_that_falls_silent_ends_the_answer_after_the_timeout() -> None:
    events = text_events("Open [1]", stop_reason=None)
    final = await final_of(Script(events=events, ending="hang"), timeout_s=0.2)
    assert (final.state, final.text) == ("ended early", "Open [1]")
    assert "0.2 s" in final.detail
    assert "answer.timeout_s" in final.detail


async def test_an_overload_in_mid_stream_keeps_the_text_and_is_not_retried() -> None:
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    events = [*text_events("Open [1]", stop_reason=None), error]
    with replay_server(Script(events=events)) as server:
        final = (await collect(answerer_for(server)))[-1]
    assert (final.state, final.text) == ("ended early", "Open [1]")
    assert "overloaded" in final.detail
    assert len(server.requests) == 1


async def test_an_error_before_anything_came_is_a_failure() -> None:
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    assert (await final_of(Script(events=[error]))).state == "failed"


async def test_a_stream_that_is_not_json_is_told_and_not_raised() -> None:
    events = [*text_events("Open [1]", stop_reason=None), "event: message_delta\ndata: {oops"]
    final = await final_of(Script(events=events))
    assert (final.state, final.text) == ("ended early", "Open [1]")


@pytest.mark.parametrize(
    ("status", "requests", "hint"),
    [
        (400, 1, "answer.model"),
        (401, 1, "ANTHROPIC_API_KEY"),
        (403, 1, "answer.model"),
        (404, 1, "answer.base_url"),
        (413, 1, "answer.n_sources"),
        (429, 3, "Too many requests"),
        (529, 3, "overloaded"),
    ],
)
async def test_refused_requests_name_the_fix_and_never_the_key(
    status: int, requests: int, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = Script(status=status, retry_after="0.01", message=f"what about {KEY}?")
    with replay_server(script) as server:
        answerer = answerer_for(server)
        final = (await collect(answerer))[-1]
    assert final.state == "failed"
    assert str(status) in final.detail
    assert hint in final.detail
    assert KEY not in repr(final)
    assert KEY not in repr(vars(answerer)["_settings"])
    assert KEY not in " ".join(r.getMessage() for r in caplog.records if r.name.startswith("rag"))
    # The SDK's own three tries and not one more.
    assert len(server.requests) == requests


async def test_one_busy_reply_is_waited_out_and_then_answered() -> None:
    script = Script(status=429, times=1, retry_after="0.01", events=text_events("Open [1]."))
    with replay_server(script) as server:
        final = (await collect(answerer_for(server)))[-1]
    assert (final.state, final.text) == ("complete", "Open [1].")
    assert len(server.requests) == 2


async def test_nobody_listening_is_told_with_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    final = (await collect(answerer_for(f"http://me:pw@127.0.0.1:{port}")))[-1]
    assert final.state == "failed"
    assert f"127.0.0.1:{port}" in final.detail
    assert "answer.base_url" in final.detail
    assert "pw" not in final.detail


async def test_an_address_that_is_none_is_told() -> None:
    final = (await collect(answerer_for("not-an-address")))[-1]
    assert final.state == "failed"
    assert "answer.base_url" in final.detail


async def test_a_local_server_needs_no_key() -> None:
    final = await final_of(Script(events=text_events("Open [1].")), environ={})
    assert final.state == "complete"


async def test_a_server_that_wants_a_key_when_none_is_set_says_which_variable() -> None:
    final = await final_of(Script(status=401), environ={})
    assert final.state == "failed"
    assert "No API key is set" in final.detail
    assert "ANTHROPIC_API_KEY" in final.detail


async def test_without_key_and_address_nothing_is_sent() -> None:
    final = (await collect(ClaudeAnswerer(AnswerSettings(), environ={})))[-1]
    assert final.state == "failed"
    assert "ANTHROPIC_API_KEY" in final.detail


async def test_the_token_variable_and_the_address_variable_are_used() -> None:
    with replay_server(Script(events=text_events("Open [1]."))) as server:
        environ = {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": server.base_url}
        final = (await collect(ClaudeAnswerer(AnswerSettings(), environ=environ)))[-1]
    assert final.state == "complete"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_closing_the_iterator_closes_the_connection() -> None:
    script = Script(events=text_events("Open [1] and", stop_reason=None), ending="hang")
    with replay_server(script) as server:
        growing = answer(prompt_of(), answerer_for(server))
        first = await anext(growing)
        await growing.aclose()  # type: ignore[attr-defined]
        assert await asyncio.to_thread(server.client_gone.wait, 10)
    stopped = cancelled(first, prompt_of())
    assert (stopped.state, stopped.text, stopped.cited) == ("cancelled", "Open [1] and", (1,))


async def test_cancelling_the_task_closes_the_connection_while_it_waits() -> None:
    script = Script(events=text_events("Open [1]", stop_reason=None), ending="hang")
    with replay_server(script) as server:
        task = asyncio.create_task(collect(answerer_for(server)))
        assert await asyncio.to_thread(server.sent.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_gone.wait, 10)


async def test_escapes_and_markup_pass_unchanged() -> None:
    text = "[/b] [@click=app.quit]x[/] \x1b]0;title\x07 [bold]\x00 list[int] [1]"
    final = await final_of(Script(events=text_events(*text)))
    assert final.text == text
    assert final.cited == (1,)


async def test_without_sources_nobody_is_asked() -> None:
    with replay_server(Script(events=text_events("From memory [1]."))) as server:
        (only,) = await collect(answerer_for(server), prompt_of(0))
    assert (only.text, only.state, only.citations) == (NOT_FOUND, "not found", ())
    assert server.requests == []


async def test_an_answerer_that_stops_without_a_last_word_ended_early() -> None:
    class Mute:
        name = "mute"

        async def stream(self, prompt: Prompt) -> Any:
            yield prompt.sources[0].text

    seen = await collect(Mute())
    assert [a.state for a in seen] == ["streaming", "ended early"]
    assert seen[-1].text == "Text 1."


@pytest.mark.parametrize(
    ("provider", "base_url", "environ", "kind"),
    [
        ("auto", "", {}, ExtractiveAnswerer),
        ("auto", "", {"ANTHROPIC_API_KEY": " "}, ExtractiveAnswerer),
        ("auto", "", {"ANTHROPIC_API_KEY": KEY}, ClaudeAnswerer),
        ("auto", "", {"ANTHROPIC_AUTH_TOKEN": KEY}, ClaudeAnswerer),
        ("auto", "", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, ClaudeAnswerer),
        ("auto", "http://127.0.0.1:1", {}, ClaudeAnswerer),
        ("extractive", "http://127.0.0.1:1", {"ANTHROPIC_API_KEY": KEY}, ExtractiveAnswerer),
        ("claude", "", {}, ClaudeAnswerer),
    ],
)
def test_who_answers_follows_from_settings_and_environment(
    provider: Any, base_url: str, environ: dict[str, str], kind: type
) -> None:
    settings = AnswerSettings(provider=provider, base_url=base_url)
    # Choosing must not load a model, so there is none.
    no_models: Models = object()  # type: ignore[assignment]
    assert isinstance(make_answerer(settings, no_models, environ), kind)
