"""The embedder protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from rag_tui.engine.events import CancelToken

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

Similarity = Literal["cosine", "dot", "euclidean"]
"""How two vectors of a model are compared; only for ``cosine`` are they scaled to norm 1."""

Precision = Literal["float32", "bfloat16"]
"""Of a model's weights and layers; vectors are float32 always."""


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """What an embedder is; two embedders with one fingerprint give the same vectors (1e-5)."""

    name: str
    """As asked for: a hub name, a path, or ``hashing``."""
    fingerprint: str
    """Hash of weights, pooling, prompts, token limit, and of a similarity, truncation or
    precision that is not the usual one: decides whether an index fits."""
    dimensions: int
    max_tokens: int
    """Tokens read of one text, special tokens included."""
    query_prompt: str = ""
    document_prompt: str = ""
    backend: str = ""
    """``onnxruntime float32``, ``sentence-transformers``, ``hashing``."""
    source: str = ""
    """``path``, ``hub cache``, ``offline extra``, ``hub download``, ``built in``."""
    weights_sha256: str = ""
    device: str = "cpu"
    note: str = ""
    """What a user must know: a stand-in, no real model, why there is no fast path."""
    similarity: Similarity = "cosine"
    """How its vectors are compared; for all but ``cosine`` they have the model's own lengths."""
    precision: Precision = "float32"
    """``bfloat16``: scores differ in the third decimal from those of the full precision."""
    truncated_from: int = 0
    """Dimensions before a Matryoshka truncation; 0 without one."""


class Embedder(Protocol):
    """Turns texts into float32 vectors; queries and documents are different roles.

    Rows have L2 norm 1 where ``info.similarity`` is ``cosine``.
    """

    @property
    def info(self) -> EmbedderInfo:
        """What this embedder is."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question: float32 ``(dimensions,)``."""
        ...

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        """Vectors of passages: float32 ``(len(texts), dimensions)``, same order.

        Raises:
            Cancelled: Soon after the token was set.
        """
        ...
