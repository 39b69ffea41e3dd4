"""What each format becomes, checked against small files written out here."""

from __future__ import annotations

import codecs
import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import openpyxl  # type: ignore[import-untyped,unused-ignore]
import pytest

from rag_tui.engine.documents.loading import load_folder, load_stream
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.types import Document, FileReport


def load(
    content: str | bytes, name: str, settings: LoadSettings | None = None
) -> tuple[Document, FileReport]:
    raw = content.encode() if isinstance(content, str) else content
    document, report = load_stream(raw, name, settings=settings)
    assert document is not None, report
    return document, report


def refused(content: str | bytes, name: str, settings: LoadSettings | None = None) -> FileReport:
    raw = content.encode() if isinstance(content, str) else content
    document, report = load_stream(raw, name, settings=settings)
    assert document is None
    return report


def pages(document: Document) -> list[tuple[int, str, str]]:
    return [(p.number, p.label, document.text[p.start : p.end]) for p in document.pages]


def outline(document: Document) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in document.headings]


def test_html_blocks_stand_apart_and_menus_and_scripts_are_gone() -> None:
    page = (
        "<title>T</title><nav>Home</nav><h1>Seal</h1><p>one</p><p>two&excl;</p>"
        "<script>x()</script><style>p{}</style><footer>legal</footer>"
    )
    document, report = load(page, "a.html")
    assert document.text == "# Seal\n\none\n\ntwo!\n"
    assert (document.title, outline(document)) == ("Seal", [(1, "Seal")])
    assert (document.format, report.state, report.reason) == ("html", "indexed", "")


def test_html_keeps_identifiers_code_and_tables_and_makes_no_headings_of_text() -> None:
    page = (
        "<body><p>snake_case_name * 2</p><p># not a heading</p><p>a<br>===</p>"
        "<pre><code class='language-py'># comment\nx = 1\n</code></pre>"
        "<table><tr><td>bar</td><td>valve</td></tr><tr><td>1</td><td>2</td></tr></table>"
    )
    document, _ = load(page, "a.html")
    assert "snake_case_name * 2" in document.text
    assert "```py\n# comment\nx = 1\n```" in document.text
    assert "| bar | valve |" in document.text
    assert outline(document) == []
    assert [block.kind for block in document.blocks] == ["code", "table"]


def test_html_main_part_is_taken_only_where_it_holds_the_text() -> None:
    long = "word " * 100
    page = f"<body><div>menu</div><main><h1>A</h1>{long}</main><aside>ad</aside></body>"
    assert load(page, "a.html")[0].text.startswith("# A\n\nword")
    page = f"<body><main>tiny</main><div><h1>A</h1>{long}</div></body>"
    assert "word word" in load(page, "a.html")[0].text


def test_html_in_a_declared_code_page_is_read_in_it() -> None:
    page = '<meta charset="windows-1251"><p>Привет</p>'.encode("cp1251")
    document, report = load(page, "a.html")
    assert document.text == "Привет\n"
    assert "read as Windows-1251, as the file says" in report.reason


def test_csv_rows_are_records_with_the_names_of_the_header() -> None:
    document, _ = load('name;note\nAnn;"a; b"\n\nBob;\n', "a.csv")
    assert pages(document) == [(1, "row 1", "name: Ann\nnote: a; b"), (2, "row 2", "name: Bob")]


def test_tsv_without_header_gets_numbered_columns() -> None:
    document, _ = load("1\tpump\n2\tseal\n", "a.tsv")
    assert document.text == "column 1: 1\ncolumn 2: pump\n\ncolumn 1: 2\ncolumn 2: seal"


def test_long_tables_have_at_most_five_thousand_pages() -> None:
    rows = "".join(f"item {i}\n" for i in range(12_000))
    document, _ = load(f"name\n{rows}", "a.csv")
    assert len(document.pages) == 4000
    assert document.pages[-1].label == "rows 11998-12000"
    last = document.pages[-1]
    assert document.text[last.start : last.end].endswith("name: item 11999")


