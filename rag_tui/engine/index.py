"""An index: documents, chunks, postings, vectors, and what made them. Read-only after build."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.engine.types import Chunk, Document, FileReport

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Similarity, Vectors
    from rag_tui.engine.filters import ChunkColumns
    from rag_tui.engine.retrievers.bm25 import BM25Postings


@dataclass(frozen=True, slots=True)
class Manifest:
    """What made an index."""

    folder: str
    created: str
    """UTC, ISO 8601."""
    chunking: dict[str, object]
    chunker_fingerprint: str
    analyzer_fingerprint: str
    embedder_name: str
    embedder_fingerprint: str
    """Empty while there are no vectors."""
    dimensions: int
    max_tokens: int
    versions: dict[str, str]
    """Library versions."""
    embedder: dict[str, object] = field(default_factory=dict)
    """The whole `EmbedderInfo`."""
    loading_fingerprint: str = ""
    """How files were read; other settings may read the same bytes differently."""
    situations: str = ""
    """Fingerprint of the situations the chunks carry; empty without any."""

    @property
    def similarity(self) -> Similarity:
        """How the vectors are compared."""
        wanted = self.embedder.get("similarity")
        return "dot" if wanted == "dot" else "euclidean" if wanted == "euclidean" else "cosine"


# By identity and briefly: comparing arrays has no truth value, and whoever logs an index would
# wait a second for the text of all its chunks.
@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """Everything a search needs. Arrays are non-writeable; tuples are in corpus order."""

    folder: Path
    manifest: Manifest
    documents: tuple[Document, ...]
    """By path."""
    chunks: tuple[Chunk, ...]
    """By document, then start. A chunk's place here is its *position*."""
    bm25: BM25Postings
    vectors: Vectors | None
    """float32 ``(n_chunks, dimensions)``, rows L2 norm 1 where ``manifest.similarity`` is cosine;
    None before embedding."""
    n_tokens: npt.NDArray[np.int32]
    """int32 ``(n_chunks,)``: tokens of context + body + special tokens."""
    reports: tuple[FileReport, ...]
    """One per file that was looked at, by path."""

    @cached_property
    def chunk_ids(self) -> tuple[str, ...]:
        """Chunk ids by position."""
        return tuple(chunk.chunk_id for chunk in self.chunks)

    @cached_property
    def position_of(self) -> dict[str, int]:
        """Chunk id to position."""
        return {chunk.chunk_id: i for i, chunk in enumerate(self.chunks)}

    @cached_property
    def document_of(self) -> dict[str, Document]:
        """Document id to document."""
        return {document.doc_id: document for document in self.documents}

    @cached_property
    def positions_in(self) -> dict[str, tuple[int, ...]]:
        """Document id to the positions of its chunks, ascending; documents without chunks lack."""
        found: dict[str, list[int]] = {}
        for position, chunk in enumerate(self.chunks):
            found.setdefault(chunk.doc_id, []).append(position)
        return {doc_id: tuple(positions) for doc_id, positions in found.items()}

    @cached_property
    def chunk_columns(self) -> ChunkColumns:
        """What filters read of the chunks, column by column."""
        from rag_tui.engine.filters import ChunkColumns

        return ChunkColumns.of(self.documents, self.chunks)

    def chunk(self, chunk_id: str) -> Chunk:
        """The chunk with this id.

        Raises:
            KeyError: When there is none.
        """
        return self.chunks[self.position_of[chunk_id]]
