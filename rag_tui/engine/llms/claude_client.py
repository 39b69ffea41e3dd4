"""Where the Messages API is, with which key, and the client that goes there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_tui.engine.keys import Key, find_key
from rag_tui.engine.settings import AnswerSettings

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

BASE_URL_VARIABLE = "ANTHROPIC_BASE_URL"

# A server on one's own machine wants no key, but the SDK sends no request without one.
_PLACEHOLDER_KEY = "no-key-set"
_RETRIED = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address and the key for it, for one request."""

    base_url: str
    """Empty: the SDK's own."""
    key: Key | None = field(repr=False)

    @property
    def is_set(self) -> bool:
        """Whether there is anything to ask with."""
        return bool(self.base_url or self.key)

    @property
    def host(self) -> str:
        """The address without user and password, which a URL can hold."""
        if not self.base_url:
            return "the answering service"
        try:
            return urlsplit(self.base_url).netloc.rpartition("@")[2] or self.base_url
        except ValueError:
            return "the answering service"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return (self.key.value,) if self.key else ()


def find_endpoint(settings: AnswerSettings, environ: Mapping[str, str] | None = None) -> Endpoint:
    """Address and key by settings, environment and keyring.

    The settings' address goes before ``ANTHROPIC_BASE_URL``. May wait for a keyring: see
    `rag_tui.engine.keys.find_key`.
    """
    place = os.environ if environ is None else environ
    return Endpoint(settings.base_url or place.get(BASE_URL_VARIABLE, ""), find_key(place))


class Attempts:
    """Watches the SDK try a request, so that waiting can be shown.

    Args:
        host: Named in the notes.
        max_retries: Further tries after the first.
    """

    def __init__(self, host: str, max_retries: int) -> None:
        self.n = 0
        """Requests sent so far."""
        self.notes: asyncio.Queue[str] = asyncio.Queue()
        """What to tell about tries after the first."""
        self._host = host
        self._total = max_retries + 1

    async def sending(self, request: Any) -> None:
        """Called by the HTTP library before each request."""
        self.n += 1
        if self.n > 1:
            self.notes.put_nowait(f"Retrying: try {self.n} of {self._total}.")

    async def answered(self, response: Any) -> None:
        """Called by the HTTP library when the head of a response is there."""
        status = response.status_code
        told = response.headers.get("x-should-retry", "")
        is_retried = told == "true" or (told != "false" and (status in _RETRIED or status >= 500))
        if status < 400 or not is_retried or self.n >= self._total:
            return
        wait = response.headers.get("retry-after", "")
        after = f" after the {wait} s it asks for" if wait.replace(".", "", 1).isdecimal() else ""
        self.notes.put_nowait(
            f"Retrying{after}: {self._host} answered {status} to try {self.n} of {self._total}."
        )


def make_client(
    endpoint: Endpoint, settings: AnswerSettings, attempts: Attempts | None = None
) -> AsyncAnthropic:
    """A client; proxies and certificates are as the SDK's environment variables say.

    The SDK itself tries again on 408, 409, 429, 5xx (529 among them) and connection errors,
    waiting as the server's ``retry-after`` says, else longer each time.
    """
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    key = endpoint.key
    is_token = key is not None and key.name == "ANTHROPIC_AUTH_TOKEN"
    value = key.value if key else _PLACEHOLDER_KEY
    hooks: dict[str, list[Callable[..., Any]]] = {}
    if attempts is not None:
        hooks = {"request": [attempts.sending], "response": [attempts.answered]}
    return AsyncAnthropic(
        api_key=None if is_token else value,
        auth_token=value if is_token else None,
        base_url=endpoint.base_url or None,
        timeout=settings.timeout_s,
        max_retries=settings.max_retries,
        http_client=DefaultAsyncHttpxClient(event_hooks=hooks, timeout=settings.timeout_s),
    )


def http_library() -> ModuleType:
    """The SDK's HTTP library, whose errors a connection raises that breaks in mid-stream.

    It is not the same package in every version of the SDK.
    """
    try:
        return import_module("httpx2")
    except ModuleNotFoundError:
        return import_module("httpx")
