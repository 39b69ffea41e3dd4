"""Vector search: exact cosine similarity against every chunk."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.errors import ModelError
from rag_tui.engine.retrievers.base import check_depth, check_same_chunks, make_hits
from rag_tui.engine.topk import top_k
from rag_tui.engine.types import Ranking, ScoreKind

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors

COSINE = ScoreKind("cosine", "-1 to 1", "higher is better; comparable within one model only")

_ROWS_AT_ONCE = 4096


def retrieve_dense(
    query_vector: Vectors,
    vectors: Vectors,
    chunk_ids: Sequence[str],
    *,
    depth: int,
    candidates: npt.NDArray[np.bool_] | None = None,
) -> Ranking:
    """The chunks most similar to a query, by cosine, ties by position.

    Every chunk is compared; there is no approximate index. A fast float32 product chooses the
    candidates with a margin for its rounding, and these are computed again in float64, row by
    row: equal vectors have equal scores wherever they stand in the corpus.

    Args:
        query_vector: float32 ``(dim,)``, L2 norm 1.
        vectors: float32 ``(n_chunks, dim)``, rows of L2 norm 1.
        chunk_ids: Ids by position.
        depth: How many are wanted.
        candidates: Bool ``(n_chunks,)``: only these chunks are ranked; None: all.

    Raises:
        ModelError: When the dimensions differ, or a vector is zero or holds no numbers.
        UsageError: When depth is below 1.
        BadIndexError: When vectors, candidates and chunk ids differ in number.
    """
    started = perf_counter()
    check_depth(depth)
    check_same_chunks(len(vectors), len(chunk_ids), "vectors")
    check_query_vector(query_vector, vectors)
    if candidates is None:
        positions = np.arange(len(vectors), dtype=np.int64)
    else:
        check_same_chunks(len(candidates), len(chunk_ids), "a filter")
        positions = np.flatnonzero(candidates).astype(np.int64, copy=False)
    rough = (vectors @ query_vector)[positions]
    if not np.isfinite(rough).all():
        bad = chunk_ids[int(positions[np.flatnonzero(~np.isfinite(rough))[0]])]
        raise ModelError(
            f"the vector of chunk {bad} holds values that are not numbers",
            "Rebuild the index; if it happens again, choose another model or device.",
        )
    likely = positions[_likely(rough, depth, dimensions=vectors.shape[1])]
    exact = similarities(query_vector, vectors, likely)
    order = top_k(exact, depth) if likely.size else likely
    return Ranking(
        method="vector",
        hits=make_hits(likely[order], exact[order], chunk_ids),
        depth=depth,
        score_kind=COSINE,
        elapsed_s=perf_counter() - started,
    )


def similarities(
    query_vector: Vectors, vectors: Vectors, positions: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Cosines of some chunks: float64 ``(len(positions),)``, in their order, within -1 to 1.

    A chunk's value depends on nothing but its own vector and the query's.
    """
    query = query_vector.astype(np.float64)
    parts = [
        (vectors[positions[at : at + _ROWS_AT_ONCE]].astype(np.float64) * query).sum(axis=1)
        for at in range(0, positions.size, _ROWS_AT_ONCE)
    ]
    # Rounding must not show a cosine of 1.00000012.
    return np.clip(np.concatenate(parts), -1.0, 1.0) if parts else np.zeros(0)


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


def _likely(
    rough: npt.NDArray[np.float32], depth: int, *, dimensions: int
) -> npt.NDArray[np.int64]:
    """Ascending positions that hold all of the best, given the rounding of float32 sums."""
    if rough.size <= depth:
        return np.arange(rough.size, dtype=np.int64)
    kth = float(rough[top_k(rough, depth)[-1]])
    # |error| <= n * eps / 2 for a sum of n products of unit vectors, on both sides.
    margin = dimensions * float(np.finfo(np.float32).eps)
    return np.flatnonzero(rough >= kth - margin).astype(np.int64, copy=False)
