"""Chunks become vectors; what was embedded before, by any index, is taken from the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.embedding_cache import EmbeddingCache
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.ids import text_hash
from rag_tui.engine.types import Chunk

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Embedder, EmbedderInfo, Vectors

EMBED_GROUP = 32
"""Texts embedded, and put into the cache, at a time: what a kill can cost at most."""


def embed_chunks(
    chunks: tuple[Chunk, ...], embedder: Embedder, cache_dir: Path, cancel: CancelToken
) -> Iterator[Progress | tuple[Vectors, int]]:
    """Vectors of all chunks, float32 ``(n, dim)``, and how many were not in the cache.

    Missing texts are embedded longest first, so that the estimate of the time left errs on the
    long side, and are put into the cache group by group: a kill loses one group.
    """
    fingerprint = embedder.info.fingerprint
    hashes = [text_hash(chunk.embedded_text) for chunk in chunks]
    text_of = dict(zip(hashes, (chunk.embedded_text for chunk in chunks), strict=True))
    cache = EmbeddingCache(cache_dir / "embeddings.sqlite")
    known = {
        text: vector
        for text, vector in cache.get_many(fingerprint, list(text_of)).items()
        if _is_usable(vector, embedder.info)
    }
    missing = sorted((h for h in text_of if h not in known), key=lambda h: (-len(text_of[h]), h))
    for start in range(0, len(missing), EMBED_GROUP):
        yield Progress("embed", start, len(missing))
        group = missing[start : start + EMBED_GROUP]
        vectors = embedder.embed_documents([text_of[h] for h in group], cancel=cancel)
        new = dict(zip(group, vectors, strict=True))
        cache.put_many(fingerprint, new)
        known.update(new)
        cancel.check()
    matrix = np.stack([known[h] for h in hashes]).astype(np.float32, copy=False)
    matrix.setflags(write=False)
    yield matrix, len(missing)


def _is_usable(vector: Vectors, info: EmbedderInfo) -> bool:
    """Whether a cached row can be what the embedder made; a damaged one is made again."""
    if vector.shape != (info.dimensions,):
        return False
    square = float(vector @ vector)
    return abs(square - 1) < 1e-3 if info.similarity == "cosine" else math.isfinite(square)
