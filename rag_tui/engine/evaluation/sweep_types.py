"""What a sweep says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rag_tui.engine.evaluation.sweep_space import Setting
from rag_tui.engine.evaluation.types import EMPTY, Comparison, Interval, Unit
from rag_tui.engine.types import KnobValue, Method

Phase = Literal["cutting", "embedding", "asking", "timing", "done"]


@dataclass(frozen=True, slots=True)
class SpanMeans:
    """Means over the questions of the overlap of the first sources with the wanted text."""

    recall: float
    precision: float
    iou: float
    unit: Literal["characters", "tokens"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one setting gave; this is what is kept of it."""

    values: Mapping[str, float]
    """The metric by question id, of the judged questions with a list."""
    failed: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Why a judged question has no list, by id; such a setting is not kept and is tried again."""
    latency_ms: float | None = None
    """Median of a few questions asked afresh, everything loaded, nothing remembered."""
    prompt_tokens: float | None = None
    """Mean estimate of a prompt of the first sources."""
    spans: SpanMeans | None = None
    """None where labels are whole documents."""
    n_chunks: int = 0


@dataclass(frozen=True, slots=True)
class SettingScore:
    """One setting of a sweep."""

    setting: Setting
    measured: Measured
    is_present: bool = False
    """Whether these are the settings in force."""
    is_known: bool = False
    """Whether it was measured by an earlier sweep."""
    interval: Interval | None = None
    """Of the metric over the questions that all competing settings have; None: not competing."""
    comparison: Comparison | None = None
    """With the settings in force; None for those themselves."""
    reason: str = ""
    """Why it does not compete; empty when it does."""


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """What choosing the best setting is worth on questions that had no part in the choice.

    Each fold of the questions is held out once: the setting that is best on the others is
    chosen, and its values on the fold count (Stone 1974, "Cross-validatory choice and assessment
    of statistical predictions").
    """

    n_folds: int
    held_out: Interval
    """Mean of the held-out values, each question once."""
    chosen: tuple[int, ...]
    """By fold: place in `SweepResult.settings` of the setting that was chosen."""
    comparison: Comparison | None = None
    """Held-out values against the settings in force, on the same questions."""


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep has come."""

    done: int
    """Settings that are measured."""
    total: int
    n_known: int
    """Those that were measured by an earlier sweep."""
    phase: Phase
    setting: str = ""
    """The one being measured."""
    part_done: int = 0
    part_total: int = 0
    """Of the phase; 0 when unknown."""
    latest: SettingScore | None = None
    """With phase ``done``: what has just been measured; not compared with others yet."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A sweep as far as it came."""

    metric: str
    higher_is_better: bool
    column: str
    method: Method
    unit: Unit
    n_sources: int
    """Rows that prompts and overlaps are of."""
    settings: tuple[SettingScore, ...]
    """In the order of the space, the settings in force first."""
    best: int | None
    """Place in ``settings``: the best mean; of equal ones the first."""
    front: tuple[int, ...]
    """Places in ``settings`` that no other beats in quality, latency and prompt at once."""
    cross_validation: CrossValidation | None
    """None with fewer than two settings or questions to choose by."""
    noise: float
    """Differences from the settings in force below this are noise on this set."""
    n_questions: int
    n_scored: int
    """Questions that the means are of."""
    is_whole: bool
    """False when it was interrupted."""
    notes: tuple[str, ...]
    """What was left out and what a reader must know."""
    folder: str
    created: str
    """UTC, ISO 8601."""
    index_fingerprint: str
    questions_fingerprint: str
    depth: int
    folds: int
    knobs: Mapping[str, KnobValue] = field(default_factory=lambda: EMPTY)
    """The settings in force that were not varied, by dotted name."""

    def ranked(self) -> tuple[int, ...]:
        """Places of the competing settings, best mean first; of equal ones the first."""
        sign = -1 if self.higher_is_better else 1
        means = {i: one.interval.mean for i, one in enumerate(self.settings) if one.interval}
        return tuple(sorted(means, key=lambda i: (sign * means[i], i)))
