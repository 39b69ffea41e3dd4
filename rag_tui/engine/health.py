"""How a corpus looks without any question: copies, boilerplate, torn sentences, hubs, orphans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_tui.engine.chunkers.repeats import (
    PASSAGE_PLACES,
    first_copies,
    passages,
    repeated_passages,
)
from rag_tui.engine.chunkers.tears import Tears, find_tears
from rag_tui.engine.embedders.unit import as_unit
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.neighbours import Neighbours, nearest_neighbours

HealthKind = Literal["copy", "boilerplate", "fractured", "hub", "orphan", "isolated"]

HEALTH_KINDS: tuple[HealthKind, ...] = get_args(HealthKind)
"""All kinds, in the order in which they are counted and shown."""

NEIGHBOURS = 10
"""Nearest neighbours that are looked at, unless told otherwise."""
COPY_COSINE = 0.98
"""A nearest neighbour at least this near says the same to the search."""
BOILERPLATE_SHARE = 0.5
"""A chunk is boilerplate when repeated passages are more than this share of its passages."""
HUB_DEVIATIONS = 2.0
"""A hub occurs more often than the mean by more than this many standard deviations,"""
HUB_TIMES = 3.0
"""and at least this many times as often as the mean."""
ISOLATED_FENCES = 3.0
"""Interquartile ranges below the lower quartile at which a nearest neighbour is far."""

_CHECK_EVERY = 64

HEALTH_RULES: Mapping[HealthKind, str] = MappingProxyType(
    {
        "copy": f"nearest neighbour at a cosine of {COPY_COSINE} or more, or the same text as "
        "another chunk, case and blank space aside: one of them is enough",
        "boilerplate": f"more than {BOILERPLATE_SHARE:.0%} of it stands in more than "
        f"{PASSAGE_PLACES} places",
        "fractured": "begins or ends within a sentence that neither neighbour holds whole",
        "hub": f"among the nearest neighbours of {HUB_TIMES:.0f} times as many chunks as the mean "
        f"and more than {HUB_DEVIATIONS:.0f} standard deviations above it",
        "orphan": "among the nearest neighbours of no other chunk",
        "isolated": "its nearest neighbour is much farther than is usual here "
        f"({ISOLATED_FENCES:g} interquartile ranges below the lower quartile)",
    }
)
"""The rule of each kind in words."""


@dataclass(frozen=True, slots=True)
class ChunkHealth:
    """The numbers of one chunk."""

    position: int
    kinds: tuple[HealthKind, ...]
    n_occurrences: int | None
    """In how many others' k nearest neighbours it is; None without vectors."""
    nearest: int | None
    """Position of its nearest neighbour; None without vectors, or alone."""
    cosine: float | None
    """Of that neighbour, -1 to 1."""
    repeated_share: float
    """0 to 1: how much of its long lines and sentences is boilerplate, by characters."""
    begins_torn: bool
    """Its first sentence began before it."""
    ends_torn: bool
    """Its last sentence goes on behind it."""


@dataclass(frozen=True, eq=False, slots=True)
class Health:
    """All of it. Arrays are non-writeable; row i belongs to position i."""

    neighbours: Neighbours | None
    """None while the index has no vectors: hubs, orphans and isolated are then empty, and copies
    are only those equal in text."""
    repeated_share: npt.NDArray[np.float64]
    """float64 ``(n_chunks,)``, 0 to 1."""
    tears: tuple[Tears, ...]
    """By position."""
    of_kind: Mapping[HealthKind, tuple[int, ...]]
    """Positions of each kind. Ascending; hubs by occurrences, most first, and isolated by cosine,
    farthest first, with ties by position."""
    kinds: tuple[tuple[HealthKind, ...], ...]
    """By position: the kinds of each chunk, in the order of `HEALTH_KINDS`."""

    def chunk(self, position: int) -> ChunkHealth:
        """The numbers of the chunk at a position."""
        near = self.neighbours
        has_other = near is not None and near.nearest[position] >= 0
        return ChunkHealth(
            position=position,
            kinds=self.kinds[position],
            n_occurrences=int(near.n_occurrences[position]) if near is not None else None,
            nearest=int(near.nearest[position]) if near is not None and has_other else None,
            cosine=float(near.cosine[position]) if near is not None and has_other else None,
            repeated_share=float(self.repeated_share[position]),
            begins_torn=self.tears[position].begins,
            ends_torn=self.tears[position].ends,
        )

    def counts(self) -> dict[HealthKind, int]:
        """How many chunks are of each kind, every kind included."""
        return {kind: len(self.of_kind[kind]) for kind in HEALTH_KINDS}


