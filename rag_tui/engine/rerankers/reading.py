"""How far into a passage a cross-encoder reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PASSAGE = 1
"""Question and passage are the sequences 0 and 1 of a pair."""


def characters_read(kept: Any, cut: Sequence[Any], passage: str) -> int:
    """Characters at the start of the passage that lie before the first token that was cut off.

    Args:
        kept: The pair as the model reads it: an encoding of the ``tokenizers`` library.
        cut: Encodings of what did not fit; empty when everything did. They may repeat the
            other text of the pair.
        passage: The text that the pair's second sequence was made of.
    """
    read = _end(kept)
    is_cut = any(_end(part) > read for part in cut)
    return read if is_cut else len(passage)


def _end(encoding: Any) -> int:
    """Where the last token of the passage ends; 0 when it has none."""
    spans = zip(encoding.sequence_ids, encoding.offsets, strict=True)
    return max((int(end) for sequence, (_, end) in spans if sequence == _PASSAGE), default=0)
