"""Indexes made in a test by hand: documents, one chunk a paragraph, hashed vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import chunk_id
from rag_tui.engine.index import Index, Manifest
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.types import Chunk, Document, ScoreKind


def paragraphs(document: Document, *headings: str) -> tuple[Chunk, ...]:
    """One chunk a paragraph, each under the next of the headings, pages counted from 1."""
    chunks: list[Chunk] = []
    start = 0
    for i, text in enumerate(document.text.split("\n\n")):
        path = (document.title, *headings[i : i + 1])
        line = document.text[:start].count("\n") + 1
        chunks.append(
            Chunk(
                chunk_id(document.doc_id, text, i),
                document.doc_id,
                i,
                start,
                start + len(text),
                text,
                heading_path=path,
                line_start=line,
                line_end=line + text.count("\n"),
                page=i + 1 if document.format == "pdf" else None,
            )
        )
        start += len(text) + 2
    return tuple(chunks)


def index_of(documents: Sequence[Document], chunks: Sequence[Chunk] = ()) -> Index:
    """An index with vectors of the hashing embedder; without chunks, one a paragraph."""
    cut = tuple(chunks) or tuple(c for document in documents for c in paragraphs(document))
    embedder = HashingEmbedder()
    info = embedder.info
    texts = [chunk.embedded_text for chunk in cut]
    return Index(
        folder=Path("made-by-hand"),
        manifest=Manifest(
            "made-by-hand", "", {}, "", WORDS.fingerprint, info.name, info.fingerprint,
            info.dimensions, info.max_tokens, {},
        ),
        documents=tuple(documents),
        chunks=cut,
        bm25=BM25Postings.build([WORDS.tokens(text) for text in texts]),
        vectors=embedder.embed_documents(texts),
        n_tokens=np.ones(len(cut), np.int32),
        reports=(),
    )  # fmt: skip


class OverlapReranker:
    """Scores a passage by how many words it shares with the question."""

    info = RerankerInfo("overlap", "overlap", 512, ScoreKind("logit overlap", "0 and up"))

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One score a passage, in their order."""
        wanted = set(WORDS.tokens(query))
        for passage in passages:
            yield float(len(wanted & set(WORDS.tokens(passage))))


def small_models() -> Models:
    """The hashing embedder and the reranker above."""
    return Models(
        ModelSettings(embedder="hashing"),
        Path("no-cache"),
        embedder=HashingEmbedder(),
        reranker=OverlapReranker(),
    )
