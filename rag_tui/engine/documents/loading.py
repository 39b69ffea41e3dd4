"""Files become documents, each with a report; one bad file never stops the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from rag_tui.engine.documents.beir import is_evaluation_file
from rag_tui.engine.documents.front_matter import FrontMatter, read_front_matter
from rag_tui.engine.documents.isolation import Converters
from rag_tui.engine.documents.loaders import read_records, read_text
from rag_tui.engine.documents.markdown import structure
from rag_tui.engine.documents.parts import Loaded, UnusableFileError, one_line
from rag_tui.engine.documents.records import Record, Records
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.documents.walk import find_files
from rag_tui.engine.errors import Cancelled, CorpusError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.types import Document, FileReport, FileState, Heading

Entry = tuple[Document | None, FileReport]
"""A document if there is one, and what became of the file or record."""

_NOTHING: Mapping[str, Document] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _File:
    """One file's bytes and what they are known as."""

    doc_id: str
    raw: bytes
    modified: float = 0.0


def load_folder(
    folder: Path,
    *,
    settings: LoadSettings | None = None,
    cancel: CancelToken | None = None,
    known: Mapping[str, Document] = _NOTHING,
) -> Iterator[Entry]:
    """Every file that was looked at, with its document if it has one, ascending by path.

    A file of records whose settings make each record a document, and the corpus file of a BEIR
    data set, give one entry for each record, ``path#id``, in the order of the file.

    Args:
        folder: A folder, or one file.
        settings: What is read, and how.
        cancel: Polled between files, and while a file is converted.
        known: Documents by id as they were loaded before, with the same settings; one whose bytes
            are the same is not parsed again.

    Raises:
        CorpusError: When the folder does not exist or cannot be listed.
        UsageError: When a glob of the settings cannot be read.
        Cancelled: Soon after the token was set.
    """
    settings = settings or LoadSettings()
    found = find_files(folder, settings=settings)
    steps: list[tuple[str, Path | FileReport]] = [(r.path, r) for r in found.reports]
    steps += [(file.doc_id, file.path) for file in found.files]
    names = frozenset(file.doc_id for file in found.files)
    with Converters(timeout_s=settings.timeout_s) as converters:
        loader = _Loader(settings, converters, cancel, known)
        for doc_id, step in sorted(steps, key=lambda item: item[0]):
            if cancel is not None:
                cancel.check()
            if isinstance(step, FileReport):
                yield None, step
            elif is_evaluation_file(doc_id, names):
                reason = "questions, labels or settings, not documents"
                yield None, FileReport(doc_id, "skipped", reason)
            else:
                yield from loader.entries_of(step, doc_id)


def load_file(
    path: Path,
    *,
    doc_id: str,
    settings: LoadSettings | None = None,
    known: Document | None = None,
) -> Entry:
    """One file's document, or None, and its report; raises nothing for a file that is unusable.

    The report's ``n_chunks`` is left at 0: the document is not cut yet. Records are pages here,
    whatever the settings say.
    """
    settings = settings or LoadSettings()
    with Converters(timeout_s=settings.timeout_s) as converters:
        known_now = {doc_id: known} if known is not None else {}
        return _Loader(settings, converters, None, known_now).entry_of_path(path, doc_id)


def load_document(path: Path, *, doc_id: str, settings: LoadSettings | None = None) -> Document:
    """One file as a document.

    Raises:
        UnusableFileError: When it cannot be read, is not text or is blank; ``state`` tells
            whether it failed or is skipped.
    """
    document, report = load_file(path, doc_id=doc_id, settings=settings)
    if document is None:
        raise UnusableFileError(report.reason, state=report.state)
    return document


def load_stream(raw: bytes, name: str, *, settings: LoadSettings | None = None) -> Entry:
    """What came through a pipe as one document; the name's suffix says what it is.

    Raises nothing for content that is unusable: the report says why.
    """
    settings = settings or LoadSettings()
    with Converters(timeout_s=settings.timeout_s) as converters:
        return _Loader(settings, converters, None, _NOTHING).entry_of(_File(name, raw))


