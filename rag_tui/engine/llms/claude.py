"""Answers from a language model that speaks the Messages API, streamed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import NOT_FOUND, Answer, AnswerState, Prompt

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Where the key is looked for, first one first; read at each request and kept nowhere."""
BASE_URL_VARIABLE = "ANTHROPIC_BASE_URL"

# A server on one's own machine wants no key, but the SDK sends no request without one.
_PLACEHOLDER_KEY = "no-key-set"
_KEY_FIX = "Set ANTHROPIC_API_KEY to a valid key, or choose the extractive answerer."
_ADDRESS_FIX = f"Check answer.base_url and {BASE_URL_VARIABLE}, and the network."


SHORTEST_KEY = 8
"""Characters that a key has at least."""


class ClaudeAnswerer:
    """Streams from the Messages API through the ``anthropic`` SDK.

    The SDK itself tries a request three times on 408, 409, 429, 5xx (529 among them) and
    connection errors, waiting as the server's ``retry-after`` says; nothing is retried on top.

    Args:
        settings: Model, token limit, address and timeout; an empty address means
            ``ANTHROPIC_BASE_URL``, else the SDK's own.
        environ: Where key and address are looked up; the process's environment if None.
    """

    def __init__(
        self, settings: AnswerSettings, *, environ: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._environ: Mapping[str, str] = os.environ if environ is None else environ

    @property
    def name(self) -> str:
        """The model's name."""
        return self._settings.model

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """Pieces of text as they come, then one `Answer`; failures are told in it, not raised.

        Thinking is not part of the answer. Closing the iterator closes the connection.
        """
        if not self._base_url and not self._keys:
            yield self._failed(_Reply(), "No API key is set.", _KEY_FIX)
            return
        from anthropic import APIError, APIStatusError, APITimeoutError

        http = _http_library()
        reply = _Reply()
        client = self._client()
        try:
            # The SDK's own waits between tries are not part of its timeout.
            async with asyncio.timeout(self._settings.timeout_s):
                events = await client.messages.create(
                    model=self._settings.model,
                    max_tokens=self._settings.max_tokens,
                    system=prompt.system,
                    messages=[{"role": "user", "content": prompt.user}],
                    stream=True,
                )
            try:
                async for event in events:
                    reply.is_open = True
                    if piece := reply.read(event):
                        yield piece
            finally:
                await events.close()
            final = self._finished(reply)
        except APIStatusError as error:
            final = self._failed(reply, *self._status(error))
        except (APITimeoutError, http.TimeoutException):
            waited = f"Nothing came for {self._settings.timeout_s:g} s."
            final = self._failed(reply, waited, f"Raise answer.timeout_s. {_ADDRESS_FIX}")
        except (APIError, http.HTTPError) as error:
            cause = f": {error.__cause__ or error}".rstrip(" :.")
            final = self._failed(
                reply, f"The connection to {self._host} failed{cause}.", _ADDRESS_FIX
            )
        except TimeoutError:
            final = self._failed(
                reply,
                f"{self._host} gave no answer within {self._settings.timeout_s:g} s.",
                "Ask again later, or raise answer.timeout_s.",
            )
        except (ValueError, AttributeError, TypeError) as error:
            # A malformed address, a line of the stream that is not JSON, or an event without
            # the parts it must have.
            final = self._failed(
                reply, f"No usable reply from {self._host}: {error}.", _ADDRESS_FIX
            )
        finally:
            await client.close()
        yield final

    @property
    def _base_url(self) -> str:
        return self._settings.base_url or self._environ.get(BASE_URL_VARIABLE, "")

    @property
    def _host(self) -> str:
        """The address without user and password, which a URL can hold."""
        if not self._base_url:
            return "the answering service"
        try:
            return urlsplit(self._base_url).netloc.rpartition("@")[2] or self._base_url
        except ValueError:
            return "the answering service"

    @property
    def _keys(self) -> dict[str, str]:
        found = {name: self._environ.get(name, "").strip() for name in KEY_VARIABLES}
        return {name: value for name, value in found.items() if value}

    def _client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        keys = self._keys
        api_key = keys.get("ANTHROPIC_API_KEY")
        token = None if api_key else keys.get("ANTHROPIC_AUTH_TOKEN")
        return AsyncAnthropic(
            api_key=None if token else api_key or _PLACEHOLDER_KEY,
            auth_token=token,
            base_url=self._base_url or None,
            timeout=self._settings.timeout_s,
        )

    def _finished(self, reply: _Reply) -> Answer:
        """What the end of an unbroken stream means."""
        is_blank = not reply.text.strip()
        state: AnswerState
        detail = ""
        match reply.stop_reason:
            case "max_tokens":
                state = "cut at the token limit"
                limit = self._settings.max_tokens
                what = "All of it went into thinking. " if is_blank else ""
                detail = f"The limit is {limit} tokens. {what}Raise answer.max_tokens."
            case "model_context_window_exceeded":
                state = "cut: context window full"
                detail = "Prompt and answer together exceed the model's window. Send fewer sources."
            case "refusal":
                state = "refused by the model"
                detail = reply.refusal or "The model declined. Rephrase the question."
            case "end_turn" | "stop_sequence":
                if is_blank:
                    state, detail = "empty answer", "The model ended without text. Ask again."
                elif reply.text.strip() == NOT_FOUND:
                    state = "not found"
                else:
                    state = "complete"
            case None:
                state = "ended early"
                detail = "The stream ended without saying why. Ask again."
            case other:
                state = "ended early"
                detail = f"The model stopped for an unexpected reason: {other}."
        return self._answer(reply, state, detail)

    def _failed(self, reply: _Reply, message: str, fix: str) -> Answer:
        # Once the reply has begun it is a broken one, not a failed request: its text is kept.
        state: AnswerState = "ended early" if reply.is_open else "failed"
        return self._answer(reply, state, f"{message} {fix}")

    def _answer(self, reply: _Reply, state: AnswerState, detail: str) -> Answer:
        for value in self._keys.values():
            # Servers echo what they were sent; a key must not reach the screen or a saved file.
            # Anything this short is no key, and may be a word of the message itself.
            if len(value) >= SHORTEST_KEY:
                detail = detail.replace(value, "***")
        return Answer(
            text=reply.text,
            state=state,
            answerer=self.name,
            detail=detail,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
        )

    def _status(self, error: APIStatusError) -> tuple[str, str]:
        """What a refused request means and how to mend it."""
        said = f": {error.api_message.rstrip('.')}" if error.api_message else ""
        code = error.status_code
        kind = error.type or ""
        # Errors in mid-stream come with the stream's own status, 200; only the type tells.
        by_type = {"overloaded_error": 529, "rate_limit_error": 429, "authentication_error": 401}
        if code == 200:
            code = by_type.get(kind, code)
        first = f"{self._host} answered {code}{said}."
        match code:
            case 401 if not self._keys:
                return first, f"No API key is set. {_KEY_FIX}"
            case 401:
                used = next(iter(self._keys))
                return first, f"The key in {used} is not accepted: set a valid one."
            case 403:
                return first, "The key may not use this model: change the key or answer.model."
            case 404:
                model = self._settings.model
                return first, f"Check answer.model (now {model}) and answer.base_url."
            case 413:
                return first, "The prompt is too large: lower answer.n_sources or the chunk size."
            case 429:
                return first, "Too many requests: wait, or use another key."
            case 529 | 503:
                return first, "The service is overloaded: ask again later."
            case 400:
                return first, "Check answer.model and answer.max_tokens."
            case _:
                return first, "Ask again later."


def _http_library() -> ModuleType:
    """The SDK's HTTP library, whose errors a connection raises that breaks in mid-stream.

    It is not the same package in every version of the SDK.
    """
    try:
        return import_module("httpx2")
    except ModuleNotFoundError:
        return import_module("httpx")


@dataclass(slots=True)
class _Reply:
    """What has come of one reply."""

    text: str = ""
    is_open: bool = False
    stop_reason: str | None = None
    refusal: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None

    def read(self, event: Any) -> str:
        """Take in one event; the answer text in it, if any. Unknown events are passed over."""
        match getattr(event, "type", ""):
            case "message_start":
                self.input_tokens = getattr(event.message.usage, "input_tokens", None)
            case "content_block_start" if event.content_block.type == "text":
                return self._add(event.content_block.text or "")
            case "content_block_delta" if event.delta.type == "text_delta":
                return self._add(event.delta.text or "")
            case "message_delta":
                self.stop_reason = event.delta.stop_reason
                details = getattr(event.delta, "stop_details", None)
                self.refusal = getattr(details, "explanation", None) or ""
                self.output_tokens = getattr(event.usage, "output_tokens", None)
        return ""

    def _add(self, piece: str) -> str:
        self.text += piece
        return piece
