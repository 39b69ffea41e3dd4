"""The request of the Messages API that a prompt becomes: as data, as JSON, as curl, as Python.

What is exported is what is sent. A key is in none of it.
"""

from __future__ import annotations

import json
import pprint
import shlex
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rag_tui.engine.prompt_text import one_line
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Prompt

API_ADDRESS = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
"""Sent as ``anthropic-version``, as the SDK's present major version does."""

_CACHED = {"type": "ephemeral"}


def request_body(prompt: Prompt, settings: AnswerSettings) -> dict[str, Any]:
    """The JSON body that asks for a streamed answer, exactly as it is sent.

    With ``cache_prompt`` the rules and the sources each end with a mark up to which the service
    may keep the request; parts shorter than the model's least cacheable length are not kept.
    Without ``thinking`` nothing is said about it: models that always think refuse to be told not
    to.
    """
    is_cached = settings.cache_prompt
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": settings.max_tokens,
        "stream": True,
        "system": [{"type": "text", "text": prompt.system, "cache_control": _CACHED}]
        if is_cached
        else prompt.system,
        "messages": [{"role": "user", "content": _content(prompt, is_cached=is_cached)}],
    }
    if settings.thinking:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    if settings.effort:
        body["output_config"] = {"effort": settings.effort}
    return body


def message_content(prompt: Prompt) -> list[dict[str, Any]]:
    """The content blocks of the user's turn; a template of texts has a single one."""
    if prompt.kind == "text":
        return [{"type": "text", "text": prompt.user}]
    results: list[dict[str, Any]] = [
        {
            "type": "search_result",
            "source": one_line(source.path),
            "title": one_line(source.heading or source.path),
            "content": [{"type": "text", "text": block} for block in source.blocks],
            "citations": {"enabled": True},
        }
        for source in prompt.sources
    ]
    return [*results, {"type": "text", "text": prompt.closing}]


def as_json(prompt: Prompt, settings: AnswerSettings) -> str:
    """The body, indented."""
    return json.dumps(request_body(prompt, settings), ensure_ascii=False, indent=2)


def as_curl(prompt: Prompt, settings: AnswerSettings, *, base_url: str = "") -> str:
    """A command for a POSIX shell that sends the request with the key in ``ANTHROPIC_API_KEY``.

    Args:
        prompt: The prompt.
        settings: Model, limits and address.
        base_url: Used where the settings name no address; user and password in either are left
            out.
    """
    url = f"{_address(settings, base_url)}/v1/messages"
    body = json.dumps(request_body(prompt, settings), ensure_ascii=False)
    return " \\\n  ".join(
        (
            f"curl -sS --no-buffer {shlex.quote(url)}",
            '-H "authorization: Bearer $ANTHROPIC_API_KEY"',
            f"-H 'anthropic-version: {API_VERSION}'",
            "-H 'content-type: application/json'",
            f"--data-raw {shlex.quote(body)}",
        )
    )


def as_python(prompt: Prompt, settings: AnswerSettings, *, base_url: str = "") -> str:
    """A program for the ``anthropic`` package that sends the request and prints the answer.

    The package finds the key by itself. See `as_curl` for the arguments.
    """
    address = _address(settings, base_url)
    where = "" if address == API_ADDRESS else f"base_url={address!r}"
    body = request_body(prompt, settings)
    del body["stream"]  # messages.stream() adds it
    shown = pprint.pformat(body, width=96, sort_dicts=False)
    return (
        "import anthropic\n\n"
        f"client = anthropic.Anthropic({where})  # the key: ANTHROPIC_API_KEY\n"
        f"request = {shown}\n"
        "with client.messages.stream(**request) as stream:\n"
        "    for text in stream.text_stream:\n"
        '        print(text, end="", flush=True)\n'
        "print()\n"
    )


def _content(prompt: Prompt, *, is_cached: bool) -> Any:
    if prompt.kind == "search_results":
        blocks = message_content(prompt)
        if is_cached and len(blocks) > 1:
            blocks[-2]["cache_control"] = _CACHED
        return blocks
    if not is_cached or not prompt.sources_end:
        return prompt.user
    sources, rest = prompt.user[: prompt.sources_end], prompt.user[prompt.sources_end :]
    return [
        {"type": "text", "text": sources, "cache_control": _CACHED},
        {"type": "text", "text": rest},
    ]


def _address(settings: AnswerSettings, base_url: str) -> str:
    parts = urlsplit(settings.base_url or base_url or API_ADDRESS)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")).rstrip("/")
