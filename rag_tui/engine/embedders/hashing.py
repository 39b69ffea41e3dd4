"""A deterministic stand-in for an embedding model, for tests and demonstrations."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.embedders.base import EmbedderInfo
from rag_tui.engine.embedders.tokens import Role, TokenVectors
from rag_tui.engine.embedders.unit import unit_rows
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import fingerprint

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

_WORD = re.compile(r"\w+")
_NO_WORDS = "\0no words"
_CHECK_EVERY = 64


class HashingEmbedder:
    """Hashed bag of words: texts are alike when they share words, and in no other way.

    Every word falls into one of ``dimensions`` buckets with a sign, both from a hash of the
    word (Weinberger et al. 2009, "Feature hashing for large scale multitask learning", ICML),
    weighted 1 + ln(count). It knows no meaning: it stands in where no model is wanted.

    Args:
        dimensions: Number of buckets.
    """

    def __init__(self, *, dimensions: int = 256) -> None:
        self._info = EmbedderInfo(
            name="hashing",
            fingerprint=fingerprint({"embedder": "hashing", "version": 1, "dim": dimensions}),
            dimensions=dimensions,
            max_tokens=1_000_000,
            backend="hashing",
            source="built in",
            note="not a language model: hashed words only, texts match by shared words",
        )

    @property
    def info(self) -> EmbedderInfo:
        """What this embedder is; ``note`` says that it is no real model."""
        return self._info

    def embed_query(self, text: str) -> Vectors:
        """float32 ``(dimensions,)``, L2 norm 1."""
        row: Vectors = self.embed_documents([text])[0]
        return row

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        """float32 ``(len(texts), dimensions)``, rows L2 norm 1, same order."""
        raw = np.zeros((len(texts), self._info.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            if cancel is not None and row % _CHECK_EVERY == 0:
                cancel.check()
            counts = Counter(_WORD.findall(text.lower())) or Counter([_NO_WORDS])
            for word, count in counts.items():
                bucket, sign = self._place(word)
                raw[row, bucket] += sign * (1.0 + math.log(count))
            if not raw[row].any():  # words that cancel each other out exactly
                raw[row, self._place(_NO_WORDS)[0]] = 1.0
        return unit_rows(raw, texts, model="hashing")

    def token_vectors(self, texts: Sequence[str], role: Role) -> list[TokenVectors]:
        """One vector a word: a one in the word's bucket, with its sign."""
        del role
        found = []
        for text in texts:
            words = list(_WORD.finditer(text))
            vectors = np.zeros((len(words), self._info.dimensions), dtype=np.float32)
            for row, word in enumerate(words):
                bucket, sign = self._place(word.group().lower())
                vectors[row, bucket] = sign
            found.append(TokenVectors(tuple(word.span() for word in words), vectors))
        return found

    def _place(self, word: str) -> tuple[int, float]:
        digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        value = int.from_bytes(digest, "little")
        return (value >> 1) % self._info.dimensions, 1.0 if value & 1 else -1.0
