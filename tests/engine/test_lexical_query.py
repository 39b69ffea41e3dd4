from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.analysis import WORDS, make_analyzer
from rag_tui.engine.lexical_query import parse_lexical, plain_question, query_term_set
from rag_tui.engine.retrievers.bm25 import BM25Postings, retrieve_bm25
from rag_tui.engine.types import BM25Params, Ranking

NO_OPERATORS = [
    "What does multi-agent mean?",
    "a:b",
    '"open',
    '5" pipe and 6" pipe',
    "20.04",
    "x AND",
    "(",
    "don't",
    "tar -v file",
    "run it with --flag on",
    "C++ and C#",
    "a well-known fault",
    "pump - or valve",
    "pump -5 +49 30 1234 + 1",
    "chmod +x",
    '""',
    '" "',
    '"?"',
    "-motor",
    "+ - \" '",
    "naïve—café –dash",
]


@pytest.mark.parametrize("text", NO_OPERATORS)
def test_questions_flags_and_numbers_hold_no_operator(text: str) -> None:
    query = parse_lexical(text)
    assert not query.has_operators
    assert query.text == text == plain_question(text)
    assert query.terms == tuple(WORDS.tokens(text))


@given(st.text(max_size=80) | st.text('"“”+- ab(.,', max_size=40))
def test_any_text_can_be_read_and_models_see_no_more_words_than_were_typed(text: str) -> None:
    query = parse_lexical(text)
    assert query.text == plain_question(text)
    assert query.terms == tuple(WORDS.tokens(query.text))
    assert set(query.terms) <= set(WORDS.tokens(text))
    if not query.has_operators:
        assert query.text == text
    else:
        assert query.terms


@pytest.mark.parametrize(
    ("text", "plain", "phrases", "must", "must_not"),
    [
        ('What does "deep sleep" do?', "What does deep sleep do?", ["deep sleep"], [], []),
        ("“deep sleep”, please", "deep sleep, please", ["deep sleep"], [], []),
        ("pump +valve -motor", "pump valve", [], ["valve"], ["motor"]),
        ("-motor pump", "pump", [], [], ["motor"]),
        ("pump (+valve), -motor.", "pump (valve), .", [], ["valve"], ["motor"]),
        ('pump -"hot motor" +"4071"', "pump 4071", [], ["4071"], ["hot motor"]),
        ('pump -"C#"', "pump", [], [], ["c#"]),
        ("pump +ERR-4071", "pump ERR-4071", [], ["err 4071"], []),
        ('"a -b +c"', "a -b +c", ["a b c"], [], []),
        ('"deep sleep" "deep sleep" x', "deep sleep deep sleep x", ["deep sleep"], [], []),
    ],
)
def test_operators_are_read(
    text: str, plain: str, phrases: list[str], must: list[str], must_not: list[str]
) -> None:
    query = parse_lexical(text)
    assert query.text == plain == plain_question(text)
    assert query.has_operators
    assert [" ".join(one) for one in query.phrases] == phrases
    assert [" ".join(one) for one in query.must] == must
    assert [" ".join(one) for one in query.must_not] == must_not


def test_operators_are_cut_by_the_analyzer_and_stop_words_restrict_nothing() -> None:
    english = make_analyzer("english")
    assert parse_lexical('"state of the arts" +pumps', english).phrases == (("state", "art"),)
    assert parse_lexical("x +pumps", english).must == (("pump",),)
    assert not parse_lexical('x "of the"', english).has_operators
    assert parse_lexical("x +getUserName", make_analyzer("code")).must == (("getusername",),)


def test_highlighting_follows_the_analyzer_and_leaves_out_excluded_words() -> None:
    assert query_term_set("The pumps -motor") == {"the", "pumps"}
    assert query_term_set("The pumps -motor", "english") == {"pump"}
    assert query_term_set("getUser", "code") == {"getuser", "get", "user"}


