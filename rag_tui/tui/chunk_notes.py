"""What lint and corpus health say about chunks, by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rag_tui.engine.health import Health


class Note(Protocol):
    """One remark about one chunk; what `rag_tui.engine.chunkers.lint` finds has this form."""

    @property
    def position(self) -> int:
        """The chunk's place in the corpus order."""
        ...

    @property
    def kind(self) -> str:
        """What is wrong, in a word or two."""
        ...

    @property
    def detail(self) -> str:
        """The same about this very chunk; foreign text."""
        ...


@dataclass(frozen=True, slots=True)
class HealthNote:
    """A remark about a chunk among all others."""

    position: int
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class ChunkNotes:
    """All notes about an index. Kinds stand by number of chunks, the most frequent first."""

    by_position: Mapping[int, tuple[Note, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Chunks with each kind."""
    health: Health | None = None
    """None until it was asked for."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that were found."""
        return tuple(self.counts)

    def of(self, position: int) -> tuple[Note, ...]:
        """The notes of one chunk."""
        return self.by_position.get(position, ())

    def positions_with(self, kinds: frozenset[str]) -> list[int]:
        """Chunks with a note of one of these kinds, in corpus order."""
        return sorted(
            position
            for position, notes in self.by_position.items()
            if any(note.kind in kinds for note in notes)
        )

    def symbols(self, position: int) -> str:
        """One character for each kind of note about a chunk, in the order of `SYMBOLS`.

        Over the limit is left out: lists have a mark of their own for it.
        """
        kinds = {note.kind for note in self.of(position)} - {"over-limit"}
        known = [symbol for kind, symbol in SYMBOLS.items() if kind in kinds]
        return "".join(known) + OTHER_SYMBOL * bool(kinds - SYMBOLS.keys())

    def numbers(self, position: int) -> str:
        """Corpus health of a chunk in ten characters: how often it is near, and how near it is."""
        near = self.health.neighbours if self.health is not None else None
        if near is None:
            return ""
        cosine = f"{near.cosine[position]:.2f}" if near.nearest[position] >= 0 else "–"
        return f"{near.n_occurrences[position]:>4}× {cosine:>4}"


NO_NOTES = ChunkNotes()

SYMBOLS: Mapping[str, str] = MappingProxyType(
    {
        "over-limit": "⚠", "instructions": "!", "mojibake": "¿", "table-cut": "┬",
        "code-cut": "{", "duplicate": "=", "near-duplicate": "≈", "copy": "≡",
        "boilerplate": "∞", "mostly-boilerplate": "∞", "extraction-noise": "~",
        "heading-only": "#", "tiny": "▁", "one-word-a-line": "⁞", "fractured": "…",
        "hub": "*", "orphan": "○", "isolated": "◌",
    }
)  # fmt: skip
"""A character of one cell for each kind, the most serious first."""
OTHER_SYMBOL = "•"


def collect(notes: Iterable[Note], health: Health | None = None) -> ChunkNotes:
    """Sort notes by chunk and count their kinds; what stands twice counts once."""
    found: dict[int, dict[tuple[str, str], Note]] = {}
    for note in notes:
        found.setdefault(note.position, {}).setdefault((note.kind, note.detail), note)
    by_position = {position: tuple(its.values()) for position, its in sorted(found.items())}
    counts = Counter(
        kind for its in by_position.values() for kind in sorted({note.kind for note in its})
    )
    return ChunkNotes(by_position, dict(counts.most_common()), health)


def joined(one: ChunkNotes, two: ChunkNotes) -> ChunkNotes:
    """Both sets of notes; the health is that of the second if it has one."""
    notes = (note for notes in (one, two) for its in notes.by_position.values() for note in its)
    return collect(notes, two.health or one.health)


def health_notes(health: Health) -> Iterator[HealthNote]:
    """A note for each chunk of each kind."""
    from rag_tui.engine.health import HEALTH_RULES

    for kind, positions in health.of_kind.items():
        # Lint calls a chunk with any repeated passage boilerplate; this one is nothing else.
        name = "mostly-boilerplate" if kind == "boilerplate" else kind
        for position in positions:
            yield HealthNote(position, name, HEALTH_RULES[kind])


def known_kinds() -> dict[str, str]:
    """Every kind of note there is, with its rule in words."""
    from rag_tui.engine.chunkers.lint import RULES
    from rag_tui.engine.health import HEALTH_RULES

    rules = {str(kind): rule for kind, rule in RULES.items()}
    for kind, rule in HEALTH_RULES.items():
        rules["mostly-boilerplate" if kind == "boilerplate" else kind] = rule
    return rules
