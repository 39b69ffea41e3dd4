"""Which chunks a list shows, in which order, and what their lengths say: pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.index import Index
from rag_tui.engine.types import Chunk
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.document_tree import TreeTarget

Sort = Literal["order", "longest", "shortest"]
SORTS: tuple[Sort, ...] = ("order", "longest", "shortest")

_BINS = 24


@dataclass(frozen=True, slots=True)
class Selection:
    """What is wanted of an index."""

    scope: TreeTarget | None = None
    """A folder, document or section; None for all."""
    needle: str = ""
    """Plain text to look for in text, path and headings, ignoring case; empty for all."""
    sort: Sort = "order"
    """By corpus order, or by tokens; equal lengths stay in corpus order."""


def select(
    index: Index, selection: Selection, *, is_cancelled: Callable[[], bool] = lambda: False
) -> Sequence[int]:
    """The positions of the chunks that a selection names, in its order.

    Without scope, needle and sort nothing is looked at, whatever the number of chunks. Returns
    what was found so far when cancelled.
    """
    positions: Sequence[int] = range(len(index.chunks))
    needle = selection.needle.casefold()
    if selection.scope is not None or needle:
        found: list[int] = []
        for position, chunk in enumerate(index.chunks):
            if position % 1000 == 0 and is_cancelled():
                break
            in_scope = selection.scope is None or selection.scope.holds(chunk)
            if in_scope and (not needle or _mentions(chunk, needle)):
                found.append(position)
        positions = found
    if selection.sort != "order":
        lengths = index.n_tokens.tolist()
        sign = -1 if selection.sort == "longest" else 1
        positions = sorted(positions, key=lambda position: sign * lengths[position])
    return positions


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


def _mentions(chunk: Chunk, needle: str) -> bool:
    return (
        needle in chunk.text.casefold()
        or needle in chunk.doc_id.casefold()
        or needle in chunk.context.casefold()
    )
