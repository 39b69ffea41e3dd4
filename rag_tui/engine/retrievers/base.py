"""What retrievers share: how positions and scores become the rows of a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_tui.engine.errors import BadIndexError, UsageError
from rag_tui.engine.types import Hit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def make_hits(
    positions: npt.NDArray[np.int64],
    scores: npt.NDArray[np.floating],
    chunk_ids: Sequence[str],
) -> tuple[Hit, ...]:
    """Rows with ranks from 1, in the given order.

    Args:
        positions: int64 ``(m,)``, positions of chunks, best first.
        scores: Floats ``(m,)``, the scores of those positions, in the same order.
        chunk_ids: Ids of all chunks by position.
    """
    pairs = zip(positions.tolist(), scores.tolist(), strict=True)
    return tuple(
        Hit(chunk_id=chunk_ids[position], position=position, score=score, rank=rank)
        for rank, (position, score) in enumerate(pairs, start=1)
    )


def check_depth(depth: int) -> None:
    """Refuse a depth below 1.

    Raises:
        UsageError: When it is.
    """
    if depth < 1:
        raise UsageError(
            f"depth must be at least 1 (got {depth})",
            "Set depth to the number of candidates to fetch, e.g. 50.",
        )


def check_same_chunks(n_indexed: int, n_chunks: int, what: str) -> None:
    """Refuse an index whose parts disagree on the number of chunks.

    Raises:
        BadIndexError: When they do.
    """
    if n_indexed != n_chunks:
        raise BadIndexError(
            f"the index is damaged: {what} for {n_indexed} chunks, but there are {n_chunks}",
            "Rebuild the index of this folder.",
        )
