"""Answers from a language model that speaks the Messages API, streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag_tui.engine.keys import KEY_VARIABLES, SHORTEST_KEY, without_keys
from rag_tui.engine.llms.claude_client import (
    BASE_URL_VARIABLE,
    Attempts,
    Endpoint,
    find_endpoint,
    http_library,
    make_client,
)
from rag_tui.engine.llms.claude_errors import ADDRESS_FIX, KEY_FIX, Trouble, trouble_of
from rag_tui.engine.llms.claude_reply import Reply
from rag_tui.engine.prompt_request import request_body
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, AnswerState, Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["BASE_URL_VARIABLE", "KEY_VARIABLES", "SHORTEST_KEY", "ClaudeAnswerer"]

_KEPT = "What had come is kept; ask again for a whole answer."


class ClaudeAnswerer:
    """Streams from the Messages API through the ``anthropic`` SDK.

    The SDK itself tries a request again where that can help, before anything has come; nothing
    is retried on top, and nothing once the reply has begun.

    Args:
        settings: Model, limits, address and timeout; an empty address means
            ``ANTHROPIC_BASE_URL``, else the SDK's own.
        environ: Where key and address are looked up; the process's environment if None.
    """

    def __init__(
        self, settings: AnswerSettings, *, environ: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._environ = environ

    @property
    def name(self) -> str:
        """The model's name."""
        return self._settings.model

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """The answer as it grows, then the finished one; failures are told in it, not raised.

        Thinking is kept apart from the text. Closing the iterator closes the connection.
        """
        endpoint = await asyncio.to_thread(find_endpoint, self._settings, self._environ)
        reply = Reply(prompt)
        if not endpoint.is_set:
            trouble = Trouble("No API key is set.", KEY_FIX)
            yield self._failed(reply, endpoint, trouble)
            return
        from anthropic import APIError, APIStatusError, APITimeoutError

        http = http_library()
        attempts = Attempts(endpoint.host, self._settings.max_retries)
        client: AsyncAnthropic | None = None
        creating: asyncio.Task[Any] | None = None
        try:
            client = make_client(endpoint, self._settings, attempts)
            body = request_body(prompt, self._settings)
            creating = asyncio.create_task(client.messages.create(**body))
            waiting = _notes_until(creating, attempts, self._settings.timeout_s)
            async with aclosing(waiting) as notes:
                async for note in notes:
                    reply.attempts = attempts.n
                    yield reply.answer(self.name, detail=note)
            reply.attempts = max(attempts.n, 1)
            async for event in creating.result():
                if reply.read(event):
                    yield reply.answer(self.name)
            if reply.close_block():
                yield reply.answer(self.name)
            final = self._finished(reply)
        except APIStatusError as error:
            final = self._failed(reply, endpoint, trouble_of(error, endpoint, self._settings))
        except (APITimeoutError, http.TimeoutException):
            waited = f"Nothing came for {self._settings.timeout_s:g} s."
            trouble = Trouble(waited, f"Raise answer.timeout_s. {ADDRESS_FIX}", True)
            final = self._failed(reply, endpoint, trouble)
        except (APIError, http.HTTPError) as error:
            cause = f": {error.__cause__ or error}".rstrip(" :.")
            trouble = Trouble(
                f"The connection to {endpoint.host} failed{cause}.", ADDRESS_FIX, True
            )
            final = self._failed(reply, endpoint, trouble)
        except TimeoutError:
            trouble = Trouble(
                f"{endpoint.host} gave no answer within {self._settings.timeout_s:g} s.",
                "Ask again later, or raise answer.timeout_s.",
                True,
            )
            final = self._failed(reply, endpoint, trouble)
        except (ValueError, AttributeError, TypeError) as error:
            # A malformed address, a line of the stream that is not JSON, or an event without
            # the parts it must have.
            trouble = Trouble(f"No usable reply from {endpoint.host}: {error}.", ADDRESS_FIX)
            final = self._failed(reply, endpoint, trouble)
        finally:
            await _closed(creating, client)
        yield final

    def _finished(self, reply: Reply) -> Answer:
        """What the end of an unbroken stream means."""
        is_blank = not reply.text.strip()
        state: AnswerState
        detail = ""
        can_resend = False
        match reply.stop_reason:
            case "max_tokens":
                state = "cut at the token limit"
                limit = self._settings.max_tokens
                what = "All of it went into thinking. " if is_blank and reply.has_thought else ""
                detail = f"The limit is {limit} tokens. {what}Raise answer.max_tokens."
            case "model_context_window_exceeded":
                state = "cut: context window full"
                detail = "Prompt and answer together exceed the model's window. Send fewer sources."
            case "refusal":
                state = "refused by the model"
                detail = reply.refusal or "The model declined. Rephrase the question."
            case "end_turn" | "stop_sequence":
                if is_blank:
                    state = "empty answer"
                    what = "thought and then ended" if reply.has_thought else "ended"
                    detail = f"The model {what} without text. Ask again."
                    can_resend = True
                elif reply.text.strip() == reply.prompt.not_found:
                    state = "not found"
                else:
                    state = "complete"
            case "pause_turn":
                state = "ended early"
                detail = f"The service paused a long reply (pause_turn). {_KEPT}"
                can_resend = True
            case None:
                state = "ended early"
                detail = f"The stream ended without saying why. {_KEPT}"
                can_resend = True
            case other:
                state = "ended early"
                detail = f"The model stopped for an unexpected reason: {other}. {_KEPT}"
                can_resend = True
        return replace(reply.answer(self.name, state, detail), can_resend=can_resend)

    def _failed(self, reply: Reply, endpoint: Endpoint, trouble: Trouble) -> Answer:
        # Once the reply has begun it is a broken one, not a failed request: its text is kept.
        reply.close_block()
        state: AnswerState = "ended early" if reply.is_open else "failed"
        kept = f" {_KEPT}" if reply.text else ""
        detail = without_keys(f"{trouble.message} {trouble.fix}{kept}", endpoint.secrets)
        answer = reply.answer(self.name, state, detail)
        return replace(answer, can_resend=reply.is_open or trouble.can_resend)


async def _notes_until(
    creating: asyncio.Task[Any], attempts: Attempts, timeout_s: float
) -> AsyncGenerator[str, None]:
    """What there is to tell until a request is answered or has failed for good.

    Raises:
        TimeoutError: When neither has come within ``timeout_s``, waits between tries included.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not creating.done():
        note = asyncio.create_task(attempts.notes.get())
        try:
            left = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(
                {creating, note}, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise TimeoutError
            if note in done and not creating.done():
                yield note.result()
        finally:
            note.cancel()


async def _closed(creating: asyncio.Task[Any] | None, client: AsyncAnthropic | None) -> None:
    """Give up a request in whatever state it is: its connection is closed when this returns."""
    if creating is not None:
        creating.cancel()
        await asyncio.gather(creating, return_exceptions=True)
        if not creating.cancelled() and creating.exception() is None:
            await creating.result().close()
    if client is not None:
        await client.close()
