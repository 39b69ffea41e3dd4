"""Retrieval measures of one list, named as in ir_measures; every value lies in 0 to 1.

Gains are linear and the discount is log2(1 + rank), as in trec_eval. In the formulas g_i is the
gain of the row at rank i (`Judged.gains`), r_i whether it is above 0, n_i how many relevant places
the row is the first to hold, and R the number of relevant places.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.judging import Judged, best_ranks, judge_rows

__all__ = [
    "DEFAULT_MEASURES",
    "Bounds",
    "Judged",
    "Measure",
    "best_ranks",
    "bounds",
    "judge_rows",
    "mean",
    "parse_measure",
    "parse_measures",
]

Family = Literal["R", "Success", "P", "RR", "nDCG", "AP", "Failure"]

DEFAULT_MEASURES = ("R@1", "R@3", "R@5", "RR@10", "nDCG@10")

_NEEDS_CUT: frozenset[Family] = frozenset({"R", "Success", "P", "Failure"})
_ALIASES: dict[str, Family] = {
    "r": "R",
    "recall": "R",
    "success": "Success",
    "hit": "Success",
    "hitrate": "Success",
    "p": "P",
    "precision": "P",
    "rr": "RR",
    "mrr": "RR",
    "ndcg": "nDCG",
    "ap": "AP",
    "map": "AP",
    "failure": "Failure",
}
_MEANING: dict[Family, str] = {
    "R": "share of the relevant places that the first {k} rows hold",
    "Success": "share of the questions with a relevant row among the first {k}",
    "P": "share of the first {k} rows that are relevant",
    "RR": "1 / rank of the first relevant row, 0 beyond {k}",
    "nDCG": "discounted cumulative gain of the first {k} rows against the best possible; linear "
    "gains, log2 discount",
    "AP": "mean over the relevant places of the precision at the rank that first holds them, "
    "up to {k} rows",
    "Failure": "share of the relevant places that the first {k} rows miss; lower is better",
}
_NAME = re.compile(r"\s*([A-Za-z]+(?:[ _-]rate)?)\s*(?:@\s*([0-9]{1,6}))?\s*")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure with its cut-off."""

    family: Family
    k: int | None = None
    """Rows looked at; None: the whole list (RR, nDCG and AP only)."""

    @property
    def name(self) -> str:
        """As ir_measures writes it: ``R@5``, ``RR@10``, ``AP``; ``Failure@20`` is ours."""
        return self.family if self.k is None else f"{self.family}@{self.k}"

    @property
    def meaning(self) -> str:
        """What it says, in a few words."""
        return _MEANING[self.family].format(k="all" if self.k is None else self.k)

    @property
    def higher_is_better(self) -> bool:
        """False for the failure rate alone."""
        return self.family != "Failure"

    def value(self, judged: Judged | None) -> float | None:
        """The measure of one list, 0 to 1; None without a list or without relevant places.

        An empty list is a list: it scores 0 (a failure rate of 1).

        - ``R@k``: sum n_i / R, i up to k.
        - ``Success@k``: 1 if any r_i, else 0.
        - ``P@k``: sum r_i / k, also where the list is shorter.
        - ``RR@k``: 1 / the first i with r_i (Kantor and Voorhees 2000, TREC-5 confusion track).
        - ``nDCG@k``: sum g_i / log2(1 + i), divided by the same sum of the ideal list (Järvelin
          and Kekäläinen 2002, with trec_eval's discount and linear gain), at most 1: a list that
          needs two rows for what the ideal list holds in one is not better than it.
        - ``AP@k``: sum n_i * (r_1 + … + r_i) / i, divided by R (Buckley and Voorhees 2000).
        - ``Failure@k``: 1 - R@k (Anthropic 2024, "Introducing contextual retrieval", k = 20).
        """
        if judged is None or judged.n_relevant == 0:
            return None
        gains, k = judged.gains[: self.k], self.k
        match self.family:
            case "R":
                return min(sum(judged.n_new[:k]) / judged.n_relevant, 1.0)
            case "Failure":
                return max(1.0 - sum(judged.n_new[:k]) / judged.n_relevant, 0.0)
            case "Success":
                return float(any(gains))
            case "P":
                return sum(gain > 0 for gain in gains) / (k or len(gains) or 1)
            case "RR":
                return next((1 / rank for rank, gain in enumerate(gains, 1) if gain > 0), 0.0)
            case "nDCG":
                return min(_dcg(gains) / _dcg(judged.ideal[:k]), 1.0)
            case "AP":
                return min(_sum_of_precisions(gains, judged.n_new) / judged.n_relevant, 1.0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between what a value may lie, given the rows that nobody judged."""

    low: float
    high: float
    n_unjudged: int
    """Unjudged rows within the cut-off."""


def bounds(measure: Measure, judged: Judged | None) -> Bounds | None:
    """What the unjudged rows leave open: all of them not relevant, against all of them relevant.

    The second is taken both with grade 1 and with the question's highest grade; low and high are
    the extremes of the three. Only rows within the cut-off are assumed to be anything, so what
    lies unjudged below it is outside these bounds. None where the measure itself is.
    """
    plain = measure.value(judged)
    if plain is None or judged is None:
        return None
    n_unjudged = judged.n_unjudged(measure.k)
    grades = {1, max(judged.ideal, default=1)} if n_unjudged else set()
    values = [plain]
    for grade in grades:
        value = measure.value(judged.assuming(grade, measure.k))
        values += [value] if value is not None else []
    return Bounds(min(values), max(values), n_unjudged)


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values there are; None when there is none."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def parse_measure(text: str) -> Measure:
    """A measure by its name: ``R@5``, ``nDCG@10``, ``AP``; case and usual synonyms do not matter.

    Raises:
        UsageError: When there is no such measure, or its cut-off is missing or below 1.
    """
    match = _NAME.fullmatch(text)
    word = re.sub(r"[ _-]", "", match[1]).lower() if match else ""
    family = _ALIASES.get(word) or _ALIASES.get(word.removesuffix("rate"))
    if match is None or family is None:
        raise UsageError(
            f"There is no measure {text!r}.",
            "Measures are R@k, Success@k, P@k, RR@k, nDCG@k, AP and Failure@k, with a number for "
            "k: R@5.",
        )
    k = int(match[2]) if match[2] is not None else None
    if k is None and family in _NEEDS_CUT:
        raise UsageError(
            f"{family} needs a cut-off: how many rows are looked at (got {text!r}).",
            f"Write it behind an @: {family}@5.",
        )
    if k == 0:
        raise UsageError(
            f"The cut-off of a measure must be at least 1 (got {text!r}).",
            f"Write {family}@1 or more.",
        )
    return Measure(family, k)


def parse_measures(text: str) -> tuple[Measure, ...]:
    """Measures separated by commas, in the order given, each once.

    Raises:
        UsageError: When one cannot be read, or there is none.
    """
    found = tuple(dict.fromkeys(parse_measure(part) for part in text.split(",") if part.strip()))
    if not found:
        raise UsageError(
            f"No measure is named (got {text!r}).", f"Name some: {','.join(DEFAULT_MEASURES)}."
        )
    return found


def _dcg(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains, start=1))


def _sum_of_precisions(gains: Sequence[int], n_new: Sequence[int]) -> float:
    total, n_seen = 0.0, 0
    for rank, (gain, n) in enumerate(zip(gains, n_new, strict=False), start=1):
        if gain > 0:
            n_seen += 1
            total += n * n_seen / rank
    return total
