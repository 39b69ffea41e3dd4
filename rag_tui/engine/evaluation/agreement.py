"""How far a judge agrees with people: Cohen's kappa of verdicts and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.line_file import LineFile
from rag_tui.engine.ids import text_hash

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.answer_types import AnswerRow, AnswerRun

HumanLabel = Literal["correct", "partly", "wrong"]
LABELS: tuple[HumanLabel, ...] = ("correct", "partly", "wrong")

N_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa, unweighted, with what it was computed from."""

    kappa: float | None
    """1: always agree; 0: as often as by chance; None: undefined, `note` says why."""
    low: float | None
    high: float | None
    """95 % percentile bootstrap interval over the pairs; None when too few resamples define it."""
    observed: float | None
    """Share of pairs that agree."""
    expected: float | None
    """Share that would agree by chance, by the two raters' own frequencies."""
    n: int
    """Pairs."""
    table: Mapping[tuple[str, str], int]
    """(First, second) to the number of pairs."""
    n_no_verdict: int = 0
    """Labelled answers that the judge gave no verdict on: left out of the pairs."""
    note: str = ""


def cohens_kappa(pairs: Sequence[tuple[str, str]], *, seed: int = 0) -> Agreement:
    """Cohen's kappa of paired nominal ratings: ``(observed - expected) / (1 - expected)``.

    Cohen 1960, "A coefficient of agreement for nominal scales". Unweighted: ``partly`` against
    ``wrong`` counts as much as ``correct`` against ``wrong``. Where all ratings of both are the
    same class, chance alone agrees always and kappa is undefined. The interval comes from
    resampling the pairs; resamples in which kappa is undefined are left out, and without at
    least half of them there is no interval.
    """
    n = len(pairs)
    classes = sorted({rating for pair in pairs for rating in pair})
    code = {rating: i for i, rating in enumerate(classes)}
    first = np.array([code[a] for a, _ in pairs], np.int64)
    second = np.array([code[b] for _, b in pairs], np.int64)
    table = {
        (a, b): count for a in classes for b in classes if (count := list(pairs).count((a, b)))
    }
    if n == 0:
        return Agreement(None, None, None, None, None, 0, {}, note="nothing is labelled and judged")
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, (first, second), 1)
    kappa, observed, expected = _kappa(counts)
    if kappa is None:
        return Agreement(
            None, None, None, observed, expected, n, table,
            note=f"undefined: all {n} are {classes[0]} to both",
        )  # fmt: skip
    random = np.random.default_rng(seed)
    kappas: list[float] = []
    for _ in range(N_RESAMPLES):
        chosen = random.integers(0, n, n)
        sample = np.zeros_like(counts)
        np.add.at(sample, (first[chosen], second[chosen]), 1)
        value = _kappa(sample)[0]
        if value is not None:
            kappas.append(value)
    low = high = None
    note = ""
    if len(kappas) >= N_RESAMPLES / 2:
        low, high = (float(q) for q in np.quantile(kappas, [0.025, 0.975]))
    else:
        note = "too few pairs for an interval"
    return Agreement(kappa, low, high, observed, expected, n, table, note=note)


def _kappa(counts: np.ndarray) -> tuple[float | None, float, float]:
    """Kappa, observed and expected agreement of a square table of counts."""
    n = counts.sum()
    observed = float(np.trace(counts) / n)
    expected = float((counts.sum(0) * counts.sum(1)).sum() / n**2)
    if math.isclose(expected, 1.0):
        return None, observed, expected
    return (observed - expected) / (1 - expected), observed, expected


class AnswerLabels:
    """People's labels of answers, beside the runs: by question and text of the answer.

    The same text keeps its label in every run; of several labels the last one counts.

    Args:
        folder: Of the answers of one corpus (`AnswerStore.folder`).
    """

    def __init__(self, folder: Path) -> None:
        self._file = LineFile(folder / "labels.jsonl")
        self._labels: dict[str, HumanLabel] = {}
        for value in self._file.read():
            label = next((known for known in LABELS if known == value.get("label")), None)
            if label is not None:
                self._labels[str(value.get("key"))] = label
            else:
                self._labels.pop(str(value.get("key")), None)

    def put(self, row: AnswerRow, label: str) -> None:
        """Keep a label; an empty one takes it back.

        Raises:
            UsageError: When it is no label.
            RagTuiError: When it cannot be written.
        """
        known = next((one for one in LABELS if one == label), None)
        if label and known is None:
            raise UsageError(
                f"An answer cannot be labelled {label!r}.", f"Labels are {', '.join(LABELS)}."
            )
        key = _key(row)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        self._file.append({"key": key, "qid": row.qid, "label": label, "created": created})
        if known is None:
            self._labels.pop(key, None)
        else:
            self._labels[key] = known

    def of(self, row: AnswerRow) -> HumanLabel | None:
        """The label of an answer, if it has one."""
        return self._labels.get(_key(row))


def agreement(run: AnswerRun, labels: AnswerLabels, *, seed: int = 0) -> Agreement:
    """How far the judge of a run agrees with the people who labelled its answers."""
    pairs: list[tuple[str, str]] = []
    n_no_verdict = 0
    for row in run.rows:
        label = labels.of(row)
        if label is None or row.judgement is None:
            continue
        if row.judgement.verdict == "no verdict":
            n_no_verdict += 1
        else:
            pairs.append((row.judgement.verdict, label))
    found = cohens_kappa(pairs, seed=seed)
    return Agreement(
        found.kappa, found.low, found.high, found.observed, found.expected, found.n, found.table,
        n_no_verdict, found.note,
    )  # fmt: skip


def _key(row: AnswerRow) -> str:
    return text_hash(f"{row.question}\n{row.text}")
