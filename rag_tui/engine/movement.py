"""What moved between two lists: arrows row by row, what came in and went out, and how alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_tui.engine.errors import UsageError

RBO_P = 0.9
"""How far a reader reads on: the first 10 rows weigh about 86 % of the overlap."""


@dataclass(frozen=True, slots=True)
class Move:
    """One row of one of two lists."""

    chunk_id: str
    rank_before: int | None
    rank_now: int | None
    """1-based; None where the list does not hold the chunk at all."""

    @property
    def arrow(self) -> str:
        """``▲2`` up two rows, ``▼1`` down one, ``═`` the same place, ``new``, ``gone``."""
        if self.rank_before is None:
            return "new"
        if self.rank_now is None:
            return "gone"
        n_up = self.rank_before - self.rank_now
        return "═" if n_up == 0 else f"{'▲' if n_up > 0 else '▼'}{abs(n_up)}"


@dataclass(frozen=True, slots=True)
class Movement:
    """What became of the first rows of a list."""

    rows: tuple[Move, ...]
    """The rows shown now, by their rank."""
    gone: tuple[Move, ...]
    """Rows that were shown before and are not any more, by their former rank."""
    n_in: int
    """Rows that are shown now and were not before."""
    n_moved: int
    """Rows that were shown before too, at another rank."""
    rbo: float
    """Rank-biased overlap of the shown rows, 0 to 1; 1: the same rows in the same order."""

    @property
    def n_out(self) -> int:
        """Rows that were shown before and are not any more."""
        return len(self.gone)

    @property
    def is_same(self) -> bool:
        """Whether the same rows are shown in the same order."""
        return not (self.n_in or self.n_out or self.n_moved)

    @property
    def summary(self) -> str:
        """``2 in, 2 out, RBO 0.81``, or ``no change``."""
        if self.is_same:
            return "no change"
        # What is not the same is not shown as 1.00.
        alike = min(round(self.rbo, 2), 0.99)
        if not (self.n_in or self.n_out):
            return f"{self.n_moved} moved, RBO {alike:.2f}"
        return f"{self.n_in} in, {self.n_out} out, RBO {alike:.2f}"


def movement(
    before: Sequence[str], now: Sequence[str], *, rows: int | None = None, p: float = RBO_P
) -> Movement:
    """What moved between two lists of chunk ids.

    Args:
        before: Ids by rank, each once.
        now: Ids by rank, each once.
        rows: How many rows are shown; the ranks of arrows are looked up below that too. None:
            all of both lists.
        p: See `rank_biased_overlap`.
    """
    rank_before = {chunk_id: rank for rank, chunk_id in enumerate(before, start=1)}
    rank_now = {chunk_id: rank for rank, chunk_id in enumerate(now, start=1)}
    shown_before, shown_now = before[:rows], now[:rows]
    was_shown, is_shown = set(shown_before), set(shown_now)

    def move(chunk_id: str) -> Move:
        return Move(chunk_id, rank_before.get(chunk_id), rank_now.get(chunk_id))

    moves = tuple(move(chunk_id) for chunk_id in shown_now)
    return Movement(
        rows=moves,
        gone=tuple(move(chunk_id) for chunk_id in shown_before if chunk_id not in is_shown),
        n_in=len(is_shown - was_shown),
        n_moved=sum(m.chunk_id in was_shown and m.rank_before != m.rank_now for m in moves),
        rbo=rank_biased_overlap(shown_before, shown_now, p=p),
    )


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], *, p: float = RBO_P) -> float:
    """Rank-biased overlap, extrapolated: 0 for nothing in common, 1 for equal lists.

    Webber, Moffat and Zobel 2010, "A similarity measure for indefinite rankings",
    doi:10.1145/1852102.1852106, equation 32 (RBO_ext), which takes lists of different lengths:
    ``(1 - p) / p * (sum over d = 1..l of X_d / d * p^d + sum over d = s+1..l of
    X_s * (d - s) / (s * d) * p^d) + ((X_l - X_s) / l + X_s / s) * p^l``, with s and l the lengths
    of the shorter and the longer list and X_d the number of ids that the first d rows share. Two
    empty lists are equal; an empty list has nothing in common with another.

    Args:
        first: Ids by rank, each once.
        second: Ids by rank, each once.
        p: Probability of reading on to the next row, between 0 and 1, both excluded.

    Raises:
        UsageError: When p is out of range.
    """
    if not 0 < p < 1:
        raise UsageError(f"p of RBO must be between 0 and 1 (got {p:g})", "Set it to 0.9.")
    shorter, longer = sorted((first, second), key=len)
    s, n = len(shorter), len(longer)
    if n == 0 or tuple(first) == tuple(second):
        return 1.0
    if s == 0:
        return 0.0
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    common = common_at_s = 0
    total = 0.0
    for d in range(1, n + 1):
        new = {longer[d - 1]}
        seen_long.add(longer[d - 1])
        if d <= s:
            new.add(shorter[d - 1])
            seen_short.add(shorter[d - 1])
        common += len(new & seen_short & seen_long)
        if d == s:
            common_at_s = common
        beyond = common_at_s * (d - s) / (s * d) if d > s else 0.0
        total += (common / d + beyond) * p**d
    tail = ((common - common_at_s) / n + common_at_s / s) * p**n
    return min(1.0, (1 - p) / p * total + tail)
