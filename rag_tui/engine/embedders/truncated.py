"""The first dimensions of another embedder's vectors (Matryoshka models)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_tui.engine.embedders.base import Embedder, EmbedderInfo, Similarity
from rag_tui.engine.embedders.tokens import Role, TokenVectors, token_vectors
from rag_tui.engine.embedders.unit import unit_rows
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import fingerprint

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors


class TruncatedEmbedder:
    """Keeps the first ``dimensions`` numbers of every vector, scaled to norm 1 again for cosine.

    Models trained for it lose little (Kusupati et al. 2022, "Matryoshka representation
    learning", NeurIPS); others lose much. Vectors of tokens stay whole.

    Args:
        whole: Whose vectors are cut.
        dimensions: How many numbers are kept; all of them where the embedder has no more.
        is_rescaled: Scale to norm 1 whatever the similarity: for models that do so themselves.
    """

    def __init__(self, whole: Embedder, *, dimensions: int, is_rescaled: bool = False) -> None:
        self._whole = whole
        self._rescale_as: Similarity = "cosine" if is_rescaled else whole.info.similarity
        self._info = _info(whole.info, dimensions)

    @property
    def info(self) -> EmbedderInfo:
        """What this embedder is."""
        return self._info

    def embed_query(self, text: str) -> Vectors:
        """float32 ``(dimensions,)``."""
        row: Vectors = self._cut(self._whole.embed_query(text)[None], [text])[0]
        return row

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        """float32 ``(len(texts), dimensions)``, same order."""
        return self._cut(self._whole.embed_documents(texts, cancel=cancel), texts)

    def token_vectors(self, texts: Sequence[str], role: Role) -> list[TokenVectors]:
        """Those of the whole embedder, in all its dimensions."""
        return token_vectors(self._whole, texts, role)

    def _cut(self, vectors: Vectors, texts: Sequence[str]) -> Vectors:
        if vectors.shape[1] == self._info.dimensions:
            return vectors
        return unit_rows(
            vectors[:, : self._info.dimensions],
            texts,
            model=self._info.name,
            similarity=self._rescale_as,
        )


def _info(whole: EmbedderInfo, dimensions: int) -> EmbedderInfo:
    if dimensions >= whole.dimensions:
        note = f"models.truncate_dim {dimensions} cuts nothing: it has {whole.dimensions}"
        return replace(whole, note="; ".join(filter(None, (whole.note, note))))
    note = f"the first {dimensions} of {whole.dimensions} dimensions (models.truncate_dim)"
    return replace(
        whole,
        fingerprint=fingerprint({"of": whole.fingerprint, "truncate_dim": dimensions}),
        dimensions=dimensions,
        truncated_from=whole.dimensions,
        note="; ".join(filter(None, (whole.note, note))),
    )
