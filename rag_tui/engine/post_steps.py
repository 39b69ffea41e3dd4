"""Steps after ranking: threshold, fold, at most so many a document, diversity, neighbours.

Each takes a finished list and gives another one, with a record of what it did. Scores stay those
of the pipeline; ranks are counted anew from 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.chunkers.near_duplicates import similar_pairs
from rag_tui.engine.types import Chunk, Hit, Method, PostSteps, Ranking, Step

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors
    from rag_tui.engine.filters import Mask
    from rag_tui.engine.index import Index

MMR_ROWS = 1000
"""Rows that are reordered by maximal marginal relevance; those below keep their order."""


def threshold_of(post: PostSteps, method: Method) -> float | None:
    """The least score a row of this method must have; None: any."""
    value: float | None = getattr(post, f"min_{method}")
    return value


def changes_list(post: PostSteps, method: Method) -> bool:
    """Whether any step is on that can change a list of this method."""
    is_limited = threshold_of(post, method) is not None or post.max_per_document > 0
    return is_limited or post.fold or post.mmr is not None


def apply_post_steps(ranking: Ranking, post: PostSteps, index: Index) -> Ranking:
    """The list after the steps that are on, in the order of `PostSteps`, each recorded.

    Rows of equal standing keep the pipeline's order. Without any step on, the list itself comes
    back.
    """
    if not changes_list(post, ranking.method):
        return ranking
    hits: Sequence[Hit] = ranking.hits
    steps: list[Step] = []
    folded: Mapping[str, tuple[str, ...]] = ranking.folded
    least = threshold_of(post, ranking.method)
    if least is not None:
        hits, step = _above(hits, least)
        steps.append(step)
    if post.fold:
        hits, folded, step = _fold(hits, index)
        steps.append(step)
    if post.max_per_document > 0:
        hits, step = _limit_documents(hits, post.max_per_document, index)
        steps.append(step)
    if post.mmr is not None:
        hits, step = _diversify(hits, post.mmr, index.vectors)
        steps.append(step)
    kept = {hit.chunk_id for hit in hits}
    return replace(
        ranking,
        hits=tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)),
        steps=(*ranking.steps, *steps),
        folded=MappingProxyType({key: ids for key, ids in folded.items() if key in kept}),
    )


def expand_neighbours(
    chunks: Sequence[Chunk], index: Index, n: int, *, allowed: Mask | None = None
) -> list[tuple[Chunk, bool]]:
    """The chunks with ``n`` chunks of the same document before and after each; True: added.

    The given chunks keep their order, each with its neighbours around it in the document's
    order. A chunk stands once: one that was given is never added, and one that two given chunks
    share stands with the first of them. What a filter forbids is not added.

    Args:
        chunks: Chunks of the index, best first.
        index: Where their neighbours are.
        n: How many on each side; 0: none.
        allowed: Bool ``(n_chunks,)``: only these may be added; None: all.
    """
    used = {chunk.chunk_id for chunk in chunks}
    expanded: list[tuple[Chunk, bool]] = []
    for chunk in chunks:
        at = index.position_of[chunk.chunk_id]
        for position in range(max(0, at - n), min(len(index.chunks), at + n + 1)):
            other = index.chunks[position]
            if position == at:
                expanded.append((other, False))
                continue
            is_allowed = allowed is None or bool(allowed[position])
            if other.doc_id == chunk.doc_id and other.chunk_id not in used and is_allowed:
                used.add(other.chunk_id)
                expanded.append((other, True))
    return expanded


def _above(hits: Sequence[Hit], least: float) -> tuple[Sequence[Hit], Step]:
    kept = [hit for hit in hits if hit.score >= least]
    removed = tuple(hit.chunk_id for hit in hits if hit.score < least)
    return kept, Step("threshold", f"dropped {_rows(len(removed))} below {least:g}", removed)


def _fold(
    hits: Sequence[Hit], index: Index
) -> tuple[Sequence[Hit], Mapping[str, tuple[str, ...]], Step]:
    """Rows whose texts are equal but for blank space and case, or near duplicates of each other.

    Likeness is passed on: a row that is like a row that is like the first one goes to the first.
    """
    texts = [" ".join(index.chunks[hit.position].body.split()).casefold() for hit in hits]
    leader = list(range(len(hits)))

    def first_of(i: int) -> int:
        while leader[i] != i:
            i = leader[i]
        return i

    first_with: dict[str, int] = {}
    for i, text in enumerate(texts):
        leader[i] = first_with.setdefault(text, i)
    different = [i for i in range(len(hits)) if leader[i] == i]
    for pair in similar_pairs([texts[i] for i in different]):
        a, b = first_of(different[pair.first]), first_of(different[pair.second])
        leader[max(a, b)] = min(a, b)
    groups: dict[str, list[str]] = defaultdict(list)
    for i, hit in enumerate(hits):
        if first_of(i) != i:
            groups[hits[first_of(i)].chunk_id].append(hit.chunk_id)
    removed = tuple(hit.chunk_id for i, hit in enumerate(hits) if first_of(i) != i)
    note = f"folded {_rows(len(removed))} into {len(groups)} of the same text"
    if not removed:
        note = "no two rows have the same text"
    kept = [hit for i, hit in enumerate(hits) if first_of(i) == i]
    return kept, {key: tuple(ids) for key, ids in groups.items()}, Step("fold", note, removed)


def _limit_documents(hits: Sequence[Hit], most: int, index: Index) -> tuple[Sequence[Hit], Step]:
    n_of: dict[str, int] = defaultdict(int)
    kept: list[Hit] = []
    removed: list[str] = []
    for hit in hits:
        document = index.chunks[hit.position].doc_id
        n_of[document] += 1
        if n_of[document] <= most:
            kept.append(hit)
        else:
            removed.append(hit.chunk_id)
    note = f"dropped {_rows(len(removed))}, at most {most} of one document"
    return kept, Step("max per document", note, tuple(removed))


def _diversify(
    hits: Sequence[Hit], weight: float, vectors: Vectors | None
) -> tuple[Sequence[Hit], Step]:
    """Maximal marginal relevance: Carbonell and Goldstein 1998, doi:10.1145/290941.291025.

    The next row is always the one with the largest ``weight * relevance - (1 - weight) *
    similarity``: relevance is the row's score between 0 (last) and 1 (first) of the list, or 1
    where all are equal; similarity is the largest cosine to a row that was already taken, 0 for
    the first. Of equal ones the row that stood higher comes first.
    """
    if vectors is None:
        return hits, Step("mmr", "not done: the index has no vectors")
    n = min(len(hits), MMR_ROWS)
    scores = np.array([hit.score for hit in hits[:n]], np.float64)
    spread = float(scores.max() - scores.min()) if n else 0.0
    relevance = (scores - scores.min()) / spread if spread > 0 else np.ones(n)
    rows = vectors[[hit.position for hit in hits[:n]]].astype(np.float64)
    # Rows are not unit vectors where the model compares by dot product or distance.
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) if n else np.ones((0, 1))
    rows /= np.where(lengths > 0, lengths, 1.0)
    nearest = np.zeros(n)
    is_free = np.ones(n, dtype=np.bool_)
    order: list[int] = []
    for _ in range(n):
        gain = np.where(is_free, weight * relevance - (1 - weight) * nearest, -np.inf)
        taken = int(np.argmax(gain))
        similarity = rows @ rows[taken]
        nearest = np.maximum(nearest, similarity) if order else similarity
        order.append(taken)
        is_free[taken] = False
    n_moved = sum(place != i for i, place in enumerate(order))
    note = f"moved {n_moved} of {_rows(len(hits))} for difference (lambda {weight:g})"
    if len(hits) > n:
        note += f"; rows below {n:,} stay"
    return [*(hits[i] for i in order), *hits[n:]], Step("mmr", note)


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"
