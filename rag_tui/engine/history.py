"""The private file that finished searches are appended to, one a line."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rag_tui.engine.errors import CorpusError
from rag_tui.engine.evaluation.fingerprints import index_fingerprint
from rag_tui.engine.events import StageResult
from rag_tui.engine.history_compare import ColumnChange, EntryComparison, compare_entries
from rag_tui.engine.history_entries import (
    HistoryColumn,
    HistoryEntry,
    HistoryRow,
    entry_as_json,
    entry_from_json,
    make_entry,
)
from rag_tui.engine.stores.local import index_dir
from rag_tui.engine.types import SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

__all__ = [
    "ColumnChange",
    "EntryComparison",
    "History",
    "HistoryColumn",
    "HistoryEntry",
    "HistoryRow",
    "SearchLog",
    "append_entry",
    "clear_history",
    "compare_entries",
    "entry_as_json",
    "export_history",
    "history_file",
    "read_history",
]

MAX_BYTES = 20_000_000
"""A larger file is cut to its newest half."""

_LOCK_S = 2.0
_log = logging.getLogger("rag_tui.history")


@dataclass(frozen=True, slots=True)
class History:
    """What a file of searches holds."""

    entries: tuple[HistoryEntry, ...]
    """Oldest first."""
    n_damaged: int = 0
    """Lines that could not be read: torn by a crash, or of another version."""


def history_file(cache_dir: Path, folder: Path) -> Path:
    """Where the searches of a corpus are kept, whether there are any or not."""
    return cache_dir / "history" / f"{index_dir(cache_dir, folder).name}.jsonl"


class SearchLog:
    """Appends finished searches; a failure is told once and never breaks a search.

    Args:
        cache_dir: Under which the files lie.
        is_enabled: Whether anything is kept; the setting ``history.enabled``.
        now: The time in UTC; tests give their own.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        is_enabled: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cache_dir = cache_dir
        self._is_enabled = is_enabled
        self._now = now
        self._has_failed = False
        # Hashing all texts of a large index takes longer than a search in it.
        self._fingerprints: WeakKeyDictionary[Index, str] = WeakKeyDictionary()

    def record(self, request: SearchRequest, index: Index, results: Iterable[StageResult]) -> str:
        """Keep a finished search; the note is empty but for the first failure."""
        if not self._is_enabled:
            return ""
        try:
            if index not in self._fingerprints:
                self._fingerprints[index] = index_fingerprint(index)
            entry = make_entry(
                request,
                index,
                results,
                time=self._now(),
                index_fingerprint=self._fingerprints[index],
            )
            append_entry(history_file(self._cache_dir, index.folder), entry)
        except Exception as error:  # a search that was made must not be lost for its log
            _log.warning("the search was not kept", exc_info=True)
            if self._has_failed:
                return ""
            self._has_failed = True
            reason = error.strerror if isinstance(error, OSError) else None
            return f"searches are not kept: {reason or type(error).__name__}"
        return ""


def append_entry(path: Path, entry: HistoryEntry, *, max_bytes: int = MAX_BYTES) -> None:
    """Add one search to a file that only its owner may read; the file and its folder are made.

    A line is written at once, behind a lock, so those of two processes never mix; a line that a
    crash has torn is closed off first.

    Raises:
        OSError: When it cannot be written.
        filelock.Timeout: When another process holds the lock for too long.
    """
    line = json.dumps(entry_as_json(entry), ensure_ascii=True, separators=(",", ":"))
    with _locked(path):
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{_missing_end(handle)}{line}\n".encode("ascii"))
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size > max_bytes:
            _keep_newest(path, max_bytes // 2)


def read_history(path: Path) -> History:
    """All searches of a file; none when there is no file.

    Raises:
        CorpusError: When the file cannot be read.
    """
    entries: list[HistoryEntry] = []
    n_damaged = 0
    try:
        with path.open(encoding="ascii", errors="replace") as lines:
            for line in lines:
                if not line.strip():
                    continue
                try:
                    entries.append(entry_from_json(json.loads(line)))
                except (ValueError, RecursionError):
                    n_damaged += 1
    except FileNotFoundError:
        return History(())
    except OSError as error:
        raise _unreadable(path, error) from error
    return History(tuple(entries), n_damaged)


def export_history(path: Path, target: Path) -> int:
    """Copy the readable searches of a file to another one, JSON Lines; how many there are.

    Raises:
        CorpusError: When there is nothing to copy, or one of the files cannot be used.
    """
    entries = read_history(path).entries
    if not entries:
        raise CorpusError("There are no searches to export.", "Search for something first.")
    lines = (json.dumps(entry_as_json(entry), ensure_ascii=False) for entry in entries)
    text = "".join(f"{line}\n" for line in lines)
    try:
        target.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise CorpusError(
            f"{target} cannot be written: {error.strerror}.", "Choose another place."
        ) from error
    return len(entries)


def clear_history(path: Path) -> None:
    """Remove the searches of a corpus.

    Raises:
        CorpusError: When the file cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _unreadable(path, error) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    import filelock

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with filelock.FileLock(path.with_suffix(".lock"), timeout=_LOCK_S, mode=0o600):
        yield


def _missing_end(handle: int) -> str:
    """A line end, when the last line lacks it."""
    size = os.fstat(handle).st_size
    if not size:
        return ""
    os.lseek(handle, size - 1, os.SEEK_SET)
    return "" if os.read(handle, 1) == b"\n" else "\n"


def _keep_newest(path: Path, n_bytes: int) -> None:
    """Cut a file to about its last bytes, whole lines, at once; under the lock."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".history-")
    try:
        with os.fdopen(handle, "wb") as new, path.open("rb") as old:
            old.seek(-min(n_bytes, path.stat().st_size), os.SEEK_END)
            old.readline()
            shutil.copyfileobj(old, new)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _unreadable(path: Path, error: OSError) -> CorpusError:
    return CorpusError(f"{path} cannot be used: {error.strerror}.", "Check the file's rights.")
