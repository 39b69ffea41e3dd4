"""Indexes made by hand: chunks cut where a test says, vectors as a test wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_tui.engine.ids import chunk_id
from rag_tui.engine.index import Index, Manifest
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.types import Block, Chunk, Document


def document(text: str, doc_id: str = "a.md", *, blocks: Sequence[Block] = ()) -> Document:
    """A document without headings."""
    return Document(doc_id, doc_id, text, sha256="", blocks=tuple(blocks))


def cut(source: Document, *places: int) -> tuple[Chunk, ...]:
    """The chunks of a document between offsets; none given: the whole document."""
    bounds = (0, *places, len(source.text))
    return tuple(
        chunk(source, start, end, ordinal=i) for i, (start, end) in enumerate(pairwise(bounds))
    )


def chunk(source: Document, start: int, end: int, *, ordinal: int = 0) -> Chunk:
    """One chunk of a document."""
    text = source.text[start:end]
    return Chunk(
        chunk_id(source.doc_id, text, start),
        source.doc_id,
        ordinal,
        start,
        end,
        text,
        line_start=source.text.count("\n", 0, start) + 1,
        line_end=source.text.count("\n", 0, max(start, end - 1)) + 1,
    )


def index_of(
    documents: Sequence[Document],
    chunks: Sequence[Chunk],
    *,
    n_tokens: Sequence[int] = (),
    max_tokens: int = 256,
    vectors: npt.NDArray[np.float32] | None = None,
) -> Index:
    """An index of these; every chunk has 10 tokens unless told otherwise."""
    counts = np.array(n_tokens if n_tokens else [10] * len(chunks), np.int32)
    manifest = Manifest("docs", "", {}, "", "", "hand-made", "", 0, max_tokens, {})
    return Index(
        folder=Path("docs"),
        manifest=manifest,
        documents=tuple(documents),
        chunks=tuple(chunks),
        bm25=BM25Postings.build([one.text.split() for one in chunks]),
        vectors=vectors,
        n_tokens=counts,
        reports=(),
    )


def index_of_texts(
    *texts: str, vectors: npt.NDArray[np.float32] | None = None, max_tokens: int = 256
) -> Index:
    """An index of one document and one chunk a text: ``0000.md`` and so on."""
    documents = [document(text, f"{i:04}.md") for i, text in enumerate(texts)]
    chunks = [replace(cut(one)[0], ordinal=0) for one in documents]
    return index_of(documents, chunks, vectors=vectors, max_tokens=max_tokens)
