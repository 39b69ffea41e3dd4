"""The answerer protocol: one small file per provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from rag_tui.engine.types import Answer, Prompt


class Answerer(Protocol):
    """Streams an answer to a prompt."""

    @property
    def name(self) -> str:
        """Shown beside the answer: a model's name, or ``extractive``."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """Pieces of text as they come, then exactly one finished `Answer` as the last item.

        Where there is more to say than text (thinking, quotes, a retry) an `Answer` whose state
        is ``streaming`` can stand for a piece: it holds the whole text so far. Expected trouble
        (a refusal, a cut, a failed connection, a wrong key) is told in the final `Answer`'s
        state and detail, never raised; what had come before it is kept. Closing the iterator
        closes the connection.
        """
        ...
