"""The filter line: plain text is never syntax, terms combine, and no pattern hangs the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from textual.widgets import Input

from rag_tui.engine import patterns
from rag_tui.engine.errors import UsageError
from rag_tui.engine.index import Index
from rag_tui.tui.chunk_filter import ChunkFilter, chunk_test, kinds_meant, parse_filter
from rag_tui.tui.chunk_notes import HealthNote, collect
from rag_tui.tui.chunk_selection import SAMPLE_SIZE, Selection, select
from rag_tui.tui.screens import chunks as chunks_module
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.widgets.chunk_list import ChunkList
from tests.hostile import HOSTILE
from tests.tui.chunk_samples import IndexApp, guesthouse, make_document, make_index, screen_text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ChunkFilter()),
        (" two  words ", ChunkFilter(text=" two  words ")),
        ("/a.b/", ChunkFilter(pattern="a.b")),
        ("//", ChunkFilter(text="//")),
        ("and /or/", ChunkFilter(text="and /or/")),
        ("path:rules/ quiet", ChunkFilter(path="rules/", text="quiet")),
        ('heading:"Check in" /^x/', ChunkFilter(heading="Check in", pattern="^x")),
        ("bag warning:tiny", ChunkFilter(warning="tiny", text="bag")),
        ('bag where: path~"a b" and tag=x', ChunkFilter(text="bag", where='path~"a b" and tag=x')),
        ("where: page>3", ChunkFilter(where="page>3")),
        ('"path:rules/', ChunkFilter(text="path:rules/")),
        ("somewhere: else", ChunkFilter(text="somewhere: else")),
        ("xpath:rules", ChunkFilter(text="xpath:rules")),
    ],
)
def test_a_line_is_taken_apart(line: str, expected: ChunkFilter) -> None:
    assert parse_filter(line) == expected


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_plain_text(text: str) -> None:
    assert parse_filter(text) == ChunkFilter(text=text)


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "(?P<x", "a{2,1}"])
def test_a_broken_pattern_is_named_with_the_fix(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filter(f"/{pattern}/")
    assert f"/{pattern}/ is no regular expression" in caught.value.message
    assert "backslash" in caught.value.hint


def test_a_pattern_that_would_never_end_is_stopped() -> None:
    index = make_index([make_document("a.md", [("A", "a" * 5000 + "b")], title="A")])
    holds = chunk_test(ChunkFilter(pattern=r"(a|aa|aaa)+$(?<=c)"))
    with pytest.raises(UsageError, match="takes more than"):
        holds(index.chunks[0])


SLOW = r"/(a|aa|aaa)+$(?<=c)/"


def slow_index(n: int) -> Index:
    """Chunks on which `SLOW` takes long, but not forever."""
    return make_index([make_document("a.md", [(f"S{i}", "a" * 26) for i in range(n)], title="A")])


def test_a_pattern_that_is_slow_on_every_chunk_has_two_seconds_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "PATTERN_TIMEOUT_S", 60.0)
    started = time.perf_counter()
    with pytest.raises(UsageError) as caught:
        select(slow_index(500), Selection(needle=SLOW))
    assert time.perf_counter() - started < 8
    assert f"{SLOW} takes more than 2 s on these chunks" in caught.value.message
    assert "simpler" in caught.value.hint


@pytest.mark.parametrize(("needle", "n_polls"), [("/x/", 4), ("x", 1)])
def test_a_pattern_can_be_left_between_any_two_chunks(needle: str, n_polls: int) -> None:
    polls = []

    def is_cancelled() -> bool:
        polls.append(1)
        return len(polls) == 4

    select(slow_index(20), Selection(needle=needle), is_cancelled=is_cancelled)
    assert len(polls) == n_polls


NOTES = collect(
    [
        HealthNote(0, "tiny", "2 words"),
        HealthNote(3, "tiny", "3 words"),
        HealthNote(3, "hub", "near to many"),
        HealthNote(4, "near-duplicate", "of 3"),
    ]
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"/\bdogs?\b/", [3]),
        ("/^come/", [0]),  # a line begins with it, whatever the case
        ("path:rules/", [3, 4]),
        ("path:RULES /quiet/", [4]),
        ("heading:lug", [2]),
        ("warning:tiny", [0, 3]),
        ("warning:tiny path:rules", [3]),
        ("warning:near_dup", [4]),
        ("warning:hub kitchen", [3]),
        ("warning:nothing", []),
        ('where: path="rules/house.md"', [3, 4]),
        ('22:00 where: path~"rules/*"', [4]),
    ],
)
def test_terms_of_a_filter_must_all_hold(line: str, expected: list[int]) -> None:
    assert list(select(guesthouse(), Selection(needle=line), notes=NOTES)) == expected


def test_kinds_are_meant_by_name_or_by_beginning() -> None:
    kinds = ["duplicate", "near-duplicate", "table-cut", "tiny"]
    assert kinds_meant("Near Duplicate", kinds) == {"near-duplicate"}
    assert kinds_meant("t", kinds) == {"table-cut", "tiny"}
    assert kinds_meant("x", kinds) == frozenset()


def test_sorting_by_warnings_puts_the_most_first_and_ties_in_corpus_order() -> None:
    assert list(select(guesthouse(), Selection(sort="warnings"), notes=NOTES)) == [3, 0, 4, 1, 2]


def test_a_sample_is_ten_different_chunks_of_those_that_match_and_the_seed_decides() -> None:
    sections = [(f"S{i}", "even" if i % 2 == 0 else "odd") for i in range(100)]
    index = make_index([make_document("a.md", sections, title="A")])
    one = select(index, Selection(sample=1, needle="even"))
    assert len(set(one)) == SAMPLE_SIZE
    assert all(position % 2 == 0 for position in one)
    assert select(index, Selection(sample=1, needle="even")) == one
    assert select(index, Selection(sample=2, needle="even")) != one
    longest = select(index, Selection(sample=1, needle="even", sort="longest"))
    assert sorted(longest) == sorted(one)
    assert list(select(guesthouse(), Selection(sample=1))) == [0, 1, 2, 3, 4]


async def test_a_filter_that_is_not_finished_changes_nothing_and_says_why() -> None:
    app = IndexApp(ChunksScreen(), guesthouse())
    async with app.run_test(size=(160, 45), notifications=True) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("slash")
        box = app.screen.query_one("#filter", Input)
        for line in ("/(/", "where: nokey=1", "where: path~"):
            box.value = line
            await pilot.pause()
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            assert app.screen.query_one("#filter").has_class("-bad"), line
            assert list(app.screen.query_one(ChunkList).positions) == [0, 1, 2, 3, 4]
        assert "where" in screen_text(app)
        box.value = "/dogs/"
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert not box.has_class("-bad")
        assert list(app.screen.query_one(ChunkList).positions) == [3]


async def test_the_filter_says_that_it_is_at_work_and_then_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()

    def slow_select(index: Index, selection: Selection, **others: Any) -> Sequence[int]:
        if selection.needle:
            go_on.wait(10)
            raise UsageError("It takes too long.", "Write a simpler one.")
        return select(index, selection, **others)

    monkeypatch.setattr(chunks_module, "select", slow_select)
    app = IndexApp(ChunksScreen(), guesthouse())
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("slash")
        box = app.screen.query_one("#filter", Input)
        box.value = "/a/"
        await pilot.pause()
        assert str(box.border_subtitle) == "filtering…"
        assert not box.has_class("-bad")
        go_on.set()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert str(box.border_subtitle) == "It takes too long. Write a simpler one."
        assert box.has_class("-bad")
        go_on.clear()
        box.value = "/b/"
        await pilot.pause()
        box.value = ""
        await pilot.pause()
        go_on.set()
        await pilot.pause(0.2)
        assert str(box.border_subtitle) == ""  # what is not wanted any more is not told of


def test_metadata_of_the_front_matter_can_be_filtered_on() -> None:
    index = guesthouse()
    tagged = replace(index.documents[1], metadata={"tag": "rules"})
    index = replace(index, documents=(index.documents[0], tagged))
    assert list(select(index, Selection(needle="where: tag=rules"))) == [3, 4]
