"""Vectors of single tokens: what late interaction and the token view are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors

Role = Literal["query", "document"]
"""Whose prompt a text gets."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The tokens of one text that the model read, and a vector for each."""

    spans: tuple[tuple[int, int], ...]
    """Character offsets into the text given, end-exclusive, ascending; special tokens and the
    prompt's are left out. A byte-level tokenizer may give one character to several tokens."""
    vectors: Vectors
    """float32 ``(len(spans), dimensions)``, rows L2 norm 1: the last hidden states in context."""
    n_cut: int = 0
    """Tokens beyond the model's limit, which it did not read."""


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that shows the vectors of single tokens."""

    def token_vectors(self, texts: Sequence[str], role: Role) -> list[TokenVectors]:
        """The tokens of each text, in the order of the texts."""
        ...


def token_vectors(embedder: Embedder, texts: Sequence[str], role: Role) -> list[TokenVectors]:
    """The tokens of each text with their vectors, in the order of the texts.

    Raises:
        ModelError: When this embedder cannot show them.
    """
    if isinstance(embedder, TokenEmbedder):
        return embedder.token_vectors(texts, role)
    raise ModelError(
        f"{embedder.info.name} gives one vector a text and none for its words",
        "Choose a sentence-transformers model, by hub name or folder.",
    )


def kept_tokens(encoding: Any, n_prompt: int) -> list[tuple[int, tuple[int, int]]]:
    """Index and span of every token that is neither special nor of the prompt.

    Args:
        encoding: Of the ``tokenizers`` library, made of the prompt and the text in one string.
        n_prompt: Characters of the prompt; spans are shifted by it.
    """
    special = encoding.special_tokens_mask
    return [
        (at, (max(0, start - n_prompt), end - n_prompt))
        for at, (start, end) in enumerate(encoding.offsets)
        if not special[at] and end > n_prompt
    ]


def unit_token_rows(states: npt.NDArray[np.floating], *, model: str) -> Vectors:
    """Token states ``(n, dimensions)`` as float32 rows of L2 norm 1; a zero row stays zero.

    Raises:
        ModelError: When a value is NaN or infinite.
    """
    rows = np.asarray(states, dtype=np.float32)
    if not np.isfinite(rows).all():
        raise ModelError(
            f"{model} gave a token vector with NaN or infinity",
            "Try models.device = cpu, or another embedding model.",
        )
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    norms[norms == 0.0] = 1.0
    unit: Vectors = rows / norms
    return unit
