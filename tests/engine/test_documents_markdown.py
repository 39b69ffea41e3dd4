from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_tui.engine.documents.front_matter import read_front_matter
from rag_tui.engine.documents.loading import load_document
from rag_tui.engine.documents.markdown import outline, structure
from rag_tui.engine.types import Document


def levels_and_titles(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in outline(text)]


def load(tmp_path: Path, content: str | bytes, name: str = "a.md") -> Document:
    raw = content.encode() if isinstance(content, str) else content
    (tmp_path / name).write_bytes(raw)
    return load_document(tmp_path / name, doc_id=name)


def test_hash_lines_in_code_quotes_lists_and_html_are_not_headings() -> None:
    text = (
        "# A\n\n```sh\n# no\n```\n\n~~~\n# no\n```\n# no\n~~~\n\n    # no\n\n> # no\n\n- # no\n\n"
        "<pre>\n# no\n</pre>\n\n<!--\n# no\n-->\n\n   ## B\n\n```\n# never closed\n"
    )
    assert levels_and_titles(text) == [(1, "A"), (2, "B")]


def test_a_longer_fence_closes_and_a_shorter_one_inside_does_not() -> None:
    assert levels_and_titles("````\n```\n# x\n`````\n\n## Real\n") == [(2, "Real")]


def test_underlined_headings_are_seen_and_rules_are_not() -> None:
    text = "Alpha\n=====\none\n\nBeta\n-----\ntwo\n\n---\nthree"
    assert levels_and_titles(text) == [(1, "Alpha"), (2, "Beta")]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Pump ##", "Pump"),
        ("## C#", "C#"),
        ("## Tag#", "Tag#"),
        ("## F\\#", "F#"),
        ("# Pump <!-- draft -->", "Pump"),
        ("# *The* `code` and [link](x) &amp; ![image](y)", "The code and link & image"),
        ("## First steps { #first-steps }", "First steps"),
        ("## First {: .big #id key=1 }", "First"),
        ("## Braces {not attributes}", "Braces {not attributes}"),
        ("## `{ #code }`", "{ #code }"),
        ("#", ""),
    ],
)
def test_titles_are_plain_text(line: str, title: str) -> None:
    assert levels_and_titles(line)[0][1] == title


def test_bold_lines_are_text() -> None:
    assert levels_and_titles("**Step 1**\ntext\n\n**Step 2**\ntext") == []


def test_offsets_of_headings_are_those_of_their_lines() -> None:
    text = "intro\n\n  # A\nbody\n\nTwo\nlines\n===\nend"
    first, second = outline(text)
    assert (text[first.start : first.body_start], text[first.body_start]) == ("  # A\n", "b")
    assert (second.title, text[second.start : second.body_start]) == (
        "Two lines",
        "Two\nlines\n===\n",
    )
    assert text[second.body_start :] == "end"


def test_a_heading_on_the_last_line_ends_with_the_text() -> None:
    (heading,) = outline("# A")
    assert (heading.start, heading.body_start) == (0, 3)


def test_the_shared_fence_case_has_its_three_headings(shared: Path) -> None:
    folder = shared / "cases" / "09-code-fences"
    expected = json.loads((folder / "expected.json").read_text())["headings"]
    found = outline((folder / "fences.md").read_text())
    assert [{"level": h.level, "title": h.title} for h in found] == expected


def test_the_shared_front_matter_cases_hold(shared: Path) -> None:
    folder = shared / "cases" / "10-frontmatter-bom"
    for name, expected in json.loads((folder / "expected.json").read_text()).items():
        document = load_document(folder / name, doc_id=name)
        assert [h.title for h in document.headings] == expected["headings"], name
        assert "\r" not in document.text
        assert "\ufeff" not in document.text
        for key, value in expected.get("metadata", {}).items():
            text = ", ".join(value) if isinstance(value, list) else value
            assert document.metadata[key] == text, name
        if "first_heading_line" in expected:
            line = document.text[: document.headings[0].start].count("\n") + 1
            assert line == expected["first_heading_line"], name
        assert bool(document.warnings) == expected.get("warning", False), name
        for key in ("body_found_by", "contains"):
            assert expected.get(key, "") in document.text[document.body_start :], name


