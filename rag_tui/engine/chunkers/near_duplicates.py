"""Pairs of texts that share most of their wording, found without comparing all with all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_tui.engine.events import CancelToken

RESEMBLANCE = 0.8
"""Least Jaccard similarity of the shingle sets of two near-duplicates."""
SHINGLE_WORDS = 3
"""Words a shingle; scripts without spaces have a word a character."""
LEAST_SHINGLES = 10
"""Shorter texts are not compared: one changed word changes most of what they are."""

_BANDS, _ROWS = 16, 4
# Texts of one bucket are compared with its first and with this many before them: a thousand
# versions of one page must not become half a million comparisons.
_NEIGHBOURS = 8
_BLOCK = 256

Hashes = npt.NDArray[np.uint64]

_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]|[^\\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two texts, by their place in the input."""

    first: int
    second: int
    """Always larger than ``first``."""
    resemblance: float
    """Jaccard similarity of their shingle sets, exact."""


def similar_pairs(
    texts: Sequence[str], *, least: float = RESEMBLANCE, cancel: CancelToken | None = None
) -> tuple[SimilarPair, ...]:
    """Pairs whose resemblance is at least ``least``, by second, then first.

    Resemblance, shingles and min-wise sampling: A. Broder (1997), "On the resemblance and
    containment of documents", doi:10.1109/SEQUEN.1997.666900. Candidates agree in one of 16 bands
    of 4 minima each, so a pair of resemblance s is a candidate with probability
    1 - (1 - s^4)^16: 0.9998 at 0.8, 0.64 at 0.5. Every candidate is then compared exactly, so a
    pair that is returned is one; among many alike texts some pairs are left out, but each text
    keeps at least one partner. The same texts give the same pairs.

    Args:
        texts: Equal texts are pairs of resemblance 1. Upper and lower case are one.
        least: Between 0 and 1; far below 0.5 pairs are missed.
        cancel: Polled every few hundred texts.
    """
    token = cancel if cancel is not None else CancelToken()
    shingles = _shingle_sets(texts, token)
    usable = [i for i, one in enumerate(shingles) if one.size >= LEAST_SHINGLES]
    if len(usable) < 2:
        return ()
    bands = _band_keys([shingles[i] for i in usable], token)
    found: dict[tuple[int, int], SimilarPair] = {}
    refused: set[tuple[int, int]] = set()
    for n_compared, (a, b) in enumerate(_candidates(bands)):
        if n_compared % _BLOCK == 0:
            token.check()
        pair = (usable[a], usable[b])
        if pair in found or pair in refused:
            continue
        resemblance = _jaccard(shingles[pair[0]], shingles[pair[1]], least)
        if resemblance >= least:
            found[pair] = SimilarPair(*pair, resemblance)
        else:
            refused.add(pair)
    return tuple(sorted(found.values(), key=lambda pair: (pair.second, pair.first)))


def _shingle_sets(texts: Sequence[str], token: CancelToken) -> list[Hashes]:
    """The distinct shingles of each text as ascending 64-bit numbers."""
    numbers: dict[str, int] = {}
    sets: list[Hashes] = []
    for i, text in enumerate(texts):
        if i % _BLOCK == 0:
            token.check()
        words = _WORD.findall(text.lower())
        ids = np.array([numbers.setdefault(w, len(numbers) + 1) for w in words], np.uint64)
        n = ids.size - SHINGLE_WORDS + 1
        if n < 1:
            sets.append(np.zeros(0, np.uint64))
            continue
        mixed = np.zeros(n, np.uint64)
        for offset in range(SHINGLE_WORDS):
            mixed = _mix(mixed + ids[offset : offset + n])
        sets.append(np.unique(mixed))
    return sets


def _mix(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): one to one, every bit counts."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _band_keys(sets: Sequence[Hashes], token: CancelToken) -> Hashes:
    """uint64 ``(bands, n)``: what must be equal for two texts to be candidates."""
    seeds = _mix(np.arange(_BANDS * _ROWS, dtype=np.uint64))
    keys = np.empty((_BANDS, len(sets)), np.uint64)
    for low in range(0, len(sets), _BLOCK):
        token.check()
        block = sets[low : low + _BLOCK]
        lengths = [one.size for one in block]
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.intp)
        values = np.concatenate(block)
        for band in range(_BANDS):
            key = np.zeros(len(block), np.uint64)
            for seed in seeds[band * _ROWS : (band + 1) * _ROWS]:
                # An odd multiplier orders the already mixed values anew; shifting the low bits
                # up first would cost more and order them no better.
                minima = np.minimum.reduceat((values ^ seed) * (seed | np.uint64(1)), starts)
                key = _mix(key + minima)
            keys[band, low : low + len(block)] = key
    return keys


def _candidates(keys: Hashes) -> Iterator[tuple[int, int]]:
    """Pairs that agree in a band, the smaller number first; a pair may come more than once."""
    for band in keys:
        order = np.argsort(band, kind="stable")
        ordered = band[order]
        edges = np.flatnonzero(np.diff(ordered)) + 1
        bounds = np.concatenate(([0], edges, [band.size]))
        for at in np.flatnonzero(np.diff(bounds) > 1):
            members = order[bounds[at] : bounds[at + 1]].tolist()
            for i in range(1, len(members)):
                earlier = members[max(0, i - _NEIGHBOURS) : i]
                if i > _NEIGHBOURS:
                    yield members[0], members[i]
                for member in earlier:
                    yield member, members[i]


def _jaccard(a: Hashes, b: Hashes, least: float) -> float:
    if min(a.size, b.size) < least * max(a.size, b.size):
        return 0.0  # even the whole smaller set would be too little
    n_shared = int(np.intersect1d(a, b, assume_unique=True).size)
    return n_shared / (a.size + b.size - n_shared)
