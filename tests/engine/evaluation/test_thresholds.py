"""Thresholds for questions that nothing answers: by hand and by counting pairs."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.thresholds import separation, top_scores
from rag_tui.engine.evaluation.types import ColumnRun, QuestionRun, Retrieved
from rag_tui.engine.types import Column


def test_classes_that_do_not_overlap_are_cut_half_way_between() -> None:
    found = separation([0.9, 0.8, 0.6], [0.4, 0.1])
    assert found.auc.mean == 1.0
    assert found.threshold == pytest.approx(0.5)
    assert (found.balanced_accuracy, found.youden_j) == (1.0, 1.0)
    assert (found.roc[0].answered, found.roc[0].wrongly_answered) == (0.0, 0.0)
    assert (found.roc[-1].answered, found.roc[-1].wrongly_answered) == (1.0, 1.0)
    assert (found.answerable.n, found.answerable.least, found.answerable.median) == (3, 0.6, 0.8)
    assert (found.unanswerable.n, found.unanswerable.most) == (2, 0.4)


def test_the_area_counts_pairs_and_half_of_the_ties() -> None:
    # 5 pairs right, 1 tie, 0 wrong of (3 * 2): 5.5 / 6
    found = separation([3.0, 2.0, 1.0], [1.0, 0.0])
    assert found.auc.mean == pytest.approx(5.5 / 6)
    assert found.auc.n == 5
    assert found.auc.low <= found.auc.mean <= found.auc.high


@pytest.mark.parametrize("seed", range(3))
def test_the_area_is_that_under_the_points(seed: int) -> None:
    chance = random.Random(seed)
    yes = [float(chance.randint(2, 9)) for _ in range(23)]
    no = [float(chance.randint(0, 7)) for _ in range(11)]
    found = separation(yes, no)
    pairs = sum((y > n) + 0.5 * (y == n) for y in yes for n in no) / (23 * 11)
    points = found.roc
    area = sum(
        (b.wrongly_answered - a.wrongly_answered) * (a.answered + b.answered) / 2
        for a, b in pairwise(points)
    )
    assert found.auc.mean == pytest.approx(pairs)
    assert area == pytest.approx(pairs)
    assert found.auc == separation(yes, no).auc
    # what the threshold promises is what cutting there gives
    right = sum(y >= found.threshold for y in yes) / 23
    refused = sum(n < found.threshold for n in no) / 11
    assert found.balanced_accuracy == pytest.approx((right + refused) / 2)
    assert found.balanced_accuracy == pytest.approx(
        max((p.answered + 1 - p.wrongly_answered) / 2 for p in points)
    )


def test_a_question_without_any_row_lies_below_every_threshold() -> None:
    found = separation([2.0, 1.0], [-math.inf, -math.inf])
    assert found.auc.mean == 1.0
    assert found.threshold == 1.0


@pytest.mark.parametrize(("yes", "no", "word"), [([], [1.0], "answerable"),
                                                  ([1.0], [], "unanswerable")])  # fmt: skip
def test_one_class_alone_gives_no_threshold(yes: list[float], no: list[float], word: str) -> None:
    with pytest.raises(UsageError, match=f"no {word} question") as error:
        separation(yes, no)
    assert "answerable" in error.value.hint


def test_best_scores_come_from_lists_and_not_from_failures() -> None:
    def run(qid: str, *scores: float, error: str = "") -> QuestionRun:
        rows = tuple(Retrieved(str(s), "a.md", 0, 1, s) for s in scores)
        return QuestionRun(qid, rows, error)

    questions = (run("a", 0.9, 0.1), run("b"), run("c", error="no model"), run("d", 0.3), run("x"))
    column = ColumnRun(Column("vector", "vector"), "cosine", questions)
    found = top_scores(column, {"a": True, "b": True, "c": True, "d": False})
    assert found == ((0.9, -math.inf), (0.3,))
