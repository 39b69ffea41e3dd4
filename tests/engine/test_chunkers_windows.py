from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.chunkers.units import cut_strengths, is_inside_character, word_spans
from rag_tui.engine.chunkers.windows import FORBIDDEN, WORD, fitted_windows, windows
from rag_tui.engine.errors import UsageError

SIZES = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@pytest.mark.parametrize(
    ("n_units", "size", "overlap", "spans"),
    [
        (10, 5, 2, [(0, 5), (3, 8), (6, 10)]),
        (8, 5, 2, [(0, 5), (3, 8)]),
        (7, 4, 3, [(0, 4), (1, 5), (2, 6), (3, 7)]),
        (5, 5, 2, [(0, 5)]),
        (5, 10, 3, [(0, 5)]),
        (10, 5, 0, [(0, 5), (5, 10)]),
        (0, 5, 2, []),
    ],
)
def test_window_arithmetic_is_exact(
    n_units: int, size: int, overlap: int, spans: list[tuple[int, int]]
) -> None:
    assert windows(n_units, size, overlap) == spans


def test_the_shared_window_cases_hold(shared: Path) -> None:
    lines = (shared / "cases" / "11-overlap-windows" / "cases.jsonl").read_text().splitlines()
    for case in map(json.loads, lines):
        n_units = len(case["text"].strip())
        if case.get("error"):
            with pytest.raises(UsageError):
                windows(n_units, case["size"], case["overlap"])
        else:
            found = windows(n_units, case["size"], case["overlap"])
            assert [list(span) for span in found] == case["spans"]


@given(st.integers(0, 300), SIZES)
def test_windows_cover_everything_with_the_stated_overlap(
    n_units: int, sizes: tuple[int, int]
) -> None:
    size, overlap = sizes
    spans = windows(n_units, size, overlap)
    assert {u for start, end in spans for u in range(start, end)} == set(range(n_units))
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert (end - start, end - next_start) == (size, overlap)
        assert next_end > end


@given(st.integers(0, 300), SIZES)
def test_fitted_windows_of_plain_words_are_the_plain_windows(
    n_units: int, sizes: tuple[int, int]
) -> None:
    assert fitted_windows([WORD] * n_units, *sizes) == windows(n_units, *sizes)


@given(st.lists(st.integers(FORBIDDEN, 5), max_size=300), SIZES)
def test_fitted_windows_cover_everything_and_always_lead_on(
    strengths: list[int], sizes: tuple[int, int]
) -> None:
    spans = fitted_windows(strengths, *sizes)
    assert {u for start, end in spans for u in range(start, end)} == set(range(len(strengths)))
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end < next_end


@given(st.lists(st.integers(0, 5), max_size=300), SIZES)
def test_fitted_windows_never_exceed_the_size_where_cuts_are_allowed(
    strengths: list[int], sizes: tuple[int, int]
) -> None:
    assert all(end - start <= sizes[0] for start, end in fitted_windows(strengths, *sizes))


def test_a_window_ends_at_the_strongest_break_of_its_last_quarter() -> None:
    strengths = [WORD] * 30
    strengths[17], strengths[19], strengths[10] = 5, 3, 5
    assert fitted_windows(strengths, 20, 0)[0] == (0, 17)


def test_a_window_does_not_tear_a_word_that_it_can_keep() -> None:
    text = "alpha beta gamma delta"
    letters = [(i, i + 1) for i, c in enumerate(text) if c != " "]
    spans = fitted_windows(cut_strengths(text, letters), 8, 0)
    cuts = [letters[start][0] for start, _ in spans]
    assert cuts == [0, text.index("beta"), text.index("gamma"), text.index("delta")]


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    text = "Use v2.10.3. It takes 3.5 s, e.g. on Linux."
    spans = word_spans(text)
    strengths = cut_strengths(text, spans)
    ends = [text[s:e] for (s, e), x in zip(spans, strengths, strict=True) if x > WORD and s]
    assert ends == ["It"]


@pytest.mark.parametrize("character", ["e\u0301", "👨\u200d👩\u200d👧", "👍🏽", "❤\ufe0f", "🇩🇪"])
def test_what_is_read_as_one_character_is_never_cut(character: str) -> None:
    text = f"a{character}b"
    inside = [at for at in range(len(text)) if is_inside_character(text, at)]
    assert inside == list(range(2, len(character) + 1))


def test_text_without_spaces_has_a_word_per_character() -> None:
    assert len(word_spans("故障コード4071はシール")) == 10


def test_a_run_without_end_is_many_words() -> None:
    assert [e - s for s, e in word_spans("x" * 150)] == [64, 64, 22]
