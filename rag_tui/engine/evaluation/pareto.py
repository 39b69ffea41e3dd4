"""Which settings nothing beats: better lists, answers that come sooner, prompts that cost less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LATENCY_TOLERANCE = 1.1
"""Times that differ by less than this factor count as equal: they are measured."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one setting gives and what it costs."""

    quality: float
    """Higher is better."""
    latency_ms: float
    prompt_tokens: float


def dominates(one: Point, other: Point) -> bool:
    """Whether a point is at least as good in everything and better in something.

    A latency is better only when it is lower by `LATENCY_TOLERANCE`; so no two points, and no
    ring of points, dominate each other.
    """
    if (
        one.quality < other.quality
        or one.prompt_tokens > other.prompt_tokens
        or one.latency_ms > other.latency_ms * LATENCY_TOLERANCE
    ):
        return False
    return (
        one.quality > other.quality
        or one.prompt_tokens < other.prompt_tokens
        or one.latency_ms * LATENCY_TOLERANCE < other.latency_ms
    )


def pareto_front(points: Sequence[Point]) -> tuple[int, ...]:
    """Indexes of the points that no other one dominates, ascending; never empty if there are any.

    Pareto optimality in three quantities, by comparing each with each.
    """
    return tuple(
        i for i, point in enumerate(points) if not any(dominates(other, point) for other in points)
    )
