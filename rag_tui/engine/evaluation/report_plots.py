"""Small plots as SVG text: nothing is loaded, colours come from the page, foreign text is escaped.

Every plot says in words what it shows (``aria-label``), and no colour says something alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from rag_tui.engine.prompt_text import one_line

N_COLOURS = 6
_ROW = 22
_LABEL = 210
_PLOT = 380
_MARGIN = 44


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean with its interval, 0 to 1."""

    label: str
    mean: float
    low: float
    high: float
    colour: int = 0


@dataclass(frozen=True, slots=True)
class Dot:
    """One setting in a scatter plot."""

    label: str
    x: float
    y: float
    is_on_front: bool = False
    note: Literal["", "best", "now"] = ""


Rank = int | None | Literal["none"]
"""A rank, None where the list lacks it, ``none`` where there is no list."""


def text_of(value: str, limit: int = 0) -> str:
    """Foreign text that can stand between tags or in a quoted attribute; optionally shortened."""
    line = one_line(" ".join(value.split()))
    if limit and len(line) > limit:
        line = line[: limit - 1] + "…"
    return escape(line, quote=True)


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """One horizontal bar each, from 0 to 1, with the interval as a line across its end."""
    height = _ROW * len(bars) + 30
    parts = [*_scale(height - 24)]
    for i, bar in enumerate(bars):
        y = _ROW * i + 4
        low, high, mean = (_x(value) for value in (bar.low, bar.high, bar.mean))
        middle = y + 7
        numbers = f"{bar.mean:.3f} ({bar.low:.2f} to {bar.high:.2f})"
        parts.append(
            f"<g><title>{text_of(bar.label)}: {numbers}</title>"
            f'<text class="label" x="{_LABEL - 8}" y="{y + 11}">{text_of(bar.label, 30)}</text>'
            f'<rect class="c{bar.colour % N_COLOURS}" x="{_LABEL}" y="{y}" '
            f'width="{_n(mean - _LABEL)}" height="14"/>'
            f'<path class="whisker" d="M{_n(low)} {middle}H{_n(high)}M{_n(low)} {middle - 4}v8'
            f'M{_n(high)} {middle - 4}v8"/>'
            f'<text class="value" x="{_LABEL + _PLOT + 8}" y="{y + 11}">{bar.mean:.3f}</text></g>'
        )
    said = "; ".join(f"{bar.label} {bar.mean:.3f}" for bar in bars)
    return _svg(title, said, _LABEL + _PLOT + 60, height, parts)


def rank_matrix(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[Rank]]]
) -> str:
    """A cell for each question and column: the rank of the first evidence, darker is better."""
    width, cell = 620, 64
    left = max(240, width - cell * len(columns))
    parts = [
        f'<text class="head" x="{left + cell * i + cell // 2}" y="14">{text_of(name, 9)}'
        f"<title>{text_of(name)}</title></text>"
        for i, name in enumerate(columns)
    ]
    for number, (label, ranks) in enumerate(rows):
        y = _ROW * number + 22
        parts.append(
            f'<text class="label" x="{left - 8}" y="{y + 14}">{text_of(label, left // 8)}'
            f"<title>{text_of(label)}</title></text>"
        )
        for i, rank in enumerate(ranks):
            shown = "" if rank == "none" else "–" if rank is None else str(rank)
            parts.append(
                f'<rect class="rank {_shade(rank)}" x="{left + cell * i + 1}" y="{y}" '
                f'width="{cell - 2}" height="{_ROW - 2}"/>'
                f'<text class="cell {_shade(rank)}" x="{left + cell * i + cell // 2}" '
                f'y="{y + 14}">{shown}</text>'
            )
    said = f"{len(rows)} questions in {len(columns)} columns"
    return _svg(title, said, left + cell * len(columns), _ROW * len(rows) + 26, parts)


