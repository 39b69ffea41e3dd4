"""Converters that need libraries; they run in a process of their own (`isolation`)."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

from rag_tui.engine.documents.parts import INSTALL_FORMATS, Loaded, UnusableFileError

Converter = Callable[[bytes, Mapping[str, Any]], Loaded]

DTD_REFUSED = "refused: the XML declares a document type (DTD)"
_OFFICE = frozenset({"docx", "pptx", "xlsx"})
_PROLOG_BYTES = 65_536
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_DOCTYPE = re.compile(rb"[^<]*(?:<\?[^<]*)*<!DOCTYPE")


def convert(format_name: str, raw: bytes, *, name: str, options: Mapping[str, Any]) -> Loaded:
    """The text of a file's bytes; formats that are text come as UTF-8.

    Raises:
        UnusableFileError: When the file cannot be used, or a library is not installed.
    """
    try:
        converter = _converter(format_name)
        if format_name in _OFFICE:
            _refuse_document_types(raw)
        return converter(raw, options)
    except RecursionError as error:
        raise UnusableFileError("nested too deeply", state="failed") from error
    except ModuleNotFoundError as error:
        raise UnusableFileError(
            f"reading {format_name} needs {error.name}: {INSTALL_FORMATS}",
            state="skipped",
            hint=INSTALL_FORMATS,
        ) from error


def _refuse_document_types(raw: bytes) -> None:
    """Office files have none; entities in one are bombs or name other files.

    Parsers refuse or pass over them, each with an error that says something else.
    """
    if not zipfile.is_zipfile(BytesIO(raw)):
        return  # the converter says what it is instead
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        for info in archive.infolist():
            if not info.filename.lower().endswith((".xml", ".rels")):
                continue
            try:
                with archive.open(info) as part:
                    # without the zeros of UTF-16
                    head = part.read(_PROLOG_BYTES).replace(b"\0", b"")
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, zlib.error):
                continue  # damaged or encrypted: so says the converter
            if _DOCTYPE.match(_COMMENT.sub(b"", head)):
                raise UnusableFileError(DTD_REFUSED, state="failed")


def _converter(format_name: str) -> Converter:
    if format_name == "pdf":
        from rag_tui.engine.documents.converters.pdf import convert_pdf

        return convert_pdf
    if format_name == "html":
        from rag_tui.engine.documents.converters.html import convert_html

        return convert_html
    if format_name == "docx":
        from rag_tui.engine.documents.converters.office import convert_docx

        return convert_docx
    if format_name == "pptx":
        from rag_tui.engine.documents.converters.slides import convert_pptx

        return convert_pptx
    if format_name == "xlsx":
        from rag_tui.engine.documents.converters.office import convert_xlsx

        return convert_xlsx
    if format_name == "epub":
        from rag_tui.engine.documents.converters.epub import convert_epub

        return convert_epub
    if format_name == "email":
        from rag_tui.engine.documents.converters.mail import convert_email

        return convert_email
    if format_name == "rst":
        from rag_tui.engine.documents.converters.rst import convert_rst

        return convert_rst
    if format_name == "subtitles":
        from rag_tui.engine.documents.converters.subtitles import convert_subtitles

        return convert_subtitles
    if format_name == "python":
        from rag_tui.engine.documents.converters.python import convert_python

        return convert_python
    raise UnusableFileError(f"no converter for {format_name}", state="skipped")