def test_front_matter_becomes_metadata_and_is_no_text() -> None:
    text = "---\ntitle: Pump\ntags: [a, b]\ndraft: true\n# note\n---\nbody"
    front = read_front_matter(text)
    assert dict(front.metadata) == {"title": "Pump", "tags": "a, b", "draft": "true"}
    assert text[front.body_start :] == "body"


def test_toml_front_matter_is_read() -> None:
    text = '+++\ntitle = "Pump"\nweight = 3\n+++\nbody'
    front = read_front_matter(text)
    assert (dict(front.metadata), text[front.body_start :]) == (
        {"title": "Pump", "weight": "3"},
        "body",
    )


@pytest.mark.parametrize(
    "text", ["---\n\n# A\n\n---\n\nb", "---\nplain words\n---\nb", "---", "--- x\na: 1\n---\n"]
)
def test_a_rule_on_the_first_line_hides_nothing(text: str) -> None:
    front = read_front_matter(text)
    assert (front.body_start, front.warning) == (0, "")


def test_front_matter_that_is_never_closed_hides_nothing_and_warns() -> None:
    front = read_front_matter("---\ntitle: x\n\n# Alpha\nzirconium")
    assert front.body_start == 0
    assert "never closed" in front.warning


@pytest.mark.parametrize("block", ["a: [1", "a: &x 1\nb: *x", "a: " + "[" * 5000])
def test_front_matter_that_cannot_be_read_is_left_out_with_a_warning(block: str) -> None:
    text = f"---\n{block}\n---\nbody"
    front = read_front_matter(text)
    assert text[front.body_start :] == "body"
    assert "cannot be read" in front.warning


def test_the_title_is_heading_then_front_matter_then_file_name(tmp_path: Path) -> None:
    assert load(tmp_path, "---\ntitle: F\n---\n## Sub\n\n# H\n").title == "H"
    assert load(tmp_path, "---\ntitle: F\n---\n## Sub\n").title == "F"
    assert load(tmp_path, "## Sub\n", "notes.md").title == "notes.md"
    assert load(tmp_path, "# no heading here\n", "notes.txt").title == "notes.txt"


def blocks_of(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in structure(text).blocks]


def test_blocks_are_whole_lines_of_the_text_itself() -> None:
    text = (
        "# A\n\nwords\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\n# x\n```\n\n"
        "- one\n  - two\n\n      code\n- three\n\n> quote\n> - in it\n\n"
        "<div>\nx\n</div>\n\n    code\n"
    )
    assert blocks_of(text) == [
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("code", "```py\n# x\n```\n"),
        ("list", "- one\n  - two\n\n      code\n- three\n"),
        ("quote", "> quote\n> - in it\n"),
        ("html", "<div>\nx\n</div>\n"),
        ("code", "    code\n"),
    ]


def test_the_header_of_a_block_ends_after_column_names_or_the_opening_fence() -> None:
    text = "---\nt: 1\n---\n| a |\n|---|\n| 1 |\n\n~~~~ sh\nls\n~~~~\n"
    table, code = structure(text, start=13).blocks
    assert text[table.start : table.header_end] == "| a |\n|---|\n"
    assert text[code.start : code.header_end] == "~~~~ sh\n"


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert blocks_of("a\n\n```\nb\n## C\nlast") == [("code", "```\nb\n## C\nlast")]


@pytest.mark.parametrize("mark", ["!!! note", "??? tip", '???+ warning "Title"', '=== "Tab"'])
def test_indented_content_of_admonitions_and_tabs_makes_no_heading(mark: str) -> None:
    text = f"# A\n\n{mark}\n\n    # inner\n\n    words\n\n## B\n\nend\n"
    assert levels_and_titles(text) == [(1, "A"), (2, "B")]
    assert not any(kind == "code" for kind, _ in blocks_of(text))


def test_mdx_and_wikilinks_stay_text_and_leave_the_outline_whole() -> None:
    text = (
        "import X from 'x'\nexport const a = 1\n\n# A\n\n<Tabs>\n\n## B\n\n[[Note|shown]]\n\n"
        "</Tabs>\n\n/// tip | Title\n\nwords\n\n///\n\n## [[Linked]] C\n"
    )
    assert levels_and_titles(text) == [(1, "A"), (2, "B"), (2, "[[Linked]] C")]
