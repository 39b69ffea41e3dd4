"""Reranking with sentence-transformers' CrossEncoder: any cross-encoder it can load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from rag_tui.engine.embedders.base import Precision
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.models import ModelFiles
from rag_tui.engine.onnx_session import bulk_threads
from rag_tui.engine.precision import check_bfloat16, precision_note, with_precision
from rag_tui.engine.quiet import quiet_transformers, quietly
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.rerankers.reading import characters_read
from rag_tui.engine.rerankers.scores import finite_score, logit_kind
from rag_tui.engine.tokenizing import without_surrogates


class CrossEncoderReranker:
    """Raw logits of a cross-encoder with one output.

    Args:
        files: The model's files, weights hashed.
        info: What this reranker is.
        device: ``cpu``, ``cuda``, ``mps``; ``auto`` lets the library choose.
        precision: Of weights and layers.

    Raises:
        ModelError: When the library cannot load the folder, it gives several scores, or the
            processor lacks bfloat16.
    """

    def __init__(
        self,
        files: ModelFiles,
        info: RerankerInfo,
        *,
        device: str = "cpu",
        precision: Precision = "float32",
    ) -> None:
        if precision == "bfloat16":
            check_bfloat16(device)
        self._lock = Lock()  # a fast tokenizer must not be used by two threads at once
        with quietly():
            self.model = _load(files, device, info.max_tokens, precision)
            if precision == "bfloat16":
                check_bfloat16(self.model.device.type)  # ``auto`` may have chosen the CPU
        note = "; ".join(filter(None, (info.note, precision_note(precision))))
        self._info = replace(
            info,
            score_kind=logit_kind(note),
            backend=f"sentence-transformers on {self.model.device}",
            precision=precision,
            fingerprint=with_precision(info.fingerprint, precision),
            note=note,
        )
        labels = int(self.model.num_labels)
        if labels != 1:
            raise ModelError(
                f"{files.asked_for} is not a reranker: it gives {labels} scores a pair, not one",
                "Choose a cross-encoder with one output, such as "
                "cross-encoder/ms-marco-MiniLM-L6-v2.",
            )

    @property
    def info(self) -> RerankerInfo:
        """What this reranker is."""
        return self._info

    def add_note(self, note: str) -> None:
        """State something about this reranker in its info."""
        self._info = replace(self._info, note="; ".join(filter(None, (self._info.note, note))))

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One logit per passage, in the given order, each as soon as it is known.

        Pairs run one by one: padding would make a score depend on the other passages.
        """
        question = without_surrogates(query)
        for passage in passages:
            if cancel is not None:
                cancel.check()
            score = self._predict(question, without_surrogates(passage))
            yield finite_score(score, passage, model=self._info.name)

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        """Logits by index of the passage, one by one in their order."""
        for i, score in enumerate(self.score(query, passages, cancel=cancel)):
            yield {i: score}

    def read_part(self, query: str, passage: str) -> int:
        """Characters at the start of the passage that fit behind the question."""
        with self._lock, quietly():
            if not self.model.tokenizer.is_fast:  # it cannot locate its tokens
                return len(passage)
            pair = self.model.tokenizer(
                without_surrogates(query),
                without_surrogates(passage),
                truncation="longest_first",
                max_length=self._info.max_tokens,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
        return characters_read(pair.encodings[0], pair.encodings[1:], passage)

    def _predict(self, question: str, passage: str) -> float:
        import torch

        with self._lock, quietly():
            scores: Any = self.model.predict(
                [(question, passage)],
                # The library's default, a sigmoid, is saturated where it matters.
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return float(scores[0])


def _load(files: ModelFiles, device: str, max_tokens: int, precision: Precision) -> Any:
    try:
        import torch
        from sentence_transformers import CrossEncoder

        quiet_transformers()
        if device == "cpu":
            torch.set_num_threads(bulk_threads())
        return CrossEncoder(
            str(files.folder),
            device=None if device == "auto" else device,
            max_length=max_tokens,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": precision},
        )
    except Exception as error:  # every model library raises its own
        raise ModelError(
            f"{files.asked_for} cannot be loaded from {files.folder}: "
            f"{type(error).__name__}: {error}",
            "Check that it is a cross-encoder, and models.device.",
        ) from error
