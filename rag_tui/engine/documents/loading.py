"""Files become documents, each with a report; one bad file never stops the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from rag_tui.engine.documents.front_matter import FrontMatter, read_front_matter
from rag_tui.engine.documents.markdown import outline
from rag_tui.engine.documents.text import DecodedText, UnusableFileError, decode
from rag_tui.engine.documents.walk import MARKDOWN_SUFFIXES, find_files
from rag_tui.engine.events import CancelToken
from rag_tui.engine.types import Document, FileReport, Heading


def load_folder(
    folder: Path,
    *,
    cancel: CancelToken | None = None,
    known: Mapping[str, Document] = MappingProxyType({}),
) -> Iterator[tuple[Document | None, FileReport]]:
    """Every file that was looked at, with its document if it has one, ascending by path.

    Args:
        folder: A folder, or one file.
        cancel: Polled between files.
        known: Documents by id as they were loaded before; one whose bytes are the same is given
            back as it is, which saves parsing it.

    Raises:
        CorpusError: When the folder does not exist or cannot be listed.
        Cancelled: Before the next file after the token was set.
    """
    found = find_files(folder)
    steps: list[tuple[str, Path | FileReport]] = [(r.path, r) for r in found.reports]
    steps += [(file.doc_id, file.path) for file in found.files]
    for doc_id, step in sorted(steps, key=lambda item: item[0]):
        if cancel is not None:
            cancel.check()
        if isinstance(step, FileReport):
            yield None, step
        else:
            yield load_file(step, doc_id=doc_id, known=known.get(doc_id))


def load_file(
    path: Path, *, doc_id: str, known: Document | None = None
) -> tuple[Document | None, FileReport]:
    """One file's document, or None, and its report; raises nothing for a file that is unusable.

    The report's ``n_chunks`` is left at 0: the document is not cut yet.
    """
    try:
        document, is_exact = _load(path, doc_id, known)
    except UnusableFileError as error:
        return None, FileReport(doc_id, error.state, error.message)
    remarks = list(document.warnings)
    if not document.text[document.body_start :].strip():
        remarks.append("metadata only: no text after the front matter")
    return document, FileReport(doc_id, "indexed" if is_exact else "partly", "; ".join(remarks))


def load_document(path: Path, *, doc_id: str) -> Document:
    """One file as a document.

    Raises:
        UnusableFileError: When it cannot be read, is not text or is blank; ``state`` tells
            whether it failed or is skipped.
    """
    return _load(path, doc_id, None)[0]


def _load(path: Path, doc_id: str, known: Document | None) -> tuple[Document, bool]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnusableFileError(f"cannot be read: {reason}", state="failed") from error
    if not raw:
        raise UnusableFileError("empty file", state="skipped")
    decoded = decode(raw)
    if not decoded.text.strip():
        raise UnusableFileError("empty file: only blank space", state="skipped")
    digest = sha256(raw).hexdigest()
    if known is not None and known.sha256 == digest:
        return known, decoded.is_exact
    document = Document(
        doc_id=doc_id,
        title=path.name,
        text=decoded.text,
        sha256=digest,
        warnings=decoded.notes,
    )
    if path.suffix.lower() in MARKDOWN_SUFFIXES:
        document = _with_structure(document, decoded)
    return document, decoded.is_exact


def _with_structure(document: Document, decoded: DecodedText) -> Document:
    front = read_front_matter(decoded.text)
    headings = outline(decoded.text, start=front.body_start)
    return replace(
        document,
        title=_title(headings, front) or document.title,
        headings=headings,
        body_start=front.body_start,
        metadata=MappingProxyType(dict(front.metadata)),
        warnings=(*document.warnings, *((front.warning,) if front.warning else ())),
    )


def _title(headings: tuple[Heading, ...], front: FrontMatter) -> str:
    first = next((h.title for h in headings if h.level == 1 and h.title), "")
    return first or " ".join(front.metadata.get("title", "").split())
