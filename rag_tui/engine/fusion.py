"""Fusion: several rankings become one, by their ranks alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter
from types import MappingProxyType

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import Hit, Ranking, ScoreKind


def reciprocal_rank_fusion(
    rankings: Sequence[Ranking],
    *,
    k: float,
    depth: int,
    weights: Sequence[float] | None = None,
) -> Ranking:
    """Fuse rankings by the sum of ``weight / (k + rank)`` over the lists that hold a chunk.

    Reciprocal rank fusion after Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion
    outperforms Condorcet and individual rank learning methods". Ranks start at 1. Each list is
    cut at ``depth`` first, and so is the result. A list that does not hold a chunk adds 0 to
    it. An id that a list holds twice counts once, at its best rank, and the ranks below close
    up. Equal scores are ordered by position; the order of the lists makes no difference. A
    list of weight 0 is left out. The inputs are not changed.

    Raises:
        UsageError: When k is negative, depth below 1, or the weights do not fit the lists.
    """
    started = perf_counter()
    used = _checked_weights(rankings, k, depth, weights)
    addends: dict[str, list[float]] = {}
    position_of: dict[str, int] = {}
    for ranking, weight in zip(rankings, used, strict=True):
        if weight == 0:
            continue
        for rank, hit in fusion_ranks(ranking, depth=depth):
            addends.setdefault(hit.chunk_id, []).append(rrf_addend(rank, k=k, weight=weight))
            position_of.setdefault(hit.chunk_id, hit.position)
    # fsum is exact before its one rounding, so the order of the lists cannot matter.
    scores = {chunk_id: math.fsum(parts) for chunk_id, parts in addends.items()}
    best = sorted(scores, key=lambda c: (-scores[c], position_of[c], c))[:depth]
    return Ranking(
        method="hybrid",
        hits=tuple(
            Hit(chunk_id=c, position=position_of[c], score=scores[c], rank=rank)
            for rank, c in enumerate(best, start=1)
        ),
        depth=depth,
        score_kind=ScoreKind(
            f"RRF k={k:g}",
            f"above 0, at most {math.fsum(used) / (k + 1):.4f}",
            "higher is better; made of ranks, says nothing about how good a match is",
        ),
        elapsed_s=perf_counter() - started,
        params=MappingProxyType(
            {
                "k": k,
                "depth": depth,
                "methods": tuple(ranking.method for ranking in rankings),
                "weights": used,
            }
        ),
    )


def fusion_ranks(ranking: Ranking, *, depth: int) -> Iterator[tuple[int, Hit]]:
    """The ranks that a list gives to the fusion, best first: cut at depth, repeated ids once."""
    seen: set[str] = set()
    for hit in ranking.hits[:depth]:
        if hit.chunk_id not in seen:
            seen.add(hit.chunk_id)
            yield len(seen), hit


def rrf_addend(rank: int, *, k: float, weight: float = 1.0) -> float:
    """What a list gives to a chunk that stands at a 1-based rank: ``weight / (k + rank)``."""
    return weight / (k + rank)


def _checked_weights(
    rankings: Sequence[Ranking], k: float, depth: int, weights: Sequence[float] | None
) -> tuple[float, ...]:
    if not (math.isfinite(k) and k >= 0):
        raise UsageError(f"rrf_k must be 0 or more (got {k:g})", "Set rrf_k, usually to 60.")
    if depth < 1:
        raise UsageError(
            f"depth must be at least 1 (got {depth})",
            "Set depth to the number of candidates of each list, e.g. 50.",
        )
    used = (1.0,) * len(rankings) if weights is None else tuple(weights)
    if len(used) != len(rankings):
        raise UsageError(
            f"there must be one weight per list (got {len(used)} for {len(rankings)} lists)",
            "Give as many weights as there are lists to fuse.",
        )
    for weight in used:
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(
                f"a fusion weight must be 0 or more (got {weight:g})",
                "Set every weight to 0 or a positive number.",
            )
    return used
