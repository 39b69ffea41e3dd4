"""Which chunks a list shows, in which order, and what their lengths say: pure functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.index import Index
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_filter import allowed, chunk_test, kinds_meant, parse_filter
from rag_tui.tui.chunk_notes import NO_NOTES, OTHER_SYMBOL, SYMBOLS, ChunkNotes
from rag_tui.tui.widgets.document_tree import TreeTarget

Sort = Literal["order", "longest", "shortest", "warnings"]
SORTS: tuple[Sort, ...] = ("order", "longest", "shortest", "warnings")

SAMPLE_SIZE = 10
_BINS = 24
_CHECK_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Selection:
    """What is wanted of an index. All parts that are set must hold."""

    scope: TreeTarget | None = None
    """A folder, document or section; None for all."""
    needle: str = ""
    """A filter line as `rag_tui.tui.chunk_filter` reads it; empty for all."""
    sort: Sort = "order"
    """By corpus order, tokens or number of findings; equal ones stay in corpus order."""
    warning: str = ""
    """Kind of a finding; empty for all."""
    sample: int = 0
    """Seed of a random sample of ten among what the other parts leave; 0 for all of it."""

    @property
    def is_quick(self) -> bool:
        """Whether finding its chunks reads none of their texts."""
        return not self.needle

    @property
    def needs_notes(self) -> bool:
        """Whether warnings decide which chunks it names, or in which order."""
        return bool(self.warning) or self.sort == "warnings" or "warning:" in self.needle


def select(
    index: Index,
    selection: Selection,
    *,
    notes: ChunkNotes = NO_NOTES,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Sequence[int]:
    """The positions of the chunks that a selection names, in its order.

    Without scope, needle, warning, sample and sort nothing is looked at, whatever the number of
    chunks. Returns what was found so far when cancelled.

    Raises:
        UsageError: When the filter line cannot be read, or its pattern takes too long.
    """
    positions: Sequence[int] = range(len(index.chunks))
    if selection.warning:
        positions = notes.positions_with(frozenset((selection.warning,)))
    if selection.scope is not None or selection.needle:
        positions = _filtered(index, selection, notes, positions, is_cancelled)
    if selection.sample and len(positions) > SAMPLE_SIZE:
        # The seed is shown, so that a draw can be named and seen again.
        drawn = random.Random(selection.sample).sample(range(len(positions)), SAMPLE_SIZE)  # noqa: S311
        positions = [positions[i] for i in drawn]
    if selection.sort == "warnings":
        return sorted(positions, key=lambda position: -len(notes.of(position)))
    if selection.sort != "order":
        lengths = index.n_tokens.tolist()
        sign = -1 if selection.sort == "longest" else 1
        return sorted(positions, key=lambda position: sign * lengths[position])
    return positions


def _filtered(
    index: Index,
    selection: Selection,
    notes: ChunkNotes,
    positions: Sequence[int],
    is_cancelled: Callable[[], bool],
) -> list[int]:
    wanted = parse_filter(selection.needle)
    holds = chunk_test(wanted)
    mask = allowed(wanted.where, index)
    is_allowed = None if mask is None else mask.tolist()
    if wanted.warning:
        meant = notes.positions_with(kinds_meant(wanted.warning, notes.kinds))
        among = set(positions)
        positions = [position for position in meant if position in among]
    found: list[int] = []
    # A pattern may take long on every single chunk.
    check_every = 1 if wanted.pattern else _CHECK_EVERY
    for n, position in enumerate(positions):
        if n % check_every == 0 and is_cancelled():
            break
        chunk = index.chunks[position]
        in_scope = selection.scope is None or selection.scope.holds(chunk)
        if in_scope and (is_allowed is None or is_allowed[position]) and holds(chunk):
            found.append(position)
    return found


def describe(selection: Selection) -> str:
    """Scope, filters and order of a list in words."""
    parts = []
    if selection.sample:
        parts.append(f"{SAMPLE_SIZE} at random, draw {selection.sample}")
    if selection.scope is not None:
        parts.append(f"in {selection.scope.path}")
    if selection.warning:
        parts.append(f"only {selection.warning}")
    if selection.needle:
        parts.append(f"with “{selection.needle}”")
    parts.append({"order": "in order"}.get(selection.sort, f"{selection.sort} first"))
    return " · ".join(parts)


def warning_counts(notes: ChunkNotes) -> str:
    """The kinds of warnings by number of chunks, the most frequent first."""
    shown = [f"{SYMBOLS.get(kind, OTHER_SYMBOL)} {n:,} {kind}" for kind, n in notes.counts.items()]
    return " · ".join(shown) or "✓ no warnings"


def facts(index: Index) -> str:
    """One line about the whole index: how much there is and how much of it the model reads."""
    parts = [fmt.count(len(index.chunks), "chunk"), fmt.count(len(index.documents), "document")]
    lengths = _length_facts(index) if len(index.chunks) else []
    # Trouble stands first: a narrow terminal cuts the end.
    parts += [part for part in lengths if part.startswith("⚠")]
    n_out = sum(report.state in ("skipped", "failed") for report in index.reports)
    n_partly = sum(report.state == "partly" for report in index.reports)
    if n_out:
        parts.append(f"– {fmt.count(n_out, 'file')} left out")
    if n_partly:
        parts.append(f"◐ {fmt.count(n_partly, 'file')} in part")
    parts += [part for part in lengths if not part.startswith("⚠")]
    return " · ".join(parts)


def length_histogram(index: Index) -> list[float]:
    """How many chunks there are of each length: 24 equal bins from 0 to the longest, in order."""
    if not len(index.chunks):
        return []
    import numpy as np

    longest = max(1, int(index.n_tokens.max()))
    counts, _ = np.histogram(index.n_tokens, bins=_BINS, range=(0, longest))
    return [float(n) for n in counts]


def _length_facts(index: Index) -> list[str]:
    """How many chunks are longer than the model reads, then how long they are."""
    import numpy as np

    limit = index.manifest.max_tokens
    of = f" of {limit:,}" if limit else ""
    median, longest = float(np.median(index.n_tokens)), int(index.n_tokens.max())
    parts = [
        f"median {median:,.0f}, longest {longest:,}{of} tokens",
        f"{fmt.count(int(index.n_tokens.sum()), 'token')} in all",
    ]
    if not limit:
        return parts
    n_over = int((index.n_tokens > limit).sum())
    share = n_over / len(index.chunks)
    return [
        f"⚠ {n_over:,} ({share:.0%}) over the limit" if n_over else "none over the limit",
        *parts,
    ]
