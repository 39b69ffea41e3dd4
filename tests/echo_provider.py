"""Another answerer in one small file: it repeats the first source."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from rag_tui.engine.loading import Models
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, Prompt


class EchoAnswerer:
    """Says what the first source says, a word at a time, and cites it."""

    name = "echo"

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """Pieces, then the answer."""
        text = f"{prompt.sources[0].text} [1]"
        for word in text.split():
            yield f"{word} "
        yield Answer(text, "complete", self.name)


def make(settings: AnswerSettings, models: Models, environ: Mapping[str, str]) -> EchoAnswerer:
    """What an entry point of the group ``rag_tui.answerers`` names."""
    return EchoAnswerer()
