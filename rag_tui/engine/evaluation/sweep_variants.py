"""The same documents cut in another way: an index in memory, made through the embedding cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.analysis import make_analyzer
from rag_tui.engine.errors import CorpusError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing_cut import cut
from rag_tui.engine.indexing_files import Reading
from rag_tui.engine.indexing_vectors import embed_chunks
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.situations import situations_of

if TYPE_CHECKING:
    from rag_tui.engine.chunkers.base import ChunkingSettings
    from rag_tui.engine.loading import Models
    from rag_tui.engine.settings import EngineSettings


def cut_anew(
    index: Index,
    chunking: ChunkingSettings,
    settings: EngineSettings,
    models: Models,
    *,
    with_vectors: bool,
    cancel: CancelToken,
) -> Iterator[Progress | Index]:
    """Progress, and at the end the documents of an index in other chunks.

    Nothing is read from the corpus and no index on disk is touched; vectors go through the
    embedding cache, so what was embedded once is only read the next time.

    Args:
        index: Whose documents are cut.
        chunking: How.
        settings: Of the index: analyzer, cache folder.
        models: For the tokens and the vectors.
        with_vectors: Whether chunks are embedded.
        cancel: Polled between documents and between groups of texts.

    Raises:
        CorpusError: When nothing is left after cutting.
        RagTuiError: When the strategy or the model cannot be had.
        Cancelled: Soon after the token was set.
    """
    changed = replace(settings, chunking=chunking)
    counter = models.token_counter()
    situations = situations_of(index.documents, chunking, settings.cache_dir)
    manifest = replace(
        index.manifest,
        chunking=asdict(chunking),
        chunker_fingerprint=chunking.fingerprint(counter),
        analyzer_fingerprint=make_analyzer(settings.analyzer).fingerprint,
        situations=situations.fingerprint,
    )
    bare = replace(
        index,
        manifest=manifest,
        chunks=(),
        bm25=BM25Postings.build(()),
        vectors=None,
        n_tokens=np.zeros(0, np.int32),
    )
    everything = tuple(document.doc_id for document in index.documents)
    reading = Reading(index.documents, index.reports, everything, (), ())
    made: Index | None = None
    for item in cut(bare, None, reading, situations, changed, models, cancel):
        if isinstance(item, Progress):
            yield item
        else:
            made = item
    if made is None or not made.chunks:
        raise CorpusError(
            f"Cut by {chunking.strategy}, the documents give no chunk at all.",
            "Leave that strategy out, or choose another size.",
        )
    if with_vectors:
        embedder = models.embedder()
        for step in embed_chunks(made.chunks, embedder, settings.cache_dir, cancel):
            if isinstance(step, Progress):
                yield step
            else:
                info = embedder.info
                described = replace(
                    manifest,
                    embedder_name=settings.models.embedder,
                    embedder_fingerprint=info.fingerprint,
                    dimensions=info.dimensions,
                    max_tokens=info.max_tokens,
                    embedder=asdict(info),
                )
                made = replace(made, vectors=step[0], manifest=described)
    yield made
