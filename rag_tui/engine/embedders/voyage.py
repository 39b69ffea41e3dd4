"""Embeddings by the Voyage service; texts leave this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from rag_tui.engine.embedders.base import EmbedderInfo
from rag_tui.engine.embedders.unit import unit_rows
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.tokenizing import without_surrogates
from rag_tui.engine.voyage import VoyageService, voyage_model

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

DEFAULT_MODEL = "voyage-3.5"
BATCH_TEXTS = 128
BATCH_BYTES = 120_000
"""A token is at least one byte: such a request is within the smallest documented limit, 120,000
tokens (docs.voyageai.com, text embeddings; up to 1,000,000 for some models)."""

_CONTEXT = {"voyage-2": 4_000, "voyage-large-2": 16_000, "voyage-code-2": 16_000,
            "voyage-law-2": 16_000, "voyage-large-2-instruct": 16_000}  # fmt: skip
_USUAL_CONTEXT = 32_000


class VoyageEmbedder:
    """Questions are sent with ``input_type=query``, passages with ``input_type=document``.

    The service puts a prompt of its own before each. One short text is embedded at the start,
    to learn the dimensions and whether the key is good.

    Args:
        name: ``voyage`` or ``voyage/MODEL``.
        service: Through which the requests go.
        truncate_dim: Dimensions asked of the service, which knows some numbers only; 0: its
            default.

    Raises:
        ModelError: When the service refuses or fails.
    """

    def __init__(self, name: str, service: VoyageService, *, truncate_dim: int = 0) -> None:
        self._model = model_of(name)
        self._service = service
        service.refuse_local(self._model)
        self._wanted = truncate_dim or None
        dimensions = len(self._ask(["a"], "document", None)[0])
        decides = {"embedder": "voyage", "version": 1, "model": self._model, "dim": dimensions}
        self._info = EmbedderInfo(
            name=name,
            fingerprint=fingerprint(decides),
            dimensions=dimensions,
            max_tokens=context_length(self._model),
            backend="voyage service",
            source="service",
            device="service",
            note=f"texts are sent to the Voyage service ({self._model}); what is beyond "
            f"{context_length(self._model):,} tokens is cut there",
        )

    @property
    def info(self) -> EmbedderInfo:
        """What this embedder is."""
        return self._info

    def embed_query(self, text: str) -> Vectors:
        """float32 ``(dimensions,)``, L2 norm 1, as a question."""
        row: Vectors = self._rows([text], "query", None)[0]
        return row

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        """float32 ``(len(texts), dimensions)``, rows L2 norm 1, as passages, same order."""
        if not texts:
            return np.zeros((0, self._info.dimensions), dtype=np.float32)
        parts = []
        for batch in batches(texts, BATCH_TEXTS, BATCH_BYTES):
            if cancel is not None:
                cancel.check()
            parts.append(self._rows(batch, "document", cancel))
        return np.concatenate(parts)

    def _rows(
        self, texts: Sequence[str], role: Literal["query", "document"], cancel: CancelToken | None
    ) -> Vectors:
        lists = self._ask(texts, role, cancel)
        if {len(one) for one in lists} != {self._info.dimensions}:
            raise ModelError(
                f"{self._info.name} gave vectors of other lengths than "
                f"{self._info.dimensions} numbers",
                "Try again; if it happens again, choose another embedding model.",
            )
        return unit_rows(np.array(lists, dtype=np.float32), texts, model=self._info.name)

    def _ask(
        self, texts: Sequence[str], role: Literal["query", "document"], cancel: CancelToken | None
    ) -> list[list[float]]:
        sent = [without_surrogates(text) for text in texts]
        reply = self._service.call(
            lambda client: client.embed(
                sent,
                model=self._model,
                input_type=role,
                truncation=True,
                output_dimension=self._wanted,
            ),
            cancel=cancel,
        )
        found: list[list[float]] = reply.embeddings
        if len(found) != len(texts):
            raise ModelError(
                f"voyage/{self._model} gave {len(found)} vectors for {len(texts)} texts",
                "Try again; if it happens again, choose another embedding model.",
            )
        return found


def model_of(name: str) -> str:
    """The service's own name of the model that ``voyage`` or ``voyage/MODEL`` means."""
    return voyage_model(name, DEFAULT_MODEL)


def context_length(model: str) -> int:
    """Tokens that a model reads of one text, as documented."""
    return _CONTEXT.get(model, _USUAL_CONTEXT)


def batches(texts: Sequence[str], most: int, most_bytes: int) -> Iterator[list[str]]:
    """The texts in their order, at most ``most`` and ``most_bytes`` at a time, at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        n_bytes = len(text.encode("utf-8", "surrogatepass"))
        if batch and (len(batch) == most or size + n_bytes > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += n_bytes
    if batch:
        yield batch
