"""Contextual retrieval: a model writes, for each chunk, a few sentences that place it.

After Anthropic, September 2024, "Introducing Contextual Retrieval": the sentences stand in front
of the chunk when it is embedded and indexed by words. The whole document goes along with each
chunk; prompt caching makes it cheap after the first one, so the chunks of one document are asked
about one after the other, while several documents are under way at once.

The pass is optional, costs money, and can be stopped at any time: every situation is kept as soon
as it is there, and a later pass asks only for what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_tui.engine.contextual_plan import (
    DEFAULT_MODEL,
    KNOWN_PRICES,
    ContextualSettings,
    ModelPrices,
    Plan,
    Usage,
    parts_to_ask,
    plan,
    prices_of,
)
from rag_tui.engine.contextual_prompt import Part, messages_of, system_blocks
from rag_tui.engine.errors import AnswerError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.keys import find_key
from rag_tui.engine.llms.claude import BASE_URL_VARIABLE
from rag_tui.engine.situations import SituationStore
from rag_tui.engine.tokenizing import without_surrogates
from rag_tui.engine.types import Chunk

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

__all__ = [
    "DEFAULT_MODEL",
    "KNOWN_PRICES",
    "MAX_FAILURES_IN_A_ROW",
    "ContextualSettings",
    "ModelPrices",
    "Plan",
    "Situation",
    "SituationFailure",
    "Usage",
    "contextualise",
    "plan",
    "prices_of",
]

MAX_FAILURES_IN_A_ROW = 5
"""After so many a pass ends: what is wrong is wrong for all."""

_POLL_S = 0.1
# A server on one's own machine wants no key, but the SDK sends no request without one.
_PLACEHOLDER_KEY = "no-key-set"
_HOPELESS = {
    401: "Set ANTHROPIC_API_KEY to a valid key.",
    403: "The key may not use this model: change the key or the model.",
    404: "Check the name of the model and answer.base_url.",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """What was written for one chunk; it is in the store already."""

    chunk_id: str
    doc_id: str
    text: str
    usage: Usage
    """As counted by the service."""


@dataclass(frozen=True, slots=True)
class SituationFailure:
    """Why one chunk has none; the others go on."""

    chunk_id: str
    doc_id: str
    reason: str


async def contextualise(
    index: Index,
    settings: ContextualSettings,
    environ: Mapping[str, str],
    *,
    store: SituationStore,
    cancel: CancelToken | None = None,
) -> AsyncIterator[Progress | Situation | SituationFailure]:
    """Ask for the situation of every chunk that has none by this model, and keep each.

    Yields progress and then what became of a chunk, chunks of one document in order. The SDK
    itself tries each request three times. Closing the iterator closes the connections.

    Args:
        index: The chunks.
        settings: Model, bounds, address.
        environ: Where the key is looked up: ``ANTHROPIC_API_KEY``, ``ANTHROPIC_AUTH_TOKEN``.
        store: What is known, and where to keep what is new.
        cancel: Polled every 0.1 s.

    Raises:
        AnswerError: When there is no key, it or the model is refused, or
            `MAX_FAILURES_IN_A_ROW` requests failed one after the other.
        RagTuiError: When the store cannot be used.
        Cancelled: Soon after the token was set.
    """
    token = cancel if cancel is not None else CancelToken()
    known = store.of(index.documents, model=settings.model)
    parts = tuple(parts_to_ask(index, settings, known))
    total = sum(len(part.chunks) for part in parts)
    yield Progress("situate", 0, total, settings.model)
    if not parts:
        return
    asking = _Asking(settings, environ, store)
    results: asyncio.Queue[Situation | SituationFailure | Exception | None] = asyncio.Queue()
    pending = iter(parts)
    n_workers = min(max(settings.concurrency, 1), len(parts))
    tasks = [asyncio.create_task(asking.work(pending, results)) for _ in range(n_workers)]
    done = 0
    try:
        while n_workers:
            token.check()
            try:
                result = await asyncio.wait_for(results.get(), _POLL_S)
            except TimeoutError:
                continue
            if result is None:
                n_workers -= 1
            elif isinstance(result, Exception):
                raise result
            else:
                done += 1
                yield Progress("situate", done, total, result.doc_id)
                yield result
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asking.close()


class _Asking:
    """The requests of one pass."""

    def __init__(
        self, settings: ContextualSettings, environ: Mapping[str, str], store: SituationStore
    ) -> None:
        self._settings = settings
        self._store = store
        key = find_key(environ)
        self._keys = {key.name: key.value} if key is not None else {}
        self._base_url = settings.base_url or environ.get(BASE_URL_VARIABLE, "")
        if not self._keys and not self._base_url:
            raise AnswerError(
                "No API key is set, and situations are written by a model.",
                "Set ANTHROPIC_API_KEY.",
            )
        self._client = self._make_client()
        self._n_failures = 0

    async def work(
        self,
        parts: Iterator[Part],
        results: asyncio.Queue[Situation | SituationFailure | Exception | None],
    ) -> None:
        """Ask about parts until there is none left; ends with None, or with what ends the pass."""
        try:
            for part in parts:
                for chunk in part.chunks:
                    results.put_nowait(await self._ask(part, chunk))
        except Exception as error:  # told to whoever reads the queue, which raises it
            results.put_nowait(error)
        results.put_nowait(None)

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, part: Part, chunk: Chunk) -> Situation | SituationFailure:
        from anthropic import APIError, APIStatusError
        from anthropic.types import Message

        try:
            reply: Any = await self._client.messages.create(
                model=self._settings.model,
                max_tokens=self._settings.max_tokens,
                system=system_blocks(part),
                messages=messages_of(chunk),
            )
            # A server that is something else may answer with anything.
            reason = _problem(reply) if isinstance(reply, Message) else "no usable reply"
        except APIStatusError as error:
            said = self._without_keys(error.api_message or str(error))
            reason = f"{self._host} answered {error.status_code}: {said}"
            if error.status_code in _HOPELESS:
                raise AnswerError(reason, _HOPELESS[error.status_code]) from error
        except (APIError, ValueError) as error:
            cause = self._without_keys(str(error.__cause__ or error))
            reason = f"the connection to {self._host} failed: {cause}"
        if reason:
            self._n_failures += 1
            if self._n_failures >= MAX_FAILURES_IN_A_ROW:
                raise AnswerError(
                    f"{self._n_failures} requests failed one after the other. The last: {reason}.",
                    "What was written is kept: run it again when that is mended.",
                )
            return SituationFailure(chunk.chunk_id, chunk.doc_id, reason)
        self._n_failures = 0
        text = _text_of(reply)
        self._store.put(self._settings.model, part.document, chunk, text)
        return Situation(chunk.chunk_id, chunk.doc_id, text, _usage_of(reply))

    @property
    def _host(self) -> str:
        """The address without user and password, which a URL can hold."""
        if not self._base_url:
            return "the service"
        try:
            return urlsplit(self._base_url).netloc.rpartition("@")[2] or "the service"
        except ValueError:
            return "the service"

    def _make_client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        api_key = self._keys.get("ANTHROPIC_API_KEY")
        token = None if api_key else self._keys.get("ANTHROPIC_AUTH_TOKEN")
        return AsyncAnthropic(
            api_key=None if token else api_key or _PLACEHOLDER_KEY,
            auth_token=token,
            base_url=self._base_url or None,
            timeout=self._settings.timeout_s,
        )

    def _without_keys(self, text: str) -> str:
        # Servers echo what they were sent.
        for value in self._keys.values():
            text = text.replace(value, "***")
        return text.rstrip(" .")


def _problem(reply: Message) -> str:
    """Why a reply is of no use; empty when it is."""
    match reply.stop_reason:
        case "refusal":
            return "the model declined"
        case "max_tokens":
            return "the reply is longer than it may be"
        case "model_context_window_exceeded":
            return "the document is too long for the model"
    return "" if _text_of(reply) else "the reply is empty"


def _text_of(reply: Message) -> str:
    text = " ".join(" ".join(b.text for b in reply.content if b.type == "text").split())
    # JSON can say half of a surrogate pair, which neither a store nor a tokenizer takes.
    return without_surrogates(text)


def _usage_of(reply: Message) -> Usage:
    usage = reply.usage
    return Usage(
        usage.input_tokens,
        usage.cache_creation_input_tokens or 0,
        usage.cache_read_input_tokens or 0,
        usage.output_tokens,
    )
