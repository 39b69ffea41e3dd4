"""Which files of a folder are documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from rag_tui.engine.documents.formats import format_of_name
from rag_tui.engine.documents.ignoring import IgnoreRules, make_spec, outer_rules
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.errors import CorpusError
from rag_tui.engine.types import FileReport, FileState

_SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", "venv"})


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
    n_ignored: int = 0
    """Files and folders that ignore rules or globs leave out; each has a report too, but for
    files of unknown types."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    doc_id: str
    inode: tuple[int, int]
    is_link: bool


def find_files(folder: Path, *, settings: LoadSettings | None = None) -> FoundFiles:
    """The documents below a folder, or the one file that was named.

    Hidden entries and machine-made folders are left out and counted. Every real file is found
    once, by device and inode, at its own place rather than through a link. Links that lead out
    of the folder are reported, and followed only when the settings say so.

    Raises:
        CorpusError: When the folder does not exist or cannot be listed.
        UsageError: When a glob of the settings cannot be read.
    """
    settings = settings or LoadSettings()
    try:
        status = folder.stat()
    except OSError as error:
        raise CorpusError(
            f"cannot open {folder}: {error.strerror or error}",
            "Give a folder of documents, or one file.",
        ) from error
    if not S_ISDIR(status.st_mode):
        return _single_file(folder, status, settings)
    return _Walk(Path(os.path.realpath(folder)), settings).run(folder)


def _single_file(path: Path, status: os.stat_result, settings: LoadSettings) -> FoundFiles:
    """A file that was named is read whatever its suffix."""
    reason = "" if S_ISREG(status.st_mode) else "not a regular file"
    reason = reason or _too_large(status.st_size, settings)
    if reason:
        return FoundFiles((), (FileReport(path.name, "skipped", reason),))
    return FoundFiles((FoundFile(path, path.name),))


def _too_large(size: int, settings: LoadSettings) -> str:
    if size <= settings.max_bytes:
        return ""
    return f"larger than {settings.max_bytes / 1e6:g} MB ({size / 1e6:.1f} MB)"


class _Globs:
    """The settings' include and exclude lists, and the known types."""

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._include = make_spec(settings.include) if settings.include else None
        self._exclude = make_spec(settings.exclude)

    def excludes(self, doc_id: str, *, is_folder: bool) -> bool:
        return self._exclude.match_file(f"{doc_id}/" if is_folder else doc_id)

    def why_not(self, doc_id: str, size: int) -> str:
        if self._include is not None:
            if not self._include.match_file(doc_id):
                return "not among the included files"
        elif not format_of_name(doc_id):
            return f"not a supported type ({Path(doc_id).suffix or 'no suffix'})"
        return _too_large(size, self._settings)


class _Walk:
    """One walk: real folders first, linked ones after them."""

    def __init__(self, root: Path, settings: LoadSettings) -> None:
        self._root = root
        self._settings = settings
        self._globs = _Globs(settings)
        self._rules = outer_rules(root) if settings.gitignore else IgnoreRules()
        self._n_ignored = 0
        self._folders: set[tuple[int, int]] = set()
        self._entries: list[_Entry] = []
        self._links: list[tuple[Path, str, IgnoreRules]] = []
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
        self._walk(folder, "", self._rules, via_link=False)
        while self._links:
            path, doc_id, rules = self._links.pop(0)
            self._walk(path, f"{doc_id}/", rules, via_link=True)
        return FoundFiles(
            tuple(sorted(self._unique(), key=lambda file: file.doc_id)),
            tuple(sorted(self._reports, key=lambda report: report.path)),
            self._n_hidden,
            self._n_ignored,
        )

    def _walk(self, folder: Path, prefix: str, rules: IgnoreRules, *, via_link: bool) -> None:
        waiting = [(folder, prefix, rules)]
        while waiting:
            path, at, outer = waiting.pop()
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
            inner = outer.inside(path, at.rstrip("/")) if self._settings.gitignore else outer
            waiting.extend(
                (path / entry.name, f"{at}{entry.name}/", inner)
                for entry in reversed(entries)
                if self._is_folder(entry, f"{at}{entry.name}", path, inner, via_link=via_link)
            )

    def _is_folder(
        self,
        entry: os.DirEntry[str],
        doc_id: str,
        parent: Path,
        rules: IgnoreRules,
        *,
        via_link: bool,
    ) -> bool:
        """Sort one entry in; True for a folder to walk now."""
        is_hidden = entry.name.startswith(".") and not self._settings.hidden
        if is_hidden or entry.name in _SKIPPED_FOLDERS:
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
        is_folder = S_ISDIR(status.st_mode)
        if reason := self._why_ignored(doc_id, rules, is_folder=is_folder, is_link=is_link):
            self._n_ignored += 1
            if is_folder or format_of_name(doc_id):
                self._report(doc_id, "skipped", reason)
        elif is_link and self._leads_out(path):
            self._report(doc_id, "skipped", "a link that leads out of the folder")
        elif is_folder:
            if not is_link:
                return True
            self._links.append((path, doc_id, rules))
        elif not S_ISREG(status.st_mode):
            self._report(doc_id, "skipped", "not a regular file")
        elif reason := self._globs.why_not(doc_id, status.st_size):
            self._report(doc_id, "skipped", reason)
        else:
            inode = (status.st_dev, status.st_ino)
            self._entries.append(_Entry(path, doc_id, inode, is_link or via_link))
        return False

    def _why_ignored(
        self, doc_id: str, rules: IgnoreRules, *, is_folder: bool, is_link: bool
    ) -> str:
        if self._globs.excludes(doc_id, is_folder=is_folder):
            return "excluded by the settings"
        # to git a link is a file, even one that leads to a folder
        if rules.ignores(doc_id, is_folder=is_folder and not is_link):
            return "ignored by .gitignore"
        return ""

    def _leads_out(self, path: Path) -> bool:
        if self._settings.outside_links:
            return False
        return not Path(os.path.realpath(path)).is_relative_to(self._root)

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
