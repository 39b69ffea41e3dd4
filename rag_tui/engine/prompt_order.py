"""Which chunks become sources, with which text and in which order: the plan of a what-if."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import PROMPT_ORDERS, Chunk, PromptOrder


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """What is to become of one chunk."""

    chunk_id: str
    is_on: bool = True
    is_pinned: bool = False
    """Taken whatever its rank, before the others; it counts towards the number of sources."""
    edited_text: str | None = None
    """Sent instead of the chunk's text; None: unchanged."""


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """What was changed by hand about a prompt. Every method gives a new plan."""

    entries: tuple[PlanEntry, ...] = ()
    """In the wanted order among themselves: together they hold the places that their chunks hold
    by rank, and chunks without an entry keep theirs. Entries of chunks that are not at hand are
    passed over, so that a plan outlives a search."""
    template: str | None = None
    """None: the setting."""
    order: PromptOrder | None = None
    """None: the setting."""
    n_sources: int | None = None
    """None: the setting."""

    def entry(self, chunk_id: str) -> PlanEntry:
        """The entry of a chunk; for one without, that of a chunk left as it is."""
        found = (entry for entry in self.entries if entry.chunk_id == chunk_id)
        return next(found, PlanEntry(chunk_id))

    def toggled(self, chunk_id: str) -> PromptPlan:
        """With a source switched off, or on again."""
        entry = self.entry(chunk_id)
        return self._with(replace(entry, is_on=not entry.is_on))

    def pinned(self, chunk_id: str) -> PromptPlan:
        """With a source pinned, or not any more; a pinned one is on."""
        entry = self.entry(chunk_id)
        return self._with(
            replace(entry, is_pinned=not entry.is_pinned, is_on=entry.is_on or not entry.is_pinned)
        )

    def edited(self, chunk_id: str, text: str | None) -> PromptPlan:
        """With another text for a source; None: its own again."""
        return self._with(replace(self.entry(chunk_id), edited_text=text))

    def moved(self, chunk_id: str, by: int, among: Sequence[str]) -> PromptPlan:
        """With a source moved so many places down (negative: up).

        Args:
            chunk_id: The source.
            by: Places; it stops at either end.
            among: The chunk ids as they stand now, all of them.
        """
        if chunk_id not in among:
            return self
        ids = list(among)
        at = ids.index(chunk_id)
        ids.pop(at)
        ids.insert(min(max(at + by, 0), len(ids)), chunk_id)
        kept = [entry for entry in self.entries if entry.chunk_id not in among]
        return replace(self, entries=(*(self.entry(one) for one in ids), *kept))

    def _with(self, changed: PlanEntry) -> PromptPlan:
        if all(entry.chunk_id != changed.chunk_id for entry in self.entries):
            return replace(self, entries=(*self.entries, changed))
        return replace(
            self,
            entries=tuple(changed if e.chunk_id == changed.chunk_id else e for e in self.entries),
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The outcome of a plan."""

    used: tuple[Chunk, ...]
    """In the order of their numbers."""
    omitted: tuple[str, ...]
    """Chunk ids beyond the number of sources, and blank ones, in the order given."""
    switched_off: tuple[str, ...]


def choose(
    chunks: Sequence[Chunk], *, n_sources: int, plan: PromptPlan, order: PromptOrder
) -> Chosen:
    """The chunks that become sources.

    A chunk given twice counts once, a blank one not at all (unless it was given a text by hand).
    First come pinned chunks, then the best of the others until there are ``n_sources``; pinned
    ones are all kept even when they are more. What is chosen is then put in order: ``best first``
    is the order given, changed by the plan; ``best last`` is the reverse of it; ``document
    order`` is by path and place in the document.

    Raises:
        UsageError: When ``n_sources`` is below 1 or the order is unknown.
    """
    if n_sources < 1:
        raise UsageError(
            f"The number of sources must be at least 1 (got {n_sources}).",
            "Set answer.n_sources to 1 or more.",
        )
    if order not in PROMPT_ORDERS:
        raise UsageError(
            f"There is no order of sources {order!r}.", f"Use {', '.join(PROMPT_ORDERS)}."
        )
    unique = {chunk.chunk_id: chunk for chunk in chunks}
    planned = [entry.chunk_id for entry in plan.entries if entry.chunk_id in unique]
    ranked = _merged(list(unique), planned)
    off = tuple(one for one in ranked if not plan.entry(one).is_on)
    usable = [
        one for one in ranked if one not in off and _text(unique[one], plan.entry(one)).strip()
    ]
    pinned = {one for one in usable if plan.entry(one).is_pinned}
    room = max(n_sources - len(pinned), 0)
    others = [one for one in usable if one not in pinned][:room]
    taken = pinned.union(others)
    used = [unique[one] for one in usable if one in taken]
    if order == "best last":
        used.reverse()
    elif order == "document order":
        used.sort(key=lambda chunk: (chunk.doc_id, chunk.start, chunk.ordinal))
    return Chosen(
        tuple(used),
        tuple(one for one in unique if one not in taken and one not in off),
        off,
    )


def _text(chunk: Chunk, entry: PlanEntry) -> str:
    return chunk.text if entry.edited_text is None else entry.edited_text


def _merged(ranked: list[str], planned: list[str]) -> list[str]:
    """The ranked ids, with the planned ones in planned order on the places they hold together."""
    places = iter(planned)
    wanted = set(planned)
    return [next(places) if one in wanted else one for one in ranked]
