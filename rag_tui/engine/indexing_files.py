"""Reading a corpus and finding out what has changed since the last index, by content hash."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rag_tui.engine.documents.loading import load_folder
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.errors import CorpusError, MissingCorpusError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.types import Document, FileReport

_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Reading:
    """A corpus as it is on disk now, compared with an index."""

    documents: tuple[Document, ...]
    """By path."""
    reports: tuple[FileReport, ...]
    """One per file looked at, by path."""
    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]


def read_folder(
    folder: Path,
    old: Index | None,
    *,
    cancel: CancelToken,
    loading: LoadSettings | None = None,
    reuse: bool = True,
) -> Iterator[Progress | Reading]:
    """Read every file; the last item is the reading.

    Raises:
        CorpusError: When the folder does not exist or cannot be listed.
        Cancelled: Soon after the token was set.
    """
    check_folder(folder)
    documents: list[Document] = []
    reports: list[FileReport] = []
    known = dict(old.document_of) if old is not None else {}
    yield Progress("scan", note=str(folder))
    tick = time.monotonic()
    for document, report in load_folder(
        folder, settings=loading, cancel=cancel, known=known if reuse else {}
    ):
        reports.append(report)
        if document is not None:
            documents.append(document)
        if time.monotonic() - tick > _TICK_S:
            tick = time.monotonic()
            yield Progress("read", len(reports), 0, report.path)
    documents.sort(key=lambda d: d.doc_id)
    reports.sort(key=lambda r: r.path)
    now = {document.doc_id: document for document in documents}
    yield Reading(
        documents=tuple(documents),
        reports=tuple(reports),
        added=tuple(doc_id for doc_id in now if doc_id not in known),
        changed=tuple(
            doc_id
            for doc_id, document in now.items()
            if doc_id in known and known[doc_id].sha256 != document.sha256
        ),
        deleted=tuple(doc_id for doc_id in known if doc_id not in now),
    )


def check_folder(folder: Path) -> None:
    """Refuse a corpus that is not there.

    Raises:
        CorpusError: Naming the path and what to do.
    """
    try:
        if not folder.exists():
            raise MissingCorpusError(
                f"{folder} does not exist.",
                "Name an existing folder, or leave it out to open the demo corpus.",
            )
        if folder.is_dir():
            next(folder.iterdir(), None)
    except PermissionError as error:
        raise CorpusError(
            f"{folder} may not be read: {error.strerror}.",
            "Give yourself read and execute permission for it, or name another folder.",
        ) from error
    except OSError as error:
        raise CorpusError(
            f"{folder} cannot be opened: {error.strerror or error}.", "Name another folder."
        ) from error
