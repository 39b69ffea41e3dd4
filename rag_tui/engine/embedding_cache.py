"""Vectors that were computed before, by model and text, in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

_BUSY_S = 30.0
_VARIABLES = 500
"""Keys in one question; SQLite limits how many."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    fingerprint TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (fingerprint, text_hash)
) WITHOUT ROWID
"""
_Result = TypeVar("_Result")


class EmbeddingCache:
    """Float32 vectors keyed by the embedder's fingerprint and `ids.text_hash` of the text.

    Several threads and several processes may use one file at once (write-ahead log, waiting up
    to 30 s for each other). It only saves time, so it never fails: a damaged file is renamed
    to ``….damaged-<time>`` and begun anew, and where nothing can be written nothing is kept;
    ``problem`` says so.

    Args:
        path: The file; made when it is first needed, with its folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._problem = ""

    @property
    def problem(self) -> str:
        """What went wrong last, in words; empty when all is well."""
        return self._problem

    def get_many(self, fingerprint: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The known vectors among these texts: hash to float32 ``(dimensions,)``.

        Hashes that are not known are absent.
        """

        def read(connection: sqlite3.Connection) -> dict[str, Vectors]:
            found: dict[str, Vectors] = {}
            for start in range(0, len(hashes), _VARIABLES):
                part = hashes[start : start + _VARIABLES]
                marks = ",".join("?" * len(part))
                rows = connection.execute(
                    "SELECT text_hash, vector FROM vectors "  # noqa: S608 - only marks go in
                    f"WHERE fingerprint = ? AND text_hash IN ({marks})",
                    (fingerprint, *part),
                )
                for text_hash, blob in rows:
                    if len(blob) % 4 == 0 and blob:
                        found[text_hash] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
            return found

        return self._use(read, {}) if hashes else {}

    def put_many(self, fingerprint: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep vectors: hash to ``(dimensions,)``. All of them or none are written."""

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                    [
                        (fingerprint, text_hash, np.asarray(vector, dtype="<f4").tobytes())
                        for text_hash, vector in vectors.items()
                    ],
                )

        if vectors:
            self._use(write, None)

    def _use(self, work: Callable[[sqlite3.Connection], _Result], otherwise: _Result) -> _Result:
        with self._lock:
            try:
                return self._connected(work)
            except sqlite3.OperationalError as error:  # locked for too long, disk full, read-only
                self._problem = f"{self._path}: {error}"
                return otherwise
            except OSError as error:
                self._problem = str(error)
                return otherwise
            except sqlite3.DatabaseError as error:
                return self._anew(work, otherwise, error)

    def _anew(
        self,
        work: Callable[[sqlite3.Connection], _Result],
        otherwise: _Result,
        error: sqlite3.DatabaseError,
    ) -> _Result:
        try:
            aside = self._set_aside()
            self._problem = f"{self._path} was damaged ({error}) and was set aside as {aside}"
            return self._connected(work)
        except (OSError, sqlite3.Error) as second:
            self._problem = f"{self._path}: {second}"
            return otherwise

    def _connected(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            return work(connection)

    def _set_aside(self) -> str:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        self._path.replace(aside)
        # Left behind, the log of the damaged file would be applied to the new one.
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        return aside.name
