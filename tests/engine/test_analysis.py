from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.retrievers.bm25 import BM25Postings, retrieve_bm25
from rag_tui.engine.types import BM25Params

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
ACCENTED = st.text("aeé\u0301\u0327ñぱは\u309a水ポ가ᄀ\u1161\u11a8 .,-", max_size=30)


def test_ascii_words_are_lower_cased_runs_of_letters_digits_and_underscores() -> None:
    assert WORDS.tokens("Reset max_retry to 5, ERR-4071!") == [
        "reset",
        "max_retry",
        "to",
        "5",
        "err",
        "4071",
    ]


def test_composed_and_decomposed_letters_give_the_same_word() -> None:
    assert WORDS.tokens("caf\u00e9") == WORDS.tokens("cafe\u0301") == ["caf\u00e9"]


def test_case_is_folded_in_every_script() -> None:
    assert WORDS.tokens("НАСОС Straße") == ["насос", "strasse"]


def test_runs_of_cjk_become_pairs_that_a_shorter_query_matches() -> None:
    document = set(WORDS.tokens("ポンプを逆洗する手順。"))
    assert set(WORDS.tokens("逆洗")) <= document
    assert max(map(len, document)) == 2


def test_a_single_cjk_character_is_a_word() -> None:
    assert WORDS.tokens("水 pump水") == ["水", "pump", "水"]


def test_vowel_signs_do_not_cut_hindi_words() -> None:
    assert WORDS.tokens("हिन्दी में") == ["हिन्दी", "में"]


@pytest.mark.parametrize("query", ["multi-agent", "a:b", '"open', "20.04", "x AND", "(", "don't"])
def test_signs_are_never_operators(query: str) -> None:
    assert WORDS.tokens(query) == re.findall(r"\w+", query.lower())


def test_spans_point_into_the_text_as_it_was_given() -> None:
    text = "Ein cafe\u0301 in Tōkyō: 水泵"
    spans = WORDS.token_spans(text)
    assert [text[start:end] for _, start, end in spans] == [
        "Ein",
        "cafe\u0301",
        "in",
        "Tōkyō",
        "水泵",
    ]


@given(ANY_TEXT | ACCENTED)
def test_tokens_and_spans_agree_for_any_text(text: str) -> None:
    spans = WORDS.token_spans(text)
    assert [token for token, _, _ in spans] == WORDS.tokens(text)
    assert all(0 <= start < end <= len(text) for _, start, end in spans)
    assert [start for _, start, _ in spans] == sorted(start for _, start, _ in spans)


@given(ANY_TEXT | ACCENTED)
def test_normal_form_of_a_text_never_changes_its_words(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert WORDS.tokens(unicodedata.normalize(form, text)) == WORDS.tokens(text)


CASE = Path(__file__).parents[3] / "shared" / "cases" / "21-identifiers"
# Identifiers are not split, accents and plurals are not folded: these queries find nothing.
NOT_CHOSEN = frozenset({"user name", "max retry", "cafe", "pump"})


@pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
def test_identifiers_find_their_document_first_and_what_is_not_chosen_finds_nothing() -> None:
    docs = [json.loads(line) for line in (CASE / "docs.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (CASE / "queries.jsonl").read_text().splitlines()]
    names = [doc["id"] for doc in docs]
    postings = BM25Postings.build(WORDS.tokens(doc["text"]) for doc in docs)
    found = {}
    for query in (one["q"] for one in queries):
        ranking = retrieve_bm25(query, postings, names, BM25Params(), depth=1)
        found[query] = [hit.chunk_id for hit in ranking.hits]
    assert found == {one["q"]: [one["top1"]] * (one["q"] not in NOT_CHOSEN) for one in queries}


def test_plus_signs_and_number_signs_belong_only_to_a_word_before_them() -> None:
    assert WORDS.tokens("C++, C# and F#; a+b, #1, c#d, + ++ #") == [
        *("c++", "c#", "and", "f#", "a", "b", "1", "c", "d"),
    ]