class _Loader:
    def __init__(
        self,
        settings: LoadSettings,
        converters: Converters,
        cancel: CancelToken | None,
        known: Mapping[str, Document],
    ) -> None:
        self._settings = settings
        self._converters = converters
        self._cancel = cancel
        self._known = known

    def entries_of(self, path: Path, doc_id: str) -> Iterator[Entry]:
        """One entry, or one for each record."""
        try:
            file = _read(path, doc_id)
            records = read_records(file.raw, doc_id, self._settings)
        except Exception as error:
            yield _refused(doc_id, error)
            return
        if records is None:
            yield self.entry_of(file)
        else:
            yield from self._entries_of_records(file, records)

    def entry_of_path(self, path: Path, doc_id: str) -> Entry:
        try:
            file = _read(path, doc_id)
        except Exception as error:
            return _refused(doc_id, error)
        return self.entry_of(file)

    def entry_of(self, file: _File) -> Entry:
        try:
            document = self._document(file)
        except Cancelled:
            raise
        except Exception as error:
            return _refused(file.doc_id, error)
        return document, _report(document)

    def _document(self, file: _File) -> Document:
        if not file.raw:
            raise UnusableFileError("empty file", state="skipped")
        digest = sha256(file.raw).hexdigest()
        known = self._known.get(file.doc_id)
        if known is not None and known.sha256 == digest:
            same = known.modified == file.modified
            return known if same else replace(known, modified=file.modified)
        loaded = read_text(
            file.raw, file.doc_id, self._settings, self._converters, cancel=self._cancel
        )
        if not loaded.text.strip():
            reason = (
                "only blank space" if loaded.format in ("text", "markdown") else "no text in it"
            )
            raise UnusableFileError(f"empty file: {reason}", state="skipped")
        document = Document(
            doc_id=file.doc_id,
            title=loaded.title or Path(file.doc_id).name,
            text=loaded.text,
            sha256=digest,
            headings=loaded.headings,
            metadata=MappingProxyType(dict(loaded.metadata)),
            warnings=loaded.notes,
            format=loaded.format,
            pages=loaded.pages,
            modified=file.modified,
            is_partial=loaded.is_partial,
        )
        return _with_structure(document, loaded) if loaded.is_markdown else document

    def _entries_of_records(self, file: _File, found: Records) -> Iterator[Entry]:
        for note in found.notes:
            yield None, FileReport(file.doc_id, "partly", note)
        seen: set[str] = set()
        for record in found.records:
            if self._cancel is not None:
                self._cancel.check()
            name = one_line(record.record_id) or str(record.number)
            doc_id = f"{file.doc_id}#{name}"
            if doc_id in seen:
                doc_id = f"{doc_id}~{record.number}"
            seen.add(doc_id)
            if not record.text.strip():
                yield None, FileReport(doc_id, "skipped", "a record without text")
                continue
            document = self._record_document(doc_id, record, file)
            yield document, _report(document)

    def _record_document(self, doc_id: str, record: Record, file: _File) -> Document:
        digest = sha256(record.source.encode("utf-8", "surrogatepass")).hexdigest()
        known = self._known.get(doc_id)
        if known is not None and known.sha256 == digest:
            return known
        return Document(
            doc_id=doc_id,
            title=one_line(record.title) or doc_id.rpartition("#")[2],
            text=record.text,
            sha256=digest,
            metadata=MappingProxyType(dict(record.metadata)),
            format="record",
            modified=file.modified,
        )


def _read(path: Path, doc_id: str) -> _File:
    try:
        return _File(doc_id, path.read_bytes(), path.stat().st_mtime)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnusableFileError(f"cannot be read: {reason}", state="failed") from error


def _refused(doc_id: str, error: Exception) -> Entry:
    if isinstance(error, UnusableFileError):
        return None, FileReport(doc_id, error.state, error.message)
    if isinstance(error, CorpusError):
        return None, FileReport(doc_id, "failed", error.message)
    return None, FileReport(doc_id, "failed", one_line(f"{type(error).__name__}: {error}")[:300])


def _report(document: Document) -> FileReport:
    remarks = [one_line(warning) for warning in document.warnings]
    if not document.text[document.body_start :].strip():
        remarks.append("metadata only: no text after the front matter")
    state: FileState = "partly" if document.is_partial else "indexed"
    return FileReport(document.doc_id, state, "; ".join(remarks))


def _with_structure(document: Document, loaded: Loaded) -> Document:
    """Outline, blocks and, for Markdown as people write it, front matter."""
    is_source = loaded.format == "markdown"
    front = read_front_matter(document.text) if is_source else FrontMatter()
    found = structure(document.text, start=front.body_start)
    headings = tuple(replace(h, title=one_line(h.title)) for h in found.headings)
    return replace(
        document,
        title=loaded.title or _title(headings, front, is_source=is_source) or document.title,
        headings=headings,
        blocks=found.blocks,
        body_start=front.body_start,
        metadata=MappingProxyType({**loaded.metadata, **front.metadata}),
        warnings=(*document.warnings, *((front.warning,) if front.warning else ())),
    )


def _title(headings: tuple[Heading, ...], front: FrontMatter, *, is_source: bool) -> str:
    """The first level-1 heading; of a converted file only if it is the one such heading."""
    first, *others = [h.title for h in headings if h.level == 1 and h.title] or [""]
    if others and not is_source:
        return ""
    return first or one_line(front.metadata.get("title", ""))
