"""Question files: every layout is read, and every fault is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.question_rows import MOST_PROBLEMS
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.types import Evidence, QuestionSet
from rag_tui.engine.index import Index
from rag_tui.engine.types import FileReport
from tests.engine.hand_made import cut, document, index_of


def written(tmp_path: Path, *rows: Any, name: str = "questions.jsonl") -> Path:
    path = tmp_path / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return path


GOOD = {"id": "q1", "question": "Why?", "evidence": [{"file": "a.md", "quote": "because"}]}


# ---- our own layout ------------------------------------------------------------------------


def test_the_demo_questions_are_read_without_a_fault(corpus: Path, guesthouse: Index) -> None:
    found = read_questions(corpus / "questions.jsonl", index=guesthouse)
    assert found.problems == ()
    assert found.unit == "passage"
    assert len(found.questions) == 22
    assert [q.qid for q in found.questions][:2] == ["q01", "q02"]
    assert sum(not q.answerable for q in found.questions) >= 1
    first = found.questions[0]
    assert first.evidence[0].heading == "Storms and strikes"
    assert first.tags == ("paraphrase", "filler")
    assert first.place == "questions.jsonl:1"
    assert read_questions(corpus) == read_questions(corpus / "questions.jsonl")


def test_all_fields_arrive(tmp_path: Path) -> None:
    row = {
        "id": 7, "question": " Who\n is it? ", "answer": "me", "tags": ["x", "y", "x"],
        "synthetic": True,
        "evidence": [{"file": "a.md", "heading": "H", "quote": "q", "lines": [3, 5], "grade": 2},
                     {"file": "b.md", "grade": 0}],
    }  # fmt: skip
    (question,) = read_questions(written(tmp_path, row)).questions
    assert question.qid == "7"
    assert question.text == "Who is it?"
    assert question.evidence == (Evidence("a.md", "q", "H", (3, 5), 2), Evidence("b.md", grade=0))
    assert (question.answer, question.tags, question.synthetic) == ("me", ("x", "y"), True)


def test_the_golden_file_layout_is_understood(shared: Path) -> None:
    found = read_questions(shared / "data/docs/fastapi-en.golden.jsonl")
    assert found.problems == ()
    assert len(found.questions) == 32
    assert found.questions[0].evidence == (
        Evidence("tutorial/cors.md", heading="use-corsmiddleware", lines=(35, 35)),
    )
    assert found.questions[8].evidence[0].is_document


def test_a_byte_order_mark_windows_line_ends_and_blank_lines_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    other = {**GOOD, "id": "q2"}
    raw = f"\r\n{json.dumps(GOOD)}\r\n\r\n{json.dumps(other)}\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + raw.encode())
    found = read_questions(path)
    assert [q.qid for q in found.questions] == ["q1", "q2"]
    assert [q.place for q in found.questions] == ["questions.jsonl:2", "questions.jsonl:4"]
    assert found.problems == ()


@pytest.mark.parametrize(
    ("row", "words", "is_kept"),
    [
        ('{"id": "x", "question": "torn', "not valid JSON", False),
        ("[" * 100_000, "nested too deeply", False),
        (["a", "list"], "not an object", False),
        ({"id": "x"}, "the question must be a text", False),
        ({"id": "x", "question": 5}, "got the number 5", False),
        ({"id": "x", "question": "  "}, "got a blank text", False),
        ({"id": [1], "question": "?"}, "the id must be", False),
        ({"id": "q1", "question": "again?"}, "the id q1 stands at questions.jsonl:1", False),
        ({"id": "x", "question": "?", "evidence": []}, "x has no evidence", True),
        ({"id": "x", "question": "?"}, "x has no evidence", True),
        ({"id": "x", "question": "?", "evidence": "a.md"}, "must be a list of objects", True),
        ({"id": "x", "question": "?", "evidence": ["a.md"]}, "must be an object", True),
        ({"id": "x", "question": "?", "evidence": [{"quote": "q"}]}, "must name a file", True),
        ({"id": "x", "question": "?", "evidence": [{"file": "a", "grade": 4}]},
         "0, 1, 2 or 3 (got 4)", True),
        ({"id": "x", "question": "?", "evidence": [{"file": "a", "grade": -1}]},
         "0, 1, 2 or 3 (got -1)", True),
        ({"id": "x", "question": "?", "evidence": [{"file": "a", "grade": "2"}]},
         "a grade must be a whole number", True),
        ({"id": "x", "question": "?", "evidence": [{"file": "a", "lines": [5, 2]}]},
         "lines must be [first, last]", True),
        ({"id": "x", "question": "?", "evidence": [{"file": "a", "lines": [0, 2]}]},
         "counted from 1", True),
        ({"id": "x", "question": "?", "answerable": False, "evidence": [{"file": "a"}]},
         "marked unanswerable but has evidence", False),
        ({**GOOD, "id": "x", "answerable": "no"}, "answerable must be true or false", True),
        ({**GOOD, "id": "x", "tags": 3}, "tags must be a list", True),
        ({**GOOD, "id": "x", "evidnce": []}, "unknown key: evidnce", True),
        ({**GOOD, "id": "x", "evidence": [{"file": "a", "qoute": "b"}]},
         "unknown key in its evidence: qoute", True),
    ],
)  # fmt: skip
def test_each_fault_is_named_with_its_line_and_the_rest_goes_on(
    tmp_path: Path, row: Any, words: str, is_kept: bool
) -> None:
    found = read_questions(written(tmp_path, GOOD, row, {**GOOD, "id": "last"}))
    named = [sentence for sentence in found.problems if words in sentence]
    assert len(named) == 1, found.problems
    assert named[0].startswith("questions.jsonl:2: ")
    kept = [q.qid for q in found.questions]
    assert kept[0] == "q1"
    assert kept[-1] == "last"
    assert len(kept) == (3 if is_kept else 2)


def test_an_unanswerable_question_may_have_passages_that_are_judged_not_relevant(
    tmp_path: Path,
) -> None:
    row = {**GOOD, "answerable": False, "evidence": [{"file": "a.md", "grade": 0}]}
    found = read_questions(written(tmp_path, row))
    assert found.problems == ()
    assert not found.questions[0].answerable


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"id": "q2", "question": "caf\xe9?"}\n')
    found = read_questions(path)
    assert found.problems[0].startswith("questions.jsonl:2: not UTF-8")
    assert [q.qid for q in found.questions] == ["q1", "q2"]


def test_a_file_that_is_damaged_throughout_is_summed_up(tmp_path: Path) -> None:
    found = read_questions(written(tmp_path, GOOD, *["{"] * (MOST_PROBLEMS + 50)))
    assert len(found.problems) == MOST_PROBLEMS + 1
    assert found.problems[-1] == "and 50 more problems like these"


def test_a_file_of_several_megabytes_is_read_whole(tmp_path: Path) -> None:
    filler = "word " * 200
    rows = [{**GOOD, "id": f"q{i}", "answer": filler} for i in range(4000)]
    path = written(tmp_path, *rows)
    assert path.stat().st_size > 4_000_000
    assert len(read_questions(path).questions) == 4000


@pytest.mark.parametrize("content", ["", "\n\n", "{", '{"id": "a"}', "[]"])
def test_a_file_without_a_usable_question_is_refused_with_the_layout(
    tmp_path: Path, content: str
) -> None:
    with pytest.raises(UsageError, match="no usable question") as error:
        read_questions(written(tmp_path, content))
    assert '"question"' in error.value.hint


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        read_questions(tmp_path / "nope.jsonl")
    with pytest.raises(UsageError, match="holds no questions"):
        read_questions(tmp_path)


def test_labels_of_documents_that_are_not_in_the_index_are_named(tmp_path: Path) -> None:
    one = document("Some text.", "docs/guide.md")
    index = index_of([one], cut(one))
    index = Index(**{**_fields(index), "reports": (FileReport("b.pdf", "failed", "encrypted"),)})
    rows = [
        {"id": "1", "question": "?", "evidence": [{"file": "docs/guide.md"}]},
        {"id": "2", "question": "?", "evidence": [{"file": "guide.md"}]},
        {"id": "3", "question": "?", "evidence": [{"file": "b.pdf"}]},
        {"id": "4", "question": "?", "evidence": [{"file": "zzz"}]},
        {"id": "5", "question": "?", "evidence": [{"file": ".\\docs\\guide.md"}]},
    ]
    assert read_questions(written(tmp_path, *rows), index=index).problems == (
        "questions.jsonl:2: guide.md: no such document; did you mean docs/guide.md?",
        "questions.jsonl:3: b.pdf: the document could not be loaded: encrypted",
        "questions.jsonl:4: zzz: no such document",
    )


def _fields(index: Index) -> dict[str, Any]:
    names = ("folder", "manifest", "documents", "chunks", "bm25", "vectors", "n_tokens", "reports")
    return {name: getattr(index, name) for name in names}


def test_the_fingerprint_follows_questions_and_labels_and_not_the_place(tmp_path: Path) -> None:
    def fingerprint(*rows: Any, name: str = "questions.jsonl") -> str:
        return read_questions(written(tmp_path, *rows, name=name)).fingerprint

    first = fingerprint(GOOD)
    assert fingerprint("", GOOD, name="other.jsonl") == first
    assert fingerprint({**GOOD, "question": "Why not?"}) != first
    assert fingerprint({**GOOD, "evidence": [{**GOOD["evidence"][0], "grade": 2}]}) != first  # type: ignore[dict-item]
    assert fingerprint({**GOOD, "tags": ["a"]}) != first


def test_a_question_without_an_id_gets_one_from_its_words(tmp_path: Path) -> None:
    rows = [{"question": "Where is it?"}, {"question": "And  when?"}, {"question": "and when?"}]
    found = read_questions(written(tmp_path, *rows))
    ids = [q.qid for q in found.questions]
    assert len(ids) == 2
    assert all(i.startswith("q-") and len(i) == 10 for i in ids)
    assert any("stands at questions.jsonl:2 already" in p for p in found.problems)


def test_labels_of_whole_documents_alone_are_scored_by_document(tmp_path: Path) -> None:
    whole = {"id": "a", "question": "?", "evidence": [{"file": "a.md"}, {"file": "b.md"}]}
    assert read_questions(written(tmp_path, whole)).unit == "document"
    assert read_questions(written(tmp_path, whole, GOOD)).unit == "passage"


# ---- other layouts -------------------------------------------------------------------------


def test_rows_of_a_table_with_the_same_question_are_its_evidence(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(
        "id;question;file;quote;lines;grade;tags;answerable\n"
        'q1;"Why; and how?";a.md;because;;2;x,y;\n'
        "q1;Why; and how?\n"
        'q1;"Why; and how?";b.md;;3-4;;;\n'
        "q2;Nothing?;;;;;;false\n"
        "q3;Graded?;a.md;;;high;;\n",
        "utf-8",
    )
    found = read_questions(path)
    assert [q.qid for q in found.questions] == ["q1", "q2", "q3"]
    assert found.questions[0].evidence == (
        Evidence("a.md", "because", grade=2),
        Evidence("b.md", lines=(3, 4)),
    )
    assert found.questions[0].tags == ("x", "y")
    assert not found.questions[1].answerable
    assert found.problems[0].startswith("questions.csv:3: the id q1") or any(
        "questions.csv:3" in p for p in found.problems
    )
    assert any("questions.csv:6: a grade must be" in p for p in found.problems)


def test_a_table_without_a_column_of_questions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("id,frage\n1,Wo?\n", "utf-8")
    with pytest.raises(UsageError, match="no column named question"):
        read_questions(path)


def test_toml_tables_are_read_and_damaged_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "questions.toml"
    path.write_text(
        '[[question]]\nid = "q1"\nquestion = "Why?"\nsynthetic = true\n'
        '[[question.evidence]]\nfile = "a.md"\nlines = [1, 2]\n'
        '[[question]]\nquestion = ""\n',
        "utf-8",
    )
    found = read_questions(path)
    assert found.questions[0].evidence == (Evidence("a.md", lines=(1, 2)),)
    assert found.questions[0].synthetic
    assert found.problems[0].startswith("questions.toml, question 2: the question must be")
    path.write_text("[[question]\n", "utf-8")
    with pytest.raises(UsageError, match="not valid TOML"):
        read_questions(path)


def test_a_json_list_is_read(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"questions": [GOOD, 5]}), "utf-8")
    found = read_questions(path)
    assert [q.qid for q in found.questions] == ["q1"]
    assert found.problems == (
        "questions.json, item 2: not an object with a question in it but the number 5; left out",
    )


def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    written(
        folder,
        {"_id": "1", "text": "one?", "metadata": {"answer": "yes"}},
        {"_id": "2", "text": "two?"},
        {"_id": "3", "text": "three?"},
        {"_id": "3", "text": "three again?"},
        {"_id": "4"},
        name="queries.jsonl",
    )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\td 1\t1\n1\td2\t0\n2\td2\t4\n9\td1\t1\n2\td3\tx\n"
        "1\td2\t-1\n2\td2\n",
        "utf-8",
    )
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n3\td1\t1\n", "utf-8")
    return folder


def test_a_beir_folder_gives_the_questions_its_test_split_judges(tmp_path: Path) -> None:
    found = read_questions(beir(tmp_path))
    assert (found.name, found.unit) == ("set", "document")
    assert [(q.qid, q.answer) for q in found.questions] == [("1", "yes"), ("2", "")]
    assert found.questions[0].evidence == (
        Evidence("corpus.jsonl#d 1"),
        Evidence("corpus.jsonl#d2", grade=0),
    )
    assert found.questions[1].evidence[0].grade == 4  # of other people's scales nothing is lost
    assert found.problems == (
        "only qrels/test.tsv was read, not train.tsv",
        'test.tsv:6: the grade must be a whole number (got "x"); left out',
        "test.tsv:8: not 3 or 4 columns but 2; left out",
        "queries.jsonl:4: the id 3 stands at queries.jsonl:3 already; left out",
        'queries.jsonl:5: a query needs "_id" and "text"; left out',
        "test.tsv: 1 judged questions are not among the questions: 9",
        "1 of 3 questions have no judgement in test.tsv and were left out",
    )


def test_another_split_is_read_by_naming_it(tmp_path: Path) -> None:
    folder = beir(tmp_path)
    found = read_questions(folder / "qrels" / "train.tsv")
    assert found.name == "set/train"
    assert [q.qid for q in found.questions] == ["3"]
    assert read_questions(folder / "queries.jsonl") == read_questions(folder)


@pytest.mark.parametrize(
    ("name", "n", "n_labels"),
    [("anthropic-docs-rag", 100, 192), ("cranfield", 225, 1837), ("scifact", 300, 339),
     ("xquad-en", 1190, 1190)],
)  # fmt: skip
def test_real_beir_folders_are_read_whole(shared: Path, name: str, n: int, n_labels: int) -> None:
    found = read_questions(shared / "data/ir" / name)
    assert found.problems == ()
    assert len(found.questions) == n
    assert sum(len(q.evidence) for q in found.questions) == n_labels


TOPICS = {
    "sgml.topics": "<top>\n<num> Number: 301\n<title> Organized\n crime\n<desc> Description:\n"
    "Some.\n</top>\n<top><num>302</num><title>Polio</title></top>\n<top><num>303</top>\n",
    "plain.txt": "301\tOrganized crime\n\n302\tPolio\nno tab here\n",
}


@pytest.mark.parametrize("name", sorted(TOPICS))
def test_trec_topics_are_read_with_the_judgements_beside_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TOPICS[name], "utf-8")
    (tmp_path / "qrels.txt").write_text("301 0 D1 2\n301 0 D2 -1\n302 0 D3 1\n", "utf-8")
    found = read_questions(tmp_path / name)
    assert [(q.qid, q.text) for q in found.questions] == [
        ("301", "Organized crime"),
        ("302", "Polio"),
    ]
    assert found.questions[0].evidence == (Evidence("D1", grade=2), Evidence("D2", grade=0))
    assert found.unit == "document"
    assert len(found.problems) == 1
    assert "left out" in found.problems[0]


def test_topics_need_judgements(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text("1\tone?\n", "utf-8")
    with pytest.raises(UsageError, match="none is there"):
        read_questions(tmp_path / "topics.txt")
    (tmp_path / "elsewhere").write_text("1 0 D1 1\n", "utf-8")
    found = read_questions(tmp_path / "topics.txt", qrels=tmp_path / "elsewhere")
    assert isinstance(found, QuestionSet)
    assert found.questions[0].evidence == (Evidence("D1"),)
