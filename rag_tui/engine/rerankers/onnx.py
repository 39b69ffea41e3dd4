"""Reranking with onnxruntime and tokenizers, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.onnx_session import bulk_threads, feed, input_names, open_session
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.rerankers.scores import finite_score
from rag_tui.engine.tokenizing import load_tokenizer, without_surrogates


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
        question = without_surrogates(query)
        for passage in passages:
            if cancel is not None:
                cancel.check()
            encoding = self._tokenizer.encode(question, without_surrogates(passage))
            # One pair a run: dynamic quantisation scales activations over the whole batch, so
            # that a pair's score would depend on its neighbours (by 0.05 in a logit of 9).
            outputs = self._session.run(
                None, feed([encoding], self._input_names, pad_id=self._pad_id)
            )
            yield finite_score(float(outputs[0][0, 0]), passage, model=self._info.name)
