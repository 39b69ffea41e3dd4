"""Jupyter notebooks as Markdown, one page a cell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rag_tui.engine.documents.parts import Loaded, Part, UnusableFileError, join_parts


def load_notebook(text: str, *, output_characters: int) -> Loaded:
    """Markdown cells as they are, code cells and their text outputs in fences.

    Pictures and other binary outputs are dropped; HTML outputs are, where there is a text form.

    Raises:
        UnusableFileError: When it is no notebook.
    """
    try:
        notebook = json.loads(text)
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        language = _language(notebook)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise UnusableFileError("not a readable notebook", state="failed") from error
    dropped: list[str] = []
    parts = [
        Part(_cell(cell, language, output_characters, dropped), f"cell {number}")
        for number, cell in enumerate(cells, start=1)
        if isinstance(cell, dict)
    ]
    text, pages = join_parts(parts)
    notes = []
    if n_binary := dropped.count("binary"):
        notes.append(f"{n_binary} picture{'s' if n_binary > 1 else ''} in outputs left out")
    if n_cut := dropped.count("cut"):
        notes.append(f"{n_cut} long output{'s' if n_cut > 1 else ''} cut")
    return Loaded(text, "notebook", is_markdown=True, pages=pages, notes=tuple(notes))


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata") or {}
    info = metadata.get("language_info") or metadata.get("kernelspec") or {}
    language = info.get("name") or info.get("language") or ""
    return language if isinstance(language, str) and language.isalnum() else ""


def _cell(cell: dict[str, Any], language: str, limit: int, dropped: list[str]) -> str:
    source = _text(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") != "code":
        return source
    pieces = [_fenced(source, language)] if source.strip() else []
    for output in cell.get("outputs") or ():
        if not isinstance(output, dict):
            continue
        text = "\n".join(_output(output, dropped)).strip("\n")
        if len(text) > limit:
            dropped.append("cut")
            text = f"{text[:limit]}\n[{len(text) - limit:,} more characters of output]"
        if text.strip() and limit:
            pieces.append(_fenced(text, "output"))
    return "\n\n".join(pieces)


def _output(output: dict[str, Any], dropped: list[str]) -> Iterator[str]:
    if "text" in output:
        yield _text(output["text"])
    if "ename" in output:
        yield f"{output['ename']}: {output.get('evalue', '')}"
    data = output.get("data")
    if isinstance(data, dict):
        if any(str(kind).startswith(("image/", "video/", "audio/")) for kind in data):
            dropped.append("binary")
        if "text/plain" in data:
            yield _text(data["text/plain"])
        elif "text/markdown" in data:
            yield _text(data["text/markdown"])


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    return value if isinstance(value, str) else ""


def _fenced(text: str, info: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"
