"""Converters that need libraries; they run in a process of their own (`isolation`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_tui.engine.documents.parts import INSTALL_FORMATS, Loaded, UnusableFileError

Converter = Callable[[bytes, Mapping[str, Any]], Loaded]


def convert(format_name: str, raw: bytes, *, name: str, options: Mapping[str, Any]) -> Loaded:
    """The text of a file's bytes; formats that are text come as UTF-8.

    Raises:
        UnusableFileError: When the file cannot be used, or a library is not installed.
    """
    try:
        return _converter(format_name)(raw, options)
    except ModuleNotFoundError as error:
        raise UnusableFileError(
            f"reading {format_name} needs {error.name}: {INSTALL_FORMATS}",
            state="skipped",
            hint=INSTALL_FORMATS,
        ) from error


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
