"""The chunker protocol, its settings, and what counts a text's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from rag_tui.engine.errors import UsageError
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.types import Chunk, Document

SizeUnit = Literal["tokens", "words", "characters", "sentences"]
"""What size and overlap count; ``sentences`` only for the strategy of that name."""
Strategy = Literal[
    "headings", "recursive", "sentences", "words", "tokens", "page", "whole", "semantic",
    "chonkie", "semchunk",
]  # fmt: skip


class TokenCounter(Protocol):
    """Counts and locates tokens the way one model does."""

    name: str
    """Part of the chunker's fingerprint: another tokenizer may cut elsewhere."""
    limit: int | None
    """Tokens the model reads of one text, special tokens included; None when unknown."""
    n_special: int
    """Special tokens and prompt tokens that are added to every text."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens not included."""
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character span of each token, ascending, end-exclusive, special tokens not included."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkingSettings:
    """How documents are cut.

    Raises:
        UsageError: When size or overlap make no sense; before any file is read.
    """

    strategy: Strategy = "headings"
    size: int = 256
    """Longest chunk, in ``unit``. With tokens it includes context and special tokens, and it is
    never more than the model reads."""
    overlap: int = 32
    """Units that neighbouring chunks share; what that means for a strategy is said in
    `rag_tui.engine.chunkers.factory.OVERLAP`."""
    unit: SizeUnit = "tokens"
    situations: bool = False
    """Whether chunks carry the situations that were written for them
    (`rag_tui.engine.contextual`); makes room for them where sizes are in tokens."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(
                f"chunk size must be at least 1 (got {self.size})",
                "Set chunking.size to a positive number, e.g. 256.",
            )
        if self.overlap < 0:
            raise UsageError(
                f"chunk overlap must not be negative (got {self.overlap})",
                "Set chunking.overlap to 0 or more.",
            )
        if self.overlap >= self.size:
            raise UsageError(
                f"chunk overlap must be smaller than the chunk size "
                f"(got overlap {self.overlap} >= size {self.size})",
                f"Set chunking.overlap below {self.size}, or raise chunking.size.",
            )
        if self.unit == "sentences" and self.strategy != "sentences":
            raise UsageError(
                f"chunk sizes in sentences need the strategy sentences (got {self.strategy})",
                "Set chunking.unit to tokens, words or characters, or chunking.strategy to "
                "sentences.",
            )

    def fingerprint(self, counter: TokenCounter) -> str:
        """Identifies this way of cutting; a change means the index is stale."""
        return fingerprint({"version": 4, "counter": counter.name, **asdict(self)})


class Chunker(Protocol):
    """Cuts one document."""

    def chunk(self, document: Document) -> tuple[Chunk, ...]:
        """The document's chunks by ascending start; the same input gives the same chunks."""
        ...
