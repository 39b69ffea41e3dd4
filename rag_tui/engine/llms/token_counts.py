"""The service's own count of a prompt's tokens, in all and for each source."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_tui.engine.keys import without_keys
from rag_tui.engine.llms.claude_client import (
    Endpoint,
    find_endpoint,
    http_library,
    make_client,
)
from rag_tui.engine.llms.claude_errors import trouble_of
from rag_tui.engine.prompt_request import message_content, request_body
from rag_tui.engine.prompt_size import ESTIMATE, PromptSize, estimate_size, size_of
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

    from rag_tui.engine.corpus_facts import Prices

_AT_ONCE = 4
_KEPT = 500
"""Counts that are remembered."""
_NOT_COUNTED = ("max_tokens", "stream")


class TokenCounter:
    """Counts by ``POST /v1/messages/count_tokens``; what was counted once is not asked again.

    Args:
        settings: Model and address.
        environ: Where key and address are looked up; the process's environment if None.
    """

    def __init__(
        self, settings: AnswerSettings, *, environ: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._known: dict[str, int] = {}

    async def size(self, prompt: Prompt, *, context_window: int, prices: Prices) -> PromptSize:
        """The size of a prompt: counted where there is a service, else estimated, and why.

        A source is counted as a message of its own, less what an empty message is. Nothing is
        raised when the service fails; cancelling closes its connections.
        """
        endpoint = await asyncio.to_thread(find_endpoint, self._settings, self._environ)
        if not endpoint.is_set:
            return estimate_size(
                prompt, self._settings, context_window=context_window, prices=prices
            )
        try:
            total, sources = await self._counted(prompt, endpoint)
        except _CountError as error:
            return estimate_size(
                prompt,
                self._settings,
                context_window=context_window,
                prices=prices,
                note=f"{ESTIMATE}, because counting failed. {error}",
            )
        return size_of(
            total,
            sources,
            self._settings,
            context_window=context_window,
            prices=prices,
            is_estimate=False,
            note=f"counted by {endpoint.host} for {self._settings.model}",
        )

    async def _counted(self, prompt: Prompt, endpoint: Endpoint) -> tuple[int, tuple[int, ...]]:
        body = request_body(prompt, self._settings)
        whole = {key: value for key, value in body.items() if key not in _NOT_COUNTED}
        requests = [whole, self._message("x"), *map(self._message, _parts(prompt))]
        asking = asyncio.Semaphore(_AT_ONCE)
        try:
            async with (
                make_client(endpoint, self._settings) as client,
                asyncio.timeout(self._settings.timeout_s),
                asyncio.TaskGroup() as group,
            ):
                tasks = [group.create_task(self._count(client, asking, one)) for one in requests]
        except (ExceptionGroup, TimeoutError, ValueError) as error:
            raise self._error(_first(error), endpoint) from None
        total, empty, *sources = [task.result() for task in tasks]
        # The empty message has one token of its own.
        return total, tuple(max(n - empty + 1, 0) for n in sources)

    def _error(self, error: BaseException, endpoint: Endpoint) -> BaseException:
        """What to raise: why there is no count, or the error itself where it is a fault."""
        from anthropic import APIError, APIStatusError

        if isinstance(error, APIStatusError):
            trouble = trouble_of(error, endpoint, self._settings)
            return _CountError(without_keys(f"{trouble.message} {trouble.fix}", endpoint.secrets))
        expected = (APIError, http_library().HTTPError, TimeoutError, ValueError, TypeError)
        if not isinstance(error, expected):
            return error
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        return _CountError(without_keys(reason, endpoint.secrets))

    def _message(self, content: Any) -> dict[str, Any]:
        return {
            "model": self._settings.model,
            "messages": [{"role": "user", "content": content}],
        }

    async def _count(
        self, client: AsyncAnthropic, asking: asyncio.Semaphore, request: dict[str, Any]
    ) -> int:
        name = repr(request)
        if name not in self._known:
            async with asking:
                counted = await client.messages.count_tokens(**request)
            n_tokens = getattr(counted, "input_tokens", None)
            if not isinstance(n_tokens, int):
                raise ValueError("the reply holds no count")
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[name] = n_tokens
        return self._known[name]


class _CountError(Exception):
    """Why the service gave no count."""


def _parts(prompt: Prompt) -> list[Any]:
    """Each source as the content of a message."""
    if prompt.kind == "search_results":
        return [[block] for block in message_content(prompt)[:-1]]
    return [prompt.user[start:end] for _, start, end in prompt.spans]


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
