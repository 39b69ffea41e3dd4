"""The score table: means by hand, and everything that is left out said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.gates import check_gates, check_regression, parse_gate
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.types import (
    ColumnRun,
    EvalRun,
    Evidence,
    Place,
    Question,
    QuestionRun,
    Resolved,
    Retrieved,
)
from rag_tui.engine.types import Column


def labelled(qid: str, *chunks: str, tags: Sequence[str] = (), text: str = "") -> Resolved:
    """A question whose evidence is chunk ``cN`` at characters 10 N to 10 N + 10 of ``a.md``."""
    evidence = tuple(Evidence("a.md", quote=chunk) for chunk in chunks)
    places = tuple(
        Place(one, "a.md", *_span(one.quote), (int(one.quote[1:]),), (one.quote,))
        for one in evidence
    )
    question = Question(qid, text or f"question {qid}", evidence, tags=tuple(tags))
    return Resolved(question, places)


def _span(chunk: str) -> tuple[int, int]:
    number = int(chunk[1:])
    return 10 * number, 10 * number + 10


def asked(qid: str, *chunks: str, best: float = 1.0) -> QuestionRun:
    rows = tuple(
        Retrieved(chunk, "a.md", *_span(chunk), best / rank) for rank, chunk in enumerate(chunks, 1)
    )
    return QuestionRun(qid, rows)


def run_of(columns: Mapping[str, Sequence[QuestionRun]], name: str = "now") -> EvalRun:
    return EvalRun(
        name, "2031-01-01T00:00:00+00:00", "/docs", "i", "q", 100,
        tuple(ColumnRun(Column(n, "bm25"), "BM25", tuple(runs)) for n, runs in columns.items()),
    )  # fmt: skip


def by_id(*questions: Resolved) -> dict[str, Resolved]:
    return {one.question.qid: one for one in questions}


LABELS = by_id(labelled("a", "c1"), labelled("b", "c2", "c3"), labelled("c", "c4"))
RUN = run_of(
    {
        "one": [asked("a", "c1", "c9"), asked("b", "c9", "c3"), asked("c", "c9", "c8", "c4")],
        "two": [asked("a", "c9", "c1"), asked("b", "c2", "c3"), asked("c", "c9")],
    }
)


def test_means_are_those_of_the_values_by_hand() -> None:
    table = score(RUN, LABELS, ["R@1", "R@3", "RR@10"], "passage")
    assert table.measures == ("R@1", "R@3", "RR@10")
    means = [[cell.interval and cell.interval.mean for cell in c.cells] for c in table.columns]
    assert means[0] == pytest.approx([1 / 3, (1 + 0.5 + 1) / 3, (1 + 0.5 + 1 / 3) / 3])
    assert means[1] == pytest.approx([0.5 / 3, (1 + 1 + 0) / 3, (0.5 + 1 + 0) / 3])
    interval = table.columns[0].cells[2].interval
    assert interval is not None
    assert (interval.n, interval.low < interval.mean < interval.high) == (3, True)


def test_other_columns_are_compared_with_the_first_or_the_named_one() -> None:
    table = score(RUN, LABELS, ["RR@10"], "passage")
    assert table.baseline == "one"
    assert table.columns[0].cells[0].comparison is None
    compared = table.columns[1].cells[0].comparison
    assert compared is not None
    # by hand: 0.5 - 1, 1 - 0.5, 0 - 1/3
    assert compared.delta == pytest.approx(-1 / 9)
    assert (compared.wins, compared.ties, compared.losses) == (1, 0, 2)
    # |sum| >= 1/3 for 6 of 8 sign patterns: +-1/3 four times, +-4/3 two times, +-2/3 two times
    assert compared.p_value == pytest.approx(1.0)
    other = score(RUN, LABELS, ["RR@10"], "passage", baseline="two")
    reverse = other.columns[0].cells[0].comparison
    assert reverse is not None
    assert reverse.delta == pytest.approx(1 / 9)
    assert other.columns[1].cells[0].comparison is None
    with pytest.raises(UsageError, match="'three'"):
        score(RUN, LABELS, ["RR@10"], "passage", baseline="three")


def test_a_column_that_failed_everywhere_is_not_scored_and_says_so() -> None:
    failed = [QuestionRun(qid, error="no model") for qid in "abc"]
    run = run_of({"ok": RUN.columns[0].questions, "down": failed, "never": []})
    table = score(run, LABELS, ["R@1"], "passage")
    down, never = table.columns[1:]
    assert down.cells[0].interval is None
    assert down.cells[0].comparison is None
    assert down.reason == "failed for every question: no model"
    assert never.reason == "none of the labelled questions was asked"
    assert (down.n_scored, down.n_without_list, len(down.errors)) == (0, 3, 3)
    assert score(run, LABELS, ["R@1"], "passage", baseline=None).baseline == "ok"


def test_a_question_without_a_list_is_left_out_and_never_counts_as_zero() -> None:
    runs = [asked("a", "c1"), QuestionRun("b", error="too long")]
    table = score(run_of({"one": runs}), LABELS, ["R@1"], "passage")
    (column,) = table.columns
    interval = column.cells[0].interval
    assert interval is not None
    assert (interval.mean, interval.n) == (1.0, 1)
    assert (column.n_scored, column.n_without_list) == (1, 2)
    assert column.errors == (("b", "too long"),)


def test_an_empty_list_is_a_list_and_counts_as_zero() -> None:
    table = score(run_of({"one": [asked("a", "c1"), asked("c")]}), LABELS, ["R@1"], "passage")
    interval = table.columns[0].cells[0].interval
    assert interval is not None
    assert (interval.mean, interval.n) == (0.5, 2)


def test_only_questions_that_both_have_a_list_for_are_compared() -> None:
    run = run_of({"one": RUN.columns[0].questions, "two": [asked("a", "c9", "c1")]})
    compared = score(run, LABELS, ["RR@10"], "passage").columns[1].cells[0].comparison
    assert compared is not None
    assert compared.delta == pytest.approx(-0.5)
    assert (compared.losses, compared.ties) == (1, 0)


def test_unjudged_rows_and_the_bounds_they_leave_are_counted() -> None:
    table = score(RUN, LABELS, ["R@1"], "passage")
    one = table.columns[0]
    # k is 1: c1 is judged, c9 twice is not
    assert (table.k, one.n_unjudged, one.n_rows) == (1, 2, 3)
    cell = one.cells[0]
    assert cell.interval is not None
    assert cell.low == pytest.approx(cell.interval.mean)
    # by hand: a 1 of 1; b (0 + 1) of (2 + 1); c (0 + 1) of (1 + 1)
    assert cell.high == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)


def test_labels_that_are_nowhere_are_named_and_their_questions_not_scored() -> None:
    lost = Resolved(
        Question("d", "lost", (Evidence("gone.md", quote="x" * 100),)),
        (),
        ((Evidence("gone.md", quote="x" * 100), "there is no such document"),),
    )
    bare = Resolved(Question("e", "no label"), ())
    labels = {**LABELS, **by_id(lost, bare)}
    run = run_of({"one": [*RUN.columns[0].questions, asked("d", "c1"), asked("e", "c1")]})
    table = score(run, labels, ["R@1"], "passage")
    assert (table.n_questions, table.n_answerable, table.n_judged) == (5, 5, 3)
    assert table.unlabelled == ("e",)
    (sentence,) = table.unresolved
    assert sentence.startswith("d: gone.md")
    assert sentence.endswith("there is no such document")
    assert len(sentence) < 120
    assert table.columns[0].n_scored == 3


def test_unanswerable_questions_stand_apart() -> None:
    nothing = Resolved(Question("u", "breakfast?", answerable=False), ())
    run = run_of({"one": [*RUN.columns[0].questions, asked("u", "c1", best=0.25)]})
    table = score(run, {**LABELS, **by_id(nothing)}, ["R@1"], "passage")
    assert (table.n_judged, table.n_unanswerable, table.columns[0].n_scored) == (3, 1, 3)
    found = table.columns[0].separation
    assert found is not None
    assert found.auc.mean == 1.0
    assert found.threshold == pytest.approx(0.625)
    assert score(RUN, LABELS, ["R@1"], "passage").columns[0].separation is None


def test_disagreements_come_first_by_how_far_the_evidence_lies_apart() -> None:
    table = score(RUN, LABELS, ["R@1"], "passage")
    ranks = {q.qid: q.ranks for q in table.questions}
    assert ranks == {"a": (1, 2), "b": (2, 1), "c": (3, None)}
    assert [q.qid for q in table.disagreements()] == ["a", "b", "c"]
    same = run_of({"one": RUN.columns[0].questions, "again": RUN.columns[0].questions})
    assert score(same, LABELS, ["R@1"], "passage").disagreements() == ()


def test_a_column_without_a_list_disagrees_with_nobody() -> None:
    run = run_of({"one": RUN.columns[0].questions, "down": [QuestionRun("a", error="x")]})
    assert score(run, LABELS, ["R@1"], "passage").disagreements() == ()


def test_an_identical_column_is_no_change_and_makes_no_noise() -> None:
    same = run_of({"one": RUN.columns[0].questions, "again": RUN.columns[0].questions})
    table = score(same, LABELS, ["R@1"], "passage")
    compared = table.columns[1].cells[0].comparison
    assert compared is not None
    assert compared.is_identical
    assert compared.p_value == 1.0
    assert table.noise == {}


def test_groups_are_means_over_their_own_questions() -> None:
    labels = by_id(
        labelled("a", "c1", tags=("exact",), text="lockbox"),
        labelled("b", "c2", "c3", tags=("exact", "long"), text="where do the two keys lie"),
        labelled("c", "c4", text="what"),
    )
    table = score(RUN, labels, ["R@1", "R@3"], "passage")
    groups = {(g.kind, g.name): (g.n, g.means) for g in table.groups}
    assert groups["tag", "exact"] == (2, ((0.5, 0.75), (0.25, 1.0)))
    assert groups["tag", "long"] == (1, ((0.0, 0.5), (0.5, 1.0)))
    assert groups["length", "1 to 3 words"] == (2, ((0.5, 1.0), (0.0, 0.5)))
    assert list(groups) == [
        ("tag", "exact"), ("tag", "long"), ("length", "1 to 3 words"), ("length", "4 to 8 words"),
    ]  # fmt: skip


def test_a_run_is_compared_with_the_same_columns_of_another_run() -> None:
    before = run_of({"two": RUN.columns[0].questions, "gone": []}, "before")
    table = score(RUN, LABELS, ["RR@10"], "passage", baseline=before)
    assert table.baseline == "run before"
    assert table.columns[0].cells[0].comparison is None
    compared = table.columns[1].cells[0].comparison
    assert compared is not None
    assert compared.delta == pytest.approx(-1 / 9)
    assert table.notes == ("run before has no column one",)
    assert [q.baseline_rank for q in table.questions] == [1, 2, 3]
    moved = replace(before, questions_fingerprint="other", index_fingerprint="other", depth=10)
    notes = score(RUN, LABELS, ["RR@10"], "passage", baseline=moved).notes
    assert ["other questions" in notes[0], "another index" in notes[1], "depth 10" in notes[2]] == [
        True,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("gate", "is_met"),
    [
        ("one:R@1=0.3333", True),
        ("one:R@1=0.334", False),
        ("two:R@1=0.1667", True),
        ("one:recall@1=0.3", True),
        ("one:Failure@1=0.67", True),
        ("one:Failure@1=0.66", False),
    ],
)
def test_a_gate_is_met_by_the_mean_as_it_is_shown(gate: str, is_met: bool) -> None:
    table = score(RUN, LABELS, ["R@1", "Failure@1"], "passage")
    (result,) = check_gates([parse_gate(gate, ["one", "two"])], table)
    assert result.is_met is is_met, result.message


def test_a_gate_on_a_column_without_a_score_is_not_met() -> None:
    run = run_of({"down": [QuestionRun("a", error="no model")]})
    table = score(run, LABELS, ["R@1"], "passage")
    (result,) = check_gates([parse_gate("down:R@1=0", ["down"])], table)
    assert not result.is_met
    assert "no model" in result.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hybrid", "column:measure=value"),
        ("=0.5", "column:measure=value"),
        ("three:R@1=0.5", "'three'"),
        ("one:R@1=high", "0 to 1"),
        ("one:R@1=nan", "0 to 1"),
        ("one:R@1=2", "0 to 1"),
        ("one:Q@1=0.5", "'Q@1'"),
    ],
)
def test_a_gate_that_cannot_be_read_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_gate(text, ["one", "two"])


def test_a_gate_reads_columns_whose_names_hold_its_own_signs() -> None:
    gate = parse_gate("bm25:k1=0.9:R@1=0.5", ["bm25:k1=0.9"])
    assert (gate.column, gate.measure, gate.bound) == ("bm25:k1=0.9", "R@1", 0.5)


def many(column: str, rank_of: Mapping[str, int]) -> list[QuestionRun]:
    return [asked(qid, *["c9"] * (rank - 1), f"c{qid[1:]}") for qid, rank in rank_of.items()]


def test_a_regression_is_a_loss_that_chance_does_not_explain() -> None:
    qids = [f"q{number}" for number in range(10, 20)]
    labels = by_id(*(labelled(qid, f"c{qid[1:]}") for qid in qids))
    before = run_of({"x": many("x", dict.fromkeys(qids, 1))}, "before")
    worse = run_of({"x": many("x", dict.fromkeys(qids, 2))})
    # ten losses of the same size: 2 of 1,024 sign patterns are as extreme
    lost = check_regression(score(worse, labels, ["RR@10"], "passage", baseline=before))
    assert [result.message for result in lost] == [
        "x:RR@10 lost 0.5000 against run before (p 0.002)"
    ]
    one_worse = {**dict.fromkeys(qids, 1), "q10": 2}
    table = score(
        run_of({"x": many("x", one_worse)}), labels, ["RR@10"], "passage", baseline=before
    )
    assert check_regression(table) == ()
    assert len(check_regression(table, tolerance=0.04)) == 1
    assert check_regression(table, tolerance=0.06) == ()
    better = score(before, labels, ["RR@10", "Failure@1"], "passage", baseline=worse)
    assert check_regression(better) == ()


def test_a_column_that_fails_where_the_baseline_had_scores_is_a_regression() -> None:
    down = run_of({"one": [QuestionRun(qid, error="no model") for qid in "abc"]})
    table = score(down, LABELS, ["R@1"], "passage", baseline=RUN)
    (result,) = check_regression(table)
    assert "no model" in result.message


def test_documents_are_scored_each_at_its_best_row() -> None:
    labels = by_id(labelled("a", "c1", "c2"))
    rows = (Retrieved("x", "b.md", 0, 1, 3.0), Retrieved("y", "b.md", 1, 2, 2.0))
    run = run_of({"one": [QuestionRun("a", (*rows, Retrieved("z", "a.md", 900, 910, 1.0)))]})
    table = score(run, labels, ["RR@10"], "document")
    interval = table.columns[0].cells[0].interval
    assert interval is not None
    assert interval.mean == 0.5
