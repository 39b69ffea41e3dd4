from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.analysis import WORDS, analyzer_names, make_analyzer
from rag_tui.engine.errors import UsageError
from rag_tui.engine.retrievers.bm25 import BM25Postings, retrieve_bm25
from rag_tui.engine.stemming import Stems
from rag_tui.engine.types import BM25Params
from rag_tui.engine.word_cutting import CJK_RUN, HARD

KINDS = ("words", "english", "code", "cjk", "german", "turkish")
ANY_TEXT = st.text(st.characters(codec=None), max_size=60) | st.text(
    "aeéſsS'’İIıK\u0301\u0327ñぱは\u309a水泵ポが가ᄀ\u1161\u11a8ｶﾞ _12.-/:+#BcＡ", max_size=30
)


@pytest.mark.parametrize("name", KINDS)
@given(text=ANY_TEXT)
def test_tokens_and_spans_agree_for_any_text(name: str, text: str) -> None:
    analyzer = make_analyzer(name)
    spans = analyzer.token_spans(text)
    assert [token for token, _, _ in spans] == analyzer.tokens(text)
    assert all(0 <= start < end <= len(text) for _, start, end in spans)
    assert [start for _, start, _ in spans] == sorted(start for _, start, _ in spans)


@pytest.mark.parametrize("name", KINDS)
@given(text=ANY_TEXT)
def test_normal_form_of_a_text_never_changes_its_words(name: str, text: str) -> None:
    analyzer = make_analyzer(name)
    for form in ("NFC", "NFD"):
        assert analyzer.tokens(unicodedata.normalize(form, text)) == analyzer.tokens(text)


def test_the_quick_way_is_only_taken_where_no_mark_and_no_cjk_character_can_be() -> None:
    for code in range(0x110000):
        if unicodedata.category(chr(code))[0] == "M" or CJK_RUN.match(chr(code)):
            assert HARD.match(chr(code)), hex(code)


def test_every_name_makes_an_analyzer_with_a_fingerprint_of_its_own() -> None:
    names = analyzer_names()
    assert {"words", "english", "code", "cjk", "german", "french", "russian"} <= set(names)
    assert len({make_analyzer(name).fingerprint for name in names}) == len(names)
    assert make_analyzer("words") is WORDS
    assert make_analyzer("german") is make_analyzer("german")


def test_an_unknown_analyzer_is_refused_with_the_names_that_are_known() -> None:
    with pytest.raises(UsageError, match="'klingon'") as raised:
        make_analyzer("klingon")
    for name in ("words", "english", "code", "cjk", "german"):
        assert name in raised.value.hint


def test_english_leaves_out_stop_words_and_possessives_and_stems_the_rest() -> None:
    text = "The pump's valves are leaking, and it was the pumps' fault; don't S's"
    expected = ["pump", "valv", "leak", "pump", "fault", "don", "t", "s"]
    assert make_analyzer("english").tokens(text) == expected
    assert make_analyzer("english").tokens(text.replace("'", "’")) == expected


def test_spans_of_stems_mark_the_whole_words() -> None:
    text = "The café's pumps"
    spans = make_analyzer("english").token_spans(text)
    assert [text[start:end] for _, start, end in spans] == ["café", "pumps"]


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("german", "Häuser Straßen", "Haus STRASSE"),
        ("french", "chevaux", "cheval"),
        ("russian", "насосами ёлка", "НАСОС елка"),
        ("spanish", "CANCIONES", "canción"),
        ("turkish", "IŞIKLAR İSTANBUL", "ışık istanbul"),
        ("finnish", "pumput", "pumpun"),
    ],
)
def test_a_language_brings_forms_of_a_word_together(language: str, one: str, other: str) -> None:
    analyzer = make_analyzer(language)
    assert analyzer.tokens(one) == analyzer.tokens(other)
    assert WORDS.tokens(one) != WORDS.tokens(other)


