"""Building and refreshing an index: a generator of progress that ends in an index."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import numpy as np

from rag_tui.engine.analysis import make_analyzer
from rag_tui.engine.errors import BadIndexError, CorpusError, ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index, Manifest
from rag_tui.engine.indexing_cut import cut, merge_reports
from rag_tui.engine.indexing_files import Reading, read_folder
from rag_tui.engine.indexing_vectors import embed_chunks
from rag_tui.engine.loading import Models
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.settings import EngineSettings
from rag_tui.engine.situations import situations_of
from rag_tui.engine.stores import local
from rag_tui.engine.types import FileReport

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

_log = logging.getLogger("rag_tui.index")


@dataclass(frozen=True, slots=True)
class IndexReady:
    """An index that can be searched from now on."""

    index: Index
    is_final: bool
    """False for a first, keyword-only index that is shown while embedding goes on."""
    added: tuple[str, ...] = ()
    """Document ids, compared with the index that was there before."""
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    n_embedded: int = 0
    """Chunks that had to be embedded now; the others came from the cache."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, e.g. that another process was waited for."""


def open_index(folder: Path, settings: EngineSettings) -> Index | None:
    """The folder's index as it lies on disk, or None when there is none that can be used."""
    try:
        return local.load(local.index_dir(settings.cache_dir, folder), folder)
    except BadIndexError:
        _log.warning("index not usable", exc_info=True)
        return None


def refresh_index(
    folder: Path,
    settings: EngineSettings,
    models: Models,
    *,
    cancel: CancelToken | None = None,
    rebuild: bool = False,
) -> Iterator[Progress | IndexReady]:
    """Bring the folder's index up to date and yield it; unchanged chunks cost no embedding.

    Yields progress at most every 0.1 s of work. When something has changed, a keyword-only index
    comes first (``is_final`` False), then the complete one. Content hashes decide what has
    changed, never time stamps.

    Args:
        folder: The corpus: a folder, or one file.
        settings: Chunking, models and the cache folder.
        models: The session's models; the embedder is loaded only if something must be embedded.
        cancel: Polled between files and between groups of texts.
        rebuild: Also replace an index that was made with another embedding model.

    Raises:
        UsageError: When there is no analyzer of the name that is set.
        CorpusError: When there is nothing that can be indexed; the old index stays.
        BadIndexError: When the index was made with another model, or cannot be written.
        Cancelled: Soon after the token was set; the old index stays in use.
    """
    token = cancel if cancel is not None else CancelToken()
    analyzer = make_analyzer(settings.analyzer)
    notes: list[str] = []
    directory = local.index_dir(settings.cache_dir, folder)
    old = _open_noting(directory, folder, notes)
    if old is not None and not rebuild:
        _refuse_other_model(old, settings)

    reading: Reading | None = None
    loading = settings.loading.fingerprint()
    same_loading = old is not None and old.manifest.loading_fingerprint == loading
    for item in read_folder(
        folder, old, cancel=token, loading=settings.loading, reuse=same_loading
    ):
        if isinstance(item, Progress):
            yield item
        else:
            reading = item
    if reading is None or not reading.documents:
        raise _nothing_to_index(folder, reading.reports if reading else ())

    counter = models.token_counter()
    chunker_fingerprint = settings.chunking.fingerprint(counter)
    same_cut = old is not None and old.manifest.chunker_fingerprint == chunker_fingerprint
    situations = situations_of(reading.documents, settings.chunking, settings.cache_dir)
    same_situations = old is not None and old.manifest.situations == situations.fingerprint
    same_words = old is not None and old.manifest.analyzer_fingerprint == analyzer.fingerprint
    if old is not None and old.manifest.chunking != asdict(settings.chunking):
        notes.append("The chunking settings have changed: all documents were cut again.")
    if old is not None and not same_words:
        notes.append(f"The words of all chunks were counted again, as {analyzer.name} cuts them.")
    unchanged = not (reading.added or reading.changed or reading.deleted)
    if (
        old is not None
        and unchanged
        and same_loading
        and same_cut
        and same_words
        and same_situations
        and not rebuild
    ):
        old = replace(old, reports=merge_reports(reading.reports, old.chunks))
        if old.vectors is not None:
            yield IndexReady(old, is_final=True, notes=tuple(notes))
            return

    manifest = _manifest(folder, settings, chunker_fingerprint, analyzer.fingerprint, counter.limit)
    base = Index(
        folder=folder,
        manifest=replace(manifest, situations=situations.fingerprint, loading_fingerprint=loading),
        documents=reading.documents,
        chunks=(),
        bm25=BM25Postings.build(()),
        vectors=None,
        n_tokens=np.zeros(0, np.int32),
        reports=reading.reports,
    )
    cut_index: Index | None = None
    kept = old if same_cut and same_loading else None
    for step in cut(base, kept, reading, situations, settings, models, token):
        if isinstance(step, Progress):
            yield step
        else:
            cut_index = step
    if cut_index is None or not cut_index.chunks:
        raise _nothing_to_index(
            folder, cut_index.reports if cut_index is not None else reading.reports
        )
    ready = IndexReady(
        cut_index,
        is_final=False,
        added=reading.added,
        changed=reading.changed,
        deleted=reading.deleted,
        notes=tuple(notes),
    )
    yield ready
    yield from _embed_and_save(ready, settings, models, directory, token, rebuild=rebuild)


