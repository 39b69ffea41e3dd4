"""Why a chunk is as similar to a question as it is: its place among all, and its sentences.

Similarities of sentences are those of the bare text, so they need not average to the chunk's own:
a model reads the whole chunk at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.embedders.base import Similarity
from rag_tui.engine.errors import ModelError
from rag_tui.engine.explanations import N_BINS, Histogram, SentenceScore, VectorExplanation
from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.retrievers.dense import check_query_vector, similarities
from rag_tui.engine.sentences import sentence_spans
from rag_tui.engine.types import Chunk, Ranking, SearchRequest

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.filters import Mask
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

_LINE = re.compile(r"[^\n]*\S[^\n]*")


def explain_vector(
    position: int,
    index: Index,
    ranking: Ranking | None,
    query_vector: Vectors | None,
    vectors: Vectors | None,
    *,
    allowed: Mask | None = None,
    similarity: Similarity = "cosine",
    unread_from: int | None = None,
) -> VectorExplanation | None:
    """A chunk's similarity, and its place in the list and among all scores of the corpus.

    Args:
        position: The chunk.
        index: The index that was searched.
        ranking: The vector list, if there is one.
        query_vector: float32 ``(dim,)``; without it only the list's own row is told.
        vectors: float32 ``(n_chunks, dim)`` of the same model.
        allowed: Bool ``(n_chunks,)``: the chunks that are ranked; None: all.
        similarity: How this model's vectors are compared.
        unread_from: Where the model stops reading the chunk, as in the explanation.

    Returns:
        None when the chunk is in no list and there are no vectors.
    """
    n_ranked = len(ranking.hits) if ranking else 0
    hit = ranking.hit_of(index.chunk_ids[position]) if ranking else None
    below = ranking.hits[hit.rank] if ranking and hit and hit.rank < n_ranked else None
    gap = hit.score - below.score if hit and below else None
    rank = hit.rank if hit else None
    if query_vector is None or vectors is None:
        if hit is None:
            return None
        return VectorExplanation(hit.score, rank, n_ranked, gap, unread_from=unread_from)
    check_query_vector(query_vector, vectors)
    everything = np.arange(len(vectors), dtype=np.int64)
    scores = similarities(query_vector, vectors, everything, similarity=similarity)
    own = float(scores[position])
    order = everything if allowed is None else np.flatnonzero(allowed)
    place, above, next_below = _place(scores, position, order)
    return VectorExplanation(
        hit.score if hit else own,
        rank,
        n_ranked,
        gap,
        corpus_rank=place,
        n_corpus=int(order.size),
        gap_above=above - own if above is not None else None,
        gap_below=own - next_below if next_below is not None else None,
        histogram=histogram(scores[order], own),
        unread_from=unread_from,
    )


def histogram(scores: npt.NDArray[np.float64], own: float) -> Histogram | None:
    """`N_BINS` bins of equal width from the lowest to the highest score; None without any.

    Where all scores are equal, all are in the first bin.
    """
    if not scores.size:
        return None
    low, high = min(float(scores.min()), own), max(float(scores.max()), own)
    width = (high - low) / N_BINS
    if width <= 0:
        return Histogram(low, high, (int(scores.size), *([0] * (N_BINS - 1))), 0)
    bins = np.minimum(((scores - low) / width).astype(np.int64), N_BINS - 1)
    counts = tuple(np.bincount(bins, minlength=N_BINS).tolist())
    return Histogram(low, high, counts, min(int((own - low) / width), N_BINS - 1))


def body_places(chunk: Chunk) -> tuple[int, int]:
    """Where a chunk's body begins in `Chunk.embedded_text`, and where in `Chunk.text`."""
    tail = chunk.text[chunk.body_offset :]
    blank = len(tail) - len(tail.lstrip())
    return len(chunk.embedded_text) - len(chunk.body), chunk.body_offset + blank


