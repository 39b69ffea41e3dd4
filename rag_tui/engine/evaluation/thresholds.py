"""Can a column's best score tell whether the documents answer a question at all?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.statistics import N_RESAMPLES
from rag_tui.engine.evaluation.types import ColumnRun, Interval

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """Where some scores lie."""

    n: int
    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float


@dataclass(frozen=True, slots=True)
class RocPoint:
    """What answering from a score on means."""

    threshold: float
    """Questions whose best score is at least this are answered; infinite: none is."""
    answered: float
    """Share of the answerable questions that are answered (true positive rate)."""
    wrongly_answered: float
    """Share of the unanswerable questions that are answered (false positive rate)."""


@dataclass(frozen=True, slots=True)
class Separation:
    """How well one column's best score tells answerable questions from others."""

    answerable: Spread
    unanswerable: Spread
    auc: Interval
    """Area under the ROC curve: the chance that an answerable question scores higher than an
    unanswerable one, ties counting half (Mann and Whitney 1947). ``n`` counts both."""
    roc: tuple[RocPoint, ...]
    """By falling threshold, from nothing answered to everything answered."""
    threshold: float
    """The best place to stop answering: answer from this score on. Half-way between the two
    neighbouring scores; of equally good places the lowest."""
    balanced_accuracy: float
    """There: the mean of the shares answered rightly and refused rightly, 0.5 is chance. Chosen
    and measured on the same questions, so it flatters."""

    @property
    def youden_j(self) -> float:
        """Youden's J (1950) at the threshold: 2 * balanced accuracy - 1."""
        return 2 * self.balanced_accuracy - 1


def top_scores(
    column: ColumnRun, is_answerable: Mapping[str, bool]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The best score of each question that has a list: of answerable ones, of unanswerable ones.

    An empty list has no score: minus infinity, below every threshold.

    Args:
        column: A column over all questions.
        is_answerable: By question id; others are left out.
    """
    scores: dict[bool, list[float]] = {True: [], False: []}
    for run in column.questions:
        if run.error or run.qid not in is_answerable:
            continue
        best = run.rows[0].score if run.rows else -math.inf
        scores[is_answerable[run.qid]].append(best)
    return tuple(scores[True]), tuple(scores[False])


def separation(
    answerable: Sequence[float], unanswerable: Sequence[float], *, seed: int = 0
) -> Separation:
    """How well a score separates two classes, and where to cut.

    The interval of the AUC is a percentile bootstrap with both classes resampled on their own.

    Args:
        answerable: Best scores of questions that the documents answer.
        unanswerable: Best scores of the others; minus infinity where nothing was found.
        seed: Of the bootstrap.

    Raises:
        UsageError: When a class is empty, or a score is not a number.
    """
    yes, no = np.asarray(answerable, np.float64), np.asarray(unanswerable, np.float64)
    if yes.size == 0 or no.size == 0:
        which = "answerable" if yes.size == 0 else "unanswerable"
        raise UsageError(
            f"No threshold can be found: there is no {which} question with a list "
            f"({yes.size} answerable, {no.size} unanswerable).",
            'Add some; questions that nothing answers are marked with "answerable": false.',
        )
    if np.isnan(yes).any() or np.isnan(no).any():
        raise UsageError("A score is not a number.", "Run the questions again.")
    roc = _roc(yes, no)
    best = max(roc, key=lambda p: (p.answered - p.wrongly_answered, -p.threshold))
    return Separation(
        answerable=_spread(yes),
        unanswerable=_spread(no),
        auc=_auc(yes, no, seed),
        roc=roc,
        threshold=_between(best.threshold, np.concatenate([yes, no])),
        balanced_accuracy=(best.answered + 1 - best.wrongly_answered) / 2,
    )


def _roc(yes: Floats, no: Floats) -> tuple[RocPoint, ...]:
    thresholds = [math.inf, *np.unique(np.concatenate([yes, no]))[::-1].tolist()]
    return tuple(
        RocPoint(float(t), float((yes >= t).mean()), float((no >= t).mean())) for t in thresholds
    )


def _auc(yes: Floats, no: Floats, seed: int) -> Interval:
    wins = (yes[:, None] > no[None, :]) + 0.5 * (yes[:, None] == no[None, :])
    random = np.random.default_rng(seed)
    # How often each question is drawn stands for drawing it: one product for all samples.
    of_yes = random.multinomial(yes.size, np.full(yes.size, 1 / yes.size), N_RESAMPLES)
    of_no = random.multinomial(no.size, np.full(no.size, 1 / no.size), N_RESAMPLES)
    areas = ((of_yes @ wins) * of_no).sum(axis=1) / (yes.size * no.size)
    low, high = np.quantile(areas, [0.025, 0.975])
    return Interval(float(wins.mean()), float(low), float(high), int(yes.size + no.size))


def _between(threshold: float, scores: Floats) -> float:
    """Half-way down to the next lower score, so that new scores are cut fairly."""
    below = scores[(scores < threshold) & np.isfinite(scores)]
    if below.size == 0 or not math.isfinite(threshold):
        return threshold
    middle = (threshold + float(below.max())) / 2
    return middle if middle > float(below.max()) else threshold


def _spread(scores: Floats) -> Spread:
    # Existing scores rather than interpolated ones: there may be infinite ones among them.
    values = np.quantile(scores, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf").tolist()
    return Spread(int(scores.size), *values)
