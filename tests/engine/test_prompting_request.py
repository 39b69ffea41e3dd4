from __future__ import annotations

import ast
import asyncio
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.llms.claude import ClaudeAnswerer
from rag_tui.engine.llms.token_counts import TokenCounter
from rag_tui.engine.prompt_request import as_curl, as_json, as_python, request_body
from rag_tui.engine.prompt_size import PromptSize, answer_cost, estimate_size
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, Chunk, Prompt
from tests.sse_server import ReplayServer, Script, replay_server, text_events

KEY = "sk-test-0123456789-secret"
TEXT = 'It\'s $(touch x) `id` "q" \\ </source> \x1b[31m\x00 é 日本 🚀\n@file %s \ud800'
PRICES = Prices(input=5.0, cache_write=6.25, cache_read=0.5, output=25.0)
EVERY = ("numbered", "documents", "native")


def prompt_of(template: str = "numbered", *texts: str) -> Prompt:
    chunks = [
        Chunk(f"c{n}", "it's.md", n, 0, len(t), t, ("It's",))
        for n, t in enumerate(texts or (TEXT, "Two."))
    ]
    return build_prompt("What's \x1b now?", chunks, max_sources=9, template=template)


def settings_for(server: ReplayServer | None = None, **values: Any) -> AnswerSettings:
    base_url = server.base_url if server else ""
    return AnswerSettings(model="test-model", max_tokens=77, base_url=base_url, **values)