def unread_from(position: int, index: Index, models: Models, embedder: str = "") -> int | None:
    """Character offset in a chunk's text from which on the embedder reads nothing.

    Returns:
        None when it reads the whole chunk, or another embedder cannot tell. 0 when even the
        headings above the chunk are too long.
    """
    chunk = index.chunks[position]
    text = chunk.embedded_text
    if embedder and embedder != index.manifest.embedder_name:
        try:
            tokens = models.token_vectors([text], "document", embedder)[0]
        except ModelError:
            return None
        end = tokens.spans[-1][1] if tokens.spans else 0
        return in_chunk_text(chunk, end) if tokens.n_cut else None
    limit = index.manifest.max_tokens
    if not limit or int(index.n_tokens[position]) <= limit:
        return None
    counter = models.token_counter()
    spans = counter.spans(text)
    n_read = max(0, limit - counter.n_special)
    if n_read >= len(spans):
        return None
    return in_chunk_text(chunk, spans[n_read - 1][1] if n_read else 0)


def in_chunk_text(chunk: Chunk, offset: int) -> int | None:
    """An offset of the embedded text as one of the chunk's text, 0 for what stands above it.

    Returns:
        None when it is the end of the embedded text.
    """
    if offset >= len(chunk.embedded_text):
        return None
    body_start, body_offset = body_places(chunk)
    return max(0, offset - body_start + body_offset) if offset > body_start else 0


def explain_sentences(
    chunk_id: str,
    request: SearchRequest,
    index: Index,
    models: Models,
    *,
    cancel: CancelToken | None = None,
) -> tuple[SentenceScore, ...]:
    """The similarity of each sentence of a chunk to the question, in the order of the text.

    Each sentence is embedded by itself, as a passage. Text that is no prose, such as code, is
    taken line by line.

    Raises:
        ModelError: When the embedder cannot be had.
        Cancelled: Soon after the token was set.
    """
    position = index.position_of[chunk_id]
    chunk = index.chunks[position]
    spans = text_spans(chunk.text)
    if not spans:
        return ()
    embedder = models.embedder(request.embedder)
    query = models.embed_query(plain_question(request.query), request.embedder)
    texts = [chunk.text[start:end] for start, end in spans]
    vectors = embedder.embed_documents(texts, cancel=cancel)
    scores = similarities(
        query, vectors, np.arange(len(spans)), similarity=embedder.info.similarity
    )
    end_of_reading = unread_from(position, index, models, request.embedder)
    return sentence_scores(chunk.text, spans, scores.tolist(), end_of_reading)


def text_spans(text: str) -> list[tuple[int, int]]:
    """The sentences of a chunk's text; where it has none, its lines."""
    return sentence_spans(text) or [
        (m.start() + len(m[0]) - len(m[0].lstrip()), m.start() + len(m[0].rstrip()))
        for m in _LINE.finditer(text)
    ]


def sentence_scores(
    text: str, spans: Sequence[tuple[int, int]], scores: Sequence[float], unread: int | None
) -> tuple[SentenceScore, ...]:
    """Spans of a text with their scores; those that reach into unread text are not read."""
    return tuple(
        SentenceScore(start, end, text[start:end], score, unread is None or end <= unread)
        for (start, end), score in zip(spans, scores, strict=True)
    )


def _place(
    scores: npt.NDArray[np.float64], position: int, order: npt.NDArray[np.int64]
) -> tuple[int | None, float | None, float | None]:
    """Rank among ``order``, and the scores next above and below; ties go by position."""
    if not order.size:
        return None, None, None
    values, own = scores[order], scores[position]
    ahead = (values > own) | ((values == own) & (order < position))
    behind = ~ahead & (order != position)
    above = float(values[ahead].min()) if ahead.any() else None
    below = float(values[behind].max()) if behind.any() else None
    is_ranked = bool((order == position).any())
    return (int(ahead.sum()) + 1 if is_ranked else None), above, below