TEXTS = {
    "a": "deep sleep is a mode of the pump",
    "b": "sleep deep in the pump room",
    "c": "the pump and the motor",
    "d": "the pump, the deep sleep, the motor",
    "e": "a tank",
}


def ask(query: str, *, depth: int = 5, analyzer: str = "words", filtered: str = "") -> Ranking:
    import numpy as np

    cut = make_analyzer(analyzer)
    texts = list(TEXTS.values())
    mask = np.array([name not in filtered for name in TEXTS])
    return retrieve_bm25(
        query,
        BM25Postings.build(map(cut.tokens, texts)),
        list(TEXTS),
        BM25Params(),
        depth=depth,
        analyzer=cut,
        candidates=mask if filtered else None,
        text_of=texts.__getitem__,
    )


def ids(ranking: Ranking) -> set[str]:
    return {hit.chunk_id for hit in ranking.hits}


def test_a_phrase_leaves_only_chunks_that_hold_its_words_in_order() -> None:
    ranking = ask('pump "deep sleep"')
    assert ids(ranking) == {"a", "d"}
    assert ranking.note == '2 chunks lack the phrase "deep sleep"'
    assert ranking.params["phrases"] == (("deep", "sleep"),)
    assert ranking.params["terms"] == ("pump", "deep", "sleep")
    # the scores are those of the question without quotes
    plain = {hit.chunk_id: hit.score for hit in ask("pump deep sleep").hits}
    assert all(plain[hit.chunk_id] == hit.score for hit in ranking.hits)


def test_required_and_excluded_words_say_what_they_did() -> None:
    ranking = ask("pump +motor")
    assert (ids(ranking), ranking.note) == ({"c", "d"}, '2 chunks lack the required word "motor"')
    ranking = ask("pump -motor")
    assert (ids(ranking), ranking.note) == ({"a", "b"}, '2 chunks that hold "motor" left out')
    ranking = ask('pump -"deep sleep"')
    assert ids(ranking) == {"b", "c"}
    assert ranking.note == '2 chunks that hold "deep sleep" left out'


def test_a_word_or_phrase_that_no_chunk_holds_is_named() -> None:
    ranking = ask("pump +zebra")
    assert (ranking.hits, ranking.note) == ((), 'no chunk holds the required word "zebra"')
    ranking = ask('pump "deep zebra"')
    assert (ranking.hits, ranking.note) == ((), 'no chunk holds the phrase "deep zebra"')
    assert ask("pump -zebra").note == ""


def test_a_phrase_over_repeated_words_is_found_at_its_second_beginning() -> None:
    assert ids(ask('"the motor"')) == {"c", "d"}


def test_operators_and_the_filter_hold_together() -> None:
    ranking = ask('pump "deep sleep"', filtered="a")
    assert (ids(ranking), ranking.note) == ({"d"}, '2 chunks lack the phrase "deep sleep"')


def test_texts_are_read_best_first_and_only_until_the_list_is_full() -> None:
    full = ask('"deep sleep"', depth=5)
    short = ask('"deep sleep"', depth=1)
    assert short.hits == full.hits[:1]
    assert "the order of words was read in the best" in short.note


def test_a_phrase_without_texts_is_refused() -> None:
    with pytest.raises(ValueError, match="text_of"):
        retrieve_bm25('"a b"', BM25Postings.build([["a", "b"]]), "x", BM25Params(), depth=1)


def test_with_code_a_phrase_is_found_across_the_parts_of_an_identifier() -> None:
    cut = make_analyzer("code")
    texts = ["set the api-key first", "the api of the key"]
    ranking = retrieve_bm25(
        '"the api key"',
        BM25Postings.build(map(cut.tokens, texts)),
        "ab",
        BM25Params(),
        depth=2,
        analyzer=cut,
        text_of=texts.__getitem__,
    )
    assert ids(ranking) == {"a"}
