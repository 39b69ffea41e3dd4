"""Conditions that a run must meet, for use where nobody looks at the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.measures import parse_measure

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.score_table import ScoreTable

SIGNIFICANT = 0.05
"""A difference with a smaller p-value counts as one."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A bound for the mean of a measure in a column."""

    column: str
    measure: str
    bound: float
    """The least, or for a failure rate the most, that is accepted."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a condition is met, in words."""

    is_met: bool
    message: str


def parse_gate(text: str, columns: Sequence[str]) -> Gate:
    """Read ``column:measure=value``; colons and equals signs in a column's name are fine.

    Raises:
        UsageError: Naming what is wrong: the form, the column, the measure or the value.
    """
    left, equals, value = text.rpartition("=")
    column, colon, measure = left.rpartition(":")
    if not (equals and colon and column and measure and value.strip()):
        raise UsageError(
            f"{text!r} is not of the form column:measure=value.", "Such as hybrid:R@5=0.90."
        )
    if column not in columns:
        raise UsageError(
            f"There is no column {column!r} in this evaluation.",
            f"Columns are: {', '.join(columns)}.",
        )
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if not 0 <= least <= 1:
        raise UsageError(
            f"The value of {text!r} must be a number from 0 to 1 (got {value!r}).",
            "Such as hybrid:R@5=0.90.",
        )
    return Gate(column, parse_measure(measure).name, least)


def check_gates(gates: Iterable[Gate], table: ScoreTable) -> tuple[GateResult, ...]:
    """One result for each gate; a column without a score never meets one."""
    results = []
    for gate in gates:
        column = table.column(gate.column)
        cell = column.cell(gate.measure) if column is not None else None
        name = f"{gate.column}:{gate.measure}"
        if column is None or cell is None or cell.interval is None:
            why = column.reason if column is not None and column.reason else "it was not scored"
            results.append(GateResult(False, f"{name} has no value: {why}"))
            continue
        mean = cell.interval.mean
        is_higher_better = parse_measure(gate.measure).higher_is_better
        short = gate.bound - mean if is_higher_better else mean - gate.bound
        # a bound copied from a table as 0.6667 must be met by 2/3
        is_met = short <= 5e-5
        side = "under" if is_higher_better else "over"
        verdict = "meets" if is_met else f"is {side}"
        results.append(GateResult(is_met, f"{name} {mean:.4f} {verdict} {gate.bound:g}"))
    return tuple(results)


def check_regression(
    table: ScoreTable, *, tolerance: float | None = None
) -> tuple[GateResult, ...]:
    """The losses against the baseline, each as a result that is not met; none: no regression.

    Args:
        table: Scores with comparisons.
        tolerance: Any mean difference below minus this is a loss; None: differences whose
            p-value is below 0.05.
    """
    losses = []
    for column in table.columns:
        if column.reason and column.is_in_baseline:
            losses.append(
                GateResult(False, f"{column.name} was scored in the baseline: {column.reason}")
            )
        for cell in column.cells:
            compared = cell.comparison
            if compared is None:
                continue
            is_higher_better = parse_measure(cell.measure).higher_is_better
            loss = -compared.delta if is_higher_better else compared.delta
            is_loss = loss > 0 and (
                compared.p_value < SIGNIFICANT if tolerance is None else loss > tolerance
            )
            if is_loss:
                losses.append(
                    GateResult(
                        False,
                        f"{column.name}:{cell.measure} lost {loss:.4f} against "
                        f"{table.baseline} (p {compared.p_value:.3f})",
                    )
                )
    return tuple(losses)