def _open_noting(directory: Path, folder: Path, notes: list[str]) -> Index | None:
    try:
        return local.load(directory, folder)
    except BadIndexError as error:
        _log.warning("index not usable", exc_info=True)
        notes.append(f"{error.message} It was rebuilt from the files and the embedding cache.")
        return None


def _refuse_other_model(old: Index, settings: EngineSettings) -> None:
    made_by, wanted = old.manifest.embedder_name, settings.models.embedder
    if old.manifest.embedder_fingerprint and made_by != wanted:
        raise BadIndexError(
            f"The index of {old.folder} was made with {made_by} "
            f"({old.manifest.dimensions} dimensions), but {wanted} is set.",
            f"Run `rag-tui index {old.folder} --embedder {wanted}` (or press f9 in the app) to "
            f"rebuild it with that model, or set models.embedder to {made_by}.",
        )


def _nothing_to_index(folder: Path, reports: tuple[FileReport, ...]) -> CorpusError:
    if not reports:
        return CorpusError(
            f"{folder} holds no files that can be indexed.",
            "Put documents there (Markdown, text, HTML, PDF, …), check loading.include and "
            "loading.exclude, or name another folder.",
        )
    shown = "; ".join(f"{report.path}: {report.reason}" for report in reports[:3])
    more = f"; and {len(reports) - 3} more" if len(reports) > 3 else ""
    return CorpusError(
        f"None of the {len(reports)} files in {folder} could be indexed ({shown}{more}).",
        "`rag-tui index --json` lists every file with its reason.",
    )


def _manifest(
    folder: Path, settings: EngineSettings, chunker: str, analyzer: str, limit: int | None
) -> Manifest:
    libraries = ("rag-tui-explorer", "numpy", "sentence-transformers", "onnxruntime", "tokenizers")
    versions = {}
    for name in libraries:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Manifest(
        folder=str(folder.resolve()),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        chunking=asdict(settings.chunking),
        chunker_fingerprint=chunker,
        analyzer_fingerprint=analyzer,
        embedder_name=settings.models.embedder,
        embedder_fingerprint="",
        dimensions=0,
        max_tokens=limit or 0,
        versions=versions,
    )


def _embed_and_save(
    ready: IndexReady,
    settings: EngineSettings,
    models: Models,
    directory: Path,
    cancel: CancelToken,
    *,
    rebuild: bool,
) -> Iterator[Progress | IndexReady]:
    notes = list(ready.notes)
    index = ready.index
    lock = filelock.FileLock(directory / "lock")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield from _acquire(lock, cancel)
    except OSError as error:
        raise BadIndexError(
            f"The index folder {directory} cannot be written: {error.strerror or error}.",
            "Set RAG_TUI_CACHE_DIR to a folder that can be written.",
        ) from error
    try:
        other = _open_noting(directory, index.folder, [])
        if other is not None and not rebuild and _same_corpus(other, index):
            # another process made this very index while this one was reading the files
            yield replace(ready, index=other, is_final=True)
            return
        yield Progress("model", note=settings.models.embedder)
        try:
            embedder = models.embedder()
        except ModelError as error:
            notes.append(f"Keyword search only. {error.message}\n{error.hint}".strip())
            if other is None or other.vectors is None:
                local.save(index, directory)
            else:
                notes.append(f"The index by {other.manifest.embedder_name} on disk was kept.")
            yield replace(ready, index=index, is_final=True, notes=tuple(notes))
            return
        n_embedded = 0
        vectors: Vectors | None = None
        for item in embed_chunks(index.chunks, embedder, settings.cache_dir, cancel):
            if isinstance(item, Progress):
                yield item
            else:
                vectors, n_embedded = item
        info = embedder.info
        complete = replace(
            index,
            vectors=vectors,
            manifest=replace(
                index.manifest,
                embedder_fingerprint=info.fingerprint,
                dimensions=info.dimensions,
                max_tokens=info.max_tokens,
                embedder=asdict(info),
            ),
        )
        yield Progress("write", note=str(directory))
        local.save(complete, directory)
        yield replace(
            ready, index=complete, is_final=True, n_embedded=n_embedded, notes=tuple(notes)
        )
    finally:
        lock.release()


def _acquire(lock: filelock.BaseFileLock, cancel: CancelToken) -> Iterator[Progress]:
    """Wait for another process that is writing this index; the lock dies with its process."""
    told = False
    while True:
        try:
            lock.acquire(timeout=0 if not told else 0.2)
        except filelock.Timeout:
            cancel.check()
            told = True
            yield Progress("wait", note="another rag-tui is indexing this folder")
        else:
            return


def _same_corpus(one: Index, two: Index) -> bool:
    return (
        one.vectors is not None
        and one.manifest.chunker_fingerprint == two.manifest.chunker_fingerprint
        and one.manifest.situations == two.manifest.situations
        and one.manifest.loading_fingerprint == two.manifest.loading_fingerprint
        and one.manifest.analyzer_fingerprint == two.manifest.analyzer_fingerprint
        and one.manifest.embedder_name == two.manifest.embedder_name
        and [(d.doc_id, d.sha256) for d in one.documents]
        == [(d.doc_id, d.sha256) for d in two.documents]
    )
