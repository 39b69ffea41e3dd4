from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.errors import ModelError
from rag_tui.engine.settings import DEFAULT_EMBEDDER
from rag_tui.engine.tokenizing import ModelTokenCounter, WordTokenCounter, without_surrogates
from tests.engine.test_models import offline_folder


def minilm_counter(document_prompt: str = "") -> ModelTokenCounter:
    return ModelTokenCounter(
        offline_folder(DEFAULT_EMBEDDER) / "tokenizer.json",
        limit=256,
        document_prompt=document_prompt,
    )


def test_counts_are_those_of_the_word_pieces() -> None:
    counter = minilm_counter()
    # unaffable = una ##ffa ##ble, and Chinese is read sign by sign
    assert counter.count(["hello world", "unaffable", "", "早上好"]) == [2, 3, 0, 3]
    assert counter.n_special == 2
    assert counter.limit == 256


def test_long_texts_are_counted_whole_although_the_file_says_to_truncate() -> None:
    assert minilm_counter().count(["dog " * 1000]) == [1000]


def test_spans_cut_the_text_into_its_word_pieces() -> None:
    text = "The unaffable Zürich, 早!"
    spans = minilm_counter().spans(text)
    found = [text[a:b] for a, b in spans]
    assert found[:4] == ["The", "una", "ffa", "ble"]
    assert found[-3:] == [",", "早", "!"]
    assert "".join(found) == text.replace(" ", "")
    assert len(spans) == minilm_counter().count([text])[0]


def test_a_document_prompt_takes_room_of_every_text() -> None:
    assert minilm_counter("passage: ").n_special == 2 + 2  # "passage" and ":"


def test_the_name_tells_tokenizers_limits_and_prompts_apart() -> None:
    names = {minilm_counter().name, minilm_counter("passage: ").name}
    assert len(names) == 2
    assert minilm_counter().name in names


def test_lone_surrogates_are_counted_instead_of_raised() -> None:
    counter = minilm_counter()
    text = "file \udce9 name"
    assert counter.count([text])[0] >= 2
    assert all(0 <= a <= b <= len(text) for a, b in counter.spans(text))


@given(st.text())
def test_replacing_surrogates_keeps_every_offset(text: str) -> None:
    replaced = without_surrogates(text)
    assert len(replaced) == len(text)
    replaced.encode("utf-8")
    assert all(a == b or b == "\ufffd" for a, b in zip(text, replaced, strict=True))


def test_a_missing_tokenizer_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        ModelTokenCounter(tmp_path / "tokenizer.json", limit=1)


def test_the_estimate_counts_four_letters_a_token_and_other_signs_singly() -> None:
    counter = WordTokenCounter()
    assert counter.count(["abcd", "abcde", "a b", "早上", "é", "", "  \n", "x, y"]) == [
        *(1, 2, 2, 2, 1, 0, 0),
        3,
    ]


@given(st.text())
def test_estimated_spans_ascend_and_miss_nothing_visible(text: str) -> None:
    counter = WordTokenCounter()
    spans = counter.spans(text)
    assert len(spans) == counter.count([text])[0]
    assert all(a < b for a, b in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert "".join(text[a:b] for a, b in spans) == "".join(text.split())


def test_the_estimate_is_not_below_the_real_count_for_prose() -> None:
    folder = Path(__file__).parents[2] / "corpus"
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.md"))]
    if not texts:
        pytest.skip("the demo corpus is not there")
    estimated, real = WordTokenCounter().count(texts), minilm_counter().count(texts)
    assert all(e >= r for e, r in zip(estimated, real, strict=True))
