"""What the Chunks screen has done beside the event loop; each function runs in a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.reach import Unread, unread
from rag_tui.engine.types import Chunk, Document
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_notes import ChunkNotes, collect, health_notes
from rag_tui.tui.document_layout import DocumentLayout, Gap, Piece

if TYPE_CHECKING:
    from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
    from rag_tui.engine.corpus_facts import CorpusFacts, Prices
    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models
    from rag_tui.tui.backend import Session

_GROUP = 5_000
"""Hashes asked of the cache at a time: it answers with the vectors themselves."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One document and one way of cutting it."""

    document: Document
    chunks: tuple[Chunk, ...]
    n_tokens: tuple[int, ...]
    """Tokens of what is embedded of each chunk, special tokens included."""
    limit: int | None
    """Tokens the model reads."""
    unread: Mapping[str, Unread]
    """Chunk id to what the model leaves out; a chunk it reads whole is absent."""
    first_number: int = 1
    """What the gutter calls the first chunk."""

    @property
    def layout(self) -> DocumentLayout:
        """The document with these chunks drawn on it."""
        return DocumentLayout(self.document.text, self._pieces(), self._gaps())

    @property
    def summary(self) -> str:
        """Number of chunks, tokens, their median, and how many are over the limit."""
        parts = [
            fmt.count(len(self.chunks), "chunk"), fmt.count(sum(self.n_tokens), "token")
        ]  # fmt: skip
        if self.n_tokens:
            parts.append(f"median {median(self.n_tokens):,.0f}, longest {max(self.n_tokens):,}")
        if self.limit is not None:
            n_over = sum(n > self.limit for n in self.n_tokens)
            parts.append(f"⚠ {n_over:,} over the limit" if n_over else "none over the limit")
        return " · ".join(parts)

    def at(self, offset: int) -> int:
        """Index of the first chunk that reaches behind an offset, -1 when there is none."""
        return next((i for i, chunk in enumerate(self.chunks) if chunk.end > offset), -1)

    def _pieces(self) -> list[Piece]:
        pieces = []
        for i, (chunk, n_tokens) in enumerate(zip(self.chunks, self.n_tokens, strict=True)):
            lost = self.unread.get(chunk.chunk_id)
            pieces.append(
                Piece(
                    number=self.first_number + i,
                    start=chunk.start,
                    end=chunk.end,
                    label=" › ".join(chunk.heading_path[1:] or chunk.heading_path),
                    n_tokens=n_tokens,
                    unread_start=None if lost is None else chunk.start + lost.start,
                    n_unread=0 if lost is None else lost.n_tokens,
                )
            )
        return pieces

    def _gaps(self) -> list[Gap]:
        from rag_tui.engine.chunkers.coverage import gaps

        return [Gap(gap.start, gap.end, gap.reason) for gap in gaps(self.document, self.chunks)]


@dataclass(frozen=True, slots=True)
class Cost:
    """What indexing a folder with other settings would come to."""

    n_chunks: int
    n_new: int
    """Different texts that are not in the embedding cache."""


def lint_notes(index: Index, cancel: CancelToken) -> ChunkNotes:
    """Everything lint finds."""
    from rag_tui.engine.chunkers.lint import lint

    return collect(lint(index, cancel=cancel))


def health_of(index: Index, cancel: CancelToken) -> ChunkNotes:
    """Corpus health, from the vectors of the index."""
    from rag_tui.engine.health import health

    found = health(index, cancel=cancel)
    return collect(health_notes(found), found)


def facts_of(
    index: Index, session: Session | None, prices: Prices, cancel: CancelToken
) -> CorpusFacts:
    """How large the corpus is; counted with the model's tokenizer, without a session estimated."""
    from rag_tui.engine.corpus_facts import corpus_facts

    if session is None:
        return corpus_facts(index, prices=prices, cancel=cancel)
    settings = session.settings
    return corpus_facts(
        index,
        counter=session.models.token_counter(),
        context_window=settings.context_window,
        prices=prices,
        n_sources=settings.engine.answer.n_sources,
        cancel=cancel,
    )


def unread_of(models: Models, chunks: Sequence[Chunk], cancel: CancelToken) -> dict[str, Unread]:
    """What the model leaves out of these chunks, by chunk id."""
    return _unread(models.token_counter(), chunks, cancel)


def recut(
    document: Document,
    settings: ChunkingSettings,
    models: Models,
    cache_dir: Path,
    cancel: CancelToken,
) -> Cut:
    """Cut one document in another way, as indexing would.

    Raises:
        UsageError: When the settings make no sense for this document or lack a library.
        ModelError: When the strategy needs an embedding model that cannot be had.
    """
    from rag_tui.engine.chunkers.factory import make_chunker
    from rag_tui.engine.situations import leave_room, situations_of

    counter = models.token_counter()

    def embed(texts: Sequence[str]) -> Vectors:
        return models.embedder().embed_documents(texts, cancel=cancel)

    room = leave_room(settings, counter.limit)
    chunks = make_chunker(room, counter, embed=embed).chunk(document)
    chunks = situations_of([document], settings, cache_dir).apply(document, chunks)
    cancel.check()
    counts = counter.count([chunk.embedded_text for chunk in chunks])
    n_tokens = tuple(n + counter.n_special for n in counts)
    limit = counter.limit
    over = [c for c, n in zip(chunks, n_tokens, strict=True) if limit is not None and n > limit]
    return Cut(document, chunks, n_tokens, limit, _unread(counter, over, cancel))


def cost_of(
    index: Index,
    settings: ChunkingSettings,
    models: Models,
    cache_dir: Path,
    cancel: CancelToken,
) -> Cost:
    """How many chunks all documents would give, and how many texts must be embedded anew.

    Raises:
        UsageError: As `recut`.
        ModelError: When there is no embedding model.
    """
    from rag_tui.engine.chunkers.factory import make_chunker
    from rag_tui.engine.embedding_cache import EmbeddingCache
    from rag_tui.engine.ids import text_hash
    from rag_tui.engine.situations import leave_room, situations_of

    def embed(texts: Sequence[str]) -> Vectors:
        return models.embedder().embed_documents(texts, cancel=cancel)

    counter = models.token_counter()
    chunker = make_chunker(leave_room(settings, counter.limit), counter, embed=embed)
    situations = situations_of(index.documents, settings, cache_dir)
    n_chunks, hashes = 0, dict[str, None]()
    for document in index.documents:
        cancel.check()
        chunks = situations.apply(document, chunker.chunk(document))
        n_chunks += len(chunks)
        hashes.update((text_hash(chunk.embedded_text), None) for chunk in chunks)
    fingerprint = index.manifest.embedder_fingerprint or models.embedder().info.fingerprint
    cache = EmbeddingCache(cache_dir / "embeddings.sqlite")
    wanted = list(hashes)
    n_known = 0
    for start in range(0, len(wanted), _GROUP):
        cancel.check()
        n_known += len(cache.get_many(fingerprint, wanted[start : start + _GROUP]))
    return Cost(n_chunks, len(wanted) - n_known)


def _unread(
    counter: TokenCounter, chunks: Sequence[Chunk], cancel: CancelToken
) -> dict[str, Unread]:
    found: dict[str, Unread] = {}
    for chunk in chunks:
        cancel.check()
        lost = unread(chunk, counter)
        if lost is not None:
            found[chunk.chunk_id] = lost
    return found
