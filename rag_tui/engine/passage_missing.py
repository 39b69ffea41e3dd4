"""Why a passage is in no chunk: its file was never loaded, or its text was lost on the way."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rag_tui.engine.events import CancelToken
from rag_tui.engine.passage_places import PassagePlace, PassageTarget
from rag_tui.engine.passage_search import passage_pattern
from rag_tui.engine.types import FileReport

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

MissingStep = Literal["never loaded", "lost in extraction", "lost in cutting", "not found"]

MAX_FILE_BYTES = 20_000_000
MAX_BYTES = 200_000_000
"""Of all files together that are looked through for a passage that no document holds."""

MAX_FOLDER_FILES = 1000
"""Of one folder that was passed over."""

_TAG = re.compile(r"<[^<>]*>")
_PACKED = (b"PK\x03\x04", b"%PDF", b"\x1f\x8b", b"\xd0\xcf\x11\xe0")
"""Zip (docx, pptx, xlsx, epub), PDF, gzip and old Office files: their bytes hold no plain text."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Where a passage was lost before anything was ranked."""

    step: MissingStep
    detail: str
    """In words, with the reason that the file's report gives."""
    path: str = ""
    """The file that holds it; empty when none is known."""


def why_missing(
    target: PassageTarget, index: Index, *, cancel: CancelToken | None = None
) -> Missing | None:
    """Why no chunk holds the passage; None when one does.

    For a text that no document holds, the files themselves are looked through, those first that
    were not or only partly read. Packed formats (PDF, Word, …) cannot be.

    Raises:
        Cancelled: Soon after the token was set.
    """
    if target.places:
        if any(place.parts for place in target.places):
            return None
        place = target.places[0]
        return Missing("lost in cutting", _not_cut(place, index), place.doc_id)
    if target.path:
        return _of_path(target.path, index)
    return _in_raw_files(target, index, cancel if cancel is not None else CancelToken())


def _not_cut(place: PassagePlace, index: Index) -> str:
    document = index.document_of[place.doc_id]
    where = f"{place.doc_id}:{place.line_start}"
    if place.start < document.body_start:
        return f"{where} is front matter: it is metadata for filters, and in no chunk"
    return f"the text of {where} is in the document, but no chunk holds any of it"


def _of_path(path: str, index: Index) -> Missing:
    report = next((r for r in index.reports if r.path == path), None)
    if report is not None and report.reason:
        return Missing("never loaded", f"{path} was {report.state}: {report.reason}", path)
    if report is not None:
        return Missing("never loaded", f"{path} was {report.state} and gave no document", path)
    above = next((r for r in index.reports if path.startswith(f"{r.path}/")), None)
    if above is not None:
        detail = f"{path} is in {above.path}, which was {above.state}: {above.reason}"
        return Missing("never loaded", detail, path)
    return Missing(
        "never loaded",
        f"{path} was not looked at: it is hidden, or new since the index was made",
        path,
    )


def _in_raw_files(target: PassageTarget, index: Index, cancel: CancelToken) -> Missing:
    pattern = passage_pattern(target.wanted, ignore_case=True)
    # What was not read whole is the likeliest to hold it.
    reports = sorted(index.reports, key=lambda r: (r.state == "indexed", r.path))
    n_packed = n_left = n_files = 0
    budget = MAX_BYTES
    for report in reports:
        for path in _files_of(index.folder, report):
            cancel.check()
            n_files += 1
            raw = _bytes_of(path, min(budget, MAX_FILE_BYTES))
            if raw is None:
                n_left += 1
                continue
            budget -= len(raw)
            if raw.startswith(_PACKED):
                n_packed += 1
            elif _holds(raw, pattern):
                return _found_raw(report)
    return Missing("not found", _nowhere(target, n_files, n_packed + n_left))


def _found_raw(report: FileReport) -> Missing:
    reason = f": {report.reason}" if report.reason else ""
    if report.state in ("skipped", "failed"):
        return Missing(
            "never loaded", f"{report.path} holds it, but was {report.state}{reason}", report.path
        )
    read = "only partly read" if report.state == "partly" else "read"
    return Missing(
        "lost in extraction",
        f"the file {report.path} holds it and was {read}{reason}, but the text that was taken "
        "from it does not hold it",
        report.path,
    )


def _nowhere(target: PassageTarget, n_files: int, n_closed: int) -> str:
    told = f"no document holds it, and none of the {n_files:,} files that were looked at"
    if n_closed:
        told += (
            f" ({n_closed:,} of them, such as PDF or Word files, cannot be searched as they are)"
        )
    if target.nearest is not None:
        place = target.nearest
        told += (
            f"; the most similar text is at {place.doc_id}:{place.line_start} "
            f"({target.similarity:.0%} alike)"
        )
    return told


def _files_of(folder: Path, report: FileReport) -> Iterator[Path]:
    """The file of a report; of a folder that was passed over, its files."""
    if folder.is_file():
        yield folder
        return
    path = folder / report.path
    if not path.is_dir():
        yield path
    elif path.resolve().is_relative_to(folder.resolve()):
        files = (Path(at) / name for at, _, names in os.walk(path) for name in sorted(names))
        yield from islice(files, MAX_FOLDER_FILES)


def _bytes_of(path: Path, most: int) -> bytes | None:
    """The file's bytes; None for what is no ordinary file, is too large or cannot be read."""
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size > most:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _holds(raw: bytes, pattern: re.Pattern[str]) -> bool:
    is_wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = raw.decode("utf-16" if is_wide else "utf-8", "replace")
    if pattern.search(text):
        return True
    # Letters that are not UTF-8, and text between tags.
    latin = "" if is_wide or "\ufffd" not in text else raw.decode("latin-1")
    plain = html.unescape(_TAG.sub(" ", text)) if "<" in text else ""
    return any(other and pattern.search(other) for other in (latin, plain))
