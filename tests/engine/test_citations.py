from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.citations import find_citations, unknown_labels
from rag_tui.engine.types import Answer

CASES = Path(__file__).parents[3] / "shared" / "cases" / "26-citations"


def cited_and_unknown(text: str, n_sources: int = 3) -> tuple[list[int], list[str]]:
    citations = find_citations(text, n_sources)
    answer = Answer(text=text, state="complete", answerer="m", citations=citations)
    labels = [label for c in citations for label in unknown_labels(text, c, n_sources)]
    return list(answer.cited), labels


def lines_of(name: str) -> list[dict[str, Any]]:
    path = CASES / name
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def test_every_finished_answer_of_the_case_is_read_as_stated() -> None:
    answers = lines_of("answers.jsonl")
    assert len(answers) == 21
    for case in answers:
        expected = (case["cited"], case["unknown"])
        assert cited_and_unknown(case["answer"], case["sources"]) == expected, case["answer"]


def test_every_stream_of_the_case_is_read_the_same_however_it_is_cut() -> None:
    streams = lines_of("deltas.jsonl")
    assert len(streams) == 5
    for case in streams:
        text = "".join(case["deltas"])
        assert text == case.get("final", text)
        assert cited_and_unknown(text) == (case["cited"], case.get("unknown", [])), text
        whole = set(find_citations(text, 3))
        for cut in range(len(text) + 1):
            assert set(find_citations(text[:cut], 3, is_complete=False)) <= whole, text[:cut]


@pytest.mark.parametrize(
    ("text", "cited", "unknown"),
    [
        ("Dry it [2].", [2], []),
        ("Dry it[2].", [2], []),
        ("Both [1][3].", [1, 3], []),
        ("Both [3,1].", [1, 3], []),
        ("Both [1; 2].", [1, 2], []),
        ("Three [1, 2 and 3].", [1, 2, 3], []),
        ("Two [1 & 3].", [1, 3], []),
        ("Dashes [1-2] [2–3].", [1, 2, 3], []),
        ("Mixed [1, 2-3].", [1, 2, 3], []),
        ("Label [sources 1, 2].", [1, 2], []),
        ("Labels [Source 1, Source 3].", [1, 3], []),
        ("全角【1，3】。", [1, 3], []),
        ("Nested [[2]].", [2], []),
        ("Not there [9].", [], ["9"]),
        ("Partly [3-5, 0].", [3], ["4-5", "0"]),
        ("From zero [0-2].", [1, 2], ["0"]),
        ("Backwards [2-1] and [1].", [1], ["2-1"]),
        ("Enormous [1-999999999999].", [1, 2, 3], ["4-999999999999"]),
        ("Long [12345678901].", [], ["12345678901"]),
        ("Long ago [2024].", [], ["2024"]),
        ("Glued[1][3], twice.", [1, 3], []),
        ("乾燥[2]。", [2], []),
        ("Not an index: `rows`[1].", [1], []),
        ("Said so [1].name it", [1], []),
    ],
)
def test_ways_of_writing_a_citation(text: str, cited: list[int], unknown: list[str]) -> None:
    assert cited_and_unknown(text) == (cited, unknown)


