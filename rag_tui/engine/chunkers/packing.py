"""Which of many places to cut at: greedy with overlap, and the best whole division."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_WIDEST = 512
"""Atoms of one piece that are looked at: keeps a text of countless tiny atoms linear."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch that is not cut, unless it is too long by itself."""

    start: int
    end: int
    cost: int
    penalty: float = 0.0
    """How bad it is to cut before it, in pieces: at 1.0, one more piece elsewhere is as bad."""
    header: tuple[int, int] | None = None
    """Span of what must be repeated in front when a piece begins here."""
    header_cost: int = 0
    holds_header: bool = False
    """The header is in the atom itself: repeated only if the atom must be cut."""
    group: int = 0
    """Neighbours of one group may be shared by two pieces as overlap; 0: never."""


@dataclass(frozen=True, slots=True)
class Pack:
    """One piece: atoms ``first`` to ``after``, end-exclusive; the overlap is in front."""

    first: int
    after: int


def packed(
    ends: Sequence[int],
    size: int,
    overlap: int,
    excess: Callable[[int, int], int] | None = None,
) -> list[tuple[int, int]]:
    """Windows over atoms with costs: as many as fit, then back by as many as fit the overlap.

    With every cost 1 these are the windows of `windows.windows`. An atom dearer than the size is
    a window of its own.

    Args:
        ends: Running total of the costs: ``ends[i]`` is the cost of atoms 0 to i, ascending.
        size: The most a window may cost.
        overlap: The most that neighbours may share, below size.
        excess: For a window that fits by the running total, by how many atoms it must be shorter
            after all; it always keeps one more atom than the window before it reached.

    Returns:
        Spans in atoms, end-exclusive; starts and ends ascend strictly.
    """
    spans: list[tuple[int, int]] = []
    start = end = 0
    while end < len(ends):
        before = ends[start - 1] if start else 0
        fits = bisect_right(ends, before + size)
        if fits <= end:
            # Nothing new fits beside the overlap: do without it.
            start = end
            fits = max(bisect_right(ends, (ends[end - 1] if end else 0) + size), end + 1)
        least_end, end = end + 1, fits
        while excess is not None and end > least_end and (over := excess(start, end)) > 0:
            end = max(end - over, least_end)
        spans.append((start, end))
        # The first place from which on at most the overlap lies before the end.
        least = ends[end - 1] - overlap
        back = bisect_left(ends, least) + 1 if least > 0 else 0
        start = min(max(back, start + 1), end)
    return spans


def best_packs(atoms: Sequence[Atom], budget: int, overlap: int) -> list[Pack]:
    """The division into pieces within the budget that costs least, all in all.

    Each piece costs 1, plus the penalty of the cut before it, plus the square of the share of
    the budget that it leaves empty: so pieces are few, cut at good places, and about equally
    long. This is how TeX breaks lines (Knuth and Plass 1981, "Breaking Paragraphs into Lines"),
    with these costs. An atom dearer than the budget is a piece of its own. Where a piece begins
    within a group, it also holds the last atoms of that group before it that fit the overlap.
    """
    n_atoms = len(atoms)
    leads = [_lead(atoms, at, overlap) for at in range(n_atoms)]
    fronts = [
        lead[1] + (0 if atom.holds_header else atom.header_cost)
        for atom, lead in zip(atoms, leads, strict=True)
    ]
    totals = [0]
    for atom in atoms:
        totals.append(totals[-1] + max(atom.cost, 1))
    best = [0.0] * (n_atoms + 1)
    came_from = [0] * (n_atoms + 1)
    for after in range(1, n_atoms + 1):
        least = float("inf")
        for first in range(after - 1, max(-1, after - 1 - _WIDEST), -1):
            inner = totals[after] - totals[first]
            if inner > budget and first < after - 1:
                break
            cost = inner + fronts[first]
            if cost > budget and first < after - 1:
                continue
            slack = max(0, budget - cost) / budget
            total = best[first] + 1.0 + atoms[first].penalty + slack * slack
            if total < least:
                least, came_from[after] = total, first
        best[after] = least
    cuts = [n_atoms]
    while cuts[-1] > 0:
        cuts.append(came_from[cuts[-1]])
    cuts.reverse()
    packs: list[Pack] = []
    for first, after in pairwise(cuts):
        lead = leads[first][0]
        is_long = max(atoms[first].cost, 1) + fronts[first] > budget
        start = first if is_long or not packs else max(first - lead, packs[-1].first + 1)
        packs.append(Pack(start, after))
    return packs


def _lead(atoms: Sequence[Atom], at: int, overlap: int) -> tuple[int, int]:
    """How many atoms before this one fit the overlap, and what they cost."""
    n_atoms = cost = 0
    group = atoms[at].group
    if not group:
        return 0, 0
    for before in range(at - 1, -1, -1):
        more = cost + max(atoms[before].cost, 1)
        if atoms[before].group != group or more > overlap:
            break
        n_atoms, cost = n_atoms + 1, more
    return n_atoms, cost
