"""Runs and judgements of TREC: order survives, other systems' ids are understood."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.judging import judge_rows
from rag_tui.engine.evaluation.measures import mean, parse_measure
from rag_tui.engine.evaluation.question_rows import Problems
from rag_tui.engine.evaluation.question_sets import read_qrels
from rag_tui.engine.evaluation.resolving import resolve_all
from rag_tui.engine.evaluation.trec import (
    falling,
    read_run,
    run_lines,
    write_qrels,
    write_run,
)
from rag_tui.engine.evaluation.trec_ids import plain_id, trec_id
from rag_tui.engine.evaluation.types import ColumnRun, Evidence, Question, QuestionRun, Retrieved
from rag_tui.engine.index import Index
from rag_tui.engine.types import Column
from tests.engine.hand_made import cut, document, index_of

NAMES = ("corpus.jsonl#A", "corpus.jsonl#B b", "corpus.jsonl#C%20c", "notes.md")


def library() -> Index:
    documents = [document(f"Text of {name}. More of it.", name) for name in NAMES]
    return index_of(documents, [piece for one in documents for piece in cut(one, 12)])


def column(*runs: QuestionRun, name: str = "my column") -> ColumnRun:
    return ColumnRun(Column(name, "vector"), "cosine", runs)


def rows(index: Index, *positions: int, score: float = 0.5) -> tuple[Retrieved, ...]:
    chunks = [index.chunks[p] for p in positions]
    return tuple(Retrieved(c.chunk_id, c.doc_id, c.start, c.end, score) for c in chunks)


QUESTIONS = (
    Question("q1", "?", (Evidence("corpus.jsonl#A"), Evidence("corpus.jsonl#B b", grade=0))),
    Question("q 2", "?", (Evidence("corpus.jsonl#C%20c", grade=2),)),
)


# ---- writing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scores",
    [
        [0.5] * 50,
        [0.123456789, 0.123456788, 0.123456787],
        [1.0, 7.0, 3.0, -2.0],
        [0.0, 0.0, -0.0],
        [16777217.0, 16777216.0],
        [math.inf, math.inf, math.nan, -math.inf],
        [1e-45, 0.0],
    ],
)
def test_the_order_survives_reading_scores_as_floats(scores: list[float]) -> None:
    read = [np.float32(text) for text in falling(scores)]
    assert all(a > b for a, b in pairwise(read))
    assert len(read) == len(scores)


def test_scores_that_fall_already_are_written_as_they_are() -> None:
    assert falling([12.5, 0.25, -3.0]) == ["12.5", "0.25", "-3.0"]


def test_a_run_is_written_in_six_columns(tmp_path: Path) -> None:
    index = library()
    ours = column(
        QuestionRun("q1", rows(index, 0, 1, 7)),
        QuestionRun("q 2", rows(index, 2)),
        QuestionRun("q3", error="no model"),
    )
    assert list(run_lines(ours, ids="record")) == [
        "q1 Q0 A 1 0.5 my%20column\n",
        "q1 Q0 notes.md 2 0.49999997 my%20column\n",
        "q%202 Q0 B%20b 1 0.5 my%20column\n",
    ]
    write_run(tmp_path / "run.trec", ours)
    text = (tmp_path / "run.trec").read_text("utf-8")
    assert [line.split()[2] for line in text.splitlines()[:3]] == [
        index.chunks[p].chunk_id for p in (0, 1, 7)
    ]


def test_ids_with_blanks_are_escaped_and_come_back_and_empty_ones_are_refused() -> None:
    for name in ("a b", "tab\there", "100% of it", "caf\udce9 x", "new\nline", "ü x"):
        assert plain_id(trec_id(name)) == name
        assert len(trec_id(name).split()) == 1
        trec_id(name).encode("utf-8")
    assert trec_id("a%20b") == "a%20b"
    with pytest.raises(UsageError, match="empty id"):
        trec_id("")


def test_judgements_are_written_by_chunk_document_or_record(tmp_path: Path) -> None:
    index = library()
    labels = resolve_all(QUESTIONS, index).values()
    write_qrels(tmp_path / "qrels", labels, ids="record")
    assert (tmp_path / "qrels").read_text("utf-8") == ("q1 0 A 1\nq1 0 B%20b 0\nq%202 0 C%20c 2\n")
    write_qrels(tmp_path / "qrels", labels)
    first = (tmp_path / "qrels").read_text("utf-8").splitlines()[:2]
    assert first == [f"q1 0 {index.chunks[p].chunk_id} 1" for p in (0, 1)]
    problems = Problems()
    assert len(read_qrels(tmp_path / "qrels", problems)) == 6
    assert problems.sentences() == ()


def test_exported_files_give_ir_measures_our_numbers(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    index = library()
    ours = column(
        QuestionRun("q1", rows(index, 2, 7, 1, 0)), QuestionRun("q 2", rows(index, 6, 5, 3))
    )
    labels = resolve_all(QUESTIONS, index)
    write_run(tmp_path / "run", ours, ids="record")
    write_qrels(tmp_path / "qrels", labels.values(), ids="record")
    names = ["nDCG@3", "RR@10", "R@2", "AP"]
    theirs = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(name) for name in names],
        ir_measures.read_trec_qrels(str(tmp_path / "qrels")),
        ir_measures.read_trec_run(str(tmp_path / "run")),
    )
    judged = [judge_rows(run.rows, labels[run.qid], "document") for run in ours.questions]
    for name in names:
        expected = theirs[ir_measures.parse_measure(name)]
        assert mean([parse_measure(name).value(j) for j in judged]) == pytest.approx(expected)


# ---- reading -------------------------------------------------------------------------------


def read(
    tmp_path: Path, text: str, index: Index | None = None
) -> tuple[list[list[str]], list[str]]:
    path = tmp_path / "other.trec"
    path.write_text(text, "utf-8")
    found = read_run(path, QUESTIONS, index or library())
    lists = [[row.chunk_id or row.document for row in run.rows] for run in found.column.questions]
    return lists, list(found.problems)


def test_our_own_run_comes_back_as_it_was(tmp_path: Path) -> None:
    index = library()
    ours = column(QuestionRun("q1", rows(index, 3, 0, 7)), QuestionRun("q 2", rows(index, 5, 4)))
    write_run(tmp_path / "run.trec", ours)
    found = read_run(tmp_path / "run.trec", QUESTIONS, index)
    assert found.problems == ()
    assert found.column.imported_from == "run.trec"
    assert found.column.column.name == "my%20column"
    for mine, theirs in zip(ours.questions, found.column.questions, strict=True):
        assert [(r.chunk_id, r.document, r.start, r.end) for r in mine.rows] == [
            (r.chunk_id, r.document, r.start, r.end) for r in theirs.rows
        ]


def test_documents_and_records_are_known_by_their_ids(tmp_path: Path) -> None:
    lists, problems = read(
        tmp_path,
        "q1 Q0 A 1 9 t\nq1 Q0 corpus.jsonl#B%20b 2 8 t\nq1 Q0 notes.md 3 7 t\n"
        "q%202 Q0 C%20c 1 1 t\n",
    )
    assert lists == [["corpus.jsonl#A", "corpus.jsonl#B b", "notes.md"], ["corpus.jsonl#C%20c"]]
    assert problems == []


def test_scores_decide_and_equal_scores_keep_their_ranks(tmp_path: Path) -> None:
    lists, problems = read(
        tmp_path,
        "q1 Q0 notes.md 3 0.5 t\nq1 Q0 A 1 0.5 t\nq1 Q0 B%20b 2 0.9 t\nq%202 Q0 A 1 1 t\n",
    )
    assert lists[0] == ["corpus.jsonl#B b", "corpus.jsonl#A", "notes.md"]
    assert problems == ["question q1: ranks and scores disagree; the scores decide"]


def test_unknown_ids_are_counted_and_keep_their_ranks(tmp_path: Path) -> None:
    path = tmp_path / "other.trec"
    path.write_text("q1 Q0 gone 1 3 t\nq1 Q0 A 2 2 t\nq1 Q0 A 3 1 t\nq7 Q0 A 1 1 t\n", "utf-8")
    index = library()
    found = read_run(path, QUESTIONS, index)
    assert found.unknown == ("gone",)
    assert found.missing == ("q 2",)
    assert found.problems == (
        "other.trec: 1 questions are not in the question set: q7",
        "question q1: 1 ids stand there again; their best row counts",
        "other.trec: 1 of 2 questions are not in the run and count as nothing found: q 2",
        "other.trec: 1 ids name nothing in the index: gone",
    )
    labels = resolve_all(QUESTIONS, index)
    judged = judge_rows(found.column.questions[0].rows, labels["q1"], "document")
    assert judged.gains == (0, 1)
    assert judged.is_known == (False, True)


def test_a_question_that_the_run_does_not_mention_counts_as_nothing_found(
    tmp_path: Path,
) -> None:
    """The shared case of two queries, one of them missing: the mean is 0.5 and not 1."""
    path, index = tmp_path / "other.trec", library()
    path.write_text("q1 Q0 A 1 3 t\n", "utf-8")
    found = read_run(path, QUESTIONS, index)
    labels = resolve_all(QUESTIONS, index)
    values = [
        parse_measure("R@5").value(judge_rows(run.rows, labels[run.qid], "document"))
        for run in found.column.questions
    ]
    assert values == [1.0, 0.0]
    assert mean(values) == 0.5


def test_damaged_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    lists, problems = read(
        tmp_path,
        "q1 Q0 A 1 0.9\nq1 Q0 A one 0.9 t\nq1 Q0 A 1 nan t\n\nq1 Q0 notes.md 1 0.9 t\r\n"
        "q%202 Q0 A 1 1 t\n",
    )
    assert lists[0] == ["notes.md"]
    assert problems == [
        "other.trec:1: not six columns but 5; left out",
        "other.trec:2: rank and score must be numbers; left out",
        "other.trec:3: rank and score must be finite; left out",
    ]


@pytest.mark.parametrize("text", ["", "not a run\n", '{"q1": {"A": 1}}'])
def test_what_is_no_run_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="not a TREC run"):
        read(tmp_path, text)


def test_a_document_row_holds_every_passage_of_it(tmp_path: Path) -> None:
    index = library()
    path = tmp_path / "other.trec"
    path.write_text("q1 Q0 notes.md 1 0.9 t\n", "utf-8")
    question = Question("q1", "?", (Evidence("notes.md", "More of it."),))
    found = read_run(path, (question,), index)
    labels = resolve_all([question], index)
    assert judge_rows(found.column.questions[0].rows, labels["q1"], "passage").gains == (1,)


def test_judgements_with_two_grades_for_one_pair_are_named(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 A 1\nq1 0 A 0\nq1 0 A 0\nq1 0 B 2.0\n", "utf-8")
    problems = Problems()
    assert [(j.document, j.grade) for j in read_qrels(path, problems)] == [("A", 0), ("B", 2)]
    assert problems.sentences() == (
        "qrels:2: A is judged 0 for q1 here and 1 at qrels:1; the later one counts",
    )
