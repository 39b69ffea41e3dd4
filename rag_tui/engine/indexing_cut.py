"""Documents become chunks, token counts and postings; what has not changed is kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from rag_tui.engine.analysis import make_analyzer
from rag_tui.engine.chunkers.factory import make_chunker
from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing_files import Reading
from rag_tui.engine.loading import Models
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.settings import EngineSettings
from rag_tui.engine.situations import Situations, leave_room
from rag_tui.engine.types import Chunk, FileReport

_log = logging.getLogger("rag_tui.index")
_TICK_S = 0.1


def cut(
    base: Index,
    old: Index | None,
    reading: Reading,
    situations: Situations,
    settings: EngineSettings,
    models: Models,
    cancel: CancelToken,
) -> Iterator[Progress | Index]:
    """Cut what has changed, count tokens, make the postings; the last item is the index.

    A document on which the chunker fails is reported as failed; the others go on.

    Args:
        base: The new index without chunks.
        old: The index whose chunks of unchanged documents are kept, if there is one.
        reading: What has changed.
        situations: Model-written contexts to put on the chunks.
        settings: How to cut.
        models: For the token counter, and for the embedder if the strategy needs it.
        cancel: Polled between documents.
    """
    counter = models.token_counter()
    chunker = make_chunker(
        leave_room(settings.chunking, counter.limit),
        counter,
        embed=lambda texts: models.embedder().embed_documents(texts, cancel=cancel),
    )
    kept: dict[str, list[tuple[Chunk, int]]] = {}
    if old is not None:
        for chunk, n in zip(old.chunks, old.n_tokens.tolist(), strict=True):
            kept.setdefault(chunk.doc_id, []).append((chunk, n))
    fresh = {*reading.added, *reading.changed}
    chunks: list[Chunk] = []
    n_tokens: list[int] = []
    failed: dict[str, str] = {}
    tick = time.monotonic()
    for i, document in enumerate(base.documents):
        cancel.check()
        if document.doc_id in fresh or document.doc_id not in kept:
            same: tuple[Chunk, ...] = ()
            try:
                new = situations.apply(document, chunker.chunk(document))
            except (Cancelled, RagTuiError):
                raise
            except Exception as error:  # one bad document never stops an index
                _log.warning("cutting %r failed", document.doc_id, exc_info=True)
                reason = f"cannot be cut: {type(error).__name__}: {error}"
                failed[document.doc_id] = reason
                continue
        else:
            same = tuple(chunk for chunk, _ in kept[document.doc_id])
            new = situations.apply(document, same)
        chunks.extend(new)
        if new and new == same:
            n_tokens.extend(n for _, n in kept[document.doc_id])
        else:
            counts = counter.count([chunk.embedded_text for chunk in new])
            n_tokens.extend(n + counter.n_special for n in counts)
        if time.monotonic() - tick > _TICK_S:
            tick = time.monotonic()
            yield Progress("chunk", i + 1, len(base.documents), document.doc_id)
    yield Progress("bm25", 0, len(chunks))
    analyzer = make_analyzer(settings.analyzer)

    def token_lists() -> Iterator[list[str]]:
        for chunk in chunks:
            cancel.check()
            yield analyzer.tokens(chunk.embedded_text)

    counts_array = np.asarray(n_tokens, np.int32)
    counts_array.setflags(write=False)
    yield replace(
        base,
        chunks=tuple(chunks),
        bm25=BM25Postings.build(token_lists()),
        n_tokens=counts_array,
        reports=merge_reports(_with_failures(base.reports, failed), chunks),
    )


def merge_reports(
    reports: tuple[FileReport, ...], chunks: tuple[Chunk, ...] | list[Chunk]
) -> tuple[FileReport, ...]:
    """The reports with their chunk counts; a file that gave no chunk at all is not indexed."""
    n_chunks: dict[str, int] = {}
    for chunk in chunks:
        n_chunks[chunk.doc_id] = n_chunks.get(chunk.doc_id, 0) + 1
        if "#" in chunk.doc_id:  # a record: it also counts for the file it lies in
            # its id may hold the sign again, and so may the file's name
            parts = chunk.doc_id.split("#")
            for end in range(1, len(parts)):
                file = "#".join(parts[:end])
                n_chunks[file] = n_chunks.get(file, 0) + 1
    merged = []
    for report in reports:
        n = n_chunks.get(report.path, 0)
        if n == 0 and report.state in ("indexed", "partly"):
            reason = report.reason or "no text below its headings"
            merged.append(replace(report, state="skipped", reason=reason, n_chunks=0))
        else:
            merged.append(replace(report, n_chunks=n))
    return tuple(merged)


def _with_failures(
    reports: tuple[FileReport, ...], failed: Mapping[str, str]
) -> tuple[FileReport, ...]:
    return tuple(
        replace(report, state="failed", reason=failed[report.path])
        if report.path in failed
        else report
        for report in reports
    )
