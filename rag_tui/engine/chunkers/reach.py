"""How far into a chunk the embedding model reads."""

from __future__ import annotations

from dataclasses import dataclass

from rag_tui.engine.chunkers.base import TokenCounter
from rag_tui.engine.types import Chunk


@dataclass(frozen=True, slots=True)
class Unread:
    """The end of a chunk that the model never sees."""

    start: int
    """Character offset into ``chunk.text`` of the first token that is cut off."""
    n_tokens: int
    """Tokens cut off, at least 1."""


def unread(chunk: Chunk, counter: TokenCounter) -> Unread | None:
    """What a model with this tokenizer leaves out of a chunk; None when it reads all of it.

    A model keeps the first ``limit - n_special`` tokens of what is embedded. Context, situation
    and prefix stand before the body there, so that they push the body's end out. When they alone
    fill the limit, nothing of the body is read.
    """
    if counter.limit is None:
        return None
    embedded, body = chunk.embedded_text, chunk.body
    spans = counter.spans(embedded)
    n_kept = max(0, counter.limit - counter.n_special)
    if len(spans) <= n_kept:
        return None
    after_heading = chunk.text[chunk.body_offset :]
    n_blank = len(after_heading) - len(after_heading.lstrip())
    within_body = max(0, spans[n_kept][0] - (len(embedded) - len(body)))
    return Unread(chunk.body_offset + n_blank + within_body, len(spans) - n_kept)
