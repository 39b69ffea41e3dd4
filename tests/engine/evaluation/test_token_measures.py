"""Overlap with the wanted text: numbers counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rag_tui.engine.evaluation.token_measures import span_scores, wanted_spans
from rag_tui.engine.evaluation.types import Evidence, Place, Question, Resolved, Retrieved


def row(start: int, end: int, document: str = "a.md") -> Retrieved:
    return Retrieved("", document, start, end, 0.0)


def test_characters_are_counted_once_above_the_line_and_as_often_as_retrieved_below() -> None:
    # wanted 10..30 (20); retrieved 0..20 and 10..40: 50 characters, 20 of them wanted
    found = span_scores([row(0, 20), row(10, 40)], {"a.md": [(10, 30)]})
    assert found is not None
    assert found.recall == 1.0
    assert found.precision == pytest.approx(20 / 50)
    assert found.iou == pytest.approx(20 / 50)
    assert found.unit == "characters"


def test_other_documents_cost_precision_and_overlapping_spans_count_once() -> None:
    found = span_scores(
        [row(0, 10), row(0, 30, "b.md"), row(50, 60)], {"a.md": [(5, 15), (10, 25)]}, k=2
    )
    assert found is not None
    assert found.recall == pytest.approx(5 / 20)
    assert found.precision == pytest.approx(5 / 40)
    assert found.iou == pytest.approx(5 / 55)


def test_tokens_belong_to_the_span_they_begin_in() -> None:
    starts = {"a.md": np.array([0, 4, 8, 12, 16], np.int64)}
    found = span_scores([row(0, 9)], {"a.md": [(4, 14)]}, token_starts=starts)
    assert found is not None  # wanted: 4, 8, 12; retrieved: 0, 4, 8
    assert found.recall == pytest.approx(2 / 3)
    assert found.precision == pytest.approx(2 / 3)
    assert found.iou == pytest.approx(2 / 4)
    assert found.unit == "tokens"


def test_nothing_wanted_cannot_be_measured_and_nothing_retrieved_scores_nothing() -> None:
    assert span_scores([row(0, 5)], {}) is None
    found = span_scores([], {"a.md": [(0, 5)]})
    assert found is not None
    assert (found.recall, found.precision, found.iou) == (0.0, 0.0, 0.0)


def test_only_relevant_places_are_wanted() -> None:
    places = tuple(
        Place(Evidence("a.md", grade=grade), "a.md", start, start + 5, (0,))
        for grade, start in ((0, 0), (2, 10), (1, 20))
    )
    assert wanted_spans(Resolved(Question("q", "?"), places)) == {"a.md": [(10, 15), (20, 25)]}
