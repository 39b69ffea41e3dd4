"""PDF: the text layer page by page, with the headings that bookmarks or large type show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rag_tui.engine.documents.converters.pdf_type import (
    PAGES_MEASURED,
    SizedLine,
    large_type,
    sized_lines,
)
from rag_tui.engine.documents.parts import Loaded, Part, UnusableFileError, join_parts, one_line
from rag_tui.engine.types import Heading, Page

_NUMBERING = re.compile(r"^(?:[A-Z]|\d+)(?:\.\d+)*\.?\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
_PASSWORD_HINT = "Give the password in the settings: loading.pdf_passwords."  # noqa: S105


def convert_pdf(raw: bytes, options: Mapping[str, Any]) -> Loaded:
    """Text in pdfium's reading order; words cut by a hyphen at a line's end are joined.

    Raises:
        UnusableFileError: When it is encrypted, damaged, or has no text layer at all.
    """
    document = _open(raw, options.get("passwords", ()))
    read = [_read_page(page, number) for number, page in enumerate(document, start=1)]
    parts = [Part(text) for text, _ in read]
    text, pages = join_parts(parts)
    empty = [number for number, part in enumerate(parts, start=1) if not part.text.strip()]
    if not pages:
        raise UnusableFileError("no text layer (scanned pages?)", state="skipped")
    notes: tuple[str, ...] = ()
    if empty:
        shown = ", ".join(map(str, empty[:5])) + (" …" if len(empty) > 5 else "")
        notes = (f"{len(empty)} of {len(parts)} pages without text layer: {shown}",)
    return Loaded(
        text,
        "pdf",
        title=one_line(document.get_metadata_value("Title") or ""),
        headings=_headings(text, pages, _bookmarks(document))
        or _headings(text, pages, large_type([lines for _, lines in read])),
        pages=pages,
        notes=notes,
        is_partial=bool(empty),
    )


def _open(raw: bytes, passwords: Iterable[str]) -> Any:
    import pypdfium2  # type: ignore[import-untyped,unused-ignore]

    message = ""
    for password in (None, *passwords):
        try:
            return pypdfium2.PdfDocument(raw, password=password)
        except pypdfium2.PdfiumError as error:
            message = str(error)
            if "assword" not in message:
                raise UnusableFileError(
                    f"damaged PDF: {_reason(message)}", state="failed"
                ) from error
    tried = "no password given" if not passwords else "no given password opens it"
    raise UnusableFileError(f"encrypted: {tried}", state="failed", hint=_PASSWORD_HINT)


def _reason(message: str) -> str:
    return message.rsplit("PDFium:", 1)[-1].strip(" ).").lower()


def _read_page(page: Any, number: int) -> tuple[str, list[SizedLine]]:
    """A page's text, and its lines with the size of their type; no lines on far pages."""
    textpage = page.get_textpage()
    text: str = textpage.get_text_range()
    lines = sized_lines(textpage) if number <= PAGES_MEASURED else []
    textpage.close()
    page.close()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # pdfium marks a hyphen that only the line's end asked for
    text = re.sub(r"\ufffe\n?", "", text)
    return _CONTROL.sub("", text), lines


def _bookmarks(document: Any) -> list[tuple[int, str, int]]:
    """Level from 1, title and 1-based page of each bookmark that leads to a page."""
    found = []
    for item in document.get_toc():
        target = item.get_dest()
        index = target.get_index() if target is not None else None
        title = one_line(item.get_title() or "")
        if index is not None and title:
            found.append((item.level + 1, title, index + 1))
    return found


def _headings(
    text: str, pages: tuple[Page, ...], bookmarks: list[tuple[int, str, int]]
) -> tuple[Heading, ...]:
    """Those whose title is a line of their page (or two), below the document title's level."""
    page_of = {page.number: page for page in pages}
    headings: list[Heading] = []
    at = 0
    for level, title, number in bookmarks:
        page = page_of.get(number)
        if page is None:
            continue
        span = _find_line(text, title, max(at, page.start), page.end)
        if span is not None:
            headings.append(Heading(min(level + 1, 6), title, *span))
            at = span[1]
    return tuple(headings)


def _find_line(text: str, title: str, start: int, end: int) -> tuple[int, int] | None:
    wanted = _squeezed(title)
    at = text.rfind("\n", 0, start) + 1 if start else 0
    at = start if at < start else at
    while at < end:
        line_end = _line_end(text, at, end)
        for stop in (line_end, _line_end(text, line_end, end)):
            line = text[at:stop].strip()
            if _squeezed(line) == wanted or _squeezed(_NUMBERING.sub("", line)) == wanted:
                return at, stop
        at = line_end
    return None


def _line_end(text: str, at: int, end: int) -> int:
    newline = text.find("\n", at, end)
    return end if newline < 0 else newline + 1


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
