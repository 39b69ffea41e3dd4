"""What the Messages API's refusals mean, and how to mend them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_tui.engine.keys import Key
from rag_tui.engine.llms.claude_client import BASE_URL_VARIABLE, Endpoint
from rag_tui.engine.settings import AnswerSettings

KEY_FIX = (
    "Set ANTHROPIC_API_KEY to a valid key, put one into the keyring, or choose the extractive "
    "answerer."
)
ADDRESS_FIX = f"Check answer.base_url and {BASE_URL_VARIABLE}, and the network."

# Errors in mid-stream come with the stream's own status, 200; only the type tells.
_STATUS_BY_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a request failed."""

    message: str
    fix: str
    can_resend: bool = False
    """Whether the same request may well succeed later."""


def trouble_of(error: Any, endpoint: Endpoint, settings: AnswerSettings) -> Trouble:
    """A refused request (``anthropic.APIStatusError``) in words."""
    message = getattr(error, "api_message", None) or ""
    said = f": {message.rstrip('.')}" if message else ""
    code = error.status_code
    if code == 200:
        code = _STATUS_BY_TYPE.get(error.type or "", code)
    first = f"{endpoint.host} answered {code}{said}."
    match code:
        case 400 if "thinking" in message or "effort" in message:
            return Trouble(first, "Change answer.thinking or answer.effort, or the model.")
        case 400 if "citations" in message or "search_result" in message:
            return Trouble(first, "Choose another answer.template than native, or another model.")
        case 400:
            return Trouble(first, "Check answer.model and answer.max_tokens.")
        case 401:
            return Trouble(first, _key_fix(endpoint.key))
        case 402:
            return Trouble(first, "The account behind the key cannot pay: see its billing page.")
        case 403:
            return Trouble(first, "The key may not use this model: change the key or answer.model.")
        case 404:
            fix = f"Check answer.model (now {settings.model}) and answer.base_url."
            return Trouble(first, fix)
        case 413:
            fix = "The prompt is too large: lower answer.n_sources or the chunk size."
            return Trouble(first, fix)
        case 429:
            wait = error.response.headers.get("retry-after", "")
            after = f"wait {wait} s" if wait.replace(".", "", 1).isdecimal() else "wait"
            return Trouble(first, f"Too many requests: {after}, or use another key.", True)
        case 529 | 503:
            return Trouble(first, "The service is overloaded: ask again later.", True)
        case _:
            return Trouble(first, "Ask again later.", True)


def _key_fix(key: Key | None) -> str:
    if key is None:
        return f"No API key is set. {KEY_FIX}"
    place = f"the keyring ({key.name})" if key.place == "keyring" else key.name
    return f"The key in {place} is not accepted: set a valid one."
