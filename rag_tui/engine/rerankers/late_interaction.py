"""Reranking by the vectors of single tokens, with no weights but the embedder's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.embedders.tokens import TokenVectors, token_vectors
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import fingerprint, text_hash
from rag_tui.engine.remembering import Recent
from rag_tui.engine.rerankers.base import RerankerInfo, in_order
from rag_tui.engine.rerankers.scores import finite_score
from rag_tui.engine.types import ScoreKind

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

LATE_INTERACTION = "late_interaction"
"""Its name in settings and knobs."""

MAXSIM = ScoreKind(
    "MaxSim mean",
    "-1 to 1",
    "higher is better; mean over the question's tokens of the best cosine with a token of the "
    "passage; not a probability",
)

_N_KEPT = 64
"""Passages whose token vectors are kept: at most about 400 kB each for MiniLM."""


class LateInteractionReranker:
    """MaxSim of Khattab and Zaharia 2020 ("ColBERT", SIGIR, eq. 3), over an embedder's own tokens.

    For each token of the question the highest cosine with any token of the passage; ColBERT
    takes the sum over the question's tokens, here it is their mean: the same order for one
    question, and comparable between questions. Special tokens and prompts do not count, and
    the question is not padded with masks as in ColBERT. The model was not trained for it.

    Args:
        embedder: Whose tokens are compared.

    Raises:
        ModelError: When the embedder gives no vectors of tokens.
    """

    def __init__(self, embedder: Embedder) -> None:
        token_vectors(embedder, ["a"], "query")
        self._embedder = embedder
        self._passages: Recent[str, TokenVectors] = Recent(_N_KEPT)
        of = embedder.info
        self._info = RerankerInfo(
            name=f"{LATE_INTERACTION} ({of.name})",
            fingerprint=fingerprint(
                {"reranker": LATE_INTERACTION, "version": 1, "embedder": of.fingerprint}
            ),
            max_tokens=of.max_tokens,
            score_kind=MAXSIM,
            backend=of.backend,
            source=of.source,
            weights_sha256=of.weights_sha256,
            precision=of.precision,
            note=f"MaxSim over the tokens of {of.name}, which was not trained for it",
        )

    @property
    def info(self) -> RerankerInfo:
        """What this reranker is."""
        return self._info

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One score per passage, in the given order, each as soon as it is known."""
        return in_order(self.score_batches(query, passages, cancel=cancel), len(passages))

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        """Scores by index of the passage, one by one in their order."""
        question: TokenVectors | None = None
        for i, passage in enumerate(passages):
            if cancel is not None:
                cancel.check()
            if question is None:
                (question,) = token_vectors(self._embedder, [query], "query")
            score = maxsim(question.vectors, self._tokens(passage).vectors)
            yield {i: finite_score(score, passage, model=self._info.name)}

    def read_part(self, query: str, passage: str) -> int:
        """Characters at the start of the passage that the embedder reads."""
        del query
        tokens = self._tokens(passage)
        if not tokens.n_cut:
            return len(passage)
        return tokens.spans[-1][1] if tokens.spans else 0

    def _tokens(self, passage: str) -> TokenVectors:
        key = text_hash(passage)
        known = self._passages.get(key)
        if known is None:
            (known,) = token_vectors(self._embedder, [passage], "document")
            self._passages.put(key, known)
        return known


def maxsim(question: Vectors, passage: Vectors) -> float:
    """Mean over the rows of the question of the highest cosine with a row of the passage.

    Args:
        question: float32 ``(n, dimensions)``, rows of L2 norm 1.
        passage: float32 ``(m, dimensions)``, rows of L2 norm 1.

    Returns:
        -1 to 1; -1 for a passage without tokens, 0 for a question without any.
    """
    if not len(question):
        return 0.0
    if not len(passage):
        return -1.0
    best = (question @ passage.T).max(axis=1)
    return float(np.clip(best.mean(dtype=np.float64), -1.0, 1.0))