def health(index: Index, *, k: int = NEIGHBOURS, cancel: CancelToken | None = None) -> Health:
    """The health of a corpus, from its texts and the vectors the index already has.

    Copies are told by their vectors, so chunks that differ only beyond what the model reads are
    copies too: the search cannot tell them apart. Chunks of the same text are copies as well,
    however far apart their headings put their vectors. Hubs are those of Radovanović et al. (2010;
    see `nearest_neighbours`) that are also common by `HUB_TIMES`; orphans are their anti-hubs. A
    far nearest neighbour is told by the outer fence of J. Tukey (1977), "Exploratory data
    analysis".

    Args:
        index: Not changed; no model is loaded.
        k: Nearest neighbours to look at; fewer where there are fewer other chunks.
        cancel: Polled every few chunks and after every block of similarities.

    Raises:
        UsageError: When k is below 1.
        Cancelled: Soon after the token was set.
    """
    token = cancel if cancel is not None else CancelToken()
    near = None
    if index.vectors is not None:
        unit = as_unit(index.vectors, index.manifest.similarity)
        near = nearest_neighbours(unit, k, cancel=token)
    share = _repeated_share(index, token)
    tears = _tears(index, token)
    of_kind: dict[HealthKind, tuple[int, ...]] = dict.fromkeys(HEALTH_KINDS, ())
    of_kind["boilerplate"] = _where(share > BOILERPLATE_SHARE)
    of_kind["fractured"] = tuple(i for i, one in enumerate(tears) if one.is_fractured)
    if near is not None and near.k:
        of_kind.update(_by_neighbours(near))
    equal = first_copies(index.chunks, cancel=token)
    of_kind["copy"] = tuple(sorted({*of_kind["copy"], *equal, *equal.values()}))
    share.setflags(write=False)
    kinds: list[list[HealthKind]] = [[] for _ in index.chunks]
    for kind in HEALTH_KINDS:
        for position in of_kind[kind]:
            kinds[position].append(kind)
    return Health(near, share, tuple(tears), MappingProxyType(of_kind), tuple(map(tuple, kinds)))


def _by_neighbours(near: Neighbours) -> Iterator[tuple[HealthKind, tuple[int, ...]]]:
    counts, cosine = near.n_occurrences, near.cosine
    mean, spread = counts.mean(), counts.std()
    yield "copy", _where(cosine >= COPY_COSINE)
    hubs = np.flatnonzero((counts >= HUB_TIMES * mean) & (counts > mean + HUB_DEVIATIONS * spread))
    yield "hub", tuple(hubs[np.argsort(-counts[hubs], kind="stable")].tolist())
    yield "orphan", _where(counts == 0)
    low, high = np.percentile(cosine, [25, 75])
    far = np.flatnonzero(cosine < low - ISOLATED_FENCES * (high - low))
    yield "isolated", tuple(far[np.argsort(cosine[far], kind="stable")].tolist())


def _repeated_share(index: Index, token: CancelToken) -> npt.NDArray[np.float64]:
    documents = index.document_of
    share = np.zeros(len(index.chunks))
    for position, found in repeated_passages(index.chunks, documents, cancel=token).items():
        chunk = index.chunks[position]
        repeated = {passage.text for passage in found}
        lengths = [
            (len(text), text in repeated)
            for _, text in passages(chunk, documents.get(chunk.doc_id))
        ]
        share[position] = sum(n for n, is_old in lengths if is_old) / sum(n for n, _ in lengths)
    return share


def _tears(index: Index, token: CancelToken) -> list[Tears]:
    documents = index.document_of
    chunks = index.chunks
    found: list[Tears] = []
    for position, chunk in enumerate(chunks):
        if position % _CHECK_EVERY == 0:
            token.check()
        document = documents.get(chunk.doc_id)
        before = chunks[position - 1] if chunk.ordinal and position else None
        after = chunks[position + 1] if position + 1 < len(chunks) else None
        if after is not None and after.doc_id != chunk.doc_id:
            after = None
        found.append(
            find_tears(chunk, document, previous=before, following=after)
            if document is not None
            else Tears()
        )
    return found


def _where(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())
