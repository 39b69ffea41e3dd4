"""Citations of an answer that grows, however it is cut into pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.answering import answer
from rag_tui.engine.citations import find_citations
from rag_tui.engine.types import Answer, Prompt, Source

SOURCES = tuple(Source(n, str(n), "a.md", "", "text") for n in (1, 2, 3))
PROMPT = Prompt("question", "rules", "sources", SOURCES)
PIECES = ("[1]", " ", "[", "2", "]", ",", "word", "x_y", "\n", "\n\n", "`", "```", "\\", "[9]", "=")
MORE_PIECES = (".", "(", "-", "~~~", "【3】", "[0]")


class Scripted:
    """Gives pieces."""

    name = "scripted"

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """The pieces."""
        for piece in self._pieces:
            yield piece


@given(st.lists(st.sampled_from((*PIECES, *MORE_PIECES)), max_size=30))
async def test_every_growing_answer_has_the_citations_of_its_whole_text(pieces: list[str]) -> None:
    async for growing in answer(PROMPT, Scripted(pieces)):
        if growing.state == "streaming":
            found = find_citations(growing.text, len(SOURCES), is_complete=False)
            assert growing.citations == found


async def test_plain_words_do_not_make_the_whole_text_be_read_again(monkeypatch: object) -> None:
    read: list[int] = []

    def counting(text: str, n_sources: int, *, is_complete: bool = True) -> tuple[object, ...]:
        read.append(len(text))
        return find_citations(text, n_sources, is_complete=is_complete)

    monkeypatch.setattr("rag_tui.engine.answering.find_citations", counting)  # type: ignore[attr-defined]
    pieces = [*["word "] * 500, "[1]", *[" word"] * 500]
    last = [one async for one in answer(PROMPT, Scripted(pieces))][-1]
    assert len(last.citations) == 1
    assert len(read) < 10
