"""Term postings that are built once and scored with any k1, b and variant of BM25."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import BadIndexError
from rag_tui.engine.retrievers.bm25_formulas import (
    Floats,
    absent_part,
    check_bm25_params,
    inverse_frequency,
    term_part,
)
from rag_tui.engine.retrievers.collecting import collect
from rag_tui.engine.retrievers.rough_scores import RoughScorer
from rag_tui.engine.types import BM25Params

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


@dataclass(frozen=True, eq=False)
class BM25Postings:
    """Which chunk holds which term how often, by term. Arrays are non-writeable."""

    vocabulary: Mapping[str, int]
    """Term to row, in order of first occurrence."""
    offsets: npt.NDArray[np.int64]
    """int64 ``(n_terms + 1,)``: row r lies at ``offsets[r]:offsets[r + 1]``."""
    positions: npt.NDArray[np.int32]
    """int32 ``(n_postings,)``: chunk positions, ascending in each row."""
    tfs: npt.NDArray[np.integer]
    """uint8, uint16 or int32 ``(n_postings,)``: occurrences of the term in that chunk, at least 1;
    the smallest type that holds them."""
    lengths: npt.NDArray[np.int32]
    """int32 ``(n_chunks,)``: terms of each chunk, repeated ones counted."""

    @classmethod
    def build(cls, token_lists: Iterable[Sequence[str]]) -> BM25Postings:
        """Postings of chunks given as lists of terms, in corpus order; the lists are not kept."""
        return cls._of(*collect(token_lists))

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
            _frozen(tfs.astype(_smallest_type(tfs))),
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
        """The weight of a term by the variant's formula; 0 for one that no chunk holds."""
        return inverse_frequency(self.df(term), self.n_chunks, params, lambda: self._mean_okapi_idf)

    def scores(
        self, query_terms: Sequence[str], params: BM25Params
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Scores of all chunks, and which of them hold a query term at all.

        A term counts as often as it stands in the query; see `bm25_formulas` for its part. A match
        may score 0 or below, so a score never tells what matched.

        Returns:
            float64 ``(n_chunks,)`` and bool ``(n_chunks,)``.

        Raises:
            UsageError: When the parameters are out of range.
        """
        check_bm25_params(params)
        scores = np.zeros(self.n_chunks, dtype=np.float64)
        is_match = np.zeros(self.n_chunks, dtype=np.bool_)
        absent = absent_part(params)
        for term, count in Counter(query_terms).items():
            row = self.vocabulary.get(term)
            if row is None:
                continue
            at, tfs = self.row(row)
            weight = count * self.idf(term, params)
            part = weight * term_part(
                tfs.astype(np.float64), self._length_factors(self.lengths[at], params.b), params
            )
            if absent:
                scores += weight * absent
                part -= weight * absent
            scores[at] += part
            is_match[at] = True
        return scores, is_match

    def scores_at(
        self, query_terms: Sequence[str], positions: npt.NDArray[np.int64], params: BM25Params
    ) -> Floats:
        """The scores of some chunks, to the last bit those of `scores`.

        Args:
            query_terms: As for `scores`.
            positions: int64 ``(m,)``.
            params: Of a formula that gives nothing for terms a chunk lacks.

        Returns:
            float64 ``(m,)``.
        """
        scores = np.zeros(positions.size, dtype=np.float64)
        factors = self._length_factors(self.lengths[positions], params.b)
        wanted = positions.astype(np.int32)  # else every list would be widened to be searched
        for term, count in Counter(query_terms).items():
            row = self.vocabulary.get(term)
            if row is None:
                continue
            at, tfs = self.row(row)
            found = np.searchsorted(at, wanted)
            found[found == at.size] = 0
            is_match = at[found] == wanted
            tf = tfs[found[is_match]].astype(np.float64)
            weight = count * self.idf(term, params)
            scores[is_match] += weight * term_part(tf, factors[is_match], params)
        return scores

    def row(self, row: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.integer]]:
        """The positions of the chunks that hold the term of a row, and how often each does."""
        holders = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return self.positions[holders], self.tfs[holders]

    def holders(self, term: str) -> npt.NDArray[np.bool_]:
        """Bool ``(n_chunks,)``: which chunks hold a term."""
        mask = np.zeros(self.n_chunks, dtype=np.bool_)
        row = self.vocabulary.get(term)
        if row is not None:
            mask[self.row(row)[0]] = True
        return mask

    def term_parts(
        self, query_terms: Sequence[str], position: int, params: BM25Params
    ) -> tuple[TermPart, ...]:
        """The parts of one chunk's score, one per distinct query term in query order.

        Their contributions sum to the chunk's score in `scores` (float64 rounding aside).
        """
        check_bm25_params(params)
        factor = self._length_factors(self.lengths[position : position + 1], params.b)
        parts: list[TermPart] = []
        for term, count in Counter(query_terms).items():
            tf = self.tf(term, position)
            idf = self.idf(term, params)
            one = absent_part(params)
            if tf:
                one = float(term_part(np.array([tf], dtype=np.float64), factor, params)[0])
            parts.append(
                TermPart(term, count, tf, self.df(term), idf, float(factor[0]), count * idf * one)
            )
        return tuple(parts)

    def tf(self, term: str, position: int) -> int:
        """Times a term stands in the chunk at a position."""
        row = self.vocabulary.get(term)
        if row is None:
            return 0
        start, end = int(self.offsets[row]), int(self.offsets[row + 1])
        at = start + int(np.searchsorted(self.positions[start:end], position))
        return int(self.tfs[at]) if at < end and self.positions[at] == position else 0

    @cached_property
    def rough(self) -> RoughScorer:
        """Finds the best chunks quickly; made on first use."""
        return RoughScorer(self)

    def _length_factors(self, lengths: npt.NDArray[np.int32], b: float) -> Floats:
        mean = self.mean_length or 1.0
        factors: Floats = 1 - b + b * lengths.astype(np.float64) / mean
        return factors

    @cached_property
    def _mean_okapi_idf(self) -> float:
        df = np.diff(self.offsets).astype(np.float64)
        return float((np.log(self.n_chunks - df + 0.5) - np.log(df + 0.5)).mean())


def _smallest_type(tfs: npt.NDArray[np.generic]) -> type[np.integer]:
    most = int(tfs.max(initial=1))
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32


def _frozen(values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    values.flags.writeable = False
    return values


def _damaged(what: str) -> BadIndexError:
    return BadIndexError(f"the index is damaged: {what}", "Rebuild the index of this folder.")
