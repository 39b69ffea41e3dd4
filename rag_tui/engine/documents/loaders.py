"""The loader of each format: in this process where only Python's own library is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from rag_tui.engine.documents import beir
from rag_tui.engine.documents.formats import CONTAINERS, format_of, format_of_name
from rag_tui.engine.documents.isolation import Converters
from rag_tui.engine.documents.notebooks import load_notebook
from rag_tui.engine.documents.parts import Loaded, UnusableFileError
from rag_tui.engine.documents.records import Records, load_csv, paged, read_json, read_jsonl
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.documents.text import DecodedText, decode
from rag_tui.engine.events import CancelToken

_ISOLATED_TEXT = frozenset({"html", "rst", "subtitles"})
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""")
_PYTHON = frozenset({".py", ".pyi"})


def read_text(
    raw: bytes,
    doc_id: str,
    settings: LoadSettings,
    converters: Converters,
    *,
    cancel: CancelToken | None = None,
) -> Loaded:
    """The text of a file by its format, with a note where the content is not what the name says.

    Raises:
        UnusableFileError: When it cannot be used.
        Cancelled: Soon after the token was set.
    """
    name = PurePath(doc_id).name
    found, note = format_of(name, raw, max_bytes=settings.max_bytes)
    options: dict[str, Any] = {}
    if found == "pdf":
        options = {"passwords": list(settings.pdf_passwords)}
    if found in CONTAINERS or found == "email":
        loaded = converters.convert(found, raw, name=name, options=options, cancel=cancel)
        return _with_notes(loaded, (note,) if note else (), is_exact=True)
    decoded = decode(raw, declared=_declared(raw) if found in ("html", "code") else "")
    _check_lines(decoded.text, found, settings)
    if not decoded.text.strip():
        return Loaded("", found)
    is_python = found == "code" and PurePath(name).suffix.lower() in _PYTHON
    if found in _ISOLATED_TEXT or is_python:
        loaded = converters.convert(
            "python" if is_python else found,
            decoded.text.encode("utf-8", "surrogatepass"),
            name=name,
            options=options,
            cancel=cancel,
        )
    else:
        loaded = _load_here(decoded, found, name, settings)
    return _with_notes(loaded, decoded.notes, is_exact=decoded.is_exact)


def read_records(raw: bytes, doc_id: str, settings: LoadSettings) -> Records | None:
    """The records of a file whose records are documents of their own; None for other files.

    Raises:
        UnusableFileError: When it should be such a file and cannot be read.
    """
    found = format_of_name(doc_id)
    is_beir_name = PurePath(doc_id).name == beir.CORPUS
    if found not in ("json", "jsonl") or not (is_beir_name or settings.record_documents):
        return None
    if not raw.strip():
        return None
    text = decode(raw).text
    if is_beir_name and not settings.record_documents:
        records = read_jsonl(text, beir.RECORDS)
        return records if beir.is_corpus(records, doc_id) else None
    return read_json(text, settings) if found == "json" else read_jsonl(text, settings)


def _load_here(decoded: DecodedText, found: str, name: str, settings: LoadSettings) -> Loaded:
    text = decoded.text
    if found == "markdown":
        return Loaded(text, "markdown", is_markdown=True)
    if found == "csv":
        return load_csv(text, is_tab=PurePath(name).suffix.lower() == ".tsv")
    if found == "json":
        return paged(read_json(text, settings), "json")
    if found == "jsonl":
        return paged(read_jsonl(text, settings), "jsonl")
    if found == "notebook":
        return load_notebook(text, output_characters=settings.output_characters)
    return Loaded(text, found)


def _with_notes(loaded: Loaded, notes: tuple[str, ...], *, is_exact: bool) -> Loaded:
    return replace(
        loaded, notes=(*notes, *loaded.notes), is_partial=loaded.is_partial or not is_exact
    )


def _declared(raw: bytes) -> str:
    """The encoding that an HTML page or a source file names near its beginning."""
    match = _DECLARED.search(raw[:2048])
    return match[1].decode("ascii") if match else ""


def _check_lines(text: str, found: str, settings: LoadSettings) -> None:
    limits = {
        "code": settings.max_code_line,
        "markdown": settings.max_line,
        "text": settings.max_line,
        "rst": settings.max_line,
    }
    limit = limits.get(found)
    if limit is None or len(text) <= limit:
        return
    longest = max(map(len, text.split("\n")))
    if longest > limit:
        kind = "minified code" if found == "code" else "data rather than text"
        raise UnusableFileError(
            f"{kind}? a line of {longest:,} characters, limit {limit:,}", state="skipped"
        )
