"""From a prompt to a checked answer, growing while it comes."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from rag_tui.engine.citations import find_citations
from rag_tui.engine.errors import UsageError
from rag_tui.engine.keys import find_key
from rag_tui.engine.llms.base import Answerer
from rag_tui.engine.llms.claude import BASE_URL_VARIABLE, ClaudeAnswerer
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.loading import Models
from rag_tui.engine.prompt_size import answer_cost
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, Citation, Prompt

if TYPE_CHECKING:
    from rag_tui.engine.corpus_facts import Prices

ANSWERER_GROUP = "rag_tui.answerers"
"""Entry points by which an installed package adds an answerer."""

AnswererFactory = Callable[[AnswerSettings, Models, Mapping[str, str]], Answerer]
"""What such an entry point names."""


def make_answerer(settings: AnswerSettings, models: Models, environ: Mapping[str, str]) -> Answerer:
    """The answerer the settings ask for.

    ``auto`` is ``claude`` when there is a key (`rag_tui.engine.keys`) or the settings or
    ``ANTHROPIC_BASE_URL`` name a server, else ``extractive``. Any other name is looked for among
    the entry points of `ANSWERER_GROUP`. Loads no model; may wait for a keyring.

    Raises:
        UsageError: When there is no answerer of this name, or it cannot be loaded.
    """
    provider = settings.provider
    if provider == "auto":
        has_address = bool(settings.base_url or environ.get(BASE_URL_VARIABLE, "").strip())
        provider = "claude" if has_address or find_key(environ) else "extractive"
    if provider in _ANSWERERS:
        return _ANSWERERS[provider](settings, models, environ)
    added = entry_points(group=ANSWERER_GROUP)
    if provider not in added.names:
        names = ", ".join(dict.fromkeys(("auto", *_ANSWERERS, *sorted(added.names))))
        raise UsageError(f"There is no answerer {provider!r}.", f"Set answer.provider to: {names}.")
    try:
        factory: AnswererFactory = added[provider].load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"The answerer {provider!r} cannot be loaded: {error}.", "Mend or remove its package."
        ) from error
    return factory(settings, models, environ)


_MARKS = re.compile(r"[\[\]【】`~\\\n]")
"""What can begin or end a citation, or the code that hides one."""
_MAY_GO_ON = " \t.+-*/="
"""Behind a bracket these leave open whether it is an index (`rag_tui.engine.citations`)."""


async def answer(
    prompt: Prompt, answerer: Answerer, *, prices: Prices | None = None
) -> AsyncIterator[Answer]:
    """The answer as it grows, then the final one, which is the only one not ``streaming``.

    Each value holds the whole text so far and the citations found in it; a citation once
    reported stays reported. The final value's citations are those of its whole text. Without
    sources nobody is asked (closed-book prompts apart): the answer is the not-found sentence.
    Closing the iterator closes the answerer's; nothing is yielded then (see `cancelled`).

    Args:
        prompt: What is asked.
        answerer: Who is asked.
        prices: For the final value's ``cost``; None: it stays unknown.
    """
    started = time.perf_counter()
    n_sources = len(prompt.sources)
    if not n_sources and not prompt.is_closed_book:
        nothing = "Nothing was retrieved for this question, so nobody was asked."
        yield Answer(prompt.not_found, "not found", answerer.name, detail=nothing)
        return
    growing = Answer("", "streaming", answerer.name)
    final: Answer | None = None
    found: tuple[Citation, ...] = ()
    n_read, is_open = 0, False
    stream = answerer.stream(prompt)
    try:
        async for item in stream:
            if isinstance(item, Answer) and item.state != "streaming":
                final = item
                break
            if isinstance(item, Answer):
                growing = item
            else:
                growing = replace(growing, text=growing.text + item)
            growing = _timed(growing, started)
            if not growing.knows_citations:
                # Read again only where that can change anything: reading the whole text for
                # every word of it would take the square of its length.
                added = growing.text[n_read:]
                is_marked = _MARKS.search(added) is not None
                if is_marked or is_open:
                    found = find_citations(growing.text, n_sources, is_complete=False)
                is_open = is_marked or (is_open and not added.strip(_MAY_GO_ON))
                n_read = len(growing.text)
                growing = replace(growing, citations=found)
            yield growing
    finally:
        # An async generator that is merely dropped is closed at some later time, and with it
        # the connection.
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()
    if final is None:
        reason = "The answerer stopped without saying how it ended. Ask again."
        final = replace(growing, state="ended early", detail=reason, can_resend=True)
    if final.state == "complete" and final.text.strip() == prompt.not_found:
        final = replace(final, state="not found")
    if not final.knows_citations:
        final = replace(final, citations=find_citations(final.text, n_sources))
    # Of an answerer that gives text alone, the first times are known from its pieces.
    final = replace(
        _timed(final, started),
        opened_s=growing.opened_s if final.opened_s is None else final.opened_s,
        first_token_s=growing.first_token_s if final.first_token_s is None else final.first_token_s,
    )
    yield final if prices is None else replace(final, cost=answer_cost(final, prices))


def cancelled(partial: Answer, prompt: Prompt) -> Answer:
    """The final form of an answer whose iterator was closed: text kept, citations checked."""
    citations = (
        partial.citations
        if partial.knows_citations
        else find_citations(partial.text, len(prompt.sources))
    )
    return replace(
        partial,
        state="cancelled",
        citations=citations,
        detail="Stopped by you before it was finished.",
        can_resend=True,
    )


def _timed(item: Answer, started: float) -> Answer:
    now = time.perf_counter() - started
    is_first = bool(item.text) and item.state == "streaming" and item.first_token_s is None
    return replace(
        item,
        elapsed_s=now,
        opened_s=now if is_first and item.opened_s is None else item.opened_s,
        first_token_s=now if is_first else item.first_token_s,
    )


_ANSWERERS: Mapping[str, AnswererFactory] = {
    "claude": lambda settings, _, environ: ClaudeAnswerer(settings, environ=environ),
    "extractive": lambda settings, models, _: ExtractiveAnswerer(
        models, not_found_below=settings.not_found_below
    ),
}
