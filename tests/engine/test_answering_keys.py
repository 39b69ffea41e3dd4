"""Where the key comes from, and that it goes nowhere but to the service."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError

from rag_tui.cli.answers import AskOptions, ask_command
from rag_tui.engine.answering import answer, make_answerer
from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.keys import KEY_VARIABLES, Key, find_key, without_keys
from rag_tui.engine.llms.claude import ClaudeAnswerer
from rag_tui.engine.llms.claude_client import Endpoint
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.llms.token_counts import TokenCounter
from rag_tui.engine.prompt_request import as_curl, as_json, as_python
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Chunk
from rag_tui.logfile import log, log_place, silence, start_log
from tests.sse_server import Script, event, replay_server, text_events

KEY = "sk-test-3141592653-very-secret"
NO_MODELS: Any = object()


class OneKey(KeyringBackend):  # type: ignore[misc]
    """A keyring in memory."""

    priority = 1

    def __init__(self, value: str | None, error: Exception | None = None) -> None:
        self.value = value
        self.error = error
        self.asked: list[tuple[str, str]] = []

    def get_password(self, service: str, username: str) -> str | None:
        self.asked.append((service, username))
        if self.error is not None:
            raise self.error
        return self.value

    def set_password(self, service: str, username: str, password: str) -> None:
        raise AssertionError("nothing may be written into the keyring")

    def delete_password(self, service: str, username: str) -> None:
        raise AssertionError("nothing may be deleted from the keyring")


@pytest.fixture
def ring() -> Iterator[OneKey]:
    before = keyring.get_keyring()
    backend = OneKey(KEY)
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_the_environment_goes_before_the_keyring(ring: OneKey) -> None:
    found = find_key({"ANTHROPIC_AUTH_TOKEN": "token-of-the-shell"})
    assert found == Key("ANTHROPIC_AUTH_TOKEN", "token-of-the-shell", "environment")
    assert ring.asked == []
    assert find_key({"ANTHROPIC_API_KEY": " "}) == Key("ANTHROPIC_API_KEY", KEY, "keyring")
    assert ring.asked == [("rag-tui", "ANTHROPIC_API_KEY")]


@pytest.mark.parametrize("error", [KeyringError("locked"), RuntimeError("no bus"), OSError("gone")])
def test_a_keyring_that_cannot_be_read_is_as_one_without_a_key(
    ring: OneKey, error: Exception
) -> None:
    ring.error = error
    assert find_key({}) is None
    assert isinstance(make_answerer(AnswerSettings(), NO_MODELS, {}), ExtractiveAnswerer)


def test_without_the_package_there_is_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find_key({}) is None


async def test_a_key_of_the_keyring_is_used_and_named_when_it_is_refused(ring: OneKey) -> None:
    prompt = build_prompt("q", [Chunk("c", "a.md", 0, 0, 4, "Text")], max_sources=1)
    assert isinstance(make_answerer(AnswerSettings(), NO_MODELS, {}), ClaudeAnswerer)
    with replay_server(Script(status=401, message=f"bad {KEY}")) as server:
        settings = AnswerSettings(base_url=server.base_url)
        answerer = ClaudeAnswerer(settings, environ={})
        *_, final = [one async for one in answer(prompt, answerer)]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "the keyring (ANTHROPIC_API_KEY) is not accepted" in final.detail
    assert KEY not in repr(final)


def test_a_key_is_in_no_representation() -> None:
    key = Key("ANTHROPIC_API_KEY", KEY, "environment")
    assert KEY not in f"{key} {key!r} {Endpoint('http://x', key)!r}"


def test_only_what_can_be_a_key_is_hidden() -> None:
    assert without_keys(f"no {KEY} and no word", [KEY, "word"]) == "no *** and no word"


async def test_no_file_and_no_output_ever_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Grass\n\nGrass is green and grows.\n", encoding="utf-8")
    monkeypatch.setenv("RAG_TUI_CACHE_DIR", str(home / "cache"))
    for name in KEY_VARIABLES:
        monkeypatch.setenv(name, KEY)
    echoing = event("error", error={"type": "api_error", "message": f"your key is {KEY}"})
    scripts = [
        Script(events=text_events("Green [1].")),
        Script(status=401, message=f"{KEY} is wrong"),
        Script(events=[*text_events("Green", stop_reason=None), echoing]),
        Script(status=529, message=f"busy {KEY}", retry_after="0.01"),
        Script(events=["event: message_start\ndata: {oops " + KEY]),
    ]
    start_log(log_place(home / "cache"))
    log.setLevel(logging.DEBUG)
    overrides = {"models.embedder": "hashing", "search.rerank": False}
    codes = []
    exports = home / "exports"
    exports.mkdir(parents=True)
    try:
        for number, script in enumerate(scripts):
            with replay_server(script) as server:
                monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
                settings = AnswerSettings(base_url=server.base_url, timeout_s=5)
                for as_table in (False, True):
                    code = await _in_thread(
                        ask_command, "What is green?", folder, overrides,
                        AskOptions(as_json=as_table),
                    )  # fmt: skip
                    codes.append(code)
                await _in_thread(
                    ask_command, "What is green?", folder, overrides,
                    AskOptions(show_prompt=True, as_json=True),
                )  # fmt: skip
                prompt = build_prompt(
                    "q", [Chunk("c", "a.md", 0, 0, 4, "Text")], max_sources=1, template="native"
                )
                size = await TokenCounter(replace(settings, max_retries=0)).size(
                    prompt, context_window=9, prices=Prices()
                )
                log.info("counted: %r", size)
                for export in (as_json, as_curl, as_python):
                    text = export(prompt, settings)
                    (exports / f"{export.__name__}-{number}").write_text(text, encoding="utf-8")
                assert KEY in str(server.requests[0].headers)  # it did go out
    finally:
        silence()
    assert codes == [0, 0, *[1] * 8]
    printed = capsys.readouterr()
    assert "***" in printed.err
    assert KEY not in printed.out + printed.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "rag-tui.log" for path in files)
    assert any("CURRENT" in path.name for path in files)
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


async def _in_thread(function: Any, *arguments: Any) -> Any:
    # A command runs a loop of its own.
    import asyncio

    return await asyncio.to_thread(function, *arguments)
