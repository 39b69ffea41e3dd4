"""What moved between two lists, against numbers by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.errors import UsageError
from rag_tui.engine.movement import movement, rank_biased_overlap

IDS = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)


def test_rows_carry_their_arrows() -> None:
    moved = movement("abcde", "cabxe")
    assert [(m.chunk_id, m.arrow) for m in moved.rows] == [
        ("c", "▲2"),
        ("a", "▼1"),
        ("b", "▼1"),
        ("x", "new"),
        ("e", "═"),
    ]
    assert [(m.chunk_id, m.arrow) for m in moved.gone] == [("d", "gone")]
    assert (moved.n_in, moved.n_out, moved.n_moved) == (1, 1, 3)


def test_a_row_from_below_the_shown_ones_came_in_and_says_how_far() -> None:
    moved = movement("abcdef", "afbcde", rows=3)
    assert [(m.chunk_id, m.arrow) for m in moved.rows] == [("a", "═"), ("f", "▲4"), ("b", "▼1")]
    assert [(m.chunk_id, m.arrow) for m in moved.gone] == [("c", "▼1")]
    assert (moved.n_in, moved.n_out) == (1, 1)


def test_the_summary_says_what_came_and_went() -> None:
    assert movement("abcde", "abcde").summary == "no change"
    assert movement("", "").summary == "no change"
    # X = 1, 2, 2, 4: 0.1 / 0.9 * (0.9 + 0.81 + 0.486 + 0.6561) + 0.6561 = 0.973
    assert movement("abcd", "abdc").summary == "2 moved, RBO 0.97"
    assert movement("ab", "cd").summary == "2 in, 2 out, RBO 0.00"
    assert movement("abc", "ab").summary == "0 in, 1 out, RBO 0.99"


def test_what_is_below_the_shown_rows_is_no_change() -> None:
    assert movement("abcd", "abdc", rows=2).summary == "no change"


@pytest.mark.parametrize(
    ("first", "second", "p", "expected"),
    [
        # X = 1, 1, 3: 0.1/0.9 * (0.9 + 0.81/2 + 0.729) + 0.729
        ("abc", "acb", 0.9, 0.1 / 0.9 * (0.9 + 0.405 + 0.729) + 0.729),
        # X = 0, 2: 1 * (0 + 1 * 0.25) + 0.25
        ("ab", "ba", 0.5, 0.5),
        # nothing in common but the last row: X = 0, 0, 1
        ("abx", "cdx", 0.5, 0.125 / 3 + 0.125 / 3),
        # uneven, s = 1, l = 2: X = 1, 1; sums 0.5 + 0.25/2, and 1 * 1 / 2 * 0.25; tail 0.25
        ("a", "ab", 0.5, (0.5 + 0.125) + 0.125 + 0.25),
        # uneven, the short list's row is the long one's second: X = 0, 1; X_s = 0
        ("b", "ab", 0.5, 0.125 + (1 / 2) * 0.25),
        ("abc", "abc", 0.9, 1.0),
        ("abc", "xyz", 0.9, 0.0),
        ("", "", 0.9, 1.0),
        ("", "a", 0.9, 0.0),
    ],
)
def test_rank_biased_overlap_is_that_of_the_paper(
    first: str, second: str, p: float, expected: float
) -> None:
    assert rank_biased_overlap(first, second, p=p) == pytest.approx(expected, abs=1e-12)


@given(IDS, IDS, st.floats(0.05, 0.95))
def test_overlap_is_symmetric_and_between_0_and_1(a: list[str], b: list[str], p: float) -> None:
    found = rank_biased_overlap(a, b, p=p)
    assert 0 <= found <= 1
    assert rank_biased_overlap(b, a, p=p) == pytest.approx(found, abs=1e-12)
    assert rank_biased_overlap(a, a, p=p) == 1


@given(IDS, IDS)
def test_as_many_rows_come_in_as_go_out_plus_what_the_list_grew(a: list[str], b: list[str]) -> None:
    moved = movement(a, b)
    assert moved.n_in - moved.n_out == len(b) - len(a)
    assert moved.is_same == (a == b)


@pytest.mark.parametrize("p", [0.0, 1.0, -1.0, float("nan")])
def test_p_out_of_range_is_refused(p: float) -> None:
    with pytest.raises(UsageError, match="RBO"):
        rank_biased_overlap("a", "b", p=p)
