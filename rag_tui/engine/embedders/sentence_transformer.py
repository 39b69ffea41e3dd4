"""Embedding with sentence-transformers: any model it can load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_tui.engine.embedders.base import EmbedderInfo, Precision
from rag_tui.engine.embedders.profile import EmbedderProfile
from rag_tui.engine.embedders.tokens import Role, TokenVectors, kept_tokens, unit_token_rows
from rag_tui.engine.embedders.unit import unit_rows
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.models import ModelFiles
from rag_tui.engine.onnx_session import bulk_threads
from rag_tui.engine.precision import check_bfloat16, precision_note, with_precision
from rag_tui.engine.quiet import quiet_transformers, quietly
from rag_tui.engine.tokenizing import without_surrogates

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors

_SLICE = 8
"""Texts between two looks at the cancel token; a slice of long texts takes some 100 ms."""
_SELF_TEST = ("Can I bring my dog?", "The key is in the box beside the garden gate. " * 8)
_LEAST_COSINE = 0.999


def is_same_direction(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating]) -> bool:
    """Whether every row of ``a`` has a cosine of at least 0.999 with its row of ``b``.

    Both are ``(n, dimensions)`` with rows of L2 norm 1; NaN anywhere means no.
    """
    cosines = np.einsum("nd,nd->n", a, b)
    return bool((cosines >= _LEAST_COSINE).all())


class SentenceTransformerEmbedder:
    """Queries through ``encode_query``, passages through ``encode_document``.

    Args:
        files: The model's files, weights hashed.
        profile: What the folder says about itself.
        device: ``cpu``, ``cuda``, ``mps``; ``auto`` lets the library choose.
        precision: Of weights and layers; vectors are float32 and scaled in float32.

    Raises:
        ModelError: When the library cannot load the folder, or the processor lacks bfloat16.
    """

    def __init__(
        self,
        files: ModelFiles,
        profile: EmbedderProfile,
        *,
        device: str = "cpu",
        precision: Precision = "float32",
    ) -> None:
        if precision == "bfloat16":
            check_bfloat16(device)
        self._lock = Lock()  # a fast tokenizer must not be used by two threads at once
        with quietly():
            self.model = _load(files, device, precision)
            if precision == "bfloat16":
                check_bfloat16(self.model.device.type)  # ``auto`` may have chosen the CPU
            if profile.max_tokens and not profile.reads_all:
                self.model.max_seq_length = profile.max_tokens
        self._profile = profile
        info = EmbedderInfo(
            name=files.asked_for,
            fingerprint=with_precision(profile.fingerprint(files.sha256), precision),
            dimensions=0,
            max_tokens=profile.max_tokens,
            query_prompt=profile.query_prompt,
            document_prompt=profile.document_prompt,
            backend="sentence-transformers",
            source=files.source,
            weights_sha256=files.sha256,
            device=str(self.model.device),
            note="; ".join(filter(None, (files.note, precision_note(precision)))),
            similarity=profile.similarity,
            precision=precision,
        )
        if self.model.device.type != "cpu":
            info = self._checked_device(info)
        # Asked of a real vector: the library's own answer may be None for some modules.
        self._info = replace(info, dimensions=int(self._encode(["a"], is_query=False).shape[1]))

    @property
    def info(self) -> EmbedderInfo:
        """What this embedder is."""
        return self._info

    def add_note(self, note: str) -> None:
        """State something about this embedder in its info."""
        self._info = replace(self._info, note="; ".join(filter(None, (self._info.note, note))))

    def embed_query(self, text: str) -> Vectors:
        """float32 ``(dimensions,)``, with the model's query prompt."""
        row: Vectors = self._finished(self._encode([text], is_query=True), [text])[0]
        return row

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        """float32 ``(len(texts), dimensions)``, with the model's document prompt, same order."""
        raw = np.empty((len(texts), self._info.dimensions), dtype=np.float32)
        # Texts of like length together: padding costs as much as text.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
        for start in range(0, len(order), _SLICE):
            if cancel is not None:
                cancel.check()
            rows = order[start : start + _SLICE]
            raw[rows] = self._encode([texts[i] for i in rows], is_query=False)
        return self._finished(raw, texts)

    def token_vectors(self, texts: Sequence[str], role: Role) -> list[TokenVectors]:
        """Last hidden states of every token but the special ones and the prompt's.

        Raises:
            ModelError: When the model has none, or a tokenizer that cannot locate its tokens.
        """
        is_query = role == "query"
        prompt = self._profile.query_prompt if is_query else self._profile.document_prompt
        found = []
        for text in texts:
            try:
                states, encodings = self._token_states(prompt + without_surrogates(text), role)
            except Exception as error:  # every kind of model fails in its own way
                raise _no_tokens(self._info.name, f"{type(error).__name__}: {error}") from error
            if len(states) != len(encodings[0].ids):
                raise _no_tokens(self._info.name, "its tokens and vectors differ in number")
            kept = kept_tokens(encodings[0], len(prompt))
            vectors = unit_token_rows(states[[at for at, _ in kept]], model=self._info.name)
            n_cut = sum(len(kept_tokens(part, len(prompt))) for part in encodings[1:])
            found.append(TokenVectors(tuple(span for _, span in kept), vectors, n_cut))
        return found

    def _token_states(self, text: str, role: Role) -> tuple[npt.NDArray[np.float32], Any]:
        """States ``(n, dimensions)``, and encodings: of what was read, then of the rest."""
        encode = self.model.encode_query if role == "query" else self.model.encode_document
        with self._lock, quietly():
            (states,) = encode(
                [text], prompt="", output_value="token_embeddings", show_progress_bar=False
            )
            batch = self.model.tokenizer(
                text,
                truncation=True,
                max_length=self._profile.max_tokens,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
        return states.float().cpu().numpy(), batch.encodings

    def _finished(self, raw: npt.NDArray[np.floating], texts: Sequence[str]) -> Vectors:
        return unit_rows(raw, texts, model=self._info.name, similarity=self._info.similarity)

    def _checked_device(self, info: EmbedderInfo) -> EmbedderInfo:
        """Compare the device with the CPU: some give NaN or wrong vectors and nobody notices."""
        device = self.model.device
        on_device = _directions(self._encode(_SELF_TEST, is_query=False))
        self.model.to("cpu")
        if is_same_direction(on_device, _directions(self._encode(_SELF_TEST, is_query=False))):
            self.model.to(device)
            return info
        note = f"runs on the CPU: {device} gives other vectors for this model"
        return replace(info, device="cpu", note="; ".join(filter(None, (info.note, note))))

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Any:
        encode = self.model.encode_query if is_query else self.model.encode_document
        prompt = self._profile.query_prompt if is_query else self._profile.document_prompt
        with self._lock, quietly():
            return encode(
                [without_surrogates(text) for text in texts],
                # Given in words: the library itself overlooks prompts named "passage".
                prompt=prompt,
                batch_size=_SLICE,
                normalize_embeddings=False,  # done in float32, and only for cosine
                show_progress_bar=False,
                convert_to_numpy=True,
            )


def _directions(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Rows scaled to norm 1 as far as that is possible: a broken row stays broken."""
    rows = np.asarray(vectors, dtype=np.float32)
    scaled: npt.NDArray[np.floating] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def _no_tokens(model: str, why: str) -> ModelError:
    return ModelError(
        f"{model} gives no vectors of single tokens: {why}",
        "Choose a transformer model for this, such as sentence-transformers/all-MiniLM-L6-v2.",
    )


def _load(files: ModelFiles, device: str, precision: Precision) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer

        quiet_transformers()
        if device == "cpu":
            torch.set_num_threads(bulk_threads())
        return SentenceTransformer(
            str(files.folder),
            device=None if device == "auto" else device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": precision},
        )
    except Exception as error:  # every model library raises its own
        raise ModelError(
            f"{files.asked_for} cannot be loaded from {files.folder}: "
            f"{type(error).__name__}: {error}",
            "Check that it is a sentence-transformers model, and models.device.",
        ) from error
