"""Which settings a sweep tries: every combination of some values, or a random part of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import get_args

from rag_tui.engine.chunkers.base import SizeUnit, Strategy
from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import KNOBS, SPECS, KnobSpec
from rag_tui.engine.types import KnobValue

MAX_SETTINGS = 500
"""More than these are refused; a random part of a larger grid is fine."""

CHUNKING_KNOBS: tuple[KnobSpec, ...] = (
    KnobSpec("chunking.strategy", "choice", "how documents are cut", choices=get_args(Strategy)),
    KnobSpec("chunking.size", "whole", "longest chunk", least=1),
    KnobSpec("chunking.overlap", "whole", "what neighbouring chunks share", least=0),
    KnobSpec("chunking.unit", "choice", "what the size counts", choices=get_args(SizeUnit)),
)
"""Knobs of the index that a sweep may turn beside those of a search."""

_CHUNKING = {spec.name: spec for spec in CHUNKING_KNOBS}
_ALIASES = {"embedder": "search.embedder", "reranker": "search.reranker"}
_INSTEAD = {
    "models.embedder": "search.embedder measures another embedder on the same chunks.",
    "models.reranker": "search.reranker measures another reranker.",
}
_SLOW = (
    "chunking.strategy", "chunking.unit", "chunking.size", "chunking.overlap", "search.embedder",
    "bm25.analyzer", "search.reranker", "search.rerank_depth", "search.rerank_from", "search.depth",
)  # fmt: skip
"""What costs most to change, most first: those change least often."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value for each knob of a space."""

    knobs: tuple[tuple[str, KnobValue], ...]
    """By dotted name, in the order of the space."""

    @property
    def name(self) -> str:
        """``bm25.k1=0.9 chunking.size=128``."""
        return " ".join(f"{name}={shown(value)}" for name, value in self.knobs)

    @property
    def chunking(self) -> dict[str, KnobValue]:
        """The fields of `ChunkingSettings` that it sets."""
        return {n.partition(".")[2]: v for n, v in self.knobs if n in _CHUNKING}

    @property
    def search(self) -> dict[str, KnobValue]:
        """The knobs of a search that it sets."""
        return {n: v for n, v in self.knobs if n not in _CHUNKING}


@dataclass(frozen=True, slots=True)
class Space:
    """Values of knobs, and how many of their combinations are tried."""

    knobs: tuple[tuple[str, tuple[KnobValue, ...]], ...]
    """What is slowest to change first; every knob has a value, and each of them once."""
    n_random: int | None = None
    """So many combinations at random; None: all."""
    seed: int = 0
    """Of the random choice."""

    @property
    def names(self) -> tuple[str, ...]:
        """The knobs."""
        return tuple(name for name, _ in self.knobs)

    @property
    def size(self) -> int:
        """All combinations."""
        return math.prod(len(values) for _, values in self.knobs)

    def settings(self) -> tuple[Setting, ...]:
        """The combinations, the last knob changing fastest; a random part in the same order."""
        chosen: Sequence[int] = range(self.size)
        if self.n_random is not None and self.n_random < self.size:
            chosen = sorted(random.Random(self.seed).sample(range(self.size), self.n_random))  # noqa: S311 - no secret
        return tuple(self._setting(number) for number in chosen)

    def _setting(self, number: int) -> Setting:
        digits: list[KnobValue] = []
        for _, values in reversed(self.knobs):
            number, digit = divmod(number, len(values))
            digits.append(values[digit])
        return Setting(tuple(zip(self.names, reversed(digits), strict=True)))


def make_space(
    values: Mapping[str, Sequence[object]], *, n_random: int | None = None, seed: int = 0
) -> Space:
    """A checked space, its knobs ordered so that what is expensive changes least often.

    Args:
        values: Knob to its values. ``embedder`` and ``reranker`` are short for the knobs of the
            search.
        n_random: So many combinations at random; None: all.
        seed: Of the random choice.

    Raises:
        UsageError: For no knob at all, one that does not exist or changes no list, a value that
            it does not accept, or more combinations than `MAX_SETTINGS`.
    """
    if n_random is not None and n_random < 1:
        raise UsageError(f"A sweep tries at least 1 setting (got {n_random}).", "Ask for 20.")
    checked: dict[str, tuple[KnobValue, ...]] = {}
    for given, wanted in values.items():
        spec = _spec(given)
        if not wanted:
            raise UsageError(f"{spec.name} has no value to try.", f"{spec.name}: {spec.note}.")
        known = [spec.checked(value) for value in wanted]
        checked[spec.name] = tuple(dict.fromkeys(known))
    if not checked:
        raise UsageError("There is no knob to vary.", "Such as --vary bm25.k1=0.6,0.9,1.2.")
    order = [*_SLOW, *(spec.name for spec in KNOBS if spec.name not in _SLOW)]
    space = Space(tuple((name, checked[name]) for name in order if name in checked), n_random, seed)
    n = space.size if n_random is None else min(n_random, space.size)
    if n > MAX_SETTINGS:
        raise UsageError(
            f"These are {n:,} settings; at most {MAX_SETTINGS} are tried at once.",
            "Give fewer values, or try a random part of them with --random 50.",
        )
    return space


def parse_space(texts: Sequence[str], *, n_random: int | None = None, seed: int = 0) -> Space:
    """``knob=value,value`` texts as a space; raises as `make_space` does."""
    values: dict[str, list[object]] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if not (equals and name.strip()):
            raise UsageError(
                f"{text!r} is not of the form knob=value,value.", "Such as bm25.k1=0.6,0.9,1.2."
            )
        found = [part.strip() for part in rest.split(",") if part.strip()]
        values.setdefault(name.strip(), []).extend(found)
    return make_space(values, n_random=n_random, seed=seed)


def shown(value: KnobValue) -> str:
    """A knob's value in a table: ``off``, ``on``, ``0.9``; an empty text is ``(default)``."""
    match value:
        case None | False:
            return "off"
        case True:
            return "on"
        case "":
            return "(default)"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def knob_names() -> Iterator[str]:
    """All knobs that a sweep may turn, in the order in which they are offered."""
    yield from _CHUNKING
    yield from (spec.name for spec in KNOBS if spec.name != "search.top_k")


def _spec(given: str) -> KnobSpec:
    name = _ALIASES.get(given, given)
    if name in _INSTEAD:
        raise UsageError(f"A sweep does not vary {name}.", _INSTEAD[name])
    if name == "search.top_k":
        raise UsageError(
            "A sweep does not vary search.top_k: it changes no list.",
            "The cut-off of the metric decides how many rows count, such as nDCG@5.",
        )
    spec = _CHUNKING.get(name) or SPECS.get(name)
    if spec is None:
        near = get_close_matches(name, list(knob_names()), n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Knobs are: {', '.join(knob_names())}."
        raise UsageError(f"There is no knob {name!r}.", hint)
    return spec
