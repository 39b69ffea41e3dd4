"""Claims of an answer against their sources: figures, verdicts, and what is said of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from rag_tui.engine.answer_sources import chunks_for_prompt
from rag_tui.engine.answering import answer
from rag_tui.engine.citations import find_citations
from rag_tui.engine.claims import claims_of
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.faithfulness import ABOUT, ClaimCheck, check_faithfulness, support_share
from rag_tui.engine.figures import FigureSet, figures_of
from rag_tui.engine.index import Index
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.loading import Models
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.types import NOT_FOUND, Answer, Prompt, SearchRequest, Source
from tests.conftest import CORPUS, ROOT
from tests.engine.small_index import small_models

PETS = (
    "Well-behaved animals are welcome in the two ground-floor rooms. We charge 12 euros a night "
    "for cleaning. Guide and assistance animals stay free of charge in any room."
)
HOURS = "Breakfast is served from seven to ten. It costs 9.50 euros and is free on 3 May 2024."


def prompt_of(*texts: str, question: str = "What now?") -> Prompt:
    sources = tuple(
        Source(n, f"c{n}", f"file{n}.md", f"Guide > Part {n}", text)
        for n, text in enumerate(texts, start=1)
    )
    return Prompt(question, "rules", "user", sources)


def answered(text: str, n_sources: int = 2) -> Answer:
    return Answer(text, "complete", "model", find_citations(text, n_sources))


def checks_of(text: str, *texts: str, models: Any = None) -> tuple[ClaimCheck, ...]:
    return check_faithfulness(
        answered(text, len(texts)), prompt_of(*texts), models or small_models()
    )


class _NoModels:
    """Neither model can be had."""

    def embedder(self) -> Any:
        raise ModelError("no embedder here", "Get one.")

    def reranker(self) -> Any:
        raise ModelError("no reranker here", "Get one.")


# --- figures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("It costs 1,000 euros.", "It is 1000 euros."),
        ("It costs 1000 euros.", "It is 1 000 euros."),
        ("It costs 1000.", "It is 1.000."),
        ("It costs 1'000 francs.", "It is 1000 francs."),
        ("It costs €25 a night.", "It is 25 euros."),
        ("A fee of 10 % is taken.", "We take 10 percent."),
        ("A fee of ten percent is taken.", "We take 10%."),
        ("There are three rooms.", "There are 3 rooms."),
        ("There are 3 rooms.", "There are three rooms."),
        ("It takes twenty-five minutes.", "It takes 25 minutes."),
        ("It was 3,5 metres.", "It was 3.5 m."),
        ("It opened on 3 May 2024.", "Opened: 2024-05-03"),
        ("It opened on May 3rd, 2024.", "Opened: 03.05.2024"),
        ("It opened on May 3.", "Opened: 3 May 2024"),
        ("It opened in 2024.", "Opened: 3 May 2024"),
        ("It closes at 22:00.", "It closes at 10 pm."),
        ("It closes at 10 pm.", "It closes at 22:00."),
        ("It has 2 million users.", "It has 2,000,000 users."),
        ("The network is Linden-Guest.", "Network: linden-guest"),
        ("We asked the Guests of Linden.", "A guest of Linden"),
        ("It uses FastAPI.", "from fastapi import FastAPI"),
        ("It is at https://example.org/a.", "See https://example.org/a for more."),
    ],
)
def test_a_figure_written_another_way_stands_in_the_source(claim: str, source: str) -> None:
    held = FigureSet.of(source)
    found = figures_of(claim)
    assert found
    assert [figure.text for figure in found if not held.holds(figure)] == []


@pytest.mark.parametrize(
    ("claim", "source", "missing"),
    [
        ("It costs 100 euros.", "It is 1000 euros.", ["100 euros"]),
        ("It costs 80 dollars.", "It is 80 euros.", ["80 dollars"]),
        ("A fee of 10 % is taken.", "We take 10 euros.", ["10 %"]),
        ("It costs 1 000 euros.", "There is 1 room.", ["1 000 euros"]),
        ("It opened on 4 May 2024.", "Opened: 2024-05-03, room 4", ["4 May 2024"]),
        ("It closes at 21:30.", "It closes at 9:30 am.", ["21:30"]),
        ("There are five rooms.", "There are four rooms.", ["five"]),
        ("It runs version 1.2.4.", "version 1.2.3", ["1.2.4"]),
        ("It is in Osaka, with Guests.", "a guest", ["Osaka"]),
        ("It is at https://example.org/b.", "https://example.org/a", ["https://example.org/b"]),
    ],
)
def test_a_figure_that_stands_nowhere_is_missing(
    claim: str, source: str, missing: list[str]
) -> None:
    held = FigureSet.of(source)
    figures = figures_of(claim)
    assert [figure.text for figure in figures if not held.holds(figure)] == missing
    assert all(claim[figure.start : figure.end] == figure.text for figure in figures)


@pytest.mark.parametrize(
    "text",
    [
        "Set `limit = 500` there.",
        "3. Turn the key.",
        "No one is there, and one may wonder.",
        "Yes, you may. Then I go.",
        "The Storage Room Of The House Is Large",  # a title: every word begins with a capital
    ],
)
def test_code_list_numbers_pronouns_and_titles_are_no_figures(text: str) -> None:
    assert figures_of(text) == ()


def test_citation_markers_are_no_figures() -> None:
    (check,) = checks_of("Animals are welcome in rooms [1].", PETS)
    assert check.missing == ()


# --- claims ----------------------------------------------------------------------------------


def test_each_sentence_is_a_claim_with_the_sources_it_cites() -> None:
    text = "Yes. Dogs may come [1]. They cost 12 euros. [2] Cats too [1][2].\n\n```\nx [1]\n```"
    claims = claims_of(answered(text))
    assert [(claim.text, claim.numbers) for claim in claims] == [
        ("Dogs may come.", (1,)),
        ("They cost 12 euros.", (2,)),
        ("Cats too.", (1, 2)),
    ]
    assert text[claims[0].start : claims[0].end] == "Dogs may come [1]."


def test_a_marker_in_front_of_a_sentence_that_has_been_cited_belongs_to_the_next() -> None:
    claims = claims_of(answered("Dogs may come [1]. [2] Cats may stay."))
    assert [claim.numbers for claim in claims] == [(1,), (2,)]


def test_unknown_sources_are_not_compared() -> None:
    (claim,) = claims_of(answered("Dogs may come [9]."))
    assert claim.numbers == ()


# --- verdicts --------------------------------------------------------------------------------


def labelled() -> Iterator[tuple[str, str, Prompt]]:
    sections: dict[tuple[str, str], tuple[str, str]] = {}
    for path in CORPUS.glob("*.md"):
        title, *parts = path.read_text("utf-8").split("\n## ")
        for part in parts:
            heading, _, body = part.partition("\n\n")
            context = f"{title.strip().removeprefix('# ')} > {heading.strip()}"
            sections[path.name, heading.strip()] = context, body.strip()
    lines = (ROOT / "tests" / "data" / "claims.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        row = json.loads(line)
        context, body = sections[row["file"], row["heading"]]
        source = Source(1, "c", row["file"], context, body)
        yield row["kind"], row["claim"], Prompt("What now?", "", "", (source,))


def confusion(models: Any) -> dict[str, tuple[int, int, int]]:
    counted: Counter[tuple[str, str]] = Counter()
    for kind, claim, prompt in labelled():
        (check,) = check_faithfulness(answered(f"{claim[:-1]} [1].", 1), prompt, models)
        counted[kind, check.verdict] += 1
    kinds = dict.fromkeys(kind for kind, _ in counted)
    verdicts = ("supported", "weak", "unsupported")
    return {kind: tuple(counted[kind, v] for v in verdicts) for kind in kinds}  # type: ignore[misc]


def test_the_table_of_the_thresholds_is_what_the_models_give(models: Models) -> None:
    # Kept beside the thresholds in closeness.py.
    assert confusion(models) == {
        "supported": (12, 0, 0),
        "paraphrased": (15, 2, 0),
        "wrong figure": (0, 13, 0),
        "negated": (6, 0, 0),
        "off topic": (0, 0, 13),
    }
    assert "61 labelled sentences" in ABOUT
    assert sum(1 for _ in labelled()) == 61


def test_without_models_shared_words_decide_and_the_check_says_so() -> None:
    table = confusion(_NoModels())
    assert table["supported"] == (12, 0, 0)
    assert table["off topic"] == (0, 0, 13)
    (check,) = checks_of("Welcome are animals in two rooms [1].", PETS, models=_NoModels())
    assert check.by == "words"
    assert check.logit is None
    assert check.cosine is None
    assert "without the reranker: no reranker here" in check.note
    assert "without the embedder: no embedder here" in check.note


def test_every_extractive_answer_of_the_demo_is_supported(
    guesthouse: Index, models: Models
) -> None:
    lines = (CORPUS / "questions.jsonl").read_text("utf-8").splitlines()
    n_claims = 0
    for line in lines:
        question = json.loads(line)["question"]
        found = chunks_for_prompt(SearchRequest(question), guesthouse, models, n_sources=5)
        prompt = build_prompt(question, found.chunks, max_sources=5)
        checks = check_faithfulness(_extractive(prompt, models), prompt, models)
        n_claims += len(checks)
        for check in checks:
            assert (check.verdict, check.missing) == ("supported", ()), check
            assert check.nearest is not None
            source = prompt.sources[check.nearest.number - 1]
            stood = source.text[check.nearest.start : check.nearest.end]
            assert " ".join(stood.split()) == check.nearest.text
    assert n_claims >= 20


def _extractive(prompt: Prompt, models: Models) -> Answer:
    async def last() -> Answer:
        return [item async for item in answer(prompt, ExtractiveAnswerer(models))][-1]

    return asyncio.run(last())


def test_a_quoted_sentence_is_supported_whatever_the_models_say() -> None:
    text = "“**We charge 12 euros a night for cleaning**” [1]."
    (check,) = checks_of(text, PETS, models=_NoModels())
    assert (check.verdict, check.by, check.note) == ("supported", "quotation", "")
    assert check.nearest is not None
    assert check.nearest.text == "We charge 12 euros a night for cleaning."


def test_a_missing_figure_makes_a_near_sentence_weak_and_is_told_with_its_place() -> None:
    text = "We charge 15 euros a night for cleaning [1]."
    (check,) = checks_of(text, PETS, "It was 15 euros once.")
    assert check.verdict == "weak"
    (figure,) = check.missing
    assert (figure.kind, figure.text, figure.elsewhere) == ("number", "15 euros", (2,))
    assert text[figure.start : figure.end] == "15 euros"


def test_a_claim_without_a_citation_is_compared_with_all_sources_and_says_so() -> None:
    (check,) = checks_of("It costs 9.50 euros.", PETS, HOURS)
    assert not check.cites
    assert check.compared == (1, 2)
    assert check.nearest is not None
    assert check.nearest.number == 2
    assert "cites no source: compared with all" in check.note


def test_a_true_sentence_that_cites_the_wrong_source_is_not_supported() -> None:
    text = "Breakfast is served from seven to ten [1]."
    (check,) = checks_of(text, PETS, HOURS, models=_NoModels())
    assert check.verdict == "unsupported"
    assert {figure.text for figure in check.missing} == {"seven", "ten"}
    assert all(figure.elsewhere == (2,) for figure in check.missing)


def test_a_negation_in_one_of_the_two_is_told() -> None:
    (check,) = checks_of("Animals are not welcome in the two ground-floor rooms [1].", PETS)
    assert "negated in one of the two" in check.note


def test_the_not_found_sentence_and_a_bare_yes_have_nothing_to_check() -> None:
    not_found = Answer(NOT_FOUND, "not found", "model")
    assert check_faithfulness(not_found, prompt_of(PETS), small_models()) == ()
    assert checks_of("Yes. [1]", PETS) == ()
    assert support_share(()) is None


def test_without_sources_everything_is_unsupported() -> None:
    (check,) = checks_of("Dogs are welcome for 12 euros.")
    assert (check.verdict, check.by, check.note) == ("unsupported", "nothing", "no sources")
    assert check.nearest is None
    assert [figure.text for figure in check.missing] == ["12 euros"]


def test_a_cancelled_check_ends_before_the_next_claim() -> None:
    token = CancelToken()
    cancelling = _Cancelling(token.cancel)
    text = "Animals may come in [1]. They may sleep there [1]. They may eat there [1]."
    with pytest.raises(Cancelled):
        check_faithfulness(answered(text, 1), prompt_of(PETS), cancelling, cancel=token)
    assert cancelling.n_asked == 1


class _Cancelling(Models):
    """Cancels while the first claim is being scored."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._small = small_models()
        self.n_asked = 0

    def embedder(self, name: str = "") -> Any:
        return self._small.embedder(name)

    def reranker(self, name: str = "") -> Any:
        return self._small.reranker(name)

    def rerank_scores(self, query: str, passages: Sequence[str], **options: Any) -> Iterator[float]:
        self.n_asked += 1
        self._cancel()
        return iter([0.0] * len(passages))


def test_hostile_answers_are_read_in_linear_time() -> None:
    text = ("1,000 " * 4_000) + "[1] " * 2_000 + "A" * 100_000 + " 1.1" * 5_000
    assert len(checks_of(text, PETS, models=_NoModels())) <= 2
