"""Two answers side by side, and one without any retrieval."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.answer_diff import Answered, closed_book_prompt, compare_answers
from rag_tui.engine.answering import answer
from rag_tui.engine.citations import find_citations
from rag_tui.engine.faithfulness import check_faithfulness
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.types import NOT_FOUND, Answer, Prompt, Source
from tests.engine.small_index import small_models


def given_answer(text: str, *chunk_ids: str) -> Answered:
    sources = tuple(Source(n, c, "a.md", "", f"Text {c}.") for n, c in enumerate(chunk_ids, 1))
    found = find_citations(text, len(sources))
    return Answered(Answer(text, "complete", "m", found), Prompt("q", "", "", sources))


def test_words_that_differ_are_told_apart_from_those_in_common() -> None:
    first = given_answer("Dogs may sleep in the hall [1].", "c1")
    second = given_answer("Dogs must sleep in the hall [1].", "c1")
    diff = compare_answers(first, second)
    assert [(p.kind, p.text) for p in diff.parts] == [
        ("same", "Dogs "),
        ("only first", "may"),
        ("only second", "must"),
        ("same", " sleep in the hall [1]."),
    ]
    # 8 pieces without blanks each (6 words, the marker, the stop), 7 in common.
    assert diff.similarity == 2 * 7 / 16
    assert not diff.is_same_text
    assert compare_answers(first, first).is_same_text


def test_sources_and_citations_are_compared_as_chunks_not_as_numbers() -> None:
    first = given_answer("Yes [1]. No [2].", "pets", "keys", "food")
    second = given_answer("Yes [2]. No [3].", "food", "pets", "pool")
    diff = compare_answers(first, second)
    assert diff.cited_by_both == ("pets",)
    assert (diff.cited_by_first, diff.cited_by_second) == (("keys",), ("pool",))
    assert diff.sources_of_both == ("pets", "food")
    assert (diff.sources_of_first, diff.sources_of_second) == (("keys",), ("pool",))


def test_support_and_outcome_of_both_are_told() -> None:
    one = given_answer("Text pets [1].", "pets")
    checked = Answered(
        one.answer, one.prompt, check_faithfulness(one.answer, one.prompt, small_models())
    )
    other = given_answer("Something.", "pets")
    diff = compare_answers(checked, other)
    assert diff.support == (1.0, None)
    assert diff.outcomes == ("complete", "complete")


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_parts_are_both_texts_again(first: str, second: str) -> None:
    diff = compare_answers(given_answer(first), given_answer(second))
    assert "".join(p.text for p in diff.parts if p.kind != "only second") == first
    assert "".join(p.text for p in diff.parts if p.kind != "only first") == second
    assert 0 <= diff.similarity <= 1


async def test_a_closed_book_prompt_is_asked_although_it_has_no_sources() -> None:
    class Model:
        name = "model"

        async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
            yield Answer(f"{len(prompt.sources)} sources [1].", "complete", self.name)

    prompt = closed_book_prompt("What is <b>?")
    assert "&lt;b&gt;" in prompt.user
    final: Any = [item async for item in answer(prompt, Model())][-1]
    assert (final.text, final.state, final.unknown) == ("0 sources [1].", "complete", (1,))
    quoted: Any = [item async for item in answer(prompt, ExtractiveAnswerer(small_models()))][-1]
    assert (quoted.text, quoted.state) == (NOT_FOUND, "not found")
