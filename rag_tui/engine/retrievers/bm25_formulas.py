r"""The variants of BM25: what one query term gives to one chunk's score.

A term's part is ``idf * f(tf)``, as often as the term stands in the query. N is the number of
chunks, df the chunks that hold the term, B = ``1 - b + b * length / mean length``.

========== ============================== ==========================================
variant    idf                            f(tf)
========== ============================== ==========================================
lucene     ln(1 + (N-df+0.5)/(df+0.5))    tf (k1+1) / (tf + k1 B)
okapi      ln((N-df+0.5)/(df+0.5)), floor tf (k1+1) / (tf + k1 B)
robertson  ln((N-df+0.5)/(df+0.5)), or 0  tf / (tf + k1 B)
atire      ln(N/df)                       tf (k1+1) / (tf + k1 B)
bm25l      ln((N+1)/(df+0.5))             (k1+1) (c+delta) / (k1+c+delta), c = tf/B
bm25plus   ln((N+1)/df)                   delta + tf (k1+1) / (tf + k1 B)
========== ============================== ==========================================

Sources: Robertson, Walker, Jones, Hancock-Beaulieu, Gatford 1994, "Okapi at TREC-3"; Kamphuis,
de Vries, Boytsov, Lin 2020, "Which BM25 do you mean?", for the first four and their names; Lv,
Zhai 2011, "When documents are very long, BM25 fails!", for BM25L; Lv, Zhai 2011,
"Lower-bounding term frequency normalization", for BM25+.

- ``lucene`` keeps the factor k1+1, which Lucene left out in version 8: the order is the same.
- ``okapi`` is rank_bm25's: a negative idf becomes ``epsilon`` times the mean idf of all terms.
- ``robertson`` is bm25s': a negative idf becomes 0, and there is no factor k1+1.
- ``bm25l`` and ``bm25plus`` follow the papers, where a term that the chunk lacks gives 0. The
  libraries differ: bm25s adds ``idf * f(0)`` for it, which for BM25+ is the same for every chunk
  and so undoes the lower bound; rank_bm25 0.2.2 does that too in BM25+, and multiplies f by tf
  in BM25L. With the backend ``rank_bm25`` the formulas here are that library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import BM25Backend, BM25Params, BM25Variant

Floats = npt.NDArray[np.float64]

LIBRARY_VARIANTS: tuple[BM25Variant, ...] = ("okapi", "bm25l", "bm25plus")
"""What rank_bm25 implements."""

_DELTAS: dict[BM25Variant, float] = {"bm25l": 0.5, "bm25plus": 1.0}


def delta_of(params: BM25Params) -> float:
    """The delta in use: the one set, else the paper's; 0 for variants without one."""
    default = _DELTAS.get(params.variant)
    if default is None:
        return 0.0
    return default if params.delta is None else params.delta


def inverse_frequency(
    df: int, n_chunks: int, params: BM25Params, mean_okapi_idf: Callable[[], float]
) -> float:
    """The idf of a term that ``df`` of ``n_chunks`` chunks hold; 0 when none does.

    Args:
        df: Chunks that hold the term.
        n_chunks: All chunks.
        params: Decides the variant.
        mean_okapi_idf: Mean of ``ln((N-df+0.5)/(df+0.5))`` over all terms, asked when needed.
    """
    if df == 0:
        return 0.0
    match params.variant:
        case "lucene":
            return math.log(1 + (n_chunks - df + 0.5) / (df + 0.5))
        case "okapi":
            idf = math.log(n_chunks - df + 0.5) - math.log(df + 0.5)
            return idf if idf >= 0 else params.epsilon * mean_okapi_idf()
        case "robertson":
            return math.log(max((n_chunks - df + 0.5) / (df + 0.5), 1.0))
        case "atire":
            return math.log(n_chunks / df)
        case "bm25l":
            return math.log((n_chunks + 1) / (df + 0.5))
        case "bm25plus":
            return math.log((n_chunks + 1) / df)


def term_part(tf: Floats, factors: Floats, params: BM25Params) -> Floats:
    """f(tf) of the chunks that hold a term.

    Args:
        tf: float64 ``(m,)``, at least 1.
        factors: float64 ``(m,)``, the B of each chunk.
        params: Decides the variant.
    """
    k1 = params.k1
    match params.variant:
        case "robertson":
            part = tf / (tf + k1 * factors)
        case "bm25l":
            shifted = tf / factors + delta_of(params)
            part = (k1 + 1) * shifted / (k1 + shifted)
            if params.backend == "rank_bm25":
                part *= tf
        case "bm25plus":
            part = delta_of(params) + tf * (k1 + 1) / (tf + k1 * factors)
        case _:
            part = tf * (k1 + 1) / (tf + k1 * factors)
    return part


def absent_part(params: BM25Params) -> float:
    """f(0) of chunks that lack a term: 0, but for rank_bm25's BM25+."""
    is_library = params.backend == "rank_bm25" and params.variant == "bm25plus"
    return delta_of(params) if is_library else 0.0


def check_bm25_params(params: BM25Params) -> None:
    """Refuse parameters that the formula is not made for.

    Raises:
        UsageError: When k1 is negative, b not in 0 to 1, epsilon or delta negative, one not
            finite, or variant and backend do not go together.
    """
    if params.variant not in get_args(BM25Variant):
        names = ", ".join(get_args(BM25Variant))
        raise UsageError(
            f"unknown BM25 variant {params.variant!r}", f"Set bm25.variant to one of {names}."
        )
    if params.backend not in get_args(BM25Backend):
        raise UsageError(
            f"unknown BM25 backend {params.backend!r}", "Set bm25.backend to own or rank_bm25."
        )
    if params.backend == "rank_bm25" and params.variant not in LIBRARY_VARIANTS:
        raise UsageError(
            f"the library rank_bm25 has no variant {params.variant}",
            f"Set bm25.variant to one of {', '.join(LIBRARY_VARIANTS)}, or bm25.backend to own.",
        )
    if not (math.isfinite(params.k1) and params.k1 >= 0):
        raise UsageError(
            f"BM25 k1 must be 0 or more (got {params.k1:g})",
            "Set bm25.k1, usually between 0.5 and 2.",
        )
    if not 0 <= params.b <= 1:
        raise UsageError(
            f"BM25 b must be between 0 and 1 (got {params.b:g})", "Set bm25.b, usually to 0.75."
        )
    if not (math.isfinite(params.epsilon) and params.epsilon >= 0):
        raise UsageError(
            f"BM25 epsilon must be 0 or more (got {params.epsilon:g})",
            "Set bm25.epsilon, usually to 0.25.",
        )
    if params.delta is not None and not (math.isfinite(params.delta) and params.delta >= 0):
        raise UsageError(
            f"BM25 delta must be 0 or more (got {params.delta:g})",
            "Set bm25.delta, or leave it out for the papers' values: 0.5 and 1.",
        )
