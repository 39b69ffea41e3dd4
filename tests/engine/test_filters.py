"""The filter language, and that a filter holds in every list, prompt and answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.answering import answer
from rag_tui.engine.errors import UsageError
from rag_tui.engine.filters import combine, keys_of, mask, parse, split_query, where_mask
from rag_tui.engine.index import Index
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.searching import check_request, search
from rag_tui.engine.types import METHODS, Chunk, Document, Ranking, SearchRequest
from tests.engine.small_index import index_of, paragraphs, small_models

NOON_2026_01_15 = 1768478400.0  # date -u -d 2026-01-15T12:00 +%s

LOGIN = Document(
    "advanced/Login.md",
    "Check-in",
    "Ask at the desk.\nBring a passport.\n\nThe Wi-Fi code is on the desk.\n\nLate arrivals ring.",
    "1",
    metadata={"tags": "security, Front Desk", "rating": "4.5", "date": "2026-01-05"},
    format="markdown",
    modified=NOON_2026_01_15,
)
MANUAL = Document(
    "manual.pdf", "Manual", "Page one.\n\nPage two.\n\nPage three.", "2", format="pdf"
)
CAFE = Document(
    "Cafe\u0301/menu.md",  # as macOS writes it: e and a combining accent
    "Menu",
    "Coffee at the desk.",
    "3",
    metadata={"tags": "food", "rating": "10", "title": "Own title", "Group": "staff"},
    format="markdown",
    modified=NOON_2026_01_15 + 86400 * 20,
)
CHUNKS = (
    *paragraphs(LOGIN, "Arriving", "WiFi and printers", "Arriving late"),
    *paragraphs(MANUAL),
    *paragraphs(CAFE),
)
INDEX = index_of((LOGIN, MANUAL, CAFE), CHUNKS)
"""Chunks 0, 1, 2 of advanced/Login.md (lines 1-2, 4, 6), 3, 4, 5 of manual.pdf, 6 of the menu."""


def allowed(where: str) -> list[int]:
    return np.flatnonzero(mask(parse(where), INDEX)).tolist()


@pytest.mark.parametrize(
    ("where", "positions"),
    [
        ('path~"advanced/*"', [0, 1, 2]),
        ("path~advanced/*", [0, 1, 2]),
        ("path=advanced/Login.md", [0, 1, 2]),
        ("path=advanced/login.md", []),  # paths are compared exactly
        ("path~*.md", [0, 1, 2, 6]),  # a star crosses slashes
        ('path="Caf\u00e9/menu.md"', [6]),  # composed and decomposed are the same name
        ("path!=manual.pdf", [0, 1, 2, 6]),
        ("path!~*.md", [3, 4, 5]),
        ("title=check-in", [0, 1, 2]),
        ('heading~"*wifi*"', [1]),
        ("heading~arriving", [0]),  # the pattern is for the whole heading
        ("heading~arriving*", [0, 2]),
        ("heading=menu", [6]),  # the title is the outermost heading
        ("format=PDF", [3, 4, 5]),
        ("page>1", [4, 5]),
        ("page=2", [4]),
        ("page!=2", [0, 1, 2, 3, 5, 6]),
        ("page in (1, 3)", [3, 5]),
        ("page not in (1, 3)", [0, 1, 2, 4, 6]),
        ("page>=0", [3, 4, 5]),  # a chunk without pages is on no page
        ("line=2", [0]),
        ("line=4", [1]),
        ("line>4 and format=markdown", [2]),
        ("line<3", [0, 3, 6]),
        ("line<=3", [0, 3, 4, 6]),
        ("modified=2026-01-15", [0, 1, 2]),
        ("modified=2026", [0, 1, 2, 6]),
        ("modified>2026-01-15", [6]),
        ("modified>=2026-01-15", [0, 1, 2, 6]),
        ("modified<2026-01-15", []),
        ("modified<=2026-01-15", [0, 1, 2]),
        ("modified>2026-01-15T11:59", [0, 1, 2, 6]),
        ("modified>2026-01-15T13:30+01:00", [6]),
        ("modified>2026-01", [6]),
        ("not modified>=2000", [3, 4, 5]),  # the manual's time is unknown
        ("tag=security", [0, 1, 2]),
        ('tags="front desk"', [0, 1, 2]),
        ('tags="security, front desk"', [0, 1, 2]),
        ("tag=desk", []),
        ("tag~*desk", [0, 1, 2]),
        ("tag in (food, security)", [0, 1, 2, 6]),
        ("tag!=food", [0, 1, 2, 3, 4, 5]),
        ("rating>4.5", [6]),  # as numbers: as text "10" is before "4.5"
        ("rating>=4.5", [0, 1, 2, 6]),
        ("rating<5", [0, 1, 2]),
        ("date>=2026-01-01", [0, 1, 2]),
        ("date=2026-01", [0, 1, 2]),
        ("date<2026-01", []),
        ("GROUP=Staff", [6]),
        ('meta.title="own title"', [6]),
        ('title="own title"', []),
        ("not tag=food", [0, 1, 2, 3, 4, 5]),
        ("page=1 or page=2 and line=3", [3, 4]),  # and binds closer
        ("(page=1 or page=2) and line=3", [4]),
        ("not (page=1 or page=2) and format=pdf", [5]),
        ("NOT page=1 AND format=pdf", [4, 5]),
        ("not not page=1", [3]),
        (r'title="a \"quoted\" title"', []),
    ],
)
def test_a_filter_allows_exactly_these_chunks(where: str, positions: list[int]) -> None:
    assert allowed(where) == positions


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", "empty"),
        ("path", "column 5"),
        ("path=", "value is wanted at column 6"),
        ("path=a b=c", "'b' at column 8"),
        ("=a", "key is wanted at column 1"),
        ("path==a", "value is wanted at column 6"),
        ('title="Check', "quote at column 7 is never closed"),
        ("(page=1", "parenthesis at column 1"),
        ("page=1)", "column 7"),
        ("page=1 and", "column 11"),
        ("page in 1", "list in parentheses is wanted at column 9"),
        ("page in (1, 2", "opened at column 9"),
        ("page in ()", "value is wanted at column 10"),
        ("page not 3", "only before `in`"),
        ("page=one", "page at column 1 is compared with a number, not 'one'"),
        ("page~1*", "page at column 1 is no text"),
        ("path<3", "path at column 1 is text"),
        ("modified>yesterday", "a date such as 2026-01-31, not 'yesterday'"),
        ("modified=2026-02-30", "not '2026-02-30'"),
        ("rating>good", "'good' (for rating, column 1) is neither"),
        ("(" * 60 + "page=1" + ")" * 60, "nested more than 50 deep"),
        ("! page=1", "column 1"),
    ],
)
def test_a_filter_that_cannot_be_read_says_where_and_why(where: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(where)
    assert words in caught.value.message
    assert 'path~"advanced/*"' in caught.value.hint
    request = SearchRequest("question", where=where)
    if where:
        with pytest.raises(UsageError):
            check_request(request)


def test_an_unknown_key_is_named_with_the_nearest_and_all_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        allowed("page=1 and ratng>3")
    assert "'ratng' at column 12" in caught.value.message
    assert "Did you mean rating?" in caught.value.hint
    for key in keys_of(INDEX):
        assert key in caught.value.hint
    assert keys_of(INDEX) == (
        "path", "title", "heading", "format", "page", "line", "modified",
        "date", "group", "rating", "tags",
    )  # fmt: skip


@given(st.text())
def test_any_text_is_a_filter_or_a_readable_error(where: str) -> None:
    try:
        found = mask(parse(where), INDEX)
    except UsageError:
        return
    assert found.shape == (len(CHUNKS),)


@given(st.text().filter(lambda text: "where:" not in text))
def test_a_question_without_where_is_never_read_as_a_filter(question: str) -> None:
    assert split_query(question) == (question.strip(), "")


@pytest.mark.parametrize(
    ("typed", "parts"),
    [
        ('how do I log in where: path~"advanced/*"', ("how do I log in", 'path~"advanced/*"')),
        ("how where:path=a.md", ("how", "path=a.md")),
        ("where: path=a.md", ("", "path=a.md")),
        ("how do I where:", ("how do I", "")),
        ("somewhere: over", ("somewhere: over", "")),
        ('what is "where:" in yaml', ('what is "where:" in yaml', "")),
        ("Where: is it -x a:b *", ("Where: is it -x a:b *", "")),
        ("a where: b where: c=d", ("a where: b", "c=d")),
    ],
)
def test_a_question_and_its_filter_are_taken_apart(typed: str, parts: tuple[str, str]) -> None:
    assert split_query(typed) == parts


def test_filters_are_combined_so_that_none_can_widen_another() -> None:
    assert combine("", " ") == ""
    assert combine("page=1", "") == "page=1"
    assert allowed(combine("format=pdf", "page=1 or line=1")) == [3]
    with pytest.raises(UsageError):
        combine("format=pdf", "page=1) or (line=1")


def test_a_blank_filter_is_no_filter() -> None:
    assert where_mask("  ", INDEX) is None


def lists(request: SearchRequest, index: Index = INDEX) -> dict[str, Ranking]:
    results = list(search(request, index, small_models()))
    assert [r.error for r in results] == [None] * len(results)
    return {r.stage: r.ranking for r in results if r.ranking is not None}


def test_only_the_file_of_the_filter_is_in_every_list() -> None:
    a = Document("a.md", "A", "The lockbox code.\n\nNothing here.", "1")
    b = Document("b.md", "B", "The lockbox code lockbox lockbox.\n\nThe lockbox.", "2")
    index = index_of((a, b))
    found = lists(SearchRequest("lockbox", where="path=a.md"), index)
    assert set(found) == set(METHODS)
    for method, ranking in found.items():
        assert ranking.hits, method
        assert {index.chunks[hit.position].doc_id for hit in ranking.hits} == {"a.md"}, method
        assert ranking.params["where"] == "path=a.md"
    # k rows if k exist: both of a.md's chunks have a vector, one has the word
    assert len(found["vector"].hits) == 2
    assert len(found["bm25"].hits) == 1


@pytest.mark.parametrize("depth", [1, 2, 3, 50])
@pytest.mark.parametrize("where", ["tag=security", "format=pdf", "line>2", "not path~*.md"])
def test_a_filtered_list_is_the_full_list_with_the_rest_taken_out(where: str, depth: int) -> None:
    keep = set(allowed(where))
    everything = lists(SearchRequest("desk page code", depth=50))
    filtered = lists(SearchRequest("desk page code", top_k=1, depth=depth, where=where))
    for method in ("vector", "bm25"):
        expected = [(h.position, h.score) for h in everything[method].hits if h.position in keep]
        assert [(h.position, h.score) for h in filtered[method].hits] == expected[:depth]
    fused = {h.position for m in ("vector", "bm25") for h in filtered[m].hits}
    assert {h.position for h in filtered["hybrid"].hits} <= fused <= keep
    assert {h.position for h in filtered["reranked"].hits} <= keep


def test_a_filter_leaves_the_word_statistics_of_the_whole_corpus() -> None:
    plain = lists(SearchRequest("desk"))["bm25"]
    score = {hit.position: hit.score for hit in plain.hits}
    for hit in lists(SearchRequest("desk", where="tag=food"))["bm25"].hits:
        assert hit.score == score[hit.position]


def test_lists_say_when_the_filter_and_not_the_question_left_them_empty() -> None:
    nothing = lists(SearchRequest("desk", where="path=none.md"))
    assert {r.note for r in nothing.values()} == {"the filter allows no chunk"}
    assert not any(r.hits for r in nothing.values())
    bm25 = lists(SearchRequest("desk", where="format=pdf"))["bm25"]
    assert bm25.note == "no chunk that the filter allows holds a word of the question"


def test_a_damaged_vector_outside_the_filter_does_no_harm() -> None:
    assert INDEX.vectors is not None
    broken = INDEX.vectors.copy()
    broken[6] = np.nan
    found = lists(SearchRequest("desk", where="tag=security"), replace(INDEX, vectors=broken))
    assert len(found["vector"].hits) == 3


async def test_no_list_prompt_or_answer_holds_a_chunk_the_filter_forbids() -> None:
    secret = "The vault code is 4711."
    open_ = Document("open.md", "Open", "The vault is in the cellar.", "1", metadata={"for": "all"})
    closed = Document("closed.md", "Closed", secret, "2", metadata={"for": "board, owners"})
    index = index_of((open_, closed))
    ask = "What is the vault code?"
    found = lists(SearchRequest(ask, where="for in (all, guests)"), index)
    for ranking in found.values():
        assert [index.chunks[h.position].doc_id for h in ranking.hits] == ["open.md"]
    chunks: list[Chunk] = [index.chunks[h.position] for h in found["reranked"].hits]
    prompt = build_prompt(ask, chunks, max_sources=5)
    assert secret not in prompt.user
    answerer = ExtractiveAnswerer(small_models())
    said = [one async for one in answer(prompt, answerer)]
    assert said
    assert not any("4711" in one.text for one in said)
    owners = lists(SearchRequest(ask, where="for=owners"), index)
    assert secret in index.chunks[owners["reranked"].hits[0].position].text


def test_columns_are_read_only_and_made_once() -> None:
    columns = INDEX.chunk_columns
    assert INDEX.chunk_columns is columns
    with pytest.raises(ValueError, match="read-only"):
        columns.page[0] = 1
