"""Vector search: every chunk is compared exactly, in the way that the model wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.errors import ModelError
from rag_tui.engine.retrievers.base import check_depth, check_same_chunks, make_hits
from rag_tui.engine.topk import top_k
from rag_tui.engine.types import Ranking, ScoreKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Similarity, Vectors

_ONE_MODEL = "comparable within one model only"
COSINE = ScoreKind("cosine", "-1 to 1", f"higher is better; {_ONE_MODEL}")
DOT = ScoreKind(
    "dot product", "unbounded", f"higher is better; longer vectors score more; {_ONE_MODEL}"
)
EUCLIDEAN = ScoreKind(
    "−euclidean distance", "up to 0", f"higher is better: 0 is the same vector; {_ONE_MODEL}"
)
SCORE_KINDS: Mapping[str, ScoreKind] = MappingProxyType(
    {"cosine": COSINE, "dot": DOT, "euclidean": EUCLIDEAN}
)
"""What the scores of each similarity mean."""

_ROWS_AT_ONCE = 4096
_CACHED_BYTES = 32 * 2**20
_EPS = float(np.finfo(np.float32).eps)
_vecdot: Callable[..., npt.NDArray[np.float32]] | None = getattr(np, "vecdot", None)
"""Since numpy 2.0."""


def retrieve_dense(
    query_vector: Vectors,
    vectors: Vectors,
    chunk_ids: Sequence[str],
    *,
    depth: int,
    candidates: npt.NDArray[np.bool_] | None = None,
    similarity: Similarity = "cosine",
) -> Ranking:
    """The chunks most similar to a query, ties by position.

    Every chunk is compared; there is no approximate index, and the matrix is not copied: it may
    be mapped from a file. A fast float32 product chooses the candidates with a margin for its
    rounding, and these are computed again in float64, row by row: equal vectors have equal
    scores wherever they stand in the corpus.

    Args:
        query_vector: float32 ``(dim,)``; for cosine of L2 norm 1.
        vectors: float32 ``(n_chunks, dim)``; for cosine rows of L2 norm 1.
        chunk_ids: Ids by position.
        depth: How many are wanted.
        candidates: Bool ``(n_chunks,)``: only these chunks are ranked; None: all.
        similarity: How the model's vectors are compared.

    Raises:
        ModelError: When the dimensions differ, or a vector is zero or holds no numbers.
        UsageError: When depth is below 1.
        BadIndexError: When vectors, candidates and chunk ids differ in number.
    """
    started = perf_counter()
    check_depth(depth)
    check_same_chunks(len(vectors), len(chunk_ids), "vectors")
    check_query_vector(query_vector, vectors)
    rough, margin = _rough(query_vector, vectors, similarity)
    positions = None
    if candidates is not None:
        check_same_chunks(len(candidates), len(chunk_ids), "a filter")
        positions = np.flatnonzero(candidates).astype(np.int64, copy=False)
        rough = rough[positions]
        margin = margin[positions] if isinstance(margin, np.ndarray) else margin
    finite = np.isfinite(rough)
    if not finite.all():
        at = int(np.flatnonzero(~finite)[0])
        raise ModelError(
            f"the vector of chunk {chunk_ids[at if positions is None else int(positions[at])]} "
            "holds values that are not numbers",
            "Rebuild the index; if it happens again, choose another model or device.",
        )
    likely = _likely(rough, margin, depth)
    if positions is not None:
        likely = positions[likely]
    exact = similarities(query_vector, vectors, likely, similarity=similarity)
    order = top_k(exact, depth) if likely.size else likely
    return Ranking(
        method="vector",
        hits=make_hits(likely[order], exact[order], chunk_ids),
        depth=depth,
        score_kind=SCORE_KINDS[similarity],
        elapsed_s=perf_counter() - started,
    )


def similarities(
    query_vector: Vectors,
    vectors: Vectors,
    positions: npt.NDArray[np.int64],
    *,
    similarity: Similarity = "cosine",
) -> npt.NDArray[np.float64]:
    """Scores of some chunks: float64 ``(len(positions),)``, in their order, higher is better.

    A chunk's value depends on nothing but its own vector and the query's. A cosine is within -1
    to 1; a Euclidean distance has its sign turned.
    """
    query = query_vector.astype(np.float64)
    parts = []
    for at in range(0, positions.size, _ROWS_AT_ONCE):
        rows = vectors[positions[at : at + _ROWS_AT_ONCE]].astype(np.float64)
        if similarity == "euclidean":
            parts.append(-np.sqrt(np.square(rows - query).sum(axis=1)))
        else:
            parts.append((rows * query).sum(axis=1))
    scores = np.concatenate(parts) if parts else np.zeros(0)
    # Rounding must not show a cosine of 1.00000012.
    return np.clip(scores, -1.0, 1.0) if similarity == "cosine" else scores


def check_query_vector(query_vector: Vectors, vectors: Vectors) -> None:
    """Refuse a query vector that cannot be compared with these vectors.

    Raises:
        ModelError: When the dimensions differ, or it is zero or holds values that are no numbers.
    """
    if query_vector.ndim != 1 or vectors.ndim != 2 or query_vector.size != vectors.shape[1]:
        indexed = vectors.shape[1] if vectors.ndim == 2 else 0
        raise ModelError(
            f"the index holds vectors of {indexed} numbers, the model gives {query_vector.size}",
            "Choose the model that made the index, or rebuild the index with this model.",
        )
    if not np.isfinite(query_vector).all() or not query_vector.any():
        raise ModelError(
            "the model gave no usable vector for the question",
            "Ask with other words; if it happens again, choose another model or device.",
        )


def _rough(
    query: Vectors, vectors: Vectors, similarity: Similarity
) -> tuple[npt.NDArray[np.float32], float | npt.NDArray[np.float32]]:
    """Scores in float32 in the right order but for rounding, and a bound on that rounding.

    For Euclidean distances these are squares with their sign turned. A sum of n products of a
    and b in float32 is off by at most n eps |a| |b| (Higham 2002, "Accuracy and stability of
    numerical algorithms", section 3.1, with the constant rounded up).
    """
    dimensions = vectors.shape[1]
    if similarity == "cosine":
        return _products(vectors, query), dimensions * _EPS
    scores = np.empty(len(vectors), dtype=np.float32)
    squares = np.empty(len(vectors), dtype=np.float32)
    for at in range(0, len(vectors), _ROWS_AT_ONCE):  # both sums while the rows are at hand
        rows = vectors[at : at + _ROWS_AT_ONCE]
        np.matmul(rows, query, out=scores[at : at + _ROWS_AT_ONCE])
        np.einsum("nd,nd->n", rows, rows, out=squares[at : at + _ROWS_AT_ONCE])
    length = float(np.linalg.norm(query))
    norms = np.sqrt(squares)
    if similarity == "dot":
        return scores, norms * np.float32(dimensions * _EPS * length)
    square = np.float32(length * length)
    margin = np.square(norms + np.float32(length)) * np.float32(2 * dimensions * _EPS)
    return 2 * scores - squares - square, margin


def _products(vectors: Vectors, query: Vectors) -> npt.NDArray[np.float32]:
    """float32 ``(n,)``: the scalar product of every row with the query."""
    if vectors.nbytes <= _CACHED_BYTES:
        return vectors @ query
    # Beyond the processor's cache memory is the limit. Row by row reads at 95 % of its speed with
    # one thread; einsum, for a numpy without vecdot, at 80 %; the matrix product at 70 %.
    if _vecdot is not None:
        products: npt.NDArray[np.float32] = _vecdot(vectors, query)
    else:
        products = np.einsum("nd,d->n", vectors, query)
    return products


def _likely(
    rough: npt.NDArray[np.float32], margin: float | npt.NDArray[np.float32], depth: int
) -> npt.NDArray[np.int64]:
    """Ascending indices that hold all of the best, given the rounding of float32 sums."""
    if rough.size <= depth:
        return np.arange(rough.size, dtype=np.int64)
    # At least ``depth`` rows truly reach this; a row that cannot is none of the best.
    if isinstance(margin, float):
        surely = float(rough[top_k(rough, depth)[-1]]) - margin
        return np.flatnonzero(rough >= surely - margin).astype(np.int64, copy=False)
    least = rough - margin
    surely = float(least[top_k(least, depth)[-1]])
    return np.flatnonzero(rough + margin >= surely).astype(np.int64, copy=False)
