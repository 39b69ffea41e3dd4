"""How much of the wanted text was retrieved, and how much else: recall, precision and IoU.

The measures of Smith and Troynikov 2024, "Evaluating Chunking Strategies for Retrieval" (Chroma).
With t_e the units of the reference spans and t_r those of the retrieved chunks,
recall = |t_e and t_r| / |t_e|, precision = |t_e and t_r| / |t_r| and
IoU = |t_e and t_r| / (|t_e| + |t_r| - |t_e and t_r|). A unit that is retrieved twice counts once
above the line and twice in |t_r|, so overlap between chunks costs precision.

Units are characters, or the tokens of whichever tokenizer gave their offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_tui.engine.evaluation.types import Resolved, Retrieved

Ints = npt.NDArray[np.int64]
Spans = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Overlap of retrieved chunks with the wanted text, each 0 to 1."""

    recall: float
    precision: float
    iou: float
    unit: Literal["characters", "tokens"]


def wanted_spans(resolved: Resolved) -> dict[str, list[tuple[int, int]]]:
    """The relevant places of a question by document, as character spans."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for place in resolved.places:
        if place.evidence.grade > 0:
            spans.setdefault(place.document, []).append((place.start, place.end))
    return spans


def span_scores(
    rows: Sequence[Retrieved],
    wanted: Spans,
    *,
    token_starts: Mapping[str, Ints] | None = None,
    k: int | None = None,
) -> SpanScores | None:
    """Recall, precision and IoU of the first k rows; None when nothing is wanted.

    Args:
        rows: By rank.
        wanted: Document id to character spans, end-exclusive; they may overlap.
        token_starts: Document id to the ascending character offsets at which its tokens begin,
            int64, of every document that is wanted or retrieved. A token belongs to a span when
            it begins in it. None: characters are counted.
        k: Rows looked at; None: all.
    """
    starts = token_starts
    regions = {doc: _merged(_units(doc, spans, starts)) for doc, spans in wanted.items()}
    n_wanted = _length(span for spans in regions.values() for span in spans)
    if n_wanted == 0:
        return None
    retrieved: dict[str, list[tuple[int, int]]] = {}
    for row in rows[:k]:
        retrieved.setdefault(row.document, []).append((row.start, row.end))
    n_retrieved = n_both = 0
    for doc, spans in retrieved.items():
        units = _units(doc, spans, starts)
        n_retrieved += _length(units)
        n_both += _common(_merged(units), regions.get(doc, []))
    return SpanScores(
        recall=n_both / n_wanted,
        precision=n_both / n_retrieved if n_retrieved else 0.0,
        iou=n_both / (n_wanted + n_retrieved - n_both),
        unit="characters" if starts is None else "tokens",
    )


def _units(
    document: str, spans: Sequence[tuple[int, int]], starts: Mapping[str, Ints] | None
) -> list[tuple[int, int]]:
    """Spans counted in units: indexes of tokens, or the characters themselves."""
    if starts is None:
        return [(start, end) for start, end in spans if end > start]
    found = np.searchsorted(starts[document], np.asarray(spans, np.int64).reshape(-1, 2))
    return [(int(low), int(high)) for low, high in found if high > low]


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of spans, ascending, not overlapping."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def _common(ours: Sequence[tuple[int, int]], theirs: Sequence[tuple[int, int]]) -> int:
    """Units that two unions share."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in ours for c, d in theirs)
