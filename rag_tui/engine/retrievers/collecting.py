"""From lists of terms to postings, in blocks: no more is kept than the postings need."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]

_BLOCK = 2**20
"""Terms that are counted at once."""


def collect(
    token_lists: Iterable[Sequence[str]],
) -> tuple[
    dict[str, int], npt.NDArray[np.int64], npt.NDArray[np.integer], npt.NDArray[np.integer], Ints
]:
    """Vocabulary, offsets, positions, frequencies and lengths, as `BM25Postings` has them.

    Args:
        token_lists: The terms of each chunk, in corpus order; read once.
    """
    rows_of = _Rows()
    lengths = array("i")
    parts: list[tuple[Ints, Ints, Ints]] = []
    rows, first = array("i"), 0
    for tokens in token_lists:
        rows.extend(map(rows_of.__getitem__, tokens))
        lengths.append(len(tokens))
        if len(rows) > _BLOCK:
            parts.append(_counted(rows, lengths, first))
            rows, first = array("i"), len(lengths)
    parts.append(_counted(rows, lengths, first))
    row_of, chunk_of, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    df = np.bincount(row_of, minlength=len(rows_of))
    positions, tfs = _by_row(row_of, chunk_of, counts)
    offsets = np.concatenate(([0], np.cumsum(df)))
    return dict(rows_of), offsets, positions, tfs, _int32(lengths)


class _Rows(dict[str, int]):
    """Gives every new term the next row."""

    def __missing__(self, term: str) -> int:
        row = self[term] = len(self)
        return row


def _int32(values: array[int]) -> npt.NDArray[np.int32]:
    return np.frombuffer(values, dtype=np.int32) if values else np.zeros(0, np.int32)


def _counted(rows: array[int], lengths: array[int], first: int) -> tuple[Ints, Ints, Ints]:
    """Row, chunk and frequency of the different terms in the chunks from ``first`` on."""
    sizes = _int32(lengths[first:])
    keys = np.repeat(np.arange(first, len(lengths), dtype=np.int64) << 32, sizes)
    keys |= _int32(rows)
    keys.sort()
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(starts, append=keys.size).astype(np.int32)
    keys = keys[starts]
    return keys.astype(np.int32), (keys >> 32).astype(np.int32), counts


def _by_row(
    rows: Ints, chunks: Ints, tfs: Ints
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Chunks and frequencies, ordered by row and then by chunk; chunks ascend as given."""
    chunk_bits, tf_bits = (int(a.max(initial=1)).bit_length() for a in (chunks, tfs))
    if int(rows.max(initial=1)).bit_length() + chunk_bits + tf_bits > 63:
        order = np.argsort(rows, kind="stable")
        return chunks[order], tfs[order]
    # One number a posting: sorting numbers is several times as fast as sorting by an order.
    packed = rows.astype(np.int64)
    packed <<= chunk_bits
    packed |= chunks
    packed <<= tf_bits
    packed |= tfs
    packed.sort()
    tf = (packed & ((1 << tf_bits) - 1)).astype(np.int32)
    packed >>= tf_bits
    packed &= (1 << chunk_bits) - 1
    return packed.astype(np.int32), tf