def test_json_records_are_pages_with_nested_values_indented() -> None:
    records = [{"a": 1, "b": {"c": ["x", "y"], "d": None}}, {"a": True}]
    document, _ = load(json.dumps({"version": 2, "data": records}), "a.json")
    assert pages(document) == [
        (1, "record 1", "a: 1\nb:\n  c:\n    - x\n    - y"),
        (2, "record 2", "a: true"),
    ]


def test_json_fields_choose_the_text() -> None:
    settings = LoadSettings(json_text_fields=("head", "body.text"))
    record = {"head": "H", "body": {"text": "words", "html": "<p>"}, "id": 7}
    document, _ = load(json.dumps([record]), "a.json", settings)
    assert document.text == "H\n\nwords"


def test_json_metadata_fields_make_each_record_a_document(tmp_path: Path) -> None:
    lines = [
        {"key": "k1", "title": "One", "text": "first", "tag": "red", "n": {"m": 3}},
        {"key": "k2", "text": "", "tag": "blue"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n")
    settings = LoadSettings(
        json_text_fields=("text",), json_metadata_fields=("tag", "n.m"), json_id_field="key"
    )
    entries = list(load_folder(tmp_path, settings=settings))
    assert [(r.path, r.state) for _, r in entries] == [
        ("a.jsonl", "partly"),
        ("a.jsonl#k1", "indexed"),
        ("a.jsonl#k2", "skipped"),
    ]
    document = entries[1][0]
    assert document is not None
    assert (document.title, document.text) == ("One", "first")
    assert dict(document.metadata) == {"tag": "red", "n.m": "3"}


def test_a_broken_jsonl_line_is_named_and_the_others_are_read() -> None:
    document, report = load('{"a": 1}\n{oops\n{"a": 2}\n', "a.jsonl")
    assert document.text == "a: 1\n\na: 2"
    assert (report.state, report.reason) == ("partly", "1 line not valid JSON, left out: 2")


@pytest.mark.parametrize("text", ["{oops", "[" * 100_000])
def test_json_that_is_not_json_fails_with_the_reason(text: str) -> None:
    report = refused(text, "a.json")
    assert report.state == "failed"
    assert report.reason.startswith("not valid JSON: ")


def test_a_beir_folder_gives_one_document_for_each_line(tmp_path: Path) -> None:
    rows = [
        {"_id": "d1", "title": "Pumps", "text": "A pump moves water."},
        {"_id": "d2", "title": "", "text": "No title."},
        {"_id": "d1", "title": "Twice", "text": "Same id."},
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "what?"}\n')
    (tmp_path / "ABOUT.md").write_text("# About\n\nWhat the collection is made of.\n")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    entries = list(load_folder(tmp_path))
    documents = [d for d, _ in entries if d is not None]
    assert [(d.doc_id, d.title, d.text) for d in documents] == [
        ("corpus.jsonl#d1", "Pumps", "A pump moves water."),
        ("corpus.jsonl#d2", "d2", "No title."),
        ("corpus.jsonl#d1~3", "Twice", "Same id."),
    ]
    skipped = {r.path: r.reason for d, r in entries if d is None}
    assert set(skipped) == {"queries.jsonl", "qrels/test.tsv", "ABOUT.md"}
    assert all("not documents" in reason for reason in skipped.values())


def test_notebooks_keep_cells_and_drop_pictures_and_long_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "zirconium"]},
        {
            "cell_type": "code",
            "source": "x = 1",
            "outputs": [
                {"output_type": "display_data", "data": {"image/png": "QUJD" * 50_000}},
                {"output_type": "stream", "text": ["y" * 30]},
                {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []},
            ],
        },
    ]
    notebook = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    document, report = load(json.dumps(notebook), "a.ipynb", LoadSettings(output_characters=20))
    assert pages(document) == [
        (1, "cell 1", "# Study\nzirconium"),
        (
            2,
            "cell 2",
            f"```python\nx = 1\n```\n\n```output\n{'y' * 20}\n[10 more characters of output]\n```"
            "\n\n```output\nValueError: no\n```",
        ),
    ]
    assert report.state == "indexed"
    assert report.reason == "1 picture in outputs left out; 1 long output cut"
    assert (document.title, outline(document)) == ("Study", [(1, "Study")])


