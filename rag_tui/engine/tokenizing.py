"""Counting and locating tokens the way a model does, through its tokenizer.json; no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import ModelError
from rag_tui.engine.quiet import quiet_environment

_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE_LENGTH = 4
# Latin words are cut every four letters; any other visible character counts for itself.
_PIECE = re.compile(rf"[A-Za-z0-9_]{{1,{_PIECE_LENGTH}}}|\S")
_BATCH = 512


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, so that offsets stay true.

    Tokenizers take UTF-8, which has no lone surrogates; file names can bring them in.
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def load_tokenizer(path: Path) -> Any:
    """A ``tokenizers.Tokenizer`` that neither truncates nor pads.

    Raises:
        ModelError: When the file is missing or is no tokenizer.
    """
    quiet_environment()
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(
            f"no tokenizer can be read from {path}: {error}",
            "Get the model again, with its tokenizer.json.",
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class ModelTokenCounter:
    """Counts with a model's own tokenizer.

    Args:
        tokenizer_file: The model's ``tokenizer.json``.
        limit: Tokens the model reads of one text, special tokens included.
        document_prompt: What the model puts before every passage; it takes room too.

    Raises:
        ModelError: When the file is missing or is no tokenizer.
    """

    def __init__(
        self, tokenizer_file: Path, *, limit: int | None, document_prompt: str = ""
    ) -> None:
        self._tokenizer = load_tokenizer(tokenizer_file)
        self.limit = limit
        self.n_special = int(self._tokenizer.num_special_tokens_to_add(False))
        if document_prompt:
            self.n_special += self.count([document_prompt])[0]
        digest = hashlib.sha256(tokenizer_file.read_bytes()).hexdigest()
        self.name = f"tokenizer {digest[:16]} limit {limit} special {self.n_special}"

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens not included."""
        counts: list[int] = []
        for start in range(0, len(texts), _BATCH):
            batch = [without_surrogates(text) for text in texts[start : start + _BATCH]]
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            counts.extend(len(encoding.ids) for encoding in encodings)
        return counts

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character span of each token, ascending, end-exclusive, special tokens not included.

        A byte-level tokenizer may give one character to several tokens; each then has its span.
        """
        encoding = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        return [(int(start), int(end)) for start, end in encoding.offsets]


class WordTokenCounter:
    """A stand-in for a model's tokenizer that cannot be had.

    Every run of Latin letters and digits counts one token per four characters begun, every
    other visible character counts one. That is more than a WordPiece tokenizer finds in
    ordinary text, so chunks rather get too short than silently cut by the model.
    """

    def __init__(self, *, limit: int | None = None, n_special: int = 2) -> None:
        self.limit = limit
        self.n_special = n_special
        self.name = f"estimate: 4 characters a token, limit {limit} special {n_special}"

    def count(self, texts: Sequence[str]) -> list[int]:
        """Estimated tokens of each text."""
        return [len(_PIECE.findall(text)) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character span of each estimated token, ascending, end-exclusive."""
        return [match.span() for match in _PIECE.finditer(text)]
