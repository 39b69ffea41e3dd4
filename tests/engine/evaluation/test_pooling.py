"""Pools: everything the columns show, in an order that does not tell whose it is."""

from __future__ import annotations

import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.pooling import pool, pool_lists
from rag_tui.engine.evaluation.types import ColumnRun, QuestionRun, Retrieved
from rag_tui.engine.types import Column


def column(name: str, **lists: str) -> ColumnRun:
    runs = tuple(
        QuestionRun(qid, tuple(Retrieved(c, "a.md", ord(c), ord(c) + 1, 0.0) for c in ids))
        for qid, ids in lists.items()
    )
    return ColumnRun(Column(name, "vector"), "cosine", runs)


def test_a_pool_is_the_union_of_the_first_rows_each_once() -> None:
    found = pool([column("v", q1="abc", q2="x"), column("b", q1="dab", q2="")], 2)
    assert [item.qid for item in found] == ["q1"] * 3 + ["q2"]
    assert {item.chunk_id for item in found[:3]} == {"a", "b", "d"}


def test_the_order_does_not_depend_on_the_columns_and_does_on_the_seed() -> None:
    one, two = column("v", q1="abcdefgh"), column("b", q1="hgfedcba")
    orders = {tuple(i.chunk_id for i in pool([one], 8, seed=seed)) for seed in range(5)}
    assert pool([one], 8) == pool([two], 8) == pool([two, one], 8)
    assert len(orders) == 5
    assert tuple("abcdefgh") not in orders


def test_a_failed_question_adds_nothing() -> None:
    failed = ColumnRun(Column("r", "reranked"), "logit", (QuestionRun("q1", error="no model"),))
    assert pool([failed], 5) == ()


def test_a_pool_of_no_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 row"):
        pool_lists({}, 0)
