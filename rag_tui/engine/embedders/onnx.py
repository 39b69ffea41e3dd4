"""Embedding with onnxruntime and tokenizers: the verified export of a model, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_tui.engine.embedders.base import EmbedderInfo
from rag_tui.engine.embedders.profile import EmbedderProfile
from rag_tui.engine.embedders.tokens import Role, TokenVectors, kept_tokens, unit_token_rows
from rag_tui.engine.embedders.unit import unit_rows
from rag_tui.engine.events import CancelToken
from rag_tui.engine.models import ModelFiles
from rag_tui.engine.onnx_session import bulk_threads, feed, input_names, open_session
from rag_tui.engine.tokenizing import load_tokenizer, without_surrogates

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors

BATCH_TOKENS = 512
"""Padded tokens of one batch: larger ones are not faster on a CPU, need twice the memory and
let a cancelled job run on for longer than 100 ms."""
_WINDOW = 1024
"""Texts that are tokenised and sorted by length together."""


@dataclass(frozen=True, slots=True)
class ExportedFiles:
    """The files of one export."""

    folder: Path

    @property
    def model(self) -> Path:
        """The float32 graph; its output is the last hidden state."""
        return self.folder / "model.onnx"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer as sentence-transformers used it."""
        return self.folder / "tokenizer.json"


class OnnxEmbedder:
    """Same vectors as sentence-transformers (1e-5), at a fraction of its start-up time.

    Args:
        exported: Where the export lies.
        files: The original model's files, weights hashed.
        profile: What the original folder says about itself.
        pad_id: Token id of padding.

    Raises:
        ModelError: When the export cannot be loaded.
    """

    def __init__(
        self, exported: ExportedFiles, files: ModelFiles, profile: EmbedderProfile, *, pad_id: int
    ) -> None:
        self._tokenizer = load_tokenizer(exported.tokenizer)
        self._tokenizer.enable_truncation(profile.max_tokens)
        self._pad_id = pad_id
        self._profile = profile
        # One thread for a question: more only wait for each other on a busy machine.
        self._query_session = open_session(exported.model, n_threads=1)
        n_threads = bulk_threads()
        self._document_session = (
            self._query_session
            if n_threads == 1
            else open_session(exported.model, n_threads=n_threads)
        )
        self._input_names = input_names(self._query_session)
        self._info = EmbedderInfo(
            name=files.asked_for,
            fingerprint=profile.fingerprint(files.sha256),
            dimensions=int(self._query_session.get_outputs()[0].shape[-1]),
            max_tokens=profile.max_tokens,
            query_prompt=profile.query_prompt,
            document_prompt=profile.document_prompt,
            backend="onnxruntime float32",
            source=files.source,
            weights_sha256=files.sha256,
            note=files.note,
            similarity=profile.similarity,
        )

    @property
    def info(self) -> EmbedderInfo:
        """What this embedder is."""
        return self._info

    def embed_query(self, text: str) -> Vectors:
        """float32 ``(dimensions,)``, with the model's query prompt."""
        encoding = self._tokenizer.encode(self._profile.query_prompt + without_surrogates(text))
        raw = self._run(self._query_session, [encoding])
        row: Vectors = self._finished(raw, [text])[0]
        return row

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        """float32 ``(len(texts), dimensions)``, with the model's document prompt, same order."""
        raw = np.empty((len(texts), self._info.dimensions), dtype=np.float32)
        prompt = self._profile.document_prompt
        for start in range(0, len(texts), _WINDOW):
            window = [prompt + without_surrogates(text) for text in texts[start : start + _WINDOW]]
            if cancel is not None:
                cancel.check()
            encodings = self._tokenizer.encode_batch(window)
            for rows in _batches([len(encoding.ids) for encoding in encodings]):
                if cancel is not None:
                    cancel.check()
                batch = [encodings[row] for row in rows]
                raw[[start + row for row in rows]] = self._run(self._document_session, batch)
        return self._finished(raw, texts)

    def token_vectors(self, texts: Sequence[str], role: Role) -> list[TokenVectors]:
        """Last hidden states of every token but the special ones and the prompt's."""
        is_query = role == "query"
        prompt = self._profile.query_prompt if is_query else self._profile.document_prompt
        session = self._query_session if is_query else self._document_session
        found = []
        for text in texts:
            encoding = self._tokenizer.encode(prompt + without_surrogates(text))
            inputs = feed([encoding], self._input_names, pad_id=self._pad_id)
            (hidden,) = session.run(None, inputs)
            kept = kept_tokens(encoding, len(prompt))
            vectors = unit_token_rows(hidden[0][[at for at, _ in kept]], model=self._info.name)
            n_cut = sum(len(kept_tokens(part, len(prompt))) for part in encoding.overflowing)
            found.append(TokenVectors(tuple(span for _, span in kept), vectors, n_cut))
        return found

    def _finished(self, raw: npt.NDArray[np.floating], texts: Sequence[str]) -> Vectors:
        # A model that scales to norm 1 by itself does so whatever its similarity.
        similarity = "cosine" if self._profile.has_unit_output else self._profile.similarity
        return unit_rows(raw, texts, model=self._info.name, similarity=similarity)

    def _run(self, session: Any, encodings: Sequence[Any]) -> npt.NDArray[np.float32]:
        inputs = feed(encodings, self._input_names, pad_id=self._pad_id)
        (hidden,) = session.run(None, inputs)
        states: npt.NDArray[np.float32] = hidden
        if self._profile.pooling == "cls":
            return states[:, 0]
        mask = np.zeros(states.shape[:2], dtype=np.float32)
        for row, encoding in enumerate(encodings):
            mask[row, : len(encoding.ids)] = 1.0
        total = np.einsum("bsd,bs->bd", states, mask)
        mean: npt.NDArray[np.float32] = total / np.maximum(mask.sum(axis=1, keepdims=True), 1e-9)
        return mean


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows by falling length, so many at once that their padded tokens stay within the cap."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row], reverse=True)
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        size = max(1, BATCH_TOKENS // longest)
        yield order[start : start + size]
        start += size
