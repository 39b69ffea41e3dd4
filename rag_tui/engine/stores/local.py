"""An index as files: one folder per generation, and a pointer that is swapped atomically.

Layout of an index folder::

    CURRENT            name of the generation in use, replaced by ``os.replace``
    <generation>/      documents.json chunks.json reports.json vocabulary.json *.npy
                       manifest.json, written last: a generation without it does not exist

A reader follows CURRENT once and keeps its files open; a writer makes a new generation, swaps
the pointer and then removes the old ones. A crash at any moment leaves the old index in use.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import numpy as np

from rag_tui.engine.errors import BadIndexError
from rag_tui.engine.ids import text_hash
from rag_tui.engine.index import Index, Manifest
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.types import Block, Chunk, Document, FileReport, Heading, Page

FORMAT = 4
_DIGEST_LIMIT = 64 * 2**20
"""Larger files (vectors of big corpora) are checked by size only, so that they can stay mapped."""
_STALE_TMP_S = 3600.0


def index_dir(cache_dir: Path, folder: Path) -> Path:
    """Where the index of a folder lives: a readable name and a hash of the full path."""
    resolved = str(folder.resolve())
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name)[:40].strip("-.") or "root"
    return cache_dir / "indexes" / f"{slug}-{text_hash(resolved)[:12]}"


def save(index: Index, directory: Path) -> None:
    """Write an index as the folder's new current generation.

    Raises:
        BadIndexError: When the folder cannot be written; the old index stays in use.
    """
    name = f"g{time.time_ns():x}-{os.getpid()}"
    final = directory / name
    tmp = directory / f".tmp-{name}"
    try:
        tmp.mkdir(parents=True)
        _write_files(index, tmp)
        tmp.replace(final)
        pointer = directory / f".CURRENT-{name}"
        pointer.write_text(name, encoding="utf-8")
        pointer.replace(directory / "CURRENT")
    except OSError as error:
        shutil.rmtree(tmp, ignore_errors=True)
        raise BadIndexError(
            f"The index could not be written to {directory}: {error.strerror or error}.",
            "Free some space, or set RAG_TUI_CACHE_DIR to a folder that can be written.",
        ) from error
    _remove_others(directory, keep=name)


def load(directory: Path, folder: Path) -> Index | None:
    """The current generation, or None when there is none.

    Raises:
        BadIndexError: When it is damaged or was written in another format.
    """
    name = _current(directory)
    while name is not None:
        try:
            return _read_files(directory / name, folder)
        except (BadIndexError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            # another process may have swapped the generation while it was being read
            newer = _current(directory)
            if newer == name:
                if isinstance(error, BadIndexError):
                    raise
                raise _damaged(directory, f"{type(error).__name__}: {error}") from error
            name = newer
    return None


def _current(directory: Path) -> str | None:
    try:
        name = (directory / "CURRENT").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(directory, f"CURRENT cannot be read: {error}") from error
    if not re.fullmatch(r"g[0-9a-f]+-\d+", name):
        raise _damaged(directory, f"CURRENT names {name[:60]!r}")
    return name


def _damaged(directory: Path, reason: str) -> BadIndexError:
    return BadIndexError(
        f"The index in {directory} is damaged ({reason}).",
        "It is rebuilt from the files and the embedding cache; `rag-tui index FOLDER` does that.",
    )


def _write_files(index: Index, folder: Path) -> None:
    _dump(folder / "documents.json", [_document_out(d) for d in index.documents])
    doc_number = {d.doc_id: i for i, d in enumerate(index.documents)}
    paths: dict[tuple[str, ...], int] = {}
    rows = [
        (
            c.chunk_id, doc_number[c.doc_id], c.ordinal, c.start, c.end, c.body_offset,
            c.line_start, c.line_end, paths.setdefault(c.heading_path, len(paths)),
            c.prefix, c.situation, c.page, c.place,
        )
        for c in index.chunks
    ]  # fmt: skip
    _dump(folder / "chunks.json", {"paths": list(paths), "rows": rows})
    _dump(folder / "reports.json", [asdict(r) for r in index.reports])
    _dump(folder / "vocabulary.json", index.bm25.terms)
    for name, array in index.bm25.to_arrays().items():
        np.save(folder / f"bm25-{name}.npy", array, allow_pickle=False)
    np.save(folder / "n_tokens.npy", index.n_tokens, allow_pickle=False)
    if index.vectors is not None:
        np.save(folder / "vectors.npy", index.vectors, allow_pickle=False)
    files = {path.name: _stamp(path) for path in sorted(folder.iterdir())}
    _dump(
        folder / "manifest.json",
        {"format": FORMAT, "manifest": asdict(index.manifest), "files": files},
    )
    for path in folder.iterdir():  # the pointer must never lead to data still in flight
        with path.open("rb+") as handle:
            os.fsync(handle.fileno())


def _read_files(folder: Path, root: Path) -> Index:
    head = _load(folder / "manifest.json")
    if head.get("format") != FORMAT:
        raise BadIndexError(
            f"The index in {folder.parent} has format {head.get('format')}, "
            f"this version reads format {FORMAT}.",
            "Run `rag-tui index FOLDER` to rebuild it; embeddings are reused from the cache.",
        )
    for name, expected in head["files"].items():
        if _stamp(folder / name) != expected:
            raise _damaged(folder.parent, f"{name} is not what was written")
    documents = tuple(_document_in(row) for row in _load(folder / "documents.json"))
    table = _load(folder / "chunks.json")
    paths = [tuple(path) for path in table["paths"]]
    chunks = tuple(_chunk_in(row, documents, paths) for row in table["rows"])
    arrays = {
        path.stem.removeprefix("bm25-"): np.load(path, allow_pickle=False)
        for path in sorted(folder.glob("bm25-*.npy"))
    }
    vectors = None
    if (folder / "vectors.npy").exists():
        vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    n_tokens = np.load(folder / "n_tokens.npy", allow_pickle=False)
    n_tokens.setflags(write=False)
    bm25 = BM25Postings.from_arrays(_load(folder / "vocabulary.json"), arrays)
    if bm25.n_chunks != len(chunks) or len(n_tokens) != len(chunks):
        raise _damaged(folder.parent, "its parts differ in length")
    if vectors is not None and vectors.shape[0] != len(chunks):
        raise _damaged(folder.parent, "there is not one vector per chunk")
    return Index(
        folder=root,
        manifest=Manifest(**head["manifest"]),
        documents=documents,
        chunks=chunks,
        bm25=bm25,
        vectors=vectors,
        n_tokens=n_tokens,
        reports=tuple(FileReport(**row) for row in _load(folder / "reports.json")),
    )


def _document_out(document: Document) -> dict[str, Any]:
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "text": document.text,
        "sha256": document.sha256,
        "headings": [asdict(heading) for heading in document.headings],
        "body_start": document.body_start,
        "metadata": dict(document.metadata),
        "warnings": list(document.warnings),
        "format": document.format,
        "blocks": [asdict(block) for block in document.blocks],
        "pages": [asdict(page) for page in document.pages],
        "modified": document.modified,
        "is_partial": document.is_partial,
    }


def _document_in(row: dict[str, Any]) -> Document:
    headings = tuple(Heading(**heading) for heading in row.pop("headings"))
    warnings = tuple(row.pop("warnings"))
    blocks = tuple(Block(**block) for block in row.pop("blocks"))
    pages = tuple(Page(**page) for page in row.pop("pages"))
    return Document(**row, headings=headings, warnings=warnings, blocks=blocks, pages=pages)


def _chunk_in(
    row: list[Any], documents: tuple[Document, ...], paths: list[tuple[str, ...]]
) -> Chunk:
    (chunk_id, doc, ordinal, start, end, body_offset, line_start, line_end, path,
     prefix, situation, page, place) = row  # fmt: skip
    document = documents[doc]
    return Chunk(
        chunk_id=chunk_id, doc_id=document.doc_id, ordinal=ordinal, start=start, end=end,
        text=document.text[start:end], heading_path=paths[path], body_offset=body_offset,
        line_start=line_start, line_end=line_end, prefix=prefix, situation=situation, page=page,
        place=place,
    )  # fmt: skip


def _dump(path: Path, value: object) -> None:
    # ensure_ascii keeps lone surrogates of odd file names writable
    path.write_text(json.dumps(value, ensure_ascii=True), encoding="ascii")


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="ascii"))


def _stamp(path: Path) -> list[Any]:
    size = path.stat().st_size
    if size > _DIGEST_LIMIT:
        return [size, ""]
    return [size, blake2b(path.read_bytes(), digest_size=16).hexdigest()]


def _remove_others(directory: Path, *, keep: str) -> None:
    for path in cast("Iterable[Path]", directory.iterdir()):
        old_tmp = (
            path.name.startswith(".tmp-") and path.stat().st_mtime < time.time() - _STALE_TMP_S
        )
        if (path.is_dir() and path.name != keep and path.name.startswith("g")) or old_tmp:
            # on Windows a reader's mapped file cannot be removed: the next write tries again
            with contextlib.suppress(OSError):
                shutil.rmtree(path)
