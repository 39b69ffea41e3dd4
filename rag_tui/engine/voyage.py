"""The Voyage client: made on first use, never with a word about the key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.quiet import quietly

VOYAGE = "voyage"
"""The name of the service in settings; ``voyage/MODEL`` names a model of it."""
KEY_VARIABLE = "VOYAGE_API_KEY"

_ATTEMPTS = 3
_TIMEOUT_S = 30.0
_POLL_S = 0.05
_KEY_LIKE = re.compile(r"\b(?:pa|al)-[A-Za-z0-9_\-]{6,}")
_SHOWN = 300
_Result = TypeVar("_Result")


def is_voyage(name: str) -> bool:
    """Whether a model's name means the Voyage service."""
    return name == VOYAGE or name.startswith(f"{VOYAGE}/")


def voyage_model(name: str, default: str) -> str:
    """The service's own name of the model: what stands behind ``voyage/``, else the default."""
    return name.partition("/")[2] or default


class VoyageService:
    """Requests to Voyage with the key of the environment, which is neither kept nor shown.

    The client itself repeats a request after 429, 503 and a timeout, three times in all, with
    growing pauses.

    Args:
        what: What is asked for, for messages: ``voyage/voyage-3.5``.
        base_url: Another server; empty: the client's own default.
        timeout_s: Seconds to wait for the server in one attempt.
        attempts: Requests in all, the first included.

    Raises:
        ModelError: When the package or the key is missing.
    """

    def __init__(
        self,
        what: str,
        *,
        base_url: str = "",
        timeout_s: float = _TIMEOUT_S,
        attempts: int = _ATTEMPTS,
    ) -> None:
        self._what = what
        self._timeout_s = timeout_s
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if not key:
            raise ModelError(
                f"{what} needs a key, and {KEY_VARIABLE} is not set",
                f"Set {KEY_VARIABLE} in the environment, or choose a local model.",
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ModelError(
                f"{KEY_VARIABLE} is no key: it holds characters that no key has",
                "Copy it anew from the service's dashboard, without quotes or line ends.",
            )
        try:
            with quietly():
                import voyageai
                from voyageai import util
        except ImportError as error:
            raise ModelError(
                f"{what} needs the package voyageai, which cannot be imported: {error}",
                'pip install "rag-tui-explorer[voyage]", or choose a local model.',
            ) from error
        # Its log lines hold the texts sent and what the server says, which may quote the key;
        # a variable of the environment would put them on the terminal.
        util.VOYAGE_LOG = None
        util.logger.disabled = True
        self._client: Any = voyageai.Client(
            api_key=key, max_retries=attempts, timeout=timeout_s, base_url=base_url or None
        )

    def refuse_local(self, model: str) -> None:
        """Refuse the open models that the client would fetch and run on this machine.

        Raises:
            ModelError: When ``model`` is one of them: their own code would run here.
        """
        with quietly():
            from voyageai.local.helpers import is_local_model
        if is_local_model(model):
            raise ModelError(
                f"{self._what} is an open model, which the service's client would run here",
                "Give its folder or hub name as models.embedder instead.",
            )

    def call(self, work: Callable[[Any], _Result], *, cancel: CancelToken | None = None) -> _Result:
        """What ``work`` makes of the client.

        Raises:
            ModelError: When the service refuses, fails or is silent.
            Cancelled: Soon after the token was set, also while the service is silent.
        """
        results: SimpleQueue[tuple[_Result | None, ModelError | None]] = SimpleQueue()

        def run() -> None:
            try:
                with quietly():
                    result = work(self._client)
            except Exception as error:  # the client's and its HTTP library's errors
                results.put((None, self._readable(error)))
            else:
                results.put((result, None))

        # In a thread of its own: a request cannot be interrupted, only left behind.
        Thread(target=run, name="voyage request", daemon=True).start()
        while True:
            try:
                result, failure = results.get(timeout=_POLL_S)
            except Empty:
                if cancel is not None:
                    cancel.check()
            else:
                if failure is not None:
                    raise failure
                return result  # type: ignore[return-value]  # set where there is no failure

    def _readable(self, error: Exception) -> ModelError:
        """The error in words; the original is dropped, because it may quote the key."""
        status = getattr(error, "http_status", None)
        body = getattr(error, "json_body", None)
        detail = body.get("detail") if isinstance(body, dict) else None
        said = self._scrubbed(str(detail or getattr(error, "user_message", None) or error))
        match type(error).__name__:
            case "AuthenticationError":
                return ModelError(
                    f"{self._what}: the service refused the key (HTTP {status})",
                    f"Check {KEY_VARIABLE}.",
                )
            case "RateLimitError":
                return ModelError(
                    f"{self._what}: the service's rate limit is reached (HTTP {status}): {said}",
                    "Wait a minute and search again; what was embedded is kept.",
                )
            case "Timeout":
                return ModelError(
                    f"{self._what}: the service did not answer within {self._timeout_s:g} s",
                    "Check the network, or choose a local model.",
                )
            case "APIConnectionError":
                return ModelError(
                    f"{self._what}: the service cannot be reached: {said}",
                    "Check the network and models.voyage_base_url, or choose a local model.",
                )
            case "InvalidRequestError":
                return ModelError(
                    f"{self._what}: the service refused the request (HTTP {status}): {said}",
                    "Check the model's name and models.truncate_dim.",
                )
            case name:
                code = f" (HTTP {status})" if status else ""
                return ModelError(
                    f"{self._what}: the service failed{code}: {name}: {said}",
                    "Try again later, or choose a local model.",
                )

    def _scrubbed(self, text: str) -> str:
        for key in (self._client.api_key, os.environ.get(KEY_VARIABLE, "")):
            if key:
                text = text.replace(key, "…")
        return _KEY_LIKE.sub("…", text)[:_SHOWN]
