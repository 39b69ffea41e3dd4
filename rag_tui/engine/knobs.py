"""Every knob of a search under one dotted name: for columns, presets, sweeps and the settings.

A column is a method and the knobs in which it differs; a preset is a set of knobs; a sweep goes
through values of knobs. All of them are read, checked and applied here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import (
    METHODS,
    BM25Backend,
    BM25Params,
    BM25Variant,
    Column,
    FusionKind,
    KnobValue,
    PostSteps,
    RerankScale,
    SearchRequest,
)

KnobType = Literal["whole", "number", "switch", "choice", "text"]


@dataclass(frozen=True, slots=True)
class KnobSpec:
    """What one knob accepts."""

    name: str
    """Dotted: ``search.depth``, ``bm25.k1``, ``post.fold``; the same as in the settings."""
    type: KnobType
    note: str
    """What turning it does, in a few words."""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    may_be_off: bool = False
    """Whether None (``off``) is a value."""

    @property
    def field(self) -> str:
        """The field of the dataclass it sets."""
        return self.name.partition(".")[2]

    def checked(self, value: object) -> KnobValue:
        """The value as it is stored.

        Raises:
            UsageError: Naming the knob, the value and what is allowed.
        """
        if self.may_be_off and (value is None or (isinstance(value, str) and value == "off")):
            return None
        match self.type:
            case "switch":
                return self._switch(value)
            case "choice":
                if isinstance(value, str) and value in self.choices:
                    return value
                raise self._wrong(value, f"must be one of {', '.join(self.choices)}")
            case "text":
                if isinstance(value, str):
                    return value
                raise self._wrong(value, "must be text")
            case _:
                return self._number(value)

    def _switch(self, value: object) -> bool:
        named = {"on": True, "true": True, "off": False, "false": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in named:
            return named[value.lower()]
        raise self._wrong(value, "must be true or false")

    def _number(self, value: object) -> float | int:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self._wrong(value, "must be a number")
        try:
            number = float(value)
        except ValueError:
            raise self._wrong(value, "must be a number") from None
        if not math.isfinite(number):
            raise self._wrong(value, "must be a finite number")
        if self.type == "whole" and number != int(number):
            raise self._wrong(value, "must be a whole number")
        if self.least is not None and number < self.least:
            raise self._wrong(value, f"must be {self.least:g} or more")
        if self.most is not None and number > self.most:
            raise self._wrong(value, f"must be {self.most:g} or less")
        return int(number) if self.type == "whole" else number

    def _wrong(self, value: object, rule: str) -> UsageError:
        return UsageError(f"{self.name} {rule} (got {value!r})", f"{self.name}: {self.note}.")


def _choices(of: object) -> tuple[str, ...]:
    return tuple(str(choice) for choice in get_args(of))


KNOBS: tuple[KnobSpec, ...] = (
    KnobSpec("search.top_k", "whole", "rows shown; changes no ranking", least=1),
    KnobSpec("search.depth", "whole", "candidates fetched per retriever", least=1),
    KnobSpec("search.fusion", "choice", "how the lists are joined", choices=_choices(FusionKind)),
    KnobSpec("search.rrf_k", "number", "smaller: first places weigh more", least=0),
    KnobSpec("search.weight_vector", "number", "weight of the vector list", least=0),
    KnobSpec("search.weight_bm25", "number", "weight of the BM25 list", least=0),
    KnobSpec("search.rerank", "switch", "read the best rows with the reranker"),
    KnobSpec("search.rerank_depth", "whole", "rows that the reranker reads", least=1),
    KnobSpec(
        "search.rerank_from",
        "choice",
        "the list whose first rows are reranked",
        choices=("hybrid", "vector", "bm25"),
    ),
    KnobSpec("search.reranker", "text", "another reranker by name; empty: the setting"),
    KnobSpec(
        "search.rerank_scale", "choice", "logit or its sigmoid", choices=_choices(RerankScale)
    ),
    KnobSpec("search.embedder", "text", "another embedder by name; empty: the index's own"),
    KnobSpec("bm25.variant", "choice", "the formula", choices=_choices(BM25Variant)),
    KnobSpec("bm25.k1", "number", "0: repeats of a word count nothing", least=0),
    KnobSpec("bm25.b", "number", "0: length counts nothing; 1: fully", least=0, most=1),
    KnobSpec("bm25.delta", "number", "bm25l, bm25plus: lower bound", least=0, may_be_off=True),
    KnobSpec("bm25.epsilon", "number", "okapi: floor of a negative idf", least=0),
    KnobSpec("bm25.analyzer", "text", "how text becomes words"),
    KnobSpec("bm25.backend", "choice", "own, or the library", choices=_choices(BM25Backend)),
    KnobSpec("post.min_vector", "number", "drop vector rows below", may_be_off=True),
    KnobSpec("post.min_bm25", "number", "drop BM25 rows below", may_be_off=True),
    KnobSpec("post.min_hybrid", "number", "drop hybrid rows below", may_be_off=True),
    KnobSpec("post.min_reranked", "number", "drop reranked rows below", may_be_off=True),
    KnobSpec("post.fold", "switch", "fold rows of the same text into one"),
    KnobSpec("post.max_per_document", "whole", "rows of one document; 0: all", least=0),
    KnobSpec(
        "post.mmr", "number", "diversity: 1 relevance, 0 difference", least=0, most=1,
        may_be_off=True,
    ),
    KnobSpec("post.neighbours", "whole", "chunks around a source, for the prompt", least=0),
)  # fmt: skip
"""All knobs in the order in which they are shown."""

SPECS: Mapping[str, KnobSpec] = {spec.name: spec for spec in KNOBS}


def knob(request: SearchRequest, name: str) -> KnobValue:
    """The value of a knob in a request."""
    spec = _spec(name)
    value: KnobValue = getattr(_part(request, name), spec.field)
    return value


def with_knobs(request: SearchRequest, values: Mapping[str, object]) -> SearchRequest:
    """The request with these knobs set; others stay.

    Raises:
        UsageError: For a name that is no knob, or a value that it does not accept.
    """
    for name, value in values.items():
        spec = _spec(name)
        changed = {spec.field: spec.checked(value)}
        match name.partition(".")[0]:
            case "bm25":
                request = replace(request, bm25=replace(request.bm25, **changed))  # type: ignore[arg-type]
            case "post":
                request = replace(request, post=replace(request.post, **changed))  # type: ignore[arg-type]
            case _:
                request = replace(request, **changed)  # type: ignore[arg-type]
    return request


def column_request(request: SearchRequest, column: Column) -> SearchRequest:
    """The request of one column: its own knobs set, and no other column in it."""
    own = with_knobs(request, dict(column.knobs))
    return replace(own, columns=(column,), methods=(column.method,))


def differing_knobs(request: SearchRequest, other: SearchRequest) -> dict[str, KnobValue]:
    """The knobs of ``request`` that are set to something else in ``other``, in knob order."""
    return {
        spec.name: knob(request, spec.name)
        for spec in KNOBS
        if knob(request, spec.name) != knob(other, spec.name)
    }


def make_column(name: str, method: str, knobs: Mapping[str, object]) -> Column:
    """A checked column.

    Raises:
        UsageError: When the name is empty, the method unknown, or a knob or value wrong.
    """
    if not name.strip():
        raise UsageError("A column needs a name.", 'Give it one, such as "bm25 k1=0.9".')
    known = next((m for m in METHODS if m == method), None)
    if known is None:
        raise UsageError(
            f"The method of column {name!r} must be one of {', '.join(METHODS)} (got {method!r}).",
            "Name the list that the column shows.",
        )
    checked = tuple((key, _spec(key).checked(value)) for key, value in knobs.items())
    return Column(name, known, checked)


def _part(request: SearchRequest, name: str) -> SearchRequest | BM25Params | PostSteps:
    section = name.partition(".")[0]
    if section == "bm25":
        return request.bm25
    return request.post if section == "post" else request


def _spec(name: str) -> KnobSpec:
    spec = SPECS.get(name)
    if spec is None:
        from difflib import get_close_matches

        near = get_close_matches(name, SPECS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Knobs are: {', '.join(SPECS)}."
        raise UsageError(f"There is no knob {name!r}.", hint)
    return spec
