"""Corpus health: neighbours counted by hand, sentences torn on purpose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from rag_tui.engine import neighbours
from rag_tui.engine.chunkers.tears import Tears, find_tears
from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.health import HEALTH_KINDS, HEALTH_RULES, health
from rag_tui.engine.index import Index
from rag_tui.engine.neighbours import nearest_neighbours
from rag_tui.engine.types import Block, Heading
from tests.engine.hand_made import chunk, cut, document, index_of, index_of_texts

Rows = npt.NDArray[np.float32]


def at_angles(*degrees: float) -> Rows:
    """Unit vectors in the plane: the cosine of two is that of the angle between them."""
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def random_rows(n: int, dimensions: int, *, seed: int = 0) -> Rows:
    rows = np.random.default_rng(seed).standard_normal((n, dimensions)).astype(np.float32)
    unit: Rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_occurrences_and_nearest_are_those_counted_by_hand() -> None:
    near = nearest_neighbours(at_angles(0, 10, 25, 90), 1)
    # 0 and 25 are nearest to 10, 10 to 0, and 90 to 25
    assert near.nearest.tolist() == [1, 0, 1, 2]
    assert near.n_occurrences.tolist() == [1, 2, 1, 0]
    expected = np.cos(np.radians([10, 10, 15, 65]))
    assert near.cosine == pytest.approx(expected, abs=1e-6)
    # deviations 0, 1, 0, -1 from the mean 1: as much above as below
    assert near.skewness == pytest.approx(0.0, abs=1e-12)


def test_one_hub_skews_the_occurrences_by_the_textbook_formula() -> None:
    # five spokes at right angles to each other, all near the sum of them
    spokes = np.eye(5, dtype=np.float32)
    hub = np.full((1, 5), 1 / np.sqrt(5), np.float32)
    near = nearest_neighbours(np.concatenate([spokes, hub]), 1)
    assert near.n_occurrences.tolist() == [1, 0, 0, 0, 0, 5]
    deviations = np.array([0, -1, -1, -1, -1, 4])
    expected = (deviations**3).mean() / (deviations**2).mean() ** 1.5
    assert near.skewness == pytest.approx(expected)


def test_blocks_give_what_one_product_and_a_full_sort_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "_BLOCK_VALUES", 1000)
    rows = random_rows(173, 16)
    near = nearest_neighbours(rows, 7)
    similarity = rows.astype(np.float64) @ rows.T.astype(np.float64)
    np.fill_diagonal(similarity, -np.inf)
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :7]
    assert near.n_occurrences.tolist() == np.bincount(order.ravel(), minlength=173).tolist()
    assert near.nearest.tolist() == order[:, 0].tolist()
    assert near.cosine == pytest.approx(similarity.max(axis=1), abs=1e-6)
    assert near.n_occurrences.sum() == 173 * 7


def test_of_equally_near_rows_the_first_ones_are_the_neighbours() -> None:
    rows = np.tile(np.array([[1.0, 0.0]], np.float32), (6, 1))
    near = nearest_neighbours(rows, 2)
    # everybody takes positions 0 and 1, or 0 and 2, or 1 and 2
    assert near.n_occurrences.tolist() == [5, 5, 2, 0, 0, 0]
    assert near.nearest.tolist() == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("n", [0, 1])
def test_a_chunk_without_others_has_no_neighbour(n: int) -> None:
    near = nearest_neighbours(random_rows(n, 4), 10)
    assert near.k == 0
    assert near.n_occurrences.tolist() == [0] * n
    assert near.nearest.tolist() == [-1] * n
    assert np.isnan(near.cosine).all()


def test_more_neighbours_than_there_are_become_all_others() -> None:
    near = nearest_neighbours(random_rows(4, 8), 10)
    assert near.k == 3
    assert near.n_occurrences.tolist() == [3, 3, 3, 3]


def test_no_neighbours_at_all_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        nearest_neighbours(random_rows(4, 8), 0)


def test_a_chunk_near_far_too_many_others_is_a_hub_and_one_near_none_an_orphan() -> None:
    spokes = np.eye(40, dtype=np.float32)
    hub = np.full((1, 40), 1 / np.sqrt(40), np.float32)
    texts = [f"This is the text of the chunk with number {i}." for i in range(41)]
    state = health(index_of_texts(*texts, vectors=np.concatenate([spokes, hub])), k=1)
    assert state.of_kind["hub"] == (40,)
    # the spokes are equally far from each other: the hub's nearest is the first of them
    assert state.of_kind["orphan"] == tuple(range(1, 40))
    one = state.chunk(40)
    assert (one.n_occurrences, one.nearest, one.kinds) == (40, 0, ("hub",))
    assert one.cosine == pytest.approx(1 / np.sqrt(40), abs=1e-6)
    assert state.counts()["hub"] == 1


def test_where_many_are_common_none_of_them_is_a_hub() -> None:
    # four stars of three spokes each: occurrences 3, 1, 0, 0 in each, so the mean is 1, and 3 is
    # less than two standard deviations (1 + 2 * sqrt(1.5) = 3.4) above it
    rows = np.zeros((16, 12), np.float32)
    for star in range(4):
        rows[4 * star, 3 * star : 3 * star + 3] = 1 / np.sqrt(3)
        rows[4 * star + 1 : 4 * star + 4, 3 * star : 3 * star + 3] = np.eye(3)
    texts = [f"This is the text of the chunk with number {i}." for i in range(16)]
    state = health(index_of_texts(*texts, vectors=rows), k=1)
    assert state.neighbours is not None
    assert state.neighbours.n_occurrences.tolist() == [3, 1, 0, 0] * 4
    assert state.of_kind["hub"] == ()


def test_chunks_that_the_search_cannot_tell_apart_are_copies() -> None:
    texts = [f"This is the text of the chunk with number {i}." for i in range(4)]
    state = health(index_of_texts(*texts, vectors=at_angles(0, 5, 60, 120)), k=1)
    assert state.of_kind["copy"] == (0, 1)  # cos 5 degrees = 0.996


def test_chunks_of_the_same_text_are_copies_wherever_their_vectors_are() -> None:
    same = "Quiet hours begin at ten in the evening."
    texts = [same, "The window is open.", f"  {same.upper()}\n", "The door is shut.", same]
    state = health(index_of_texts(*texts, vectors=at_angles(0, 60, 120, 180, 240)), k=1)
    assert state.of_kind["copy"] == (0, 2, 4)
    assert "copy" in state.kinds[2]
    assert health(index_of_texts(*texts)).of_kind["copy"] == (0, 2, 4)  # no vectors yet
    assert health(index_of_texts(" ", "\n")).of_kind["copy"] == ()


def test_a_chunk_far_from_all_others_is_isolated() -> None:
    angles = [*(i * 1.0 for i in range(20)), 100.0]
    texts = [f"This is the text of the chunk with number {i}." for i in range(21)]
    state = health(index_of_texts(*texts, vectors=at_angles(*angles)))
    assert state.of_kind["isolated"] == (20,)
    assert "orphan" in state.kinds[20]


def test_a_chunk_of_mostly_repeated_lines_is_boilerplate() -> None:
    footer = "All rights reserved by the owner of the guesthouse."
    own = "Room {} has a view over the harbour, a desk, a fridge and two single beds."
    texts = [footer, *(f"{own.format(i)}\n{footer}" for i in range(11))]
    state = health(index_of_texts(*texts))
    assert state.of_kind["boilerplate"] == (0,)
    assert state.repeated_share[0] == 1.0
    expected = len(footer) / (len(footer) + len(own.format(3)))
    assert state.repeated_share[4] == pytest.approx(expected)


def test_without_vectors_the_texts_are_still_looked_at() -> None:
    source = document("The heater of the small room can be switched on at the wall.")
    index = index_of([source], cut(source, 20))
    state = health(index)
    assert state.neighbours is None
    assert state.of_kind["hub"] == state.of_kind["orphan"] == ()
    assert state.of_kind["fractured"] == (0, 1)
    one = state.chunk(0)
    assert (one.n_occurrences, one.nearest, one.cosine) == (None, None, None)
    assert (one.begins_torn, one.ends_torn) == (False, True)


def tears_at(text: str, at: int, *, blocks: tuple[Block, ...] = ()) -> tuple[bool, bool]:
    """Whether the chunks before and behind a place end and begin torn there."""
    source = document(text, blocks=blocks)
    first, second = cut(source, at)
    return find_tears(first, source).ends, find_tears(second, source).begins


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("The heater of the ", "small room is on."),
        ("The heater of the\n", "small room is on."),
        ("The heater of the Blue", " Room is on."),
        ("We saw Mr", ". Smith."),
        ("客室の清掃は毎日", "行われます。"),
        ("The code is [", "see the lockbox]"),
    ],
)
def test_a_cut_within_a_sentence_tears_both_sides(before: str, after: str) -> None:
    assert tears_at(before + after, len(before)) == (True, True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("The heater is on. ", "The window is open."),
        ("He said “it is on.” ", "then he left."),
        ("Rooms\n\n", "the heater is on"),
        ("We have:\n", "towels and soap"),
        ("- towels\n", "- soap"),
        ("towels\n", "2. soap"),
        ("towels\n", "Soap and more"),
        ("清掃は毎日行われます。", "窓は閉めてください。"),
        ("ทำความสะอาดห้องพัก ", "ทุกวัน"),
        ("", "The heater is on"),
        ("The heater is on", ""),
    ],
)
def test_a_cut_between_sentences_paragraphs_or_items_tears_nothing(before: str, after: str) -> None:
    assert tears_at(before + after, len(before)) == (False, False)


def test_a_cut_in_code_tears_no_sentence() -> None:
    text = "```\nopen the\nvalve now\n```\n"
    at = text.index("valve")
    assert tears_at(text, at) == (True, True)
    assert tears_at(text, at, blocks=(Block("code", 0, len(text), 4),)) == (False, False)


def test_a_section_begins_with_its_heading_and_is_not_torn() -> None:
    text = "before the heading\nRooms\n---\nthe heater"
    at = text.index("Rooms")
    source = replace(document(text), headings=(Heading(2, "Rooms", at, text.index("the heater")),))
    section = replace(chunk(source, at, len(text)), body_offset=len("Rooms\n---\n"))
    assert find_tears(section, source) == Tears()


def test_an_overlap_that_holds_the_torn_sentence_whole_mends_it() -> None:
    text = "The window is open. The heater of the small room is on. The door is shut."
    source = document(text)
    middle = text.index("small")
    first = chunk(source, 0, middle)
    with_overlap = chunk(source, text.index("The heater"), len(text), ordinal=1)
    without = chunk(source, middle, len(text), ordinal=1)
    assert find_tears(first, source, following=with_overlap) == Tears(ends=True)
    assert find_tears(first, source, following=without) == Tears(ends=True, is_fractured=True)
    wider = chunk(source, 0, text.index("The door"))
    assert find_tears(without, source, previous=wider) == Tears(begins=True)
    assert find_tears(without, source, previous=first) == Tears(begins=True, is_fractured=True)


def test_neighbours_of_another_document_mend_nothing() -> None:
    one, two = document("The heater of the", "a.md"), document("small room is on.", "b.md")
    state = health(index_of([one, two], [*cut(one), *cut(two)]))
    assert state.of_kind["fractured"] == ()


def test_the_health_of_the_demo_corpus_adds_up(guesthouse: Index) -> None:
    state = health(guesthouse, k=3)
    near = state.neighbours
    assert near is not None
    assert near.n_occurrences.sum() == 3 * len(guesthouse.chunks)
    for position in range(len(guesthouse.chunks)):
        one = state.chunk(position)
        assert one.nearest is not None
        assert one.nearest != position
        assert one.kinds == tuple(k for k in HEALTH_KINDS if position in state.of_kind[k])
    assert state.counts()["copy"] == state.counts()["fractured"] == 0
    assert tuple(state.counts()) == HEALTH_KINDS == tuple(HEALTH_RULES)


def test_an_empty_index_is_healthy() -> None:
    state = health(index_of([], [], vectors=np.zeros((0, 4), np.float32)))
    assert set(state.counts().values()) == {0}


def test_a_cancelled_health_stops() -> None:
    token = CancelToken()
    token.cancel()
    index = index_of_texts("one text", "another text", vectors=at_angles(0, 90))
    with pytest.raises(Cancelled):
        health(index, cancel=token)


def test_arrays_cannot_be_changed() -> None:
    state = health(index_of_texts("one text", "another text", vectors=at_angles(0, 90)))
    assert state.neighbours is not None
    for array in (state.repeated_share, state.neighbours.cosine, state.neighbours.nearest):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