def test_restructured_text_is_kept_and_its_sections_are_headings() -> None:
    text = (
        "=====\nTitle\n=====\n\nwords\n\nPart *one*\n----------\n\n::\n\n    No\n    --\n\n"
        "Deep\n~~~~\n\n.. unknown:: x\n\nPart two\n--------\nend\n"
    )
    document, _ = load(text, "a.rst")
    assert document.text == text
    assert outline(document) == [(1, "Title"), (2, "Part one"), (3, "Deep"), (2, "Part two")]
    first = document.headings[0]
    assert document.text[first.start : first.body_start] == "=====\nTitle\n=====\n"
    assert document.title == "Title"


def test_python_definitions_are_headings_that_keep_their_signature() -> None:
    text = (
        "import os\n\n@cache\ndef load(path: str) -> int:\n    pass\n\n"
        "class A:\n    def b(self): ...\n"
    )
    document, _ = load(text, "a.py")
    assert outline(document) == [(2, "load"), (2, "A"), (3, "b")]
    assert [document.text[h.start :].split("\n")[0] for h in document.headings] == [
        "@cache",
        "class A:",
        "    def b(self): ...",
    ]
    assert all(h.start == h.body_start for h in document.headings)
    assert (document.title, document.format) == ("a.py", "code")


def test_python_that_does_not_parse_is_kept_without_headings() -> None:
    document, report = load("print 'old'\n", "a.py")
    assert (document.text, document.headings, report.state) == ("print 'old'\n", (), "indexed")
    assert report.reason.startswith("no definitions found")


def test_mail_has_its_headers_and_an_html_body_as_text() -> None:
    mail = (
        "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nFrom: a@example.com\r\n"
        "Content-Type: text/html; charset=utf-8\r\n\r\n<p>one</p><p>two</p>"
    )
    document, report = load(mail, "a.eml")
    assert document.text == "Subject: Grüße\nFrom: a@example.com\n\none\n\ntwo\n"
    assert (document.title, report.state) == ("Grüße", "indexed")
    assert document.metadata["from"] == "a@example.com"


def test_subtitles_are_lines_and_minutes_are_pages() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\none\n\n2\n00:01:05,000 --> 00:01:06,000\ntwo\nlines\n"
    document, _ = load(text, "a.srt")
    assert pages(document) == [(1, "0:00", "one"), (2, "0:01", "two lines")]


def archive(**entries: str) -> bytes:
    return archive_of(entries)


