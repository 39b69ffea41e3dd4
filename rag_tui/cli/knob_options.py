"""Knobs, presets and columns as they are typed on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import SPECS, make_column, with_knobs
from rag_tui.engine.presets import apply_preset
from rag_tui.engine.types import METHODS, Column, SearchRequest

# A name may hold equals signs ("bm25 k1=0.9"): the first that a method follows ends it.
_COLUMN = re.compile(rf"(?P<name>.*?)=\s*(?P<method>{'|'.join(METHODS)})\s*(?::(?P<knobs>.*))?")


def with_options(
    request: SearchRequest,
    presets: Mapping[str, Mapping[str, object]],
    *,
    preset: str = "",
    flags: Mapping[str, object],
    knobs: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> SearchRequest:
    """The request with a preset, then flags of their own such as ``--k1``, then ``--knob``.

    Args:
        request: With the settings.
        presets: Those of the settings.
        preset: The name of one; empty: none.
        flags: ``section.key`` to value; those that are None or no knob are left out.
        knobs: ``name=value`` texts.
        columns: ``name=method:knob=value,…`` texts that replace the columns; none: they stay.

    Raises:
        UsageError: For a name that does not exist, with the nearest one, or a wrong value.
    """
    if preset:
        request = apply_preset(request, presets, preset)
    own = {name: value for name, value in flags.items() if value is not None and name in SPECS}
    request = with_knobs(with_knobs(request, own), parse_knobs(knobs))
    if columns:
        request = replace(request, columns=tuple(parse_column(text) for text in columns))
    return request


def parse_knobs(texts: Sequence[str]) -> dict[str, object]:
    """``name=value`` texts as a mapping; of a name that comes twice the last.

    Raises:
        UsageError: For one without a name or an equals sign.
    """
    knobs: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise UsageError(f"{text!r} is not of the form knob=value.", "Such as bm25.k1=0.9.")
        knobs[name.strip()] = value.strip()
    return knobs


def parse_column(text: str) -> Column:
    """``name=method`` or ``name=method:knob=value,knob=value``.

    Raises:
        UsageError: When it cannot be read, or names a method or knob that does not exist.
    """
    found = _COLUMN.fullmatch(text)
    if found is not None:
        name, method, knobs = found.group("name", "method", "knobs")
    else:
        name, equals, method = text.partition("=")
        method, _, knobs = method.partition(":")
        if not equals:
            raise UsageError(
                f"{text!r} is not of the form name=method:knob=value,knob=value.",
                'Such as "short=bm25:bm25.k1=0.9,bm25.b=0.4".',
            )
    pairs = [pair for pair in (knobs or "").split(",") if pair.strip()]
    return make_column(name.strip(), method.strip(), parse_knobs(pairs))
