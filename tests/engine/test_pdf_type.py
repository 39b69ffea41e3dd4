"""Headings of a PDF without bookmarks, by the size of its type."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_tui.engine.documents.converters.pdf_type import SizedLine, large_type
from rag_tui.engine.documents.loading import load_document

BODY = [SizedLine("plain text in the size of the text, long enough to be most of it", 10.0)] * 5


def test_larger_lines_are_headings_by_their_size() -> None:
    pages = [
        [SizedLine("Manual", 20.0), *BODY, SizedLine("Pumps", 14.0), *BODY],
        [SizedLine("Valves", 14.0), *BODY, SizedLine("10.5 is not larger", 10.5)],
    ]
    assert large_type(pages) == [(1, "Manual", 1), (2, "Pumps", 1), (2, "Valves", 2)]


def test_a_heading_over_two_lines_is_one_title() -> None:
    pages = [[SizedLine("How to prime", 14.0), SizedLine("the pump", 14.0), *BODY]]
    assert large_type(pages) == [(1, "How to prime the pump", 1)]


def test_running_heads_long_lines_and_numbers_are_no_headings() -> None:
    head = SizedLine("Handbook", 14.0)
    pages = [[head, *BODY] for _ in range(3)]
    pages.append([SizedLine("x" * 200, 14.0), *BODY, SizedLine("17", 14.0)])
    assert large_type(pages) == []


def test_type_of_one_size_shows_no_headings() -> None:
    assert large_type([BODY]) == []
    assert large_type([]) == []


def test_a_real_paper_without_bookmarks_gets_its_title_and_abstract(shared: Path) -> None:
    path = shared / "data" / "odd-files" / "pdf" / "two_columns_latex.pdf"
    if not path.is_file():
        pytest.skip("the odd files are not in the shared data")
    document = load_document(path, doc_id=path.name)
    titles = [heading.title for heading in document.headings]
    assert "Two-Column Document with Lorem Ipsum" in titles
    assert "Abstract" in titles
    for heading in document.headings:
        line = document.text[heading.start : heading.body_start]
        assert "".join(line.split()) == "".join(heading.title.split())
