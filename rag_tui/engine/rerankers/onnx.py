"""Reranking with onnxruntime and tokenizers, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.onnx_session import bulk_threads, feed, input_names, open_session
from rag_tui.engine.rerankers.base import RerankerInfo, in_order
from rag_tui.engine.rerankers.reading import characters_read
from rag_tui.engine.rerankers.scores import finite_score
from rag_tui.engine.tokenizing import load_tokenizer, without_surrogates

BATCH_TOKENS = 512
"""Padded tokens of one batch: long pairs run alone, short ones together. More is slower on a CPU
and keeps a cancelled search waiting."""
_WINDOW = 128
"""Pairs that are tokenised and sorted by length together."""


class OnnxReranker:
    """A cross-encoder as an ONNX graph: token ids in, one logit out.

    Args:
        model: The graph, with an output ``(batch, 1)``.
        tokenizer: The model's ``tokenizer.json``.
        info: What this reranker is.
        pad_id: Token id of padding.

    Raises:
        ModelError: When a file cannot be loaded or the graph gives more than one score.
    """

    def __init__(
        self, model: Path, tokenizer: Path, *, info: RerankerInfo, pad_id: int = 0
    ) -> None:
        self._info = info
        self._pad_id = pad_id
        # load_tokenizer also drops a padding to a fixed length, which would cost 512 tokens a pair
        self._tokenizer = load_tokenizer(tokenizer)
        self._tokenizer.enable_truncation(info.max_tokens, strategy="longest_first")
        self._session = open_session(model, n_threads=bulk_threads())
        self._input_names = input_names(self._session)
        # Dynamic quantisation scales activations over the whole batch: a pair's score would
        # depend on its neighbours (by 0.05 in a logit of 9), so such pairs run one by one.
        self._batch_tokens = BATCH_TOKENS if info.precision == "float32" else 0
        shape = self._session.get_outputs()[0].shape
        if len(shape) != 2 or shape[1] != 1:
            raise ModelError(
                f"{info.name} is not a reranker: its output has shape {shape}, not (batch, 1)",
                "Choose a cross-encoder with one output.",
            )

    @property
    def info(self) -> RerankerInfo:
        """What this reranker is."""
        return self._info

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One logit per passage, in the given order, each as soon as it is known."""
        return in_order(self.score_batches(query, passages, cancel=cancel), len(passages))

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        """Logits by index of the passage; pairs of like length run together in float32."""
        question = without_surrogates(query)
        for start in range(0, len(passages), _WINDOW):
            if cancel is not None:
                cancel.check()
            window = passages[start : start + _WINDOW]
            encodings = self._tokenizer.encode_batch(
                [(question, without_surrogates(passage)) for passage in window]
            )
            for rows in self._batches([len(encoding.ids) for encoding in encodings]):
                if cancel is not None:
                    cancel.check()
                logits = self._run([encodings[row] for row in rows])
                yield {
                    start + row: finite_score(logit, window[row], model=self._info.name)
                    for row, logit in zip(rows, logits, strict=True)
                }

    def read_part(self, query: str, passage: str) -> int:
        """Characters at the start of the passage that fit behind the question."""
        encoding = self._tokenizer.encode(without_surrogates(query), without_surrogates(passage))
        return characters_read(encoding, encoding.overflowing, passage)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Rows in batches: one by one in their order, or by rising length up to the cap."""
        if not self._batch_tokens:
            yield from ([row] for row in range(len(lengths)))
            return
        batch: list[int] = []
        for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
            if batch and lengths[row] * (len(batch) + 1) > self._batch_tokens:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    def _run(self, encodings: Sequence[Any]) -> list[float]:
        inputs = feed(encodings, self._input_names, pad_id=self._pad_id)
        (logits,) = self._session.run(None, inputs)
        return [float(logit) for logit in logits[:, 0]]
