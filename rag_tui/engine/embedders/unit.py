"""The one check, and the normalisation for cosine, that every embedder's output passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Similarity, Vectors

_SHOWN = 60


def unit_rows(
    raw: npt.NDArray[np.floating],
    texts: Sequence[str],
    *,
    model: str,
    similarity: Similarity = "cosine",
) -> Vectors:
    """Checked float32 rows, for cosine scaled to L2 norm 1, else of the lengths they have.

    Args:
        raw: ``(len(texts), dimensions)``.
        texts: What was embedded, for the message.
        model: The model's name, for the message.
        similarity: How the vectors are compared.

    Raises:
        ModelError: When a row is not finite or zero: such a vector would match everything or
            spoil the sort. Names the first such text and its index.
    """
    vectors = np.asarray(raw, dtype=np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(norms[:, 0]) | (norms[:, 0] == 0.0))
    if bad.size:
        index = int(bad[0])
        kind = "a zero vector" if norms[index, 0] == 0.0 else "a vector with NaN or infinity"
        raise ModelError(
            f"{model} gave {kind} for text {index}: {texts[index][:_SHOWN]!r}",
            "Try models.device = cpu, or another embedding model.",
        )
    if similarity != "cosine":
        return vectors
    unit: Vectors = vectors / norms
    return unit


def as_unit(vectors: Vectors, similarity: str) -> Vectors:
    """Rows of L2 norm 1: the vectors themselves where they are so already, else a scaled copy."""
    if similarity == "cosine":
        return vectors
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(norms == 0.0, 1.0, norms)).astype(np.float32, copy=False)
    return unit
