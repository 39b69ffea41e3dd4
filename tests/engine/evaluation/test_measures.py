"""Measures: case 24 and ir_measures give the expected numbers, hand-made places the rest."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.measures import (
    Measure,
    best_ranks,
    bounds,
    judge_rows,
    mean,
    parse_measure,
    parse_measures,
)
from rag_tui.engine.evaluation.types import Evidence, Place, Question, Resolved, Retrieved


def rows_of(*documents: str) -> tuple[Retrieved, ...]:
    """One row a document, its chunk spanning all of it."""
    return tuple(
        Retrieved(f"chunk of {name}", name, 0, 100, 1.0 / rank)
        for rank, name in enumerate(documents, start=1)
    )


def labels_of(qrels: dict[str, int]) -> Resolved:
    """Whole documents as labels, one chunk each."""
    places = tuple(
        Place(Evidence(name, grade=grade), name, 0, 100, (i,), (f"chunk of {name}",))
        for i, (name, grade) in enumerate(qrels.items())
    )
    return Resolved(Question("q", "?"), places)


def value(name: str, documents: Sequence[str], qrels: dict[str, int]) -> float | None:
    judged = judge_rows(rows_of(*documents), labels_of(qrels), "document")
    passages = judge_rows(rows_of(*documents), labels_of(qrels), "passage")
    found = parse_measure(name).value(passages)
    if len(set(documents)) == len(documents):
        assert parse_measure(name).value(judged) == found
    return found


# ---- case 24 -------------------------------------------------------------------------------


def test_the_numbers_of_the_shared_case_come_out(shared: Path) -> None:
    cases = json.loads((shared / "cases/24-metrics-duplicates/cases.json").read_text("utf-8"))
    names = {"recall": "R", "ndcg": "nDCG", "mrr": "RR", "precision": "P", "hit": "Success"}
    n_checked = 0
    for case in cases:
        for key, wanted in case.items():
            family, _, cut = key.partition("@")
            if family not in names or isinstance(wanted, dict) or cut.endswith("_exponential"):
                continue
            cut = cut.removesuffix("_linear")
            name = f"{names[family]}@{cut}" if cut else names[family]
            found = value(name, case["ranking"], case["qrels"])
            assert found == pytest.approx(wanted, abs=1e-6), (case["name"], key)
            n_checked += 1
        if "all" in case:
            for name in ("R@5", "Success@1", "P@5", "RR@10", "nDCG@10", "AP", "Failure@20"):
                assert value(name, case["ranking"], case["qrels"]) is None
                n_checked += 1
    assert n_checked >= 30


def test_a_repeated_row_gains_nothing_twice() -> None:
    assert value("nDCG@2", ["A", "A"], {"A": 1}) == 1.0  # 1.63 when it counts twice
    assert value("R@2", ["A", "A"], {"A": 1}) == 1.0
    assert value("P@2", ["A", "A"], {"A": 1}) == 0.5
    # DCG 1, ideal 1 + 1 / log2(3) = 1.6309298
    assert value("nDCG@2", ["A", "A"], {"A": 1, "B": 1}) == pytest.approx(0.6131472, abs=1e-7)


def test_recall_is_a_share_of_all_relevant_places_and_success_is_not() -> None:
    qrels = dict.fromkeys("abcd", 1)
    assert [value(f"R@{k}", "axby", qrels) for k in (1, 2, 3)] == [0.25, 0.25, 0.5]
    assert value("Success@1", "axby", qrels) == 1.0
    assert value("Failure@3", "axby", qrels) == 0.5


def test_gains_are_linear() -> None:
    # DCG 1 + 3 / log2(3) = 2.8927893, ideal 3 + 1 / log2(3) = 3.6309298
    assert value("nDCG@3", "bac", {"a": 3, "b": 1}) == pytest.approx(0.7967076, abs=1e-7)


def test_an_empty_list_scores_nothing_and_a_missing_list_is_not_scored() -> None:
    empty = judge_rows((), labels_of({"A": 1}), "passage")
    for name in ("R@5", "Success@1", "P@5", "RR@10", "nDCG@10", "AP"):
        assert parse_measure(name).value(empty) == 0.0
        assert parse_measure(name).value(None) is None
    assert parse_measure("Failure@20").value(empty) == 1.0
    assert mean([1.0, 0.0]) == 0.5
    assert mean([1.0, None]) == 1.0
    assert mean([None]) is None


# ---- ir_measures ---------------------------------------------------------------------------

NAMES = ("R@1", "R@5", "Success@1", "Success@5", "P@5", "RR@3", "RR", "nDCG@3", "nDCG", "AP@4",
         "AP")  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_random_runs_score_as_ir_measures_says(seed: int) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    chance = random.Random(seed)
    qrels, run, ours = [], [], {}
    measures = [ir_measures.parse_measure(name) for name in NAMES]
    for q in range(12):
        qid = f"q{q}"
        pool = [f"d{i}" for i in range(12)]
        grades = {d: chance.choice([0, 0, 1, 1, 2, 3]) for d in chance.sample(pool, 6)}
        grades[pool[0]] = max(1, grades.get(pool[0], 0))
        qrels += [ir_measures.Qrel(qid, d, g) for d, g in grades.items()]
        ranking = chance.sample(pool, chance.randint(0, 12)) if q else []
        # Equal scores in our list: the other side gets falling ones, since it would break the
        # ties by id and not by our order.
        run += [ir_measures.ScoredDoc(qid, d, -rank) for rank, d in enumerate(ranking)]
        rows = tuple(Retrieved(f"chunk of {d}", d, 0, 100, 0.5) for d in ranking)
        for unit in ("document", "passage"):
            ours[qid, unit] = judge_rows(rows, labels_of(grades), unit)
    theirs = {(m.query_id, str(m.measure)): m.value
              for m in ir_measures.iter_calc(measures, qrels, run)}  # fmt: skip
    assert len(theirs) >= 100
    for (qid, _), judged in ours.items():
        for name in NAMES:
            expected = theirs.get((qid, name), 0.0)
            assert parse_measure(name).value(judged) == pytest.approx(expected, abs=1e-6)


# ---- passages ------------------------------------------------------------------------------


def place(start: int, end: int, *positions: int, grade: int = 1) -> Place:
    return Place(Evidence("a.md", grade=grade), "a.md", start, end, positions)


def passage(start: int, end: int, document: str = "a.md") -> Retrieved:
    return Retrieved("", document, start, end, 0.0)


def test_a_place_counts_at_the_first_row_that_holds_it() -> None:
    labels = Resolved(Question("q", "?"), (place(40, 60, 0, 1, grade=2), place(200, 210, 3)))
    judged = judge_rows([passage(0, 55), passage(45, 120), passage(190, 240)], labels, "passage")
    assert judged.gains == (2, 0, 1)
    assert judged.is_known == (True, True, True)
    assert Measure("R", 2).value(judged) == 0.5
    assert Measure("P", 3).value(judged) == pytest.approx(2 / 3)
    assert best_ranks([passage(0, 55), passage(45, 120)], labels) == (1, None)


def test_a_row_that_holds_two_places_counts_both_and_gains_the_higher_grade() -> None:
    labels = Resolved(Question("q", "?"), (place(0, 10, 0), place(20, 30, 0, grade=3)))
    judged = judge_rows([passage(0, 50)], labels, "passage")
    assert judged.gains == (3,)
    assert judged.ideal == (3,)
    assert [m.value(judged) for m in parse_measures("R@1,nDCG@5,AP,RR")] == [1.0] * 4


def test_half_of_a_place_or_half_of_the_chunk_is_enough() -> None:
    labels = Resolved(Question("q", "?"), (place(100, 200, 0),))
    assert judge_rows([passage(0, 150)], labels, "passage").gains == (1,)
    assert judge_rows([passage(0, 149)], labels, "passage").gains == (0,)
    assert judge_rows([passage(185, 215)], labels, "passage").gains == (1,)  # 15 of its 30
    assert judge_rows([passage(186, 216)], labels, "passage").gains == (0,)
    assert judge_rows([passage(100, 200, "b.md")], labels, "passage").gains == (0,)


def test_a_chunk_that_a_place_resolved_to_holds_it_whatever_its_span() -> None:
    found = Place(Evidence("a.md"), "a.md", 0, 100, (7,), ("c7",))
    row = Retrieved("c7", "a.md", 0, 0, 1.0)
    assert judge_rows([row], Resolved(Question("q", "?"), (found,)), "passage").gains == (1,)


def test_the_ideal_list_covers_greedily() -> None:
    # Chunk 1 holds all three places, chunk 0 two of them: one row is the best that can be.
    places = (place(0, 10, 0, 1), place(20, 30, 0, 1), place(40, 50, 1))
    judged = judge_rows([passage(0, 30), passage(35, 60)], Resolved(Question("q", "?"), places),
                        "passage")  # fmt: skip
    assert judged.ideal == (1,)
    assert Measure("nDCG", 10).value(judged) == 1.0  # two rows for it are not better than one


def test_documents_count_at_their_best_row_with_their_highest_grade() -> None:
    labels = Resolved(Question("q", "?"), (place(0, 10, 0), place(500, 510, 9, grade=3)))
    rows = [passage(700, 800, "b.md"), passage(300, 400), passage(0, 20)]
    judged = judge_rows(rows, labels, "document")
    assert judged.gains == (0, 3)
    assert judged.n_relevant == 1
    assert Measure("RR", 10).value(judged) == 0.5


spans = st.tuples(st.integers(0, 60), st.integers(1, 30)).map(lambda s: (s[0], s[0] + s[1]))


@given(
    st.lists(spans, max_size=8),
    st.lists(st.tuples(spans, st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6),
    st.sampled_from(["passage", "document"]),
)
def test_no_value_ever_leaves_zero_to_one(
    rows: list[tuple[int, int]],
    labels: list[tuple[tuple[int, int], int, int]],
    unit: str,
) -> None:
    places = tuple(place(*span, position, grade=grade) for span, grade, position in labels)
    resolved = Resolved(Question("q", "?"), places)
    judged = judge_rows([passage(*row) for row in rows], resolved, unit)  # type: ignore[arg-type]
    for name in (*NAMES, "Failure@3"):
        measure = parse_measure(name)
        found, limits = measure.value(judged), bounds(measure, judged)
        if not resolved.is_judged:
            assert found is None
            assert limits is None
        else:
            assert found is not None
            assert limits is not None
            assert 0.0 <= limits.low <= found <= limits.high <= 1.0


# ---- unjudged rows -------------------------------------------------------------------------


def test_unjudged_rows_leave_a_measure_between_two_values() -> None:
    # A is relevant, B judged not relevant, U and V nobody knows.
    judged = judge_rows(rows_of("U", "B", "A", "V"), labels_of({"A": 1, "B": 0}), "passage")
    assert judged.n_unjudged(3) == 1
    assert judged.n_unjudged() == 2
    found = bounds(Measure("RR", 3), judged)
    assert found is not None
    assert (found.low, found.high, found.n_unjudged) == (1 / 3, 1.0, 1)
    recall = bounds(Measure("R", 2), judged)  # with U relevant: one of two
    assert recall is not None
    assert (recall.low, recall.high) == (0.0, 0.5)
    ndcg = bounds(Measure("nDCG", 3), judged)
    assert ndcg is not None
    assert ndcg.low == pytest.approx(0.5)
    # gains 1, 0, 1: 1.5 of 1 + 1 / log2(3)
    assert ndcg.high == pytest.approx(1.5 / (1 + 1 / math.log2(3)))


def test_without_unjudged_rows_there_is_nothing_left_open() -> None:
    judged = judge_rows(rows_of("B", "A"), labels_of({"A": 2, "B": 0}), "document")
    found = bounds(Measure("nDCG", 5), judged)
    assert found is not None
    assert found.low == found.high == Measure("nDCG", 5).value(judged)
    assert found.n_unjudged == 0


# ---- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("R@5", "R@5"), ("recall@5", "R@5"), (" MRR@10 ", "RR@10"), ("ndcg@10", "nDCG@10"),
        ("map", "AP"), ("AP@100", "AP@100"), ("hit rate@3", "Success@3"), ("rr", "RR"),
        ("hit@1", "Success@1"), ("failure rate@20", "Failure@20"), ("P @ 5", "P@5"),
    ],
)  # fmt: skip
def test_measures_are_known_by_their_names_and_synonyms(written: str, name: str) -> None:
    assert parse_measure(written).name == name
    assert parse_measure(parse_measure(written).name) == parse_measure(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [("R", "cut-off"), ("R@0", "at least 1"), ("F1@5", "no measure"), ("R@-1", "no measure"),
     ("", "no measure"), ("R@5@6", "no measure")],
)  # fmt: skip
def test_a_measure_that_cannot_be_read_is_refused_with_what_is_wrong(
    written: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        parse_measure(written)
    assert error.value.hint


def test_a_list_of_measures_keeps_its_order_and_drops_repetitions() -> None:
    assert [m.name for m in parse_measures("RR@10,R@1,,mrr@10")] == ["RR@10", "R@1"]
    with pytest.raises(UsageError, match="No measure"):
        parse_measures(" , ")
