"""Reduced precision: where it may run, and how it is said."""

from __future__ import annotations

import re
from pathlib import Path

from rag_tui.engine.errors import ModelError
from rag_tui.engine.ids import fingerprint

_CPU_FLAGS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""Processor flags (Intel, AMD, Arm) of arithmetic in bfloat16."""
_CPU_INFO = Path("/proc/cpuinfo")


def cpu_has_bfloat16() -> bool | None:
    """Whether the processor computes in bfloat16; None when it does not tell."""
    try:
        words = set(re.findall(r"\w+", _CPU_INFO.read_text("utf-8", "replace")))
    except OSError:
        return None
    return not _CPU_FLAGS.isdisjoint(words)


def check_bfloat16(device: str) -> None:
    """Refuse bfloat16 on a processor that would only imitate it, slowly.

    Raises:
        ModelError: When ``device`` is the CPU and it lacks bfloat16.
    """
    if device != "cpu":
        return
    has = cpu_has_bfloat16()
    if has:
        return
    why = (
        "this processor has neither amx_bf16 nor avx512_bf16"
        if has is False
        else "this system does not tell whether the processor has bfloat16"
    )
    raise ModelError(
        f"models.precision = bfloat16 is refused: {why}; it would be slower than float32 and "
        "less exact",
        "Set models.precision to float32.",
    )


def with_precision(of: str, precision: str) -> str:
    """A model's fingerprint in this precision; that of float32 is the model's own."""
    return of if precision == "float32" else fingerprint({"of": of, "precision": precision})


def precision_note(precision: str) -> str:
    """What a user must know; empty for float32."""
    return "" if precision == "float32" else f"{precision}: scores are of reduced precision"
