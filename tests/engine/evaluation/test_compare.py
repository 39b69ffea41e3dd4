"""Two runs side by side: fixed, broken, moved, and in what the runs themselves differ."""

from __future__ import annotations

from dataclasses import replace

from rag_tui.engine.evaluation.compare import compare_runs
from rag_tui.engine.evaluation.types import QuestionRun
from tests.engine.evaluation.test_scoring import LABELS, asked, by_id, labelled, run_of

BEFORE = run_of(
    {"x": [asked("a", "c9", "c8", "c1"), asked("b", "c2", "c9"), asked("c", "c9", "c4", "c7")]},
    "before",
)


def test_an_identical_run_is_no_change() -> None:
    again = run_of({"x": BEFORE.columns[0].questions}, "again")
    change = compare_runs(BEFORE, again, LABELS, k=2)
    assert change.is_identical
    assert change.columns[0].is_identical
    assert [c.kind for c in change.columns[0].changes] == ["same"] * 3
    assert change.notes == ()


def test_questions_are_fixed_and_broken_when_the_evidence_crosses_k() -> None:
    after = run_of(
        {"x": [asked("a", "c1", "c9", "c8"), asked("b", "c9"), asked("c", "c4", "c9", "c7")]},
        "after",
    )
    change = compare_runs(BEFORE, after, LABELS, k=2)
    assert not change.is_identical
    (column,) = change.columns
    kinds = {c.qid: (c.kind, c.before, c.after) for c in column.changes}
    assert kinds == {"a": ("fixed", 3, 1), "b": ("broken", 1, None), "c": ("better", 2, 1)}
    # most changed first: b lost 1, a won 2/3, c crossed nothing
    assert [c.qid for c in column.changes] == ["b", "a", "c"]
    assert [c.qid for c in column.of_kind("fixed")] == ["a"]


def test_rows_are_promoted_demoted_dropped_and_new_within_k() -> None:
    after = run_of({"x": [asked("c", "c4", "c7", "c9")]}, "after")
    change = compare_runs(BEFORE, after, LABELS, k=2).columns[0].changes[0]
    assert change.promoted == ("c4",)
    assert change.demoted == ()
    assert change.dropped == ("c9",)
    assert change.new == ("c7",)
    whole = compare_runs(BEFORE, after, LABELS, k=3).columns[0].changes[0]
    assert (whole.promoted, whole.demoted) == (("c4", "c7"), ("c9",))
    assert (whole.dropped, whole.new) == ((), ())


def test_other_rows_that_moved_are_no_fix() -> None:
    after = run_of({"x": [asked("c", "c6", "c4", "c7")]}, "after")
    change = compare_runs(BEFORE, after, LABELS, k=3).columns[0].changes[0]
    assert change.kind == "moved"
    assert change.change == 0


def test_a_question_without_labels_is_compared_by_its_rows() -> None:
    after = run_of({"x": [asked("a", "c1"), asked("b", "c2", "c9")]}, "after")
    kinds = {c.qid: c.kind for c in compare_runs(BEFORE, after, {}, k=2).columns[0].changes}
    assert kinds == {"a": "unjudged", "b": "same"}


def test_a_question_that_failed_in_one_run_is_not_compared() -> None:
    after = run_of({"x": [QuestionRun("a", error="no model"), asked("b", "c2", "c9")]}, "after")
    (column,) = compare_runs(BEFORE, after, LABELS).columns
    assert [c.qid for c in column.changes] == ["b"]
    assert column.n_not_compared == 2
    assert not compare_runs(BEFORE, after, LABELS).is_identical


def test_in_what_the_runs_differ_is_said() -> None:
    after = replace(
        run_of({"x": BEFORE.columns[0].questions[:2], "y": []}, "after"),
        questions_fingerprint="other",
        index_fingerprint="other",
        depth=50,
        knobs={"bm25.k1": 0.9, "post.mmr": 0.5},
    )
    before = replace(BEFORE, knobs={"bm25.k1": 1.5, "post.mmr": None})
    notes = compare_runs(before, after, LABELS).notes
    assert "1 only in before, 0 only in after" in notes[0]
    assert "indexes differ" in notes[1]
    assert "100 and 50" in notes[2]
    assert notes[3:5] == ("bm25.k1: 1.5 → 0.9", "post.mmr: off → 0.5")
    assert notes[5] == "Only in after: y."


def test_columns_of_other_names_can_be_paired() -> None:
    run = run_of({"x": BEFORE.columns[0].questions, "y": [asked("a", "c1")]}, "one")
    (column,) = compare_runs(run, run, LABELS, k=1, pairs=(("x", "y"),)).columns
    assert (column.name, column.other_name) == ("x", "y")
    assert [(c.qid, c.kind) for c in column.changes] == [("a", "fixed")]


def test_evidence_is_found_by_its_place_in_the_document_after_another_cut() -> None:
    labels = by_id(labelled("a", "c1"))
    row = replace(BEFORE.columns[0].questions[0].rows[2], chunk_id="cut anew")
    after = run_of({"x": [QuestionRun("a", (row,))]}, "after")
    change = compare_runs(BEFORE, after, labels, k=1).columns[0].changes[0]
    assert (change.kind, change.before, change.after) == ("fixed", 3, 1)