@pytest.mark.parametrize(
    "text",
    [
        "See list[int], [key], [], [ ], [-1], [1.5], [1a], [v1], [^1], [1 2].",
        "Mismatched [1】 and 【2].",
        "Half [1",
        "Half 1]",
        r"Escaped \[1] and \[2\].",
        "Inline `a[1]` here.",
        "Two backticks ``a ` b[1]`` here.",
        "Over a line break `a\nb[1]` here.",
        "```\na[1]\n```",
        "~~~~ py\na[1]\n~~~\nb[2]\n~~~~\n",
        "Not closed:\n```py\na[1]\n\nb[2]",
        "1. Step\n   ```\n   a[1]\n   ```",
        "> ```\n> a[1]\n> ```",
        "A bracket around code [`1`].",
        "Take arr[0] or m[1][0].",
        "In max_rows[1] there is none.",
        "Ask rows[1].name for it.",
        "Call hooks[1](x) then.",
        "Then x[1] = 3 and y[2] += 1.",
        "[1 `,` 2]",
    ],
)
def test_what_is_no_citation(text: str) -> None:
    assert find_citations(text, 3) == ()


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("`a[1]` then [2]", [2]),
        ("A lone ` and [1]", [1]),
        ("A lone ` here\n\nand [1] ` there", [1]),
        (r"Escaped \` tick [1] ` end", [1]),
        (r"A backslash \\[1]", [1]),
        ("```\na[1]\n```\nafter [2]", [2]),
        ("``` a[1] ``` is inline, after [2]", [2]),
        ("```\n~~~\na[1]\n```\nafter [2]", [2]),
        ("````\n```\na[1]\n````\nafter [2]", [2]),
        ("windows\r\n```\r\na[1]\r\n```\r\nafter [2]", [2]),
    ],
)
def test_code_ends_where_markdown_says(text: str, cited: list[int]) -> None:
    assert cited_and_unknown(text) == (cited, [])


def test_spans_cover_the_whole_marker_and_numbers_keep_their_order() -> None:
    text = "Zwei: 【2】 und [3, 1, 9]."
    first, second = find_citations(text, 3)
    assert text[first.start : first.end] == "【2】"
    assert text[second.start : second.end] == "[3, 1, 9]"
    assert second.numbers == (3, 1, 9)
    assert second.unknown == (9,)


def test_a_range_beyond_the_sources_names_the_ends_of_what_is_missing() -> None:
    (citation,) = find_citations("[2-99]", 3)
    assert citation.numbers == (2, 3, 4, 99)
    assert citation.unknown == (4, 99)


def test_without_sources_every_number_is_unknown() -> None:
    (citation,) = find_citations("Sure [1].", 0)
    assert citation.unknown == (1,)


def test_a_number_still_being_written_is_no_citation_of_its_beginning() -> None:
    assert find_citations("See [1", 3, is_complete=False) == ()
    (citation,) = find_citations("See [12]", 3, is_complete=False)
    assert citation.unknown == (12,)


def test_an_index_in_code_that_is_not_closed_yet_does_not_flash_as_a_citation() -> None:
    assert find_citations("a `arr[1]", 3, is_complete=False) == ()
    assert find_citations("a `arr[1]", 3) != ()


pieces = st.sampled_from(
    [
        "[1]",
        "[2, 3]",
        "[",
        "1",
        "]",
        "`",
        "``",
        "```",
        "~~~",
        "\n",
        "\n\n",
        " ",
        "a",
        "\\",
        "> ",
        "- ",
        "_",
        ".",
        "(",
        " =",
        "[0]",
    ]
)


@given(st.lists(pieces, max_size=14).map("".join))
def test_a_citation_once_shown_stays_whatever_comes_after(text: str) -> None:
    whole = set(find_citations(text, 3))
    for cut in range(len(text) + 1):
        assert set(find_citations(text[:cut], 3, is_complete=False)) <= whole


@given(st.text(alphabet="[]`~\\ \n12,-ab【】", max_size=60))
def test_every_span_holds_a_bracket_pair(text: str) -> None:
    for citation in find_citations(text, 2):
        marker = text[citation.start : citation.end]
        assert (marker[0], marker[-1]) in {("[", "]"), ("【", "】")}
        assert set(citation.unknown) <= set(citation.numbers)
        assert citation.numbers


def test_a_long_text_of_open_brackets_and_backticks_is_read_in_one_go() -> None:
    text = "[ 1 , " * 20_000 + "`" * 3 + "` `` " * 20_000 + "\n\n[1]"
    assert [c.numbers for c in find_citations(text, 1)][-1] == (1,)
