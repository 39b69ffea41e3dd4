"""Tables, lists and code that are too long for one chunk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_tui.engine.chunkers.base import Strategy
from rag_tui.engine.chunkers.packing import Atom, Pack, best_packs, packed
from rag_tui.engine.chunkers.windows import windows
from rag_tui.engine.documents.loading import load_document
from rag_tui.engine.sentences import sentence_spans, sentences
from tests.engine.test_chunkers_strategies import cut

STRUCTURED: list[Strategy] = ["headings", "recursive"]


@pytest.mark.parametrize("strategy", STRUCTURED)
def test_a_long_table_is_cut_between_rows_that_keep_their_column_names(strategy: Strategy) -> None:
    header = "| bar | valve |\n|-----|-------|\n"
    rows = [f"| {n} | number {n} |\n" for n in range(200)]
    text = "Intro.\n\n" + header + "".join(rows)
    chunks = cut(text, strategy, size=400, overlap=40, unit="characters")
    assert len(chunks) > 8
    assert "".join(c.text for c in chunks) == text
    assert all(c.text.startswith("| ") for c in chunks[1:])
    assert {c.prefix for c in chunks[1:]} == {header.strip()}
    assert all(len(c.prefix) + len(c.text) <= 400 for c in chunks)
    (found,) = [c for c in chunks if "number 150 " in c.text]
    assert "| bar | valve |" in found.embedded_text
    assert "| 150 | number 150 |" in found.embedded_text


@pytest.mark.parametrize("strategy", STRUCTURED)
def test_a_long_code_block_is_cut_between_lines_and_both_halves_say_it_is_code(
    strategy: Strategy,
) -> None:
    code = "".join(f"value_{n} = compute({n})\n" for n in range(60))
    text = f"# Code\n\nLook:\n\n```python\n{code}```\n\nAfter.\n"
    chunks = cut(text, strategy, size=40, overlap=0, unit="words")
    inside = [c for c in chunks if "value_" in c.text and "```python" not in c.text]
    assert len(inside) >= 3
    assert {c.prefix for c in inside} == {"```python"}
    assert all(c.text.startswith("value_") for c in inside)
    assert all(c.text.strip() not in ("```", "```python") for c in chunks)
    assert "".join(c.text for c in chunks) == text


def test_every_part_of_one_endless_line_of_code_says_it_is_code() -> None:
    text = "```js\n" + "var a=1;" * 400 + "\n```\n"
    chunks = cut(text, "headings", size=100, overlap=0)
    assert len(chunks) > 5
    assert chunks[0].text.startswith("```js")
    assert {c.prefix for c in chunks[1:]} == {"```js"}
    assert "".join(c.text for c in chunks) == text


def test_a_table_or_code_block_that_fits_is_kept_whole() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| {n} | x |\n" for n in range(6))
    code = "```sh\nmake all\n\nmake install\n```\n"
    text = f"{'word ' * 30}\n\n{table}\n{'word ' * 30}\n\n{code}\n{'word ' * 30}\n"
    chunks = cut(text, "headings", size=60, overlap=5, unit="words")
    assert len(chunks) >= 3
    assert sum(table in c.text for c in chunks) == 1
    assert sum(code in c.text for c in chunks) == 1
    assert not any(c.prefix for c in chunks)


def test_a_line_that_introduces_a_list_stays_with_it() -> None:
    text = f"{'word ' * 12}\n\nDo this:\n\n- open it\n- close it\n\n{'word ' * 12}\n"
    chunks = cut(text, "headings", size=16, overlap=0, unit="words")
    (found,) = [c for c in chunks if "Do this:" in c.text]
    assert "- open it\n- close it" in found.text


def test_a_long_list_is_cut_between_its_top_items_and_keeps_its_indentation() -> None:
    items = "".join(f"- item {n}\n  - inner {n}\n" for n in range(20))
    chunks = cut(items, "headings", size=24, overlap=4, unit="words")
    assert len(chunks) > 3
    assert all(c.text.startswith("- item") for c in chunks)
    assert "".join(c.text for c in chunks) == items


def test_sections_are_cut_at_paragraphs_that_share_nothing() -> None:
    paragraphs = [f"Paragraph {n} says one thing. It says another.\n\n" for n in range(6)]
    chunks = cut("".join(paragraphs), "headings", size=20, overlap=5, unit="words")
    assert [c.text for c in chunks] == ["".join(paragraphs[n : n + 2]) for n in (0, 2, 4)]


def test_a_long_paragraph_is_cut_between_sentences_and_shares_whole_ones() -> None:
    parts = [f"Sentence {n} has five words." for n in range(10)]
    chunks = cut(" ".join(parts), "headings", size=20, overlap=6, unit="words")
    held = [[n for n in range(10) if f"Sentence {n} " in c.text] for c in chunks]
    assert held == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert all(c.text.startswith("Sentence") for c in chunks)


def test_a_header_that_takes_too_much_room_is_not_repeated() -> None:
    names = " | ".join(f"column{n}" for n in range(12))
    rules = "|".join(["---"] * 12)
    rows = "".join(f"| {' | '.join(['1'] * 12)} |\n" for _ in range(10))
    text = f"| {names} |\n|{rules}|\n{rows}"
    chunks = cut(text, "headings", size=30, overlap=0, unit="words")
    assert len(chunks) > 3
    assert not any(c.prefix for c in chunks)


def test_parts_of_the_shared_fence_case_still_say_they_are_code(shared: Path) -> None:
    folder = shared / "cases" / "09-code-fences"
    if not folder.is_dir():
        pytest.skip("the shared cases are not beside this checkout")
    source = load_document(folder / "fences.md", doc_id="fences.md")
    expected = json.loads((folder / "expected.json").read_text())
    for chunk in cut(source, "headings", size=24, overlap=0):
        assert set(chunk.text.strip()) not in ({"`"}, {"~"})
        around = [b for b in source.blocks if b.start < chunk.start < b.end]
        if around and around[0].kind == "code" and around[0].header_end <= chunk.start:
            block = around[0]
            header = source.text[block.start : block.header_end].strip()
            assert chunk.prefix in (header, "")
    last = cut(source, "headings")[-1]
    assert all(words in last.text for words in expected["last_section_contains"])


def test_packing_with_equal_costs_is_the_plain_window_arithmetic() -> None:
    for n in range(30):
        for size in range(1, 9):
            for overlap in range(size):
                ends = list(range(1, n + 1))
                assert packed(ends, size, overlap) == windows(n, size, overlap)


def test_the_best_division_leaves_no_crumb_at_the_end() -> None:
    atoms = [Atom(n, n + 1, cost=4) for n in range(6)]
    assert best_packs(atoms, 21, 0) == [Pack(0, 3), Pack(3, 6)]


def test_the_best_division_prefers_a_good_cut_to_a_full_piece() -> None:
    atoms = [Atom(n, n + 1, cost=10, penalty=0.0 if n == 3 else 0.9) for n in range(7)]
    assert best_packs(atoms, 45, 0) == [Pack(0, 3), Pack(3, 7)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Use v2.10.3. It takes 3.5 s, e.g. on Linux.",
            ["Use v2.10.3.", "It takes 3.5 s, e.g. on Linux."],
        ),
        ("- one thing\n- another\n", ["one thing", "another"]),
        ("水を止める。次に開ける。", ["水を止める。", "次に開ける。"]),
        ("He came.  Then\nhe left.", ["He came.", "Then\nhe left."]),
        ("# Heading\n\nText here.\n\n```\ncode.\n```\n", ["Text here."]),
    ],
)
def test_sentences_have_the_places_they_stand_at(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


def test_a_sentence_is_its_place_without_the_marks_of_its_lines() -> None:
    (sentence,) = sentences("> quoted words\n> go on.")
    assert sentence.text == "quoted words go on."
    assert (sentence.start, sentence.end) == (2, 23)
