"""Which files of a folder are documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from rag_tui.engine.errors import CorpusError
from rag_tui.engine.types import FileReport, FileState

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
SUFFIXES = MARKDOWN_SUFFIXES | {".txt"}
MAX_BYTES = 50_000_000
"""Larger files are skipped: they are data rather than documents."""

_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv"})


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to load."""

    path: Path
    doc_id: str
    """Path relative to the folder, with ``/``."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What a folder holds, each file once."""

    files: tuple[FoundFile, ...]
    """Files to load, ascending by ``doc_id``."""
    reports: tuple[FileReport, ...] = ()
    """Files and folders that are passed over and why, ascending by path."""
    n_hidden: int = 0
    """Hidden and machine-made entries (``.git``, ``node_modules``) that were not looked into."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    doc_id: str
    inode: tuple[int, int]
    is_link: bool


def find_files(folder: Path) -> FoundFiles:
    """The documents below a folder, or the one file that was named.

    Hidden entries and machine-made folders are left out and counted. Every real file is found
    once, by device and inode, at its own place rather than through a link. Links that lead out
    of the folder are not followed; they are reported.

    Raises:
        CorpusError: When the folder does not exist or cannot be listed.
    """
    try:
        status = folder.stat()
    except OSError as error:
        raise CorpusError(
            f"cannot open {folder}: {error.strerror or error}",
            "Give a folder of Markdown or text files.",
        ) from error
    if not S_ISDIR(status.st_mode):
        return _single_file(folder, status)
    return _Walk(Path(os.path.realpath(folder))).run(folder)


def _single_file(path: Path, status: os.stat_result) -> FoundFiles:
    reason = "" if S_ISREG(status.st_mode) else "not a regular file"
    reason = reason or _why_not(path.name, status.st_size)
    if reason:
        return FoundFiles((), (FileReport(path.name, "skipped", reason),))
    return FoundFiles((FoundFile(path, path.name),))


def _why_not(name: str, size: int) -> str:
    suffix = Path(name).suffix
    if suffix.lower() not in SUFFIXES:
        return f"not a supported type ({suffix or 'no suffix'})"
    if size > MAX_BYTES:
        return f"larger than {MAX_BYTES // 1_000_000} MB ({size / 1_000_000:.1f} MB)"
    return ""


class _Walk:
    """One walk: real folders first, linked ones after them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: set[tuple[int, int]] = set()
        self._entries: list[_Entry] = []
        self._links: list[tuple[Path, str]] = []
        self._reports: list[FileReport] = []
        self._n_hidden = 0

    def run(self, folder: Path) -> FoundFiles:
        try:
            with os.scandir(folder):
                pass
        except OSError as error:
            raise CorpusError(
                f"cannot list {folder}: {error.strerror or error}",
                "Check the folder's permissions.",
            ) from error
        self._walk(folder, "", via_link=False)
        while self._links:
            path, doc_id = self._links.pop(0)
            self._walk(path, f"{doc_id}/", via_link=True)
        return FoundFiles(
            tuple(sorted(self._unique(), key=lambda file: file.doc_id)),
            tuple(sorted(self._reports, key=lambda report: report.path)),
            self._n_hidden,
        )

    def _walk(self, folder: Path, prefix: str, *, via_link: bool) -> None:
        waiting = [(folder, prefix)]
        while waiting:
            path, at = waiting.pop()
            try:
                status = path.stat()
                with os.scandir(path) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                self._report(at.rstrip("/"), "failed", error.strerror or str(error))
                continue
            inode = (status.st_dev, status.st_ino)
            if inode in self._folders:
                self._report(at.rstrip("/"), "skipped", "a link to a folder that is read already")
                continue
            self._folders.add(inode)
            waiting.extend(
                (path / entry.name, f"{at}{entry.name}/")
                for entry in reversed(entries)
                if self._is_folder(entry, f"{at}{entry.name}", path, via_link=via_link)
            )

    def _is_folder(
        self, entry: os.DirEntry[str], doc_id: str, parent: Path, *, via_link: bool
    ) -> bool:
        """Sort one entry in; True for a folder to walk now."""
        if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS:
            self._n_hidden += 1
            return False
        path = parent / entry.name
        try:
            is_link = entry.is_symlink()
            status = path.stat()
        except OSError as error:
            reason = "a link that leads nowhere" if entry.is_symlink() else error.strerror
            self._report(doc_id, "failed", reason or str(error))
            return False
        if is_link and not Path(os.path.realpath(path)).is_relative_to(self._root):
            self._report(doc_id, "skipped", "a link that leads out of the folder")
        elif S_ISDIR(status.st_mode):
            if not is_link:
                return True
            self._links.append((path, doc_id))
        elif not S_ISREG(status.st_mode):
            self._report(doc_id, "skipped", "not a regular file")
        elif reason := _why_not(entry.name, status.st_size):
            self._report(doc_id, "skipped", reason)
        else:
            inode = (status.st_dev, status.st_ino)
            self._entries.append(_Entry(path, doc_id, inode, is_link or via_link))
        return False

    def _unique(self) -> Iterator[FoundFile]:
        first_of: dict[tuple[int, int], str] = {}
        for entry in sorted(self._entries, key=lambda e: (e.is_link, e.doc_id)):
            known = first_of.setdefault(entry.inode, entry.doc_id)
            if known == entry.doc_id:
                yield FoundFile(entry.path, entry.doc_id)
            else:
                self._report(entry.doc_id, "skipped", f"the same file as {known}")

    def _report(self, path: str, state: FileState, reason: str) -> None:
        self._reports.append(FileReport(path, state, reason))
