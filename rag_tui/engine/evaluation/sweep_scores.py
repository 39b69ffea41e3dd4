"""From the values of each setting to what may be said about them: best, held-out, noise, front."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.measures import Measure
from rag_tui.engine.evaluation.pareto import Point, pareto_front
from rag_tui.engine.evaluation.statistics import bootstrap_interval, compare
from rag_tui.engine.evaluation.sweep_types import CrossValidation, SettingScore
from rag_tui.engine.evaluation.types import Comparison

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the settings are worth, compared."""

    settings: tuple[SettingScore, ...]
    best: int | None
    front: tuple[int, ...]
    cross_validation: CrossValidation | None
    noise: float
    qids: tuple[str, ...]
    """Questions that every competing setting has a value for."""
    notes: tuple[str, ...]


def judge_settings(
    settings: Sequence[SettingScore], measure: Measure, *, folds: int, seed: int = 0
) -> Judgement:
    """Compare settings on the questions that all of them have a value for.

    A setting that failed for a question which another one could answer does not compete: it
    would be compared on what it happened to manage.

    Args:
        settings: In the order in which ties are decided, the first wins.
        measure: What the values are of.
        folds: Parts of the questions that are held out in turn.
        seed: Of the parts.
    """
    usable = [one for one in settings if one.measured.values and not one.reason]
    failed_everywhere: set[str] = set()
    if usable:
        failed_everywhere = set.intersection(*(set(one.measured.failed) for one in usable))
    told = [_with_reason(one, failed_everywhere) for one in settings]
    places = [i for i, one in enumerate(told) if not one.reason]
    if not places:
        return Judgement(tuple(told), None, (), None, 0.0, (), ())
    first = told[places[0]].measured.values
    qids = tuple(q for q in first if all(q in told[i].measured.values for i in places))
    any_of = {q for i in places for q in told[i].measured.values}
    notes = []
    if len(qids) < len(any_of):
        notes.append(
            f"{len(any_of) - len(qids)} of {len(any_of)} questions have no value in some setting "
            "and are left out everywhere"
        )
    if not qids:
        return Judgement(tuple(told), None, (), None, 0.0, (), tuple(notes))
    rows = [[told[i].measured.values[q] for q in qids] for i in places]
    present = next((r for i, r in zip(places, rows, strict=True) if told[i].is_present), None)
    noise = 0.0
    for i, row in zip(places, rows, strict=True):
        comparison: Comparison | None = None
        if present is not None and not told[i].is_present:
            comparison = _compare(measure, row, present)
            noise = max(noise, comparison.noise)
        told[i] = replace(told[i], interval=bootstrap_interval(row), comparison=comparison)
    best = best_row(rows, range(len(qids)), higher_is_better=measure.higher_is_better)
    return Judgement(
        settings=tuple(told),
        best=places[best],
        front=_front(told, places, measure),
        cross_validation=_validated(rows, places, present, measure, folds, seed),
        noise=noise,
        qids=qids,
        notes=tuple(notes),
    )


def check_folds(folds: int) -> None:
    """Refuse a number of folds that validates nothing.

    Raises:
        UsageError: Below 2.
    """
    if folds < 2:
        raise UsageError(
            f"Cross-validation needs at least 2 folds (got {folds}).", "Use 5, as is usual."
        )


def best_row(rows: Rows, questions: Sequence[int], *, higher_is_better: bool = True) -> int:
    """The row with the best mean over some questions; of equal ones the first.

    Sums that differ by rounding only are equal.
    """
    sign = 1 if higher_is_better else -1
    sums = [round(sign * sum(row[q] for q in questions), 9) for row in rows]
    return max(range(len(rows)), key=lambda i: (sums[i], -i))


def held_out_values(
    rows: Rows, folds: int, *, seed: int = 0, higher_is_better: bool = True
) -> tuple[list[float], list[int]]:
    """For each question the value of the row that was best on the other folds.

    Questions are dealt to the folds in an order shuffled by the seed.

    Returns:
        The held-out values in the order of the questions, and the row chosen for each fold; as
        many folds as asked for, at most one a question.
    """
    n = len(rows[0])
    order = list(range(n))
    random.Random(seed).shuffle(order)  # noqa: S311 - no secret
    held = [0.0] * n
    chosen = []
    for fold in range(min(folds, n)):
        out = set(order[fold::folds])
        rest = [q for q in range(n) if q not in out]
        row = best_row(rows, rest, higher_is_better=higher_is_better)
        chosen.append(row)
        for q in out:
            held[q] = rows[row][q]
    return held, chosen


def _with_reason(one: SettingScore, failed_everywhere: set[str]) -> SettingScore:
    if one.reason:
        return one
    if not one.measured.values:
        reasons = list(one.measured.failed.values())
        why = reasons[0] if reasons else "no question has a label that was found in the documents"
        return replace(one, reason=why)
    own = {q: why for q, why in one.measured.failed.items() if q not in failed_everywhere}
    if not own:
        return one
    qid, why = next(iter(own.items()))
    more = f" and {len(own) - 1} more" if len(own) > 1 else ""
    return replace(one, reason=f"failed for {qid}{more}: {why}")


def _compare(measure: Measure, row: Sequence[float], present: Sequence[float]) -> Comparison:
    return compare(measure.name, row, present, higher_is_better=measure.higher_is_better)


def _front(
    told: Sequence[SettingScore], places: Sequence[int], measure: Measure
) -> tuple[int, ...]:
    sign = 1 if measure.higher_is_better else -1
    points = []
    timed = []
    for i in places:
        one = told[i]
        found = one.measured
        if one.interval and found.latency_ms is not None and found.prompt_tokens is not None:
            quality = round(sign * one.interval.mean, 9)
            points.append(Point(quality, found.latency_ms, found.prompt_tokens))
            timed.append(i)
    return tuple(timed[i] for i in pareto_front(points))


def _validated(
    rows: Rows,
    places: Sequence[int],
    present: Sequence[float] | None,
    measure: Measure,
    folds: int,
    seed: int,
) -> CrossValidation | None:
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    held, chosen = held_out_values(
        rows, folds, seed=seed, higher_is_better=measure.higher_is_better
    )
    return CrossValidation(
        n_folds=len(chosen),
        held_out=bootstrap_interval(held),
        chosen=tuple(places[i] for i in chosen),
        comparison=_compare(measure, held, present) if present is not None else None,
    )
