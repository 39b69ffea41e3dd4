"""The names people and other tools give to documents, and the ids they have here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import PurePosixPath

from rag_tui.engine.documents.parts import one_line
from rag_tui.engine.types import Document, FileReport

_RECORD = re.compile(r"(?s)(.*?\.(?:jsonl|ndjson|json))#(.+)", re.IGNORECASE)
_MAX_COMPARED = 3_000
"""Names that are searched for a similar one; beyond that it would take seconds."""


def record_name(doc_id: str) -> str:
    """A record's own id (``4711`` of ``corpus.jsonl#4711``); other ids stay as they are."""
    match = _RECORD.fullmatch(doc_id)
    return match[2] if match else doc_id


class DocumentNames:
    """Finds documents by the names that labels and runs use.

    Args:
        documents: By id.
        reports: What became of each file.
    """

    def __init__(self, documents: Mapping[str, Document], reports: Iterable[FileReport]) -> None:
        self._documents = documents
        self._reports = tuple(reports)
        self._near: dict[str, str] = {}

    def find(self, name: str) -> str | None:
        """The id of the document with this name, or None.

        Tried in turn: the id itself; a path written with backslashes or a leading ``./``; a
        record's own id, as BEIR and TREC files have it, or ``corpus.jsonl#id`` for a corpus file
        that lies in another folder. Of equal record ids the first in corpus order.
        """
        if name in self._documents:
            return name
        path = name.replace("\\", "/").removeprefix("./")
        if path in self._documents:
            return path
        found = self._by_record.get(one_line(record_name(name)))
        match = _RECORD.fullmatch(name)
        if found is None or match is None:
            return found
        # "faq.json#5" is not the record 5 of another file
        same_file = PurePosixPath(found.partition("#")[0]).name == PurePosixPath(match[1]).name
        return found if same_file else None

    def why_missing(self, name: str) -> str:
        """Why no document has this name, in words for a list of labels that were not found."""
        path = name.replace("\\", "/").removeprefix("./")
        report = self._report_of.get(name) or self._report_of.get(path)
        if report is None:
            record = one_line(record_name(name))
            report = self._report_of.get(f"corpus.jsonl#{record}")
        if report is not None and report.state in ("failed", "skipped"):
            verb = "could not be loaded" if report.state == "failed" else "was skipped"
            return f"the document {verb}: {report.reason}" if report.reason else f"it {verb}"
        near = self._nearest(path)
        return f"no such document; did you mean {near}?" if near else "no such document"

    def _nearest(self, path: str) -> str:
        if path not in self._near:
            self._near[path] = self._find_nearest(path)
        return self._near[path]

    def _find_nearest(self, path: str) -> str:
        name = PurePosixPath(path).name
        same_name = [d for d in self._documents if PurePosixPath(d).name == name]
        if same_name:
            return same_name[0]
        if len(self._documents) > _MAX_COMPARED:
            return ""
        return next(iter(get_close_matches(path, self._documents, n=1, cutoff=0.6)), "")

    @cached_property
    def _by_record(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for doc_id in self._documents:
            match = _RECORD.fullmatch(doc_id)
            if match:
                found.setdefault(match[2], doc_id)
        return found

    @cached_property
    def _report_of(self) -> dict[str, FileReport]:
        return {report.path: report for report in self._reports}
