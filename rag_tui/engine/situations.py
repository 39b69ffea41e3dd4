"""Situations: what a model wrote about the place of a chunk in its document, kept on disk.

They cost money, so nothing here ever deletes one, and each is on disk before the next is asked for.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.ids import fingerprint, text_hash
from rag_tui.engine.types import Chunk, Document

PROMPT_VERSION = 1
"""Of the request that asks for a situation; another version's situations are not used."""

SITUATION_TOKENS = 100
"""How long a situation is asked to be at most."""

_BUSY_S = 30.0
_VARIABLES = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS situations (
    model TEXT NOT NULL,
    document_hash TEXT NOT NULL,
    chunk_hash TEXT NOT NULL,
    prompt_version INTEGER NOT NULL,
    situation TEXT NOT NULL,
    written_ns INTEGER NOT NULL,
    PRIMARY KEY (model, document_hash, chunk_hash, prompt_version)
) WITHOUT ROWID
"""
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Situations:
    """What is known about the chunks of some documents."""

    by_document: Mapping[str, Mapping[str, str]]
    """Hash of a document's text to chunk hash to situation."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever a situation is added, lost or written anew; empty for none."""
        if not self.by_document:
            return ""
        return fingerprint({key: dict(value) for key, value in self.by_document.items()})

    def apply(self, document: Document, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """The document's chunks, each with its situation; an empty one where there is none."""
        known = self.by_document.get(text_hash(document.text), {}) if self.by_document else {}
        if not known and not any(chunk.situation for chunk in chunks):
            return tuple(chunks)
        return tuple(replace(c, situation=known.get(chunk_hash(c), "")) for c in chunks)


class SituationStore:
    """Situations in one SQLite file, by model, document text, chunk and prompt version.

    Several processes may use one file at once (write-ahead log).

    Args:
        path: The file; made with its folder when something is first written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def in_cache(cls, cache_dir: Path) -> SituationStore:
        """The store of a cache folder."""
        return cls(cache_dir / "situations.sqlite")

    def put(self, model: str, document: Document, chunk: Chunk, situation: str) -> None:
        """Keep one situation; it is on disk when this returns.

        Raises:
            RagTuiError: When it cannot be written.
        """
        key = (model, text_hash(document.text), chunk_hash(chunk), PROMPT_VERSION)

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute(
                    "INSERT OR REPLACE INTO situations VALUES (?, ?, ?, ?, ?, ?)",
                    (*key, situation, time.time_ns()),
                )

        self._use(write)

    def of(self, documents: Iterable[Document], *, model: str | None = None) -> Situations:
        """What is known about these documents as their text is now.

        Args:
            documents: Any documents.
            model: Only what this model wrote; None: of each chunk what was written last.

        Raises:
            RagTuiError: When the file cannot be read.
        """
        if not self._path.exists():
            return Situations({})
        hashes = sorted({text_hash(document.text) for document in documents})

        def read(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
            found: dict[str, dict[str, str]] = {}
            for start in range(0, len(hashes), _VARIABLES):
                part = hashes[start : start + _VARIABLES]
                marks = ",".join("?" * len(part))
                rows = connection.execute(
                    "SELECT document_hash, chunk_hash, situation FROM situations "  # noqa: S608
                    f"WHERE document_hash IN ({marks}) AND prompt_version = ? "
                    "AND (? IS NULL OR model = ?) ORDER BY written_ns, model",
                    (*part, PROMPT_VERSION, model, model),
                )
                for document_hash, chunk, situation in rows:
                    found.setdefault(document_hash, {})[chunk] = situation
            return found

        return Situations(self._use(read))

    def _use(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(_SCHEMA)
                return work(connection)
        except (sqlite3.Error, OSError) as error:
            raise RagTuiError(
                f"The situations in {self._path} cannot be used: {error}.",
                "Mend or move that file, or set chunking.situations to false.",
            ) from error


def situations_of(
    documents: Iterable[Document], chunking: ChunkingSettings, cache_dir: Path
) -> Situations:
    """What has been written for these documents, or nothing where situations are off."""
    if not chunking.situations:
        return Situations({})
    return SituationStore.in_cache(cache_dir).of(documents)


def leave_room(chunking: ChunkingSettings, limit: int | None) -> ChunkingSettings:
    """Settings under which a chunk and its situation together are no longer than was asked for.

    Only sizes in tokens can promise that; others, and all where situations are off, stay.
    """
    if not chunking.situations or chunking.unit != "tokens":
        return chunking
    size = min(chunking.size, limit or chunking.size) - SITUATION_TOKENS
    return replace(chunking, size=max(size, chunking.overlap + 1))


def apply_situations(
    documents: Iterable[Document], chunks: Sequence[Chunk], store: SituationStore
) -> tuple[Chunk, ...]:
    """The chunks in the same order, each with the situation that was written last for it.

    Raises:
        RagTuiError: When the store cannot be read.
    """
    by_id = {document.doc_id: document for document in documents}
    known = store.of(by_id.values())
    of_document = {key: known.by_document.get(text_hash(d.text), {}) for key, d in by_id.items()}
    return tuple(
        replace(c, situation=of_document.get(c.doc_id, {}).get(chunk_hash(c), "")) for c in chunks
    )


def chunk_hash(chunk: Chunk) -> str:
    """Of all that a model is shown of a chunk: its headings, prefix and text."""
    return text_hash("\0".join((chunk.context, chunk.prefix, chunk.text)))