def test_each_word_of_a_vocabulary_is_stemmed_once() -> None:
    class Counting:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def stemWord(self, word: str) -> str:
            self.asked.append(word)
            return word[:4]

    stems = Stems("english", frozenset({"the"}))
    counting = Counting()
    stems._stemmer = counting
    words = ["pumps", "the", "pumps", "pumps"]
    assert [stems[word] for word in words] == ["pump", "", "pump", "pump"]
    assert counting.asked == ["pumps"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("URLs and IDs", ["urls", "and", "ids"]),
        ("max_retry", ["max_retry", "max", "retry"]),
        ("__init__", ["__init__", "init"]),
        ("well-known", ["well-known", "well", "known"]),
        ("os.path", ["os.path", "os", "path"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("E0277", ["e0277", "e", "0277"]),
        ("TS-999", ["ts-999", "ts", "999"]),
        ("CVE-2024-1234", ["cve-2024-1234", "cve", "2024", "1234"]),
        ("1.2.3", ["1.2.3", "1", "2", "3"]),
        ("v1.2", ["v1.2", "v1", "v", "1.2", "1", "2"]),
        ("C++, C#.", ["c++", "c#"]),
        ("naïveName", ["naïvename", "naïve", "name"]),
        ("水泵E1", ["水泵", "e1", "e", "1"]),
        ("A plain sentence. Another one", ["a", "plain", "sentence", "another", "one"]),
    ],
)
def test_code_gives_the_whole_and_its_parts(text: str, tokens: list[str]) -> None:
    assert make_analyzer("code").tokens(text) == tokens


def test_cjk_reads_other_widths_and_single_han_characters() -> None:
    cjk = make_analyzer("cjk")
    assert cjk.tokens("ＡＢＣ水泵 ﾎﾟﾝﾌﾟ") == ["abc", "水", "水泵", "泵", "ポン", "ンプ"]
    assert cjk.tokens("水") == ["水"]
    assert set(cjk.tokens("ポンプ")) <= set(cjk.tokens("ﾎﾟﾝﾌﾟを逆洗"))
    text = "x ﾎﾟﾝﾌﾟ"
    assert [text[a:b] for _, a, b in cjk.token_spans(text)] == ["x", "ﾎﾟﾝ", "ﾝﾌﾟ"]


# What each choice does not do finds nothing rather than something else.
NOT_CHOSEN = {
    "words": {"user name", "max retry", "cafe", "pump"},
    "english": {"max retry", "cafe"},
    "code": {"cafe", "pump"},
    "cjk": {"user name", "max retry", "cafe", "pump"},
    "russian": {"user name", "max retry", "cafe", "pump"},
}


@pytest.mark.parametrize("name", NOT_CHOSEN)
def test_identifiers_find_their_document_first(name: str, shared: Path) -> None:
    case = shared / "cases" / "21-identifiers"
    docs = [json.loads(line) for line in (case / "docs.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (case / "queries.jsonl").read_text().splitlines()]
    analyzer = make_analyzer(name)
    postings = BM25Postings.build(analyzer.tokens(doc["text"]) for doc in docs)
    ids = [doc["id"] for doc in docs]
    found = {}
    for query in (one["q"] for one in queries):
        ranking = retrieve_bm25(query, postings, ids, BM25Params(), depth=1, analyzer=analyzer)
        found[query] = [hit.chunk_id for hit in ranking.hits]
    expected = {one["q"]: [one["top1"]] * (one["q"] not in NOT_CHOSEN[name]) for one in queries}
    if name == "english":  # "Names are kept in ..." holds the word name
        expected["user name"] = ["d14"]
    assert found == expected


def test_english_on_scientific_claims_is_as_good_as_the_published_lucene_run(shared: Path) -> None:
    folder = shared / "data" / "ir" / "scifact"
    docs = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    queries = [json.loads(line) for line in (folder / "queries.jsonl").open()]
    english = make_analyzer("english")
    # bm25s drops words of one character, which is all that its English differs in.
    lists = [
        [t for t in english.tokens(f"{doc['title']} {doc['text']}") if len(t) > 1] for doc in docs
    ]
    postings = BM25Postings.build(lists)
    params = BM25Params(k1=0.9, b=0.4)
    run = []
    for query in queries:
        terms = [t for t in english.tokens(query["text"]) if len(t) > 1]
        positions, scores = postings.rough.best(terms, params, 10)
        run += [
            ir_measures.ScoredDoc(query["_id"], docs[at]["_id"], score)
            for at, score in zip(positions.tolist(), scores.tolist(), strict=True)
        ]
    rows = (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]
    qrels = [ir_measures.Qrel(q, d, int(g)) for q, d, g in (row.split("\t") for row in rows)]
    ndcg = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)
    published = json.loads((folder / "baselines.json").read_text())["bm25"]["ndcg10"]
    assert ndcg[ir_measures.nDCG @ 10] == pytest.approx(published, abs=0.005)
