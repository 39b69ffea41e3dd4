"""Word documents and spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from io import BytesIO
from typing import Any

from rag_tui.engine.documents.converters.html import html_to_markdown
from rag_tui.engine.documents.parts import Loaded, one_line
from rag_tui.engine.documents.records import table_header, table_record
from rag_tui.engine.types import Heading, Page


def convert_docx(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """A Word document as Markdown: mammoth's HTML, with equations as LaTeX by markitdown."""
    import mammoth  # type: ignore[import-untyped,unused-ignore]
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    html: str = mammoth.convert_to_html(pre_process_docx(BytesIO(raw))).value
    text, _ = html_to_markdown(html)
    return Loaded(text, "docx", is_markdown=True)


def convert_xlsx(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """Each sheet as a heading and a page, its rows as records; values, not formulas."""
    import openpyxl  # type: ignore[import-untyped,unused-ignore]

    book = openpyxl.load_workbook(BytesIO(raw), read_only=True, data_only=True, keep_links=False)
    pieces: list[str] = []
    headings: list[Heading] = []
    pages: list[Page] = []
    at = 0
    for number, sheet in enumerate(book.worksheets, start=1):
        filled = [row for row in _rows(sheet) if any(row)]
        names, rows = table_header(filled)
        records = [table_record(names, row) for row in rows]
        if records and len(rows) < len(filled):
            used = {n for row in rows for n, cell in enumerate(row) if cell}
            if empty := [name for n, name in enumerate(names) if n not in used]:
                # no record names these columns
                records.insert(0, f"columns without values: {', '.join(empty)}")
        if not names:
            continue
        title = one_line(sheet.title)
        text = "\n\n".join([title, *(records or [", ".join(names)])])
        headings.append(Heading(2, title, at, at + len(title) + 1))
        pages.append(Page(number, at, at + len(text), title))
        pieces.append(text)
        at += len(text) + 2
    return Loaded("\n\n".join(pieces), "xlsx", headings=tuple(headings), pages=tuple(pages))


def _rows(sheet: Any) -> Iterator[list[str]]:
    # files by other programs state a wrong extent, or a million empty rows
    sheet.reset_dimensions()
    for row in sheet.iter_rows(values_only=True):
        cells = [_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        yield cells


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        is_day = value.time() == time()
        return value.date().isoformat() if is_day else value.isoformat(" ", "seconds")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.15g}"
    return " ".join(str(value).split())
