"""Cohen's kappa against values worked out by hand, and labels that are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.agreement import AnswerLabels, agreement, cohens_kappa
from rag_tui.engine.evaluation.answer_types import (
    AnswerRow,
    AnswerRun,
    Judgement,
    JudgeVerdict,
)


def pairs(table: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, n in table.items() for _ in range(n)]


def row(qid: str, verdict: JudgeVerdict | None = None, text: str = "An answer.") -> AnswerRow:
    judgement = Judgement(verdict, "because", "r/1", "m") if verdict else None
    return AnswerRow(
        f"k-{qid}", qid, f"Question {qid}?", True, text, "complete", "answered", "right section",
        "model", judgement=judgement,
    )  # fmt: skip


def run_of(*rows: AnswerRow) -> AnswerRun:
    return AnswerRun("r", "2026-01-01T00:00:00+00:00", "f", "model", "i", "q", rows, len(rows))


def test_kappa_of_two_classes_is_the_one_worked_out_by_hand() -> None:
    # 50 pairs: both yes 20, both no 15; observed 35/50 = 0.7. First says yes 25 of 50, second 30:
    # expected 0.5 * 0.6 + 0.5 * 0.4 = 0.5. Kappa (0.7 - 0.5) / 0.5 = 0.4.
    found = cohens_kappa(pairs({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15}))
    assert found.kappa == pytest.approx(0.4)
    assert found.observed == pytest.approx(0.7)
    assert found.expected == pytest.approx(0.5)
    assert found.n == 50
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.4 < found.high
    # The large-sample standard error (Cohen 1960) is sqrt(0.7 * 0.3 / (50 * 0.25)) = 0.13.
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.13, abs=0.06)


def test_kappa_of_three_classes_is_unweighted() -> None:
    # Diagonal 4 + 2 + 1 of 10. First: 5, 3, 2; second: 5, 3, 2.
    # Expected 0.25 + 0.09 + 0.04 = 0.38; kappa (0.7 - 0.38) / 0.62.
    table = {
        ("correct", "correct"): 4, ("correct", "wrong"): 1, ("partly", "partly"): 2,
        ("partly", "correct"): 1, ("wrong", "wrong"): 1, ("wrong", "partly"): 1,
    }  # fmt: skip
    assert cohens_kappa(pairs(table)).kappa == pytest.approx(0.32 / 0.62)


def test_perfect_agreement_is_one_and_none_beyond_chance_is_zero() -> None:
    assert cohens_kappa(pairs({("a", "a"): 3, ("b", "b"): 2})).kappa == 1.0
    even = {("a", "a"): 1, ("a", "b"): 1, ("b", "a"): 1, ("b", "b"): 1}
    assert cohens_kappa(pairs(even)).kappa == 0.0


def test_kappa_of_one_class_is_undefined_and_says_so() -> None:
    found = cohens_kappa([("correct", "correct")] * 5)
    assert found.kappa is None
    assert found.note == "undefined: all 5 are correct to both"
    assert cohens_kappa([]).note == "nothing is labelled and judged"


def test_the_same_pairs_give_the_same_interval() -> None:
    table = pairs({("a", "a"): 6, ("a", "b"): 2, ("b", "b"): 4})
    assert cohens_kappa(table) == cohens_kappa(table)
    assert cohens_kappa(table, seed=1).low != cohens_kappa(table, seed=2).low


def test_answers_without_a_verdict_are_counted_and_not_paired(tmp_path: Path) -> None:
    rows = (row("a", "correct"), row("b", "wrong"), row("c", "no verdict"), row("d"))
    labels = AnswerLabels(tmp_path)
    for one in rows:
        labels.put(one, "correct")
    found = agreement(run_of(*rows), labels)
    assert (found.n, found.n_no_verdict) == (2, 1)
    assert found.table == {("correct", "correct"): 1, ("wrong", "correct"): 1}


def test_a_label_belongs_to_the_text_and_the_last_one_counts(tmp_path: Path) -> None:
    labels = AnswerLabels(tmp_path)
    labels.put(row("a"), "wrong")
    labels.put(row("a"), "partly")
    again = AnswerLabels(tmp_path)
    assert again.of(row("a")) == "partly"
    assert again.of(replace(row("a"), key="another run")) == "partly"
    assert again.of(row("a", text="Another answer.")) is None
    again.put(row("a"), "")
    assert AnswerLabels(tmp_path).of(row("a")) is None
    assert (tmp_path / "labels.jsonl").stat().st_mode & 0o077 == 0


def test_a_label_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="good"):
        AnswerLabels(tmp_path).put(row("a"), "good")
    assert not (tmp_path / "labels.jsonl").exists()
