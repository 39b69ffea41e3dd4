"""Scores of (question, passage) pairs that were computed before in this session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import text_hash
from rag_tui.engine.remembering import Recent
from rag_tui.engine.rerankers.base import Reranker, in_order, score_batches

_N_SCORES = 20_000
_Key = tuple[str, str, str]


class ScoreMemory:
    """Each pair is scored once by each reranker; safe for threads."""

    def __init__(self) -> None:
        self._scores: Recent[_Key, float] = Recent(_N_SCORES)

    def batches(
        self,
        reranker: Reranker,
        query: str,
        passages: Sequence[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Iterator[dict[int, float]]:
        """Index of passage to score: what is known first, then batch by batch as it is made.

        Every index comes exactly once; equal passages come together.

        Raises:
            ModelError: When the reranker fails or gives something that is no number.
            Cancelled: At most one batch after the token was set; finished scores are kept.
        """
        question = text_hash(query)
        keys = [(reranker.info.fingerprint, question, text_hash(text)) for text in passages]
        places: dict[_Key, list[int]] = {}
        for i, key in enumerate(keys):
            places.setdefault(key, []).append(i)
        known = {key: score for key in places if (score := self._scores.get(key)) is not None}
        if cancel is not None:
            cancel.check()
        if known:
            yield {i: score for key, score in known.items() for i in places[key]}
        missing = [key for key in places if key not in known]
        texts = [passages[places[key][0]] for key in missing]
        for batch in score_batches(reranker, query, texts, cancel=cancel) if texts else ():
            for at, score in batch.items():
                self._scores.put(missing[at], score)
            if cancel is not None:
                cancel.check()
            yield {i: score for at, score in batch.items() for i in places[missing[at]]}

    def in_order(
        self,
        reranker: Reranker,
        query: str,
        passages: Sequence[str],
        *,
        cancel: CancelToken | None = None,
    ) -> Iterator[float]:
        """The same scores in the order of the passages, each as soon as all before it are known.

        Raises as `batches` does.
        """
        for score in in_order(
            self.batches(reranker, query, passages, cancel=cancel), len(passages)
        ):
            if cancel is not None:
                cancel.check()
            yield score
