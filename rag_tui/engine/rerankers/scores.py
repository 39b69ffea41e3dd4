"""What a cross-encoder's number means, and the check that it is one."""

from __future__ import annotations

import math

from rag_tui.engine.errors import ModelError
from rag_tui.engine.types import ScoreKind

_SHOWN = 60


def logit_kind(note: str = "") -> ScoreKind:
    """The score kind of cross-encoders: the raw output, before any sigmoid."""
    meaning = (
        "higher is better; not a probability; sigmoid = 1 / (1 + e^-logit), which "
        "rounds to 1.000 from about 8 up and hides the order there"
    )
    return ScoreKind("logit", "unbounded", f"{meaning}; {note}" if note else meaning)


def finite_score(score: float, passage: str, *, model: str) -> float:
    """The score itself.

    Raises:
        ModelError: When it is NaN or infinite; such a score would spoil the order.
    """
    if math.isfinite(score):
        return score
    raise ModelError(
        f"{model} gave {score} for the passage {passage[:_SHOWN]!r}",
        "Try models.device = cpu, or another reranker.",
    )
