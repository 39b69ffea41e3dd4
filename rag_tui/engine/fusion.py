"""Fusion: several rankings become one, by their ranks or by their normalised scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Any

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import FusionKind, Hit, Method, Ranking, ScoreKind


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How the scores of one list were put on a common scale: ``(score - offset) / scale``."""

    offset: float
    """The least score (min-max) or the mean (z-score) of the list's candidates."""
    scale: float
    """Their range (min-max) or population standard deviation (z-score); 1 when constant."""
    absent: float
    """What a chunk gets that the list does not hold: the normalised score of its last row."""
    is_constant: bool = False
    """All scores are equal and say only who is in the list: 1 for those, 0 for the others."""

    def of(self, score: float) -> float:
        """The normalised score."""
        return 1.0 if self.is_constant else (score - self.offset) / self.scale


@dataclass(frozen=True, slots=True)
class FusedPart:
    """What one list gave to one chunk's fused score."""

    method: Method
    rank: int | None
    """None when the list does not hold the chunk within the depth."""
    score: float | None
    """The list's own score; None without a rank."""
    normalised: float | None
    """The score on the common scale; None for reciprocal rank fusion."""
    weight: float
    addend: float
    """The addends of a chunk sum to its fused score."""


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
    if not (math.isfinite(k) and k >= 0):
        raise UsageError(f"rrf_k must be 0 or more (got {k:g})", "Set rrf_k, usually to 60.")
    used = _checked_weights(rankings, depth, weights)
    addends: dict[str, list[float]] = {}
    position_of: dict[str, int] = {}
    for ranking, weight in zip(rankings, used, strict=True):
        if weight == 0:
            continue
        for rank, hit in fusion_ranks(ranking, depth=depth):
            addends.setdefault(hit.chunk_id, []).append(rrf_addend(rank, k=k, weight=weight))
            position_of.setdefault(hit.chunk_id, hit.position)
    return Ranking(
        method="hybrid",
        hits=_best(addends, position_of, depth),
        depth=depth,
        score_kind=ScoreKind(
            f"RRF k={k:g}",
            f"above 0, at most {math.fsum(used) / (k + 1):.4f}",
            "higher is better; made of ranks, says nothing about how good a match is",
        ),
        elapsed_s=perf_counter() - started,
        params=MappingProxyType({"k": k, **_params(rankings, used, depth, "rrf")}),
    )


def weighted_sum_fusion(
    rankings: Sequence[Ranking],
    *,
    kind: FusionKind,
    depth: int,
    weights: Sequence[float] | None = None,
) -> Ranking:
    """Fuse rankings by the weighted sum of their normalised scores.

    The sum is the convex combination of Bruch, Gai and Ingber 2023, "An analysis of fusion
    functions for hybrid retrieval", with weights that need not sum to 1. ``minmax`` puts each
    list's scores between 0 and 1 (Lee 1997, "Analyses of multiple evidence combination");
    ``zscore`` gives them mean 0 and standard deviation 1 (Montague and Aslam 2001, "Relevance
    score normalization for metasearch"; the deviation is that of a population).

    Both are computed over the candidates that a list fetched, cut at ``depth``, ids that it
    holds twice counted once. A chunk that a list does not hold gets what the list's last row
    gets: it would have scored no more. A list whose scores are all equal, such as one of a
    single row, says only who is in it and gives 1 to those and 0 to the others. Ties, weights of
    0 and the order of the lists are as in `reciprocal_rank_fusion`.

    The params hold all of the arithmetic: ``normalisations`` and ``weights``, one per list;
    `fused_parts` reads them.

    Raises:
        UsageError: When the kind is none of the two, depth below 1, or the weights do not fit.
    """
    started = perf_counter()
    if kind not in ("minmax", "zscore"):
        raise UsageError(
            f"a weighted sum needs minmax or zscore (got {kind!r})",
            "Set search.fusion to minmax or zscore, or use reciprocal rank fusion.",
        )
    used = _checked_weights(rankings, depth, weights)
    held = [{h.chunk_id: h for _, h in fusion_ranks(ranking, depth=depth)} for ranking in rankings]
    norms = tuple(_normalisation([hit.score for hit in rows.values()], kind) for rows in held)
    position_of: dict[str, int] = {}
    for rows, weight in zip(held, used, strict=True):
        if weight > 0:
            for chunk_id, hit in rows.items():
                position_of.setdefault(chunk_id, hit.position)
    addends = {
        chunk_id: [
            weight * (norm.of(rows[chunk_id].score) if chunk_id in rows else norm.absent)
            for rows, norm, weight in zip(held, norms, used, strict=True)
        ]
        for chunk_id in position_of
    }
    params = _params(rankings, used, depth, kind)
    return Ranking(
        method="hybrid",
        hits=_best(addends, position_of, depth),
        depth=depth,
        score_kind=_sum_kind(kind, math.fsum(used)),
        elapsed_s=perf_counter() - started,
        params=MappingProxyType({**params, "normalisations": norms}),
    )