def archive_of(entries: Mapping[str, str | bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return buffer.getvalue()


def test_an_archive_that_unpacks_without_end_is_skipped() -> None:
    raw = archive(**{"[Content_Types].xml": "", "word/document.xml": "0" * 2_000_000})
    report = refused(raw, "a.docx", LoadSettings(max_bytes=100_000))
    assert (report.state, report.reason) == ("skipped", "unpacks to 2 MB, more than 1 MB")


def test_containers_that_are_not_what_they_are_called_say_so() -> None:
    assert refused(archive(a="b"), "a.md").reason == "not text: ZIP archive"
    assert "does not begin like PDF" in refused(b"<html>", "a.pdf").reason
    assert "damaged archive" in refused(b"PK\x03\x04cut off", "a.docx").reason
    assert (
        "encrypted or old office file"
        in refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 99, "a.docx").reason
    )


def test_an_office_file_with_a_broken_inside_fails_alone() -> None:
    report = refused(archive(**{"[Content_Types].xml": "", "word/x.xml": "<"}), "a.docx")
    assert report.state == "failed"
    assert report.reason


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_without_a_mark_is_recognised(codec: str) -> None:
    document, report = load("Grüße aus Köln.\r\nZweite Zeile.\n".encode(codec), "a.txt")
    assert document.text == "Grüße aus Köln.\nZweite Zeile.\n"
    assert report.reason == f"read as {codec[:6].upper()} without a byte-order mark"


def test_a_marked_file_and_a_plain_one_give_the_same_text() -> None:
    marked, _ = load(codecs.BOM_UTF16_LE + "# Ü\r\n".encode("utf-16-le"), "a.md")
    plain, _ = load("# Ü\n", "a.md")
    assert (marked.text, marked.headings) == (plain.text, plain.headings)


def test_a_known_document_is_not_converted_again_and_keeps_its_state(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\noops\n')
    ((first, report),) = load_folder(tmp_path)
    assert first is not None
    ((second, again),) = load_folder(tmp_path, known={"a.jsonl": first})
    assert second is first
    assert again == report
    assert again.state == "partly"


def test_blank_files_of_any_format_are_skipped_with_a_reason() -> None:
    names = ("a.md", "a.html", "a.csv", "a.json", "a.jsonl", "a.rst", "a.py", "a.vtt")
    reports = {name: refused(" \n", name) for name in names}
    assert {name: r.state for name, r in reports.items()} == dict.fromkeys(names, "skipped")
    assert all(r.reason.startswith("empty file") for r in reports.values())


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
XXE = '<!DOCTYPE x [<!ENTITY b SYSTEM "file:///etc/hostname">]>'
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
@pytest.mark.parametrize("declared", [BOMB, XXE, f"<!-- <a> -->\n{BOMB}"])
def test_an_office_file_that_declares_entities_is_refused_for_that(
    declared: str, codec: str
) -> None:
    inner = f'{declared}<w:document xmlns:w="{WORD}"><w:t>&b;</w:t></w:document>'
    head = f'<?xml version="1.0" encoding="{codec}"?>'
    raw = archive_of({"[Content_Types].xml": "", "word/document.xml": (head + inner).encode(codec)})
    report = refused(raw, "a.docx")
    assert report.state == "failed"
    assert report.reason == "refused: the XML declares a document type (DTD)"


def epub(*, spine: str = '<itemref idref="a"/>', declared: str = "") -> bytes:
    package = (
        f'<package>{declared and "&b;"}<manifest><item id="a" href="a.html"/>'
        f'<item id="b" href="./a.html"/></manifest><spine>{spine}</spine></package>'
    )
    return archive_of(
        {
            "META-INF/container.xml": '<c><rootfile full-path="p.opf"/></c>',
            "p.opf": declared + package,
            "a.html": "<!DOCTYPE html><p>zirconium",
        }
    )


def test_a_book_whose_list_declares_entities_is_refused_for_that() -> None:
    report = refused(epub(declared=BOMB), "a.epub")
    assert report.reason == "refused: the XML declares a document type (DTD)"


def test_a_chapter_that_a_book_names_many_times_is_read_once() -> None:
    document, _ = load(epub(spine='<itemref idref="a"/><itemref idref="b"/>' * 50), "a.epub")
    assert document.text.count("zirconium") == 1


def test_deep_nesting_is_called_so() -> None:
    deep = "<w:ins>" * 9000 + "</w:ins>" * 9000
    body = f'<w:document xmlns:w="{WORD}"><w:body>{deep}</w:body></w:document>'
    raw = archive_of(
        {
            "[Content_Types].xml": f'<Types xmlns="{TYPES}"/>',
            "_rels/.rels": f'<Relationships xmlns="{RELATIONS}"/>',
            "word/document.xml": body,
        }
    )
    report = refused(raw, "a.docx", LoadSettings(max_bytes=50_000_000))
    assert (report.state, report.reason) == ("failed", "nested too deeply")


def sheet(cells: dict[str, str]) -> bytes:
    book = openpyxl.Workbook()
    for place, value in cells.items():
        book.active[place] = value
    buffer = BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def test_the_name_of_an_empty_column_is_not_lost() -> None:
    document, _ = load(sheet({"A1": "hi", "XFD1048576": "far"}), "a.xlsx")
    assert document.text == "Sheet\n\ncolumns without values: hi\n\ncolumn 16384: far"
    document, _ = load(sheet({"A1": "name", "B1": "note", "A2": "pump"}), "a.xlsx")
    assert document.text == "Sheet\n\ncolumns without values: note\n\nname: pump"
    document, _ = load(sheet({"A1": "name", "A2": "pump"}), "a.xlsx")
    assert document.text == "Sheet\n\nname: pump"
