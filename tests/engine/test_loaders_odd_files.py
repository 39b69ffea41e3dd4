"""Every file of a collection of odd ones ends in the state that a person would give it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_tui.engine.documents.loading import Entry, load_folder
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.types import FileState

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "odd-files"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared odd files are not here")

SHIFT_JIS = "encodings/chardet__chromium_Shift-JIS_with_no_encoding_specified.html"

# path: state, format, words of the reason (empty: none at all), words of the text
EXPECTED: dict[str, tuple[FileState, str, str, str]] = {
    "asciidoc/asciidoc_02.asciidoc": ("indexed", "text", "", "image"),
    "csv/comma.csv": ("indexed", "csv", "", "First Name: Sheryl"),
    "csv/mskanji_cp932.csv": ("indexed", "csv", "cp932", "住所: 名古屋"),
    "csv/tab.csv": ("indexed", "csv", "", "First Name: Sheryl"),
    "csv/too-many-columns.csv": ("indexed", "csv", "1 row has more cells", "column 5: e"),
    "docx/equations.docx": ("indexed", "docx", "", r"\frac{mλ}{a}"),
    "docx/headers_numbered.docx": ("indexed", "docx", "", "### Section 1.2.3"),
    "docx/textbox.docx": ("indexed", "docx", "", "Suggested Reportable Symptoms"),
    "docx/word_sample.docx": ("indexed", "docx", "", "Enjoy summer warmth"),
    "eml/with_attachment.eml": ("partly", "email", "1 attachment not read: test.txt", "Hello Bob"),
    SHIFT_JIS: ("indexed", "html", "cp932", "給付金"),
    "encodings/chardet_bom-utf-16-be.srt": ("indexed", "subtitles", "", "2 months ago I found"),
    "encodings/sample-arabic-1.txt": ("indexed", "text", "Windows-1256", "ال"),
    "encodings/sample-english.bom.txt": ("indexed", "text", "", "e"),
    "encodings/sample-french-1.txt": ("indexed", "text", "Windows-1252", "é"),
    "encodings/sample-hebrew-2.txt": ("indexed", "text", "Windows-1255", "של"),
    "encodings/sample-korean.txt": ("indexed", "text", "cp949", "다"),
    "encodings/sample-russian-3.txt": ("indexed", "text", "", "на"),
    "epub/test.epub": ("indexed", "epub", "", "# Chapter 2: More Content"),
    "html/blog.html": ("indexed", "html", "", "inference parameters"),
    "html/table_rowspan.html": ("indexed", "html", "", "After table"),
    "html/wiki_duck.html": ("indexed", "html", "", "## Etymology"),
    "i18n/fastapi_first_steps.de.md": ("indexed", "markdown", "", "Erste Schritte"),
    "i18n/fastapi_first_steps.ru.md": ("indexed", "markdown", "", "Первые шаги"),
    "i18n/fastapi_first_steps.zh.md": ("indexed", "markdown", "", "第一步"),
    "i18n/tldr_tar.ar.md": ("indexed", "markdown", "", "# tar"),
    "json/xquad_vi.json": ("indexed", "json", "", "Đội thủ của Panthers"),
    "md/bom_utf8.md": ("indexed", "markdown", "", "NetworkATC"),
    "md/cockroach_spatial_26kB_line.md": ("indexed", "markdown", "", "## "),
    "md/code_hash_lines_powershell.md": ("indexed", "markdown", "", "## "),
    "md/eip-999_39kB_line.md": ("indexed", "markdown", "", "## "),
    "md/ending_with_table.md": ("indexed", "markdown", "", "|"),
    "md/mixed_newlines.md": ("indexed", "markdown", "", "Title"),
    "md/mkdocs_admonitions.md": ("indexed", "markdown", "", "!!! note"),
    "md/nested.md": ("indexed", "markdown", "", "- "),
    "md/nul_bytes.md": ("skipped", "", "not text: 2 NUL bytes", ""),
    "md/only_whitespace.md": ("skipped", "", "only blank space", ""),
    "md/rust_book_SUMMARY.md": ("indexed", "markdown", "", "](ch01-00-getting-started.md)"),
    "md/setext_like.md": ("indexed", "markdown", "", "Record Field Exchange"),
    "md/toml_front_matter_zola.md": ("indexed", "markdown", "", "## "),
    "md/wiki.md": ("indexed", "markdown", "", "IBM"),
    "mdx/astro_markdown_content.mdx": ("indexed", "markdown", "", "import "),
    "mislabelled/pptx_named.md": ("indexed", "pptx", "is PPTX", "StandardPdfPipeline"),
    "odt/text_document_01.odt": ("skipped", "", "not a supported type (.odt)", ""),
    "pdf/arabic_habibi.pdf": ("indexed", "pdf", "", "habibi"),
    "pdf/corrupted.pdf": ("indexed", "pdf", "", "Beautiful is better than ugly."),
    "pdf/duplicate_chars.pdf": ("indexed", "pdf", "", "计算机科学与技术"),
    "pdf/encrypted_rc4_40.pdf": ("failed", "", "encrypted", ""),
    "pdf/medical_report_scan.pdf": ("skipped", "", "no text layer", ""),
    "pdf/multi_page.pdf": ("indexed", "pdf", "", "The Evolution of the Word Processor"),
    "pdf/outline.pdf": ("indexed", "pdf", "", "text without a meaning"),
    "pdf/paper_table_page.pdf": ("indexed", "pdf", "", "PubTabNet"),
    "pdf/password_1234.pdf": ("failed", "", "encrypted", ""),
    "pdf/rotated_wide_table.pdf": ("indexed", "pdf", "", "Alabama 18,870"),
    "pdf/scanned_no_text_layer.pdf": ("skipped", "", "no text layer", ""),
    "pdf/two_columns_latex.pdf": ("indexed", "pdf", "", "This is a sample document"),
    "pdf/zero_bytes.pdf": ("skipped", "", "empty file", ""),
    "pptx/powerpoint_sample.pptx": ("indexed", "pptx", "", "Test Table Slide"),
    "rst/pep-0008.rst": ("indexed", "rst", "", "Code Lay-out"),
    "vault/Home.md": ("indexed", "markdown", "", ""),
    "vault/blog/2021-08-08-a-post.md": ("skipped", "", "empty file", ""),
    "vault/books/Origin of Species.md": ("indexed", "markdown", "", ""),
    "vault/example calendars.md": ("indexed", "markdown", "", "```dataview"),
    "vault/example tables.md": ("indexed", "markdown", "", "# Tables"),
    "vault/recipes/toast.md": ("indexed", "markdown", "", "Toast"),
    "vault/tasks/Completed Tasks.md": ("indexed", "markdown", "", ""),
    "vault/tasks/Sorted Tasks.md": ("indexed", "markdown", "", ""),
    "vault/tasks/Tasks in a specific section.md": ("indexed", "markdown", "", ""),
    "vault/tasks/checklist.md": ("indexed", "markdown", "", "- [ ]"),
    "vault/untracked/README.md": ("indexed", "markdown", "", ""),
    "vtt/example_01.vtt": ("indexed", "subtitles", "", "Roger Bingham: We are in New York"),
    "xlsx/sample_sales.xlsm": ("indexed", "xlsx", "", "Product: Widget B"),
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, tuple[Entry, float]]:
    entries: dict[str, tuple[Entry, float]] = {}
    started = time.monotonic()
    for entry in load_folder(FOLDER, settings=LoadSettings(exclude=("/MANIFEST.tsv",))):
        now = time.monotonic()
        entries[entry[1].path] = (entry, now - started)
        started = now
    entries.pop("MANIFEST.tsv")
    return entries


def test_the_collection_and_the_expectations_name_the_same_files(
    loaded: dict[str, tuple[Entry, float]],
) -> None:
    assert sorted(loaded) == sorted(EXPECTED)


@pytest.mark.parametrize("path", sorted(EXPECTED))
def test_an_odd_file_ends_in_the_right_state(
    loaded: dict[str, tuple[Entry, float]], path: str
) -> None:
    state, format_name, reason, words = EXPECTED[path]
    (document, report), seconds = loaded[path]
    assert (report.state, document is not None) == (state, state in ("indexed", "partly"))
    assert (reason in report.reason) if reason else report.reason == ""
    assert seconds < 20
    if document is not None:
        assert document.format == format_name
        assert words in document.text
        assert document.text.strip()


@pytest.mark.parametrize("path", [p for p, e in sorted(EXPECTED.items()) if e[1]])
def test_what_an_odd_file_is_called_holds_no_control_characters(
    loaded: dict[str, tuple[Entry, float]], path: str
) -> None:
    (document, report), _ = loaded[path]
    assert document is not None
    shown = [document.title, report.reason, *document.warnings]
    shown += [heading.title for heading in document.headings]
    shown += [page.label for page in document.pages]
    assert all(text.isprintable() for text in shown)


@pytest.mark.parametrize("path", [p for p, e in sorted(EXPECTED.items()) if e[1]])
def test_headings_blocks_and_pages_of_an_odd_file_lie_in_order_in_its_text(
    loaded: dict[str, tuple[Entry, float]], path: str
) -> None:
    (document, _), _ = loaded[path]
    assert document is not None
    headings = [(h.start, h.body_start) for h in document.headings]
    pages = [(p.start, p.end) for p in document.pages]
    blocks = [(b.start, b.end) for b in document.blocks]
    for spans in (headings, pages, blocks):
        flat = list(_flat(spans))
        assert flat == sorted(flat)
        assert not flat or (flat[0] >= 0 and flat[-1] <= len(document.text))
    for block in document.blocks:
        assert block.header_end == 0 or block.start < block.header_end <= block.end
        assert block.start == 0 or document.text[block.start - 1] == "\n"


def _flat(spans: list[tuple[int, int]]) -> Iterator[int]:
    for span in spans:
        yield from span


def test_a_password_opens_encrypted_pdf_files() -> None:
    settings = LoadSettings(pdf_passwords=("wrong", "foo", "1234"), include=("*.pdf",))
    states = {r.path: r.state for _, r in load_folder(FOLDER / "pdf", settings=settings)}
    assert states["encrypted_rc4_40.pdf"] == "indexed"
    assert states["password_1234.pdf"] == "indexed"


def test_bookmarks_of_a_pdf_are_headings_at_their_lines(
    loaded: dict[str, tuple[Entry, float]],
) -> None:
    (document, _), _ = loaded["pdf/outline.pdf"]
    assert document is not None
    lines = [document.text[h.start : h.body_start] for h in document.headings]
    assert lines[:3] == ["1 Foo\n", "2 Bar\n", "3 Baz\n"]
    assert [h.level for h in document.headings] == [2] * 9
    second = document.pages[1]
    assert second.number == 2
    assert second.start == document.headings[0].start


@pytest.mark.parametrize(
    ("folder", "at_least"), [("docs/fastapi-en", 150), ("ir/xquad-vi", 240), ("chunking-eval", 5)]
)
def test_real_collections_load_without_a_failure(folder: str, at_least: int) -> None:
    path = FOLDER.parent / folder
    if not path.is_dir():
        pytest.skip("this collection is not here")
    states = [report.state for _, report in load_folder(path)]
    assert states.count("indexed") >= at_least
    assert set(states) <= {"indexed", "skipped"}
