"""The demo corpus keeps the shape and the wording that make its questions instructive."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
FILE_NAMES = ("cancellations.md", "check-in.md", "house-rules.md", "wifi-and-appliances.md")
MIN_WORDS, MAX_WORDS = 40, 130


def read_sections() -> dict[tuple[str, str], str]:
    """Map (file name, heading) to the section's text, found without the engine's loader."""
    sections: dict[tuple[str, str], str] = {}
    for name in FILE_NAMES:
        _, *parts = re.split(r"^## ", (CORPUS / name).read_text(encoding="utf-8"), flags=re.M)
        for part in parts:
            heading, _, body = part.partition("\n")
            key = (name, heading.strip())
            if key in sections:
                raise ValueError(f"{name} has two sections called {heading!r}")
            sections[key] = body.strip()
    return sections


def read_questions() -> list[dict[str, Any]]:
    """Read every line of the question file, in order."""
    lines = (CORPUS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def words_of(text: str) -> set[str]:
    """Give the lower-case words of a text, cut as the BM25 tokenizer cuts them."""
    return set(re.findall(r"\w+", text.lower()))


SECTIONS = read_sections()
QUESTIONS = read_questions()
ANSWERABLE = [item for item in QUESTIONS if item.get("answerable", True)]
UNANSWERABLE = [item for item in QUESTIONS if not item.get("answerable", True)]


def evidence_words(question: str) -> set[str]:
    """Give the words of a question's sections with the context a chunk carries: title, heading."""
    (item,) = [item for item in QUESTIONS if item["question"] == question]
    texts = []
    for evidence in item["evidence"]:
        file, heading = evidence["file"], evidence["heading"]
        title = (CORPUS / file).read_text(encoding="utf-8").partition("\n")[0]
        texts.append(f"{title} {heading} {SECTIONS[file, heading]}")
    return words_of(" ".join(texts))


def test_the_folder_holds_the_four_documents_and_the_questions_and_nothing_else() -> None:
    visible = [path.name for path in CORPUS.iterdir() if not path.name.startswith(".")]
    assert sorted(visible) == sorted((*FILE_NAMES, "questions.jsonl"))


def test_the_four_documents_have_thirteen_sections() -> None:
    assert len(SECTIONS) == 13


@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_document_is_one_title_followed_at_once_by_its_first_section(name: str) -> None:
    text = (CORPUS / name).read_text(encoding="utf-8")
    assert re.match(r"# \S.*\n\n## \S", text)
    assert re.findall(r"^(#+) ", text, flags=re.M).count("#") == 1
    assert not re.search(r"^#{3,} ", text, flags=re.M)


@pytest.mark.parametrize("key", SECTIONS, ids="/".join)
def test_a_section_is_long_enough_to_embed_and_short_enough_to_read(key: tuple[str, str]) -> None:
    assert MIN_WORDS <= len(SECTIONS[key].split()) <= MAX_WORDS


def test_every_document_is_plain_ascii_without_addresses_or_phone_numbers() -> None:
    for (name, heading), body in SECTIONS.items():
        assert body.isascii(), (name, heading)
        assert not re.search(r"@|https?:|www\.|\d{5,}", body), (name, heading)


def test_there_are_enough_questions_of_both_kinds() -> None:
    assert len(ANSWERABLE) >= 10
    assert len(UNANSWERABLE) == 4
    assert "Can I bring my dog?" in [item["question"] for item in ANSWERABLE]


def test_question_ids_and_texts_are_unique() -> None:
    for field in ("id", "question"):
        repeated = [value for value, n in Counter(q[field] for q in QUESTIONS).items() if n > 1]
        assert repeated == []


def test_ids_tell_answerable_from_unanswerable() -> None:
    assert all(re.fullmatch(r"q\d\d", item["id"]) for item in ANSWERABLE)
    assert all(re.fullmatch(r"u\d\d", item["id"]) for item in UNANSWERABLE)


@pytest.mark.parametrize("item", QUESTIONS, ids=lambda item: item["id"])
def test_a_question_has_only_the_documented_fields(item: dict[str, Any]) -> None:
    own = {"evidence"} if item.get("answerable", True) else {"answerable"}
    assert set(item) == {"id", "question", "tags"} | own
    assert item["question"].strip() == item["question"] != ""
    assert item["tags"]
    assert ("unanswerable" in item["tags"]) == ("answerable" in item)


@pytest.mark.parametrize("item", ANSWERABLE, ids=lambda item: item["id"])
def test_every_quote_is_one_whole_sentence_of_the_section_it_names(item: dict[str, Any]) -> None:
    assert item["evidence"]
    for evidence in item["evidence"]:
        assert set(evidence) == {"file", "heading", "quote"}
        body = SECTIONS[evidence["file"], evidence["heading"]]
        assert evidence["quote"] in re.split(r"(?<=\.) ", body)


def test_every_section_answers_at_least_one_question() -> None:
    asked = {(e["file"], e["heading"]) for item in ANSWERABLE for e in item["evidence"]}
    assert asked == set(SECTIONS)


@pytest.mark.parametrize(
    ("question", "content_words"),
    [
        (
            "A typhoon cancelled my flight. Do I get my money back?",
            {"typhoon", "cancelled", "flight", "money", "back"},
        ),
        ("I land at midnight. How do I get in?", {"land", "midnight", "get"}),
        ("Can I bring my dog?", {"bring", "dog"}),
        ("What happens if I lose my key?", {"lose", "key"}),
        ("The internet is down. What can I do?", {"internet", "down"}),
        ("Can I vape on the balcony?", {"vape", "balcony"}),
        ("My room is freezing. What can I do?", {"freezing"}),
    ],
)
def test_the_answering_section_shares_no_content_word_with_the_question(
    question: str, content_words: set[str]
) -> None:
    assert content_words <= words_of(question)
    assert content_words & evidence_words(question) == set()


def test_the_lockbox_is_a_side_remark_in_exactly_one_section() -> None:
    holders = [key for key, body in SECTIONS.items() if "lockbox" in body.lower()]
    assert holders == [("wifi-and-appliances.md", "Washing machine")]
    assert SECTIONS[holders[0]].lower().count("lockbox") == 1
    assert "lockbox" not in holders[0][1].lower()


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("What time is breakfast?", {"breakfast", "breakfasts", "meal", "meals", "coffee"}),
        ("Is there a place to park the car?", {"park", "parking", "garage", "car", "cars"}),
        ("Is there a hair dryer in the bathroom?", {"hair", "hairdryer", "bathroom", "bathrooms"}),
        ("Do you have an airport shuttle?", {"airport", "shuttle", "taxi", "transfer", "bus"}),
    ],
)
def test_nothing_in_the_corpus_speaks_of_what_an_unanswerable_question_asks(
    question: str, topic: set[str]
) -> None:
    assert question in [item["question"] for item in UNANSWERABLE]
    for name in FILE_NAMES:
        assert words_of((CORPUS / name).read_text(encoding="utf-8")) & topic == set()
