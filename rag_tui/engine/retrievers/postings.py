"""Term postings that are built once and scored with any k1, b and variant of BM25.

Okapi BM25: Robertson, Walker, Jones, Hancock-Beaulieu, Gatford 1994, "Okapi at TREC-3". The
variants are the ones of Kamphuis, de Vries, Boytsov, Lin 2020, "Which BM25 do you mean?":
``lucene`` with an idf that is always positive, and ``okapi`` as the library rank_bm25 has it.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import BadIndexError, UsageError
from rag_tui.engine.types import BM25Params

Floats = npt.NDArray[np.float64]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_ARRAYS = ("offsets", "positions", "tfs", "lengths")


@dataclass(frozen=True, slots=True)
class TermPart:
    """What one distinct query term gives to one chunk's score."""

    term: str
    query_count: int
    """Times the term stands in the query; each counts."""
    tf: int
    """Times it stands in the chunk."""
    df: int
    """Chunks that hold it."""
    idf: float
    length_factor: float
    """``1 - b + b * length / mean length``: above 1 for chunks longer than the mean."""
    contribution: float
    """Its part of the score; 0 when the chunk does not hold the term."""


@dataclass(frozen=True)
class BM25Postings:
    """Which chunk holds which term how often, by term. Arrays are non-writeable."""

    vocabulary: Mapping[str, int]
    """Term to row, in order of first occurrence."""
    offsets: npt.NDArray[np.int64]
    """int64 ``(n_terms + 1,)``: row r lies at ``offsets[r]:offsets[r + 1]``."""
    positions: npt.NDArray[np.int32]
    """int32 ``(n_postings,)``: chunk positions, ascending in each row."""
    tfs: npt.NDArray[np.int32]
    """int32 ``(n_postings,)``: occurrences of the term in that chunk, at least 1."""
    lengths: npt.NDArray[np.int32]
    """int32 ``(n_chunks,)``: terms of each chunk, repeated ones counted."""

    @classmethod
    def build(cls, token_lists: Iterable[Sequence[str]]) -> BM25Postings:
        """Postings of chunks given as lists of terms, in corpus order; the lists are not kept."""
        vocabulary: dict[str, int] = {}
        rows = array("q")
        lengths = array("q")
        for tokens in token_lists:
            rows.extend([vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
            lengths.append(len(tokens))
        row_of = np.frombuffer(rows, dtype=np.int64) if rows else np.zeros(0, np.int64)
        n_terms_of = np.array(lengths, dtype=np.int64)
        n_chunks = max(len(lengths), 1)
        chunk_of = np.repeat(np.arange(len(lengths), dtype=np.int64), n_terms_of)
        keys, counts = np.unique(row_of * n_chunks + chunk_of, return_counts=True)
        df = np.bincount(keys // n_chunks, minlength=len(vocabulary))
        offsets = np.concatenate(([0], np.cumsum(df)))
        return cls._of(vocabulary, offsets, keys % n_chunks, counts, n_terms_of)

    @classmethod
    def from_arrays(
        cls, terms: Sequence[str], arrays: Mapping[str, npt.NDArray[np.generic]]
    ) -> BM25Postings:
        """Postings from what `terms` and `to_arrays` gave.

        Raises:
            BadIndexError: When something is missing or the parts do not fit together.
        """
        missing = [name for name in _ARRAYS if name not in arrays]
        if missing:
            raise _damaged(f"the BM25 postings lack {', '.join(missing)}")
        offsets, positions, tfs, lengths = (np.asarray(arrays[name]) for name in _ARRAYS)
        n_chunks = lengths.size
        fits = (
            all(a.ndim == 1 and a.dtype.kind in "iu" for a in (offsets, positions, tfs, lengths))
            and offsets.size == len(terms) + 1
            and positions.size == tfs.size
            and int(offsets[0]) == 0
            and int(offsets[-1]) == positions.size
            and bool((np.diff(offsets.astype(np.int64)) >= 0).all())
            and (positions.size == 0 or (int(positions.min()) >= 0 and int(tfs.min()) >= 1))
            and (positions.size == 0 or int(positions.max()) < n_chunks)
        )
        if not fits:
            raise _damaged("the BM25 postings do not fit together")
        vocabulary = {term: row for row, term in enumerate(terms)}
        if len(vocabulary) != len(terms):
            raise _damaged("the BM25 vocabulary repeats a term")
        return cls._of(vocabulary, offsets, positions, tfs, lengths)

    @classmethod
    def _of(
        cls,
        vocabulary: dict[str, int],
        offsets: npt.NDArray[np.generic],
        positions: npt.NDArray[np.generic],
        tfs: npt.NDArray[np.generic],
        lengths: npt.NDArray[np.generic],
    ) -> BM25Postings:
        return cls(
            MappingProxyType(vocabulary),
            _frozen(offsets.astype(np.int64)),
            _frozen(positions.astype(np.int32)),
            _frozen(tfs.astype(np.int32)),
            _frozen(lengths.astype(np.int32)),
        )

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The arrays to store, beside `terms`; `from_arrays` is the way back."""
        return {
            "offsets": self.offsets,
            "positions": self.positions,
            "tfs": self.tfs,
            "lengths": self.lengths,
        }

    @property
    def terms(self) -> tuple[str, ...]:
        """The vocabulary by row."""
        return tuple(self.vocabulary)

    @property
    def n_chunks(self) -> int:
        """Chunks, those without any term counted too."""
        return int(self.lengths.size)

    @cached_property
    def mean_length(self) -> float:
        """Mean number of terms of a chunk; 0 for an empty corpus."""
        return float(self.lengths.mean()) if self.lengths.size else 0.0

    def df(self, term: str) -> int:
        """Chunks that hold a term; 0 for an unknown one."""
        row = self.vocabulary.get(term)
        return 0 if row is None else int(self.offsets[row + 1] - self.offsets[row])

    def idf(self, term: str, params: BM25Params) -> float:
        """The weight of a term; 0 for one that no chunk holds.

        ``lucene``: ``ln(1 + (N - df + 0.5) / (df + 0.5))``. ``okapi``: ``ln(N - df + 0.5) -
        ln(df + 0.5)``, and where that is negative, ``epsilon`` times the mean over all terms.
        """
        df = self.df(term)
        if df == 0:
            return 0.0
        if params.variant == "lucene":
            return math.log(1 + (self.n_chunks - df + 0.5) / (df + 0.5))
        idf = math.log(self.n_chunks - df + 0.5) - math.log(df + 0.5)
        return idf if idf >= 0 else params.epsilon * self._mean_okapi_idf

    def scores(
        self, query_terms: Sequence[str], params: BM25Params
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Scores of all chunks, and which of them hold a query term at all.

        A term's part is ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))``, as
        often as it stands in the query. A match may score 0 or below (``okapi``), so a score
        never tells what matched.

        Returns:
            float64 ``(n_chunks,)`` and bool ``(n_chunks,)``.

        Raises:
            UsageError: When the parameters are out of range.
        """
        check_bm25_params(params)
        scores = np.zeros(self.n_chunks, dtype=np.float64)
        is_match = np.zeros(self.n_chunks, dtype=np.bool_)
        for term, count in Counter(query_terms).items():
            row = self.vocabulary.get(term)
            if row is None:
                continue
            holders = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
            at = self.positions[holders]
            tf = self.tfs[holders].astype(np.float64)
            norm = params.k1 * self._length_factors(self.lengths[at], params.b)
            scores[at] += count * self.idf(term, params) * (tf * (params.k1 + 1) / (tf + norm))
            is_match[at] = True
        return scores, is_match

    def term_parts(
        self, query_terms: Sequence[str], position: int, params: BM25Params
    ) -> tuple[TermPart, ...]:
        """The parts of one chunk's score, one per distinct query term in query order.

        Their contributions sum to the chunk's score in `scores` (float64 rounding aside).
        """
        check_bm25_params(params)
        factor = float(self._length_factors(self.lengths[position : position + 1], params.b)[0])
        parts: list[TermPart] = []
        for term, count in Counter(query_terms).items():
            tf = self.tf(term, position)
            idf = self.idf(term, params)
            saturated = tf * (params.k1 + 1) / (tf + params.k1 * factor) if tf else 0.0
            contribution = count * idf * saturated
            parts.append(TermPart(term, count, tf, self.df(term), idf, factor, contribution))
        return tuple(parts)

    def tf(self, term: str, position: int) -> int:
        """Times a term stands in the chunk at a position."""
        row = self.vocabulary.get(term)
        if row is None:
            return 0
        start, end = int(self.offsets[row]), int(self.offsets[row + 1])
        at = start + int(np.searchsorted(self.positions[start:end], position))
        return int(self.tfs[at]) if at < end and self.positions[at] == position else 0

    def _length_factors(self, lengths: npt.NDArray[np.int32], b: float) -> Floats:
        mean = self.mean_length or 1.0
        factors: Floats = 1 - b + b * lengths.astype(np.float64) / mean
        return factors

    @cached_property
    def _mean_okapi_idf(self) -> float:
        df = np.diff(self.offsets).astype(np.float64)
        return float((np.log(self.n_chunks - df + 0.5) - np.log(df + 0.5)).mean())


def check_bm25_params(params: BM25Params) -> None:
    """Refuse parameters that the formula is not made for.

    Raises:
        UsageError: When k1 is negative, b not in 0 to 1, epsilon negative, one not finite.
    """
    if params.variant not in ("lucene", "okapi"):
        raise UsageError(
            f"unknown BM25 variant {params.variant!r}", "Set bm25.variant to lucene or okapi."
        )
    if not (math.isfinite(params.k1) and params.k1 >= 0):
        raise UsageError(
            f"BM25 k1 must be 0 or more (got {params.k1:g})",
            "Set bm25.k1, usually between 0.5 and 2.",
        )
    if not 0 <= params.b <= 1:
        raise UsageError(
            f"BM25 b must be between 0 and 1 (got {params.b:g})", "Set bm25.b, usually to 0.75."
        )
    if not (math.isfinite(params.epsilon) and params.epsilon >= 0):
        raise UsageError(
            f"BM25 epsilon must be 0 or more (got {params.epsilon:g})",
            "Set bm25.epsilon, usually to 0.25.",
        )


def _frozen(values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    values.flags.writeable = False
    return values


def _damaged(what: str) -> BadIndexError:
    return BadIndexError(f"the index is damaged: {what}", "Rebuild the index of this folder.")
