from __future__ import annotations

from typing import Any

import pytest

from rag_tui.engine.answering import answer, make_answerer
from rag_tui.engine.errors import ModelError
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, Chunk, Prompt

OTHER = """
not_found = "Nowhere to be found."
system = "Answer, or say: {not_found}"
source = "<p n='{number}'>{text}</p>"
user = "{sources} {question}"
"""


def prompt_of(template: str = "numbered", *texts: str) -> Prompt:
    chunks = [
        Chunk(f"c{n}", "a.md", n, 0, len(t), t) for n, t in enumerate(texts or ("Grass is green.",))
    ]
    return build_prompt("What is green?", chunks, max_sources=9, template=template)


class Says:
    """An answerer that says one text."""

    name = "says"

    def __init__(self, text: str) -> None:
        self.text = text

    async def stream(self, prompt: Prompt) -> Any:
        yield self.text
        yield Answer(self.text, "complete", self.name)


class Scores:
    """A reranker with one score for everything, and no embedder."""

    def __init__(self, score: float) -> None:
        self.score = score

    def rerank_scores(self, query: str, texts: Any, cancel: Any = None) -> list[float]:
        return [self.score for _ in texts]

    def embedder(self) -> Any:
        raise ModelError("no embedder")


@pytest.fixture
def other(tmp_path: Any) -> str:
    path = tmp_path / "other.toml"
    path.write_text(OTHER, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Nowhere to be found.", "not found"),
        ("I could not find this in the documents.", "complete"),
    ],
)
async def test_the_not_found_sentence_is_the_templates_own(
    other: str, text: str, state: str
) -> None:
    *_, final = [one async for one in answer(prompt_of(other), Says(text))]
    assert (final.state, final.text) == (state, text)


async def test_without_sources_the_templates_sentence_is_the_answer(other: str) -> None:
    prompt = build_prompt("q", [], max_sources=3, template=other)
    (only,) = [one async for one in answer(prompt, Says("made up [1]"))]
    assert (only.state, only.text) == ("not found", "Nowhere to be found.")


@pytest.mark.parametrize(
    ("below", "score", "state"),
    [
        (None, -3.4, "complete"),  # the rule without a cosine: -3.5
        (None, -3.6, "not found"),
        (2.0, 1.9, "not found"),
        (2.0, 2.0, "complete"),
        (-8.0, -7.0, "complete"),
    ],
)
async def test_the_extractive_threshold_is_the_logit_that_was_set(
    below: float | None, score: float, state: str, other: str
) -> None:
    models: Any = Scores(score)
    settings = AnswerSettings(provider="extractive", not_found_below=below)
    answerer = make_answerer(settings, models, {})
    assert isinstance(answerer, ExtractiveAnswerer)
    *_, final = [one async for one in answer(prompt_of(other), answerer)]
    assert final.state == state
    if state == "not found":
        assert final.text == "Nowhere to be found."
    if state == "not found" and below is not None:
        assert "Best logit of a source 1.9 (needs 2)" in final.detail


async def test_brackets_inside_an_extract_are_never_citations_not_even_while_it_grows() -> None:
    models: Any = Scores(3.0)
    prompt = prompt_of("numbered", "Grass [9] is green. Moss is green too.")
    seen = [one async for one in answer(prompt, ExtractiveAnswerer(models))]
    assert len(seen) == 3
    assert [one.unknown for one in seen] == [(), (), ()]
    assert seen[-1].cited == (1,)