def roc_plot(title: str, curves: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """ROC curves, each a name and its (wrongly answered, rightly answered) points."""
    side = 280
    parts = [*_axes(side, side, (0, 1), (0, 1), "unanswerable, answered", "answerable, answered")]
    parts.append(f'<path class="chance" d="M{_MARGIN} {side + 10}L{_MARGIN + side} 10"/>')
    for i, (name, points) in enumerate(curves):
        path = "L".join(f"{_n(_MARGIN + x * side)} {_n(10 + (1 - y) * side)}" for x, y in points)
        colour = i % N_COLOURS
        dashes = f' stroke-dasharray="{4 * i} 3"' if i else ""
        said = f"<title>{text_of(name)}</title>"
        parts.append(f'<path class="line c{colour}"{dashes} d="M{path}">{said}</path>')
        y = 24 + i * 18
        x = _MARGIN + side + 16
        parts.append(
            f'<rect class="c{colour}" x="{x}" y="{y - 10}" width="12" height="12"/>'
            f'<text x="{x + 18}" y="{y}">{text_of(name, 26)}</text>'
        )
    said = "; ".join(name for name, _ in curves)
    return _svg(title, said, _MARGIN + side + 230, side + 52, parts)


def scatter(title: str, x_label: str, y_label: str, dots: Sequence[Dot]) -> str:
    """Points with the front drawn through; filled ones are on it, the best and present named."""
    width, height = 480, 280
    xs, ys = _span([d.x for d in dots]), _span([d.y for d in dots])
    parts = [*_axes(width, height, xs, ys, x_label, y_label)]

    def at(dot: Dot) -> tuple[float, float]:
        x = _MARGIN + (dot.x - xs[0]) / (xs[1] - xs[0]) * width
        return x, 10 + (1 - (dot.y - ys[0]) / (ys[1] - ys[0])) * height

    front = sorted(at(dot) for dot in dots if dot.is_on_front)
    if len(front) > 1:
        path = "L".join(f"{_n(x)} {_n(y)}" for x, y in front)
        parts.append(f'<path class="front" d="M{path}"/>')
    for dot in dots:
        x, y = at(dot)
        kind = "dot on" if dot.is_on_front else "dot"
        parts.append(
            f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="5">'
            f"<title>{text_of(dot.label)}: {dot.x:g}, {dot.y:.3f}</title></circle>"
        )
        if dot.note:
            near_end = x > _MARGIN + width - 60
            anchor = ' text-anchor="end"' if near_end else ""
            parts.append(
                f'<text x="{_n(x - 9 if near_end else x + 9)}" y="{_n(y + 4)}"{anchor}>'
                f"{dot.note}</text>"
            )
    return _svg(title, f"{len(dots)} settings", _MARGIN + width + 20, height + 52, parts)


def _svg(title: str, said: str, width: int, height: int, parts: Sequence[str]) -> str:
    name = text_of(f"{title}: {said}", 400)
    return (
        f'<svg role="img" aria-label="{name}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">{"".join(parts)}</svg>'
    )


def _scale(height: int) -> Iterator[str]:
    for tenth in range(0, 11, 2):
        x = _x(tenth / 10)
        yield f'<path class="grid" d="M{_n(x)} 0V{height}"/>'
        yield f'<text class="tick" x="{_n(x)}" y="{height + 16}">{tenth / 10:g}</text>'


def _axes(
    width: int,
    height: int,
    xs: tuple[float, float],
    ys: tuple[float, float],
    x_label: str,
    y_label: str,
) -> Iterator[str]:
    for i in range(5):
        share = i / 4
        x, y = _MARGIN + share * width, 10 + (1 - share) * height
        across = f"M{_MARGIN} {_n(y)}H{_MARGIN + width}"
        yield f'<path class="grid" d="M{_n(x)} 10V{height + 10}{across}"/>'
        x_value, y_value = (low + share * (high - low) for low, high in (xs, ys))
        yield f'<text class="tick" x="{_n(x)}" y="{height + 26}">{x_value:.4g}</text>'
        yield f'<text class="label" x="{_MARGIN - 6}" y="{_n(y + 4)}">{y_value:.2f}</text>'
    middle = _MARGIN + width // 2
    yield f'<text class="tick" x="{middle}" y="{height + 44}">{text_of(x_label)}</text>'
    yield f'<text class="axis" x="{_MARGIN + 6}" y="22">{text_of(y_label)}</text>'


def _span(values: Sequence[float]) -> tuple[float, float]:
    """A range that holds all values with some room, never empty."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * 0.06 or max(abs(high) * 0.1, 0.01)
    return low - room if low - room > 0 or low < 0 else 0.0, high + room


def _x(value: float) -> float:
    return _LABEL + min(max(value, 0.0), 1.0) * _PLOT


def _n(value: float) -> str:
    """A coordinate with one decimal, the same on every machine."""
    return f"{value:.1f}".removesuffix(".0") if math.isfinite(value) else "0"


def _shade(rank: Rank) -> str:
    if rank == "none":
        return "absent"
    if rank is None:
        return "miss"
    return "r1" if rank == 1 else "r3" if rank <= 3 else "r10" if rank <= 10 else "rest"
