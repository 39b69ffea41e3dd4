"""From a prompt to a checked answer, growing while it comes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from rag_tui.engine.citations import find_citations
from rag_tui.engine.llms.base import Answerer
from rag_tui.engine.llms.claude import BASE_URL_VARIABLE, KEY_VARIABLES, ClaudeAnswerer
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import NOT_FOUND, Answer, Prompt


def make_answerer(settings: AnswerSettings, models: Models, environ: Mapping[str, str]) -> Answerer:
    """The answerer the settings ask for.

    ``auto`` is ``claude`` when the environment holds a key (``ANTHROPIC_API_KEY`` or
    ``ANTHROPIC_AUTH_TOKEN``) or the settings or ``ANTHROPIC_BASE_URL`` name a server, else
    ``extractive``. Loads nothing.
    """
    names = (*KEY_VARIABLES, BASE_URL_VARIABLE)
    has_service = bool(settings.base_url) or any(environ.get(name, "").strip() for name in names)
    if settings.provider == "claude" or (settings.provider == "auto" and has_service):
        return ClaudeAnswerer(settings, environ=environ)
    return ExtractiveAnswerer(models)


async def answer(prompt: Prompt, answerer: Answerer) -> AsyncIterator[Answer]:
    """The answer as it grows, then the final one, which is the only one not ``streaming``.

    Each value holds the whole text so far and the citations found in it; a citation once
    reported stays reported. The final value's citations are those of its whole text. Without
    sources nobody is asked: the answer is the not-found sentence. Closing the iterator closes
    the answerer's; nothing is yielded then (see `cancelled`).
    """
    started = time.perf_counter()
    n_sources = len(prompt.sources)
    if not n_sources:
        nothing = "Nothing was retrieved for this question, so nobody was asked."
        yield Answer(NOT_FOUND, "not found", answerer.name, detail=nothing)
        return
    knows_citations = getattr(answerer, "cites_by_construction", False)
    text = ""
    final: Answer | None = None
    stream = answerer.stream(prompt)
    try:
        async for item in stream:
            if isinstance(item, Answer):
                final = item
                break
            text += item
            yield Answer(
                text=text,
                state="streaming",
                answerer=answerer.name,
                citations=()
                if knows_citations
                else find_citations(text, n_sources, is_complete=False),
                elapsed_s=time.perf_counter() - started,
            )
    finally:
        # An async generator that is merely dropped is closed at some later time, and with it
        # the connection.
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()
    if final is None:
        reason = "The answerer stopped without saying how it ended. Ask again."
        final = Answer(text, "ended early", answerer.name, detail=reason)
    is_not_found = final.state == "complete" and final.text.strip() == NOT_FOUND
    yield replace(
        final,
        state="not found" if is_not_found else final.state,
        citations=final.citations if knows_citations else find_citations(final.text, n_sources),
        elapsed_s=time.perf_counter() - started,
    )


def cancelled(partial: Answer, prompt: Prompt) -> Answer:
    """The final form of an answer whose iterator was closed: text kept, citations checked."""
    return replace(
        partial,
        state="cancelled",
        citations=find_citations(partial.text, len(prompt.sources)),
        detail="Stopped by you before it was finished.",
    )