def fused_parts(
    chunk_id: str, fused: Ranking, rankings: Mapping[Method, Ranking]
) -> tuple[FusedPart, ...]:
    """What each list gave to a chunk, whether the fused list shows it or not.

    Args:
        chunk_id: Any chunk.
        fused: What `reciprocal_rank_fusion` or `weighted_sum_fusion` made.
        rankings: The lists it was made of, by method; one that is missing here is left out.
    """
    params = fused.params
    methods: tuple[Method, ...] = params["methods"]
    norms: tuple[Normalisation | None, ...] = params.get("normalisations", (None,) * len(methods))
    parts: list[FusedPart] = []
    for method, weight, norm in zip(methods, params["weights"], norms, strict=True):
        if method not in rankings:
            continue
        ranked = fusion_ranks(rankings[method], depth=int(params["depth"]))
        rank, hit = next(((r, h) for r, h in ranked if h.chunk_id == chunk_id), (None, None))
        score = hit.score if hit is not None else None
        if norm is not None:
            normalised = norm.of(score) if score is not None else norm.absent
            parts.append(FusedPart(method, rank, score, normalised, weight, weight * normalised))
        else:
            in_list = rank is not None and weight > 0
            addend = rrf_addend(rank or 1, k=params["k"], weight=weight) if in_list else 0.0
            parts.append(FusedPart(method, rank, score, None, weight, addend))
    return tuple(parts)


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


def _normalisation(scores: Sequence[float], kind: FusionKind) -> Normalisation:
    if not scores:
        return Normalisation(0.0, 1.0, 0.0, is_constant=True)
    least, most = min(scores), max(scores)
    if kind == "minmax":
        offset, scale = least, most - least
    else:
        offset = math.fsum(scores) / len(scores)
        scale = math.sqrt(math.fsum((s - offset) ** 2 for s in scores) / len(scores))
    # A deviation below the rounding of the scores is as good as none.
    if least == most or scale == 0 or not math.isfinite(scale):
        return Normalisation(least, 1.0, 0.0, is_constant=True)
    return Normalisation(offset, scale, (least - offset) / scale)


def _sum_kind(kind: FusionKind, total: float) -> ScoreKind:
    note = "higher is better; says who is ahead within this question's candidates only"
    if kind == "minmax":
        return ScoreKind("min-max sum", f"0 to {total:g}", note)
    return ScoreKind("z-score sum", "around 0, no fixed ends", note)


def _best(
    addends: Mapping[str, Sequence[float]], position_of: Mapping[str, int], depth: int
) -> tuple[Hit, ...]:
    # fsum is exact before its one rounding, so the order of the lists cannot matter.
    scores = {chunk_id: math.fsum(parts) for chunk_id, parts in addends.items()}
    best = sorted(scores, key=lambda c: (-scores[c], position_of[c], c))[:depth]
    return tuple(
        Hit(chunk_id=c, position=position_of[c], score=scores[c], rank=rank)
        for rank, c in enumerate(best, start=1)
    )


def _params(
    rankings: Sequence[Ranking], weights: tuple[float, ...], depth: int, kind: FusionKind
) -> dict[str, Any]:
    methods = tuple(ranking.method for ranking in rankings)
    return {"fusion": kind, "depth": depth, "methods": methods, "weights": weights}


def _checked_weights(
    rankings: Sequence[Ranking], depth: int, weights: Sequence[float] | None
) -> tuple[float, ...]:
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