def environ_of(server: ReplayServer) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC_")}
    return {**kept, "ANTHROPIC_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}


@pytest.mark.parametrize("is_rich", [False, True])
@pytest.mark.parametrize("template", EVERY)
async def test_the_json_shown_is_the_body_that_is_sent(template: str, is_rich: bool) -> None:
    prompt = prompt_of(template)
    with replay_server(Script(events=text_events("ok"))) as server:
        settings = settings_for(
            server, thinking=is_rich, cache_prompt=is_rich, effort="low" if is_rich else ""
        )
        answerer = ClaudeAnswerer(settings, environ={"ANTHROPIC_API_KEY": KEY})
        _ = [item async for item in answerer.stream(prompt)]
    assert server.requests[0].body == json.loads(as_json(prompt, settings))
    assert server.requests[0].body == request_body(prompt, settings)


def test_thinking_and_effort_are_sent_only_when_set() -> None:
    plain = request_body(prompt_of(), settings_for())
    assert set(plain) == {"model", "max_tokens", "stream", "system", "messages"}
    asked = request_body(prompt_of(), settings_for(thinking=True, effort="high"))
    assert asked["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert asked["output_config"] == {"effort": "high"}


@pytest.mark.parametrize("template", ["numbered", "documents"])
def test_caching_marks_rules_and_sources_and_changes_no_character(template: str) -> None:
    prompt = prompt_of(template)
    body = request_body(prompt, settings_for(cache_prompt=True))
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": prompt.system, "cache_control": mark}]
    sources, question = body["messages"][0]["content"]
    assert sources["cache_control"] == mark
    assert "cache_control" not in question
    assert sources["text"] + question["text"] == prompt.user
    # The cached part holds all sources and nothing that changes with the question.
    assert "Two." in sources["text"]
    assert "now?" not in sources["text"]


def test_caching_of_search_results_marks_the_last_one() -> None:
    body = request_body(prompt_of("native"), settings_for(cache_prompt=True))
    marks = ["cache_control" in block for block in body["messages"][0]["content"]]
    assert marks == [False, True, False]


@pytest.mark.parametrize("template", EVERY)
def test_the_curl_command_sends_the_same_body_with_the_key_of_the_shell(template: str) -> None:
    if not (shutil.which("curl") and shutil.which("sh")):
        pytest.skip("curl and a POSIX shell are needed")
    prompt = prompt_of(template)
    with replay_server(Script(events=text_events("ok"))) as server:
        command = as_curl(prompt, settings_for(server))
        subprocess.run(["sh", "-c", command], check=True, env=environ_of(server), timeout=30)
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.body == request_body(prompt, settings_for())
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("template", ["numbered", "native"])
def test_the_program_parses_and_sends_the_same_body(template: str) -> None:
    prompt = prompt_of(template)
    with replay_server(Script(events=text_events("Dry ", "it."))) as server:
        program = as_python(prompt, settings_for(server))
        assert isinstance(ast.parse(program), ast.Module)
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=True, env=environ_of(server), timeout=60, capture_output=True, text=True,
        )  # fmt: skip
    assert done.stdout == "Dry it.\n"
    (request,) = server.requests
    assert request.body == request_body(prompt, settings_for())
    assert request.headers["authorization"] == f"Bearer {KEY}"
    # The curl command must name the version of the API that the package speaks.
    assert f"anthropic-version: {request.headers['anthropic-version']}" in as_curl(
        prompt, settings_for()
    )


def test_no_export_holds_a_key_or_a_password() -> None:
    settings = settings_for()
    address = "https://me:hunter2@example.org/api/?token=hunter2"
    told = [
        as_curl(prompt_of(), settings, base_url=address),
        as_python(prompt_of(), settings, base_url=address),
        as_json(prompt_of(), settings),
    ]
    assert all("hunter2" not in text and KEY not in text for text in told)
    assert "https://example.org/api/v1/messages" in told[0]
    assert "$ANTHROPIC_API_KEY" in told[0]
    assert "base_url='https://example.org/api'" in told[1]
    assert "Anthropic()" in as_python(prompt_of(), settings)


def test_the_estimate_counts_all_that_is_sent_and_prices_it() -> None:
    prompt = prompt_of("numbered", "a" * 4000, "b" * 400)
    size = estimate_size(prompt, settings_for(), context_window=3000, prices=PRICES)
    first, second = size.source_tokens
    assert 1000 < first < 1030
    assert 100 < second < 130
    assert size.n_tokens > first + second + 200  # the rules
    assert size.is_estimate
    assert size.n_free == 3000 - size.n_tokens - 77
    assert size.fits
    assert size.input_cost == pytest.approx(size.n_tokens * 5e-6)
    assert size.most_cost == pytest.approx(size.n_tokens * 5e-6 + 77 * 25e-6)
    assert not estimate_size(prompt, settings_for(), context_window=1400, prices=PRICES).fits


def test_the_estimate_of_search_results_does_not_count_the_json_around_them() -> None:
    text = "One short sentence. " * 50
    native = estimate_size(
        prompt_of("native", text), settings_for(), context_window=9, prices=PRICES
    )
    plain = estimate_size(
        prompt_of("numbered", text), settings_for(), context_window=9, prices=PRICES
    )
    assert abs(native.source_tokens[0] - plain.source_tokens[0]) < 20


def counted(body: Any) -> dict[str, int]:
    """A service that counts a token a word, and 5 for every message."""
    content = body["messages"][0]["content"]
    text = content if isinstance(content, str) else json.dumps(content)
    return {"input_tokens": 5 + len(text.split()) + len(str(body.get("system", "")).split())}


async def size_by(server: ReplayServer, prompt: Prompt, counter: TokenCounter) -> PromptSize:
    return await counter.size(prompt, context_window=1000, prices=PRICES)


@pytest.mark.parametrize("template", EVERY)
async def test_with_a_service_tokens_are_its_own_count(template: str) -> None:
    prompt = prompt_of(template, "one two three", "four")
    with replay_server(Script(reply=counted)) as server:
        counter = TokenCounter(settings_for(server), environ={})
        size = await size_by(server, prompt, counter)
        paths = {request.path for request in server.requests}
        n_requests = len(server.requests)
        again = await size_by(server, prompt, counter)
        assert len(server.requests) == n_requests == 4
    assert paths == {"/v1/messages/count_tokens"}
    whole = request_body(prompt, settings_for())
    assert size.n_tokens == counted(whole)["input_tokens"]
    if template == "numbered":
        # <source id="1" file="it's.md" title="It's"> is four words, </source> one.
        assert size.source_tokens == (4 + 3 + 1, 4 + 1 + 1)
    assert len(size.source_tokens) == 2
    assert not size.is_estimate
    assert again == size
    assert not any({"max_tokens", "stream"} & set(r.body) for r in server.requests)


async def test_without_a_service_nobody_is_asked_and_the_rule_is_told() -> None:
    size = await TokenCounter(settings_for(), environ={}).size(
        prompt_of(), context_window=9, prices=PRICES
    )
    assert size.is_estimate
    assert "four Latin characters" in size.note


@pytest.mark.parametrize(
    "script",
    [
        Script(status=401, message=f"bad {KEY}"),
        Script(status=529, retry_after="0.01"),
        Script(reply=lambda _: {"odd": 1}),
        Script(events=text_events("no JSON")),
        Script(ending="hang before headers"),
    ],
)
async def test_a_count_that_fails_leaves_the_estimate_and_says_why(script: Script) -> None:
    prompt = prompt_of()
    with replay_server(script) as server:
        settings = settings_for(server, timeout_s=0.3, max_retries=0)
        counter = TokenCounter(settings, environ={"ANTHROPIC_API_KEY": KEY})
        size = await size_by(server, prompt, counter)
    estimate = estimate_size(prompt, settings, context_window=1000, prices=PRICES)
    assert (size.n_tokens, size.source_tokens) == (estimate.n_tokens, estimate.source_tokens)
    assert size.is_estimate
    assert "because counting failed" in size.note
    assert KEY not in size.note


async def test_cancelling_a_count_closes_its_connections() -> None:
    with replay_server(Script(ending="hang before headers")) as server:
        counter = TokenCounter(settings_for(server), environ={})
        task = asyncio.create_task(size_by(server, prompt_of(), counter))
        assert await asyncio.to_thread(server.sent.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_gone.wait, 10)


def test_what_an_answer_cost_counts_each_kind_of_token_at_its_price() -> None:
    answer = Answer(
        "x", "complete", "m",
        input_tokens=1000, cache_write_tokens=2000, cache_read_tokens=4000, output_tokens=300,
    )  # fmt: skip
    # 1000 * 5 + 2000 * 6.25 + 4000 * 0.5 + 300 * 25 = 27,000 millionths
    assert answer_cost(answer, PRICES) == pytest.approx(0.027)
    assert answer_cost(Answer("x", "complete", "extractive"), PRICES) is None
