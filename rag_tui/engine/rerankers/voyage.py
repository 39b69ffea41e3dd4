"""Reranking by the Voyage service; texts leave this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_tui.engine.embedders.voyage import batches
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.rerankers.base import RerankerInfo, in_order
from rag_tui.engine.rerankers.scores import finite_score
from rag_tui.engine.tokenizing import without_surrogates
from rag_tui.engine.types import ScoreKind
from rag_tui.engine.voyage import VoyageService, voyage_model

DEFAULT_MODEL = "rerank-2.5"
BATCH_PASSAGES = 100
"""The service takes 1,000; with fewer the first scores come sooner and a cancel costs less."""
REQUEST_BYTES = 300_000
"""Question times passages, and passages: a token is at least one byte, and this is the smallest
documented limit in tokens (docs.voyageai.com, reranker API)."""

RELEVANCE = ScoreKind(
    "Voyage relevance", "0 to 1", "higher is better; the service's own scale, not a probability"
)
_CONTEXT = {"rerank-2": 16_000, "rerank-2-lite": 8_000, "rerank-1": 8_000, "rerank-lite-1": 4_000}
_USUAL_CONTEXT = 32_000


class VoyageReranker:
    """Scores of the service's cross-encoders.

    Args:
        name: ``voyage`` or ``voyage/MODEL``.
        service: Through which the requests go.
    """

    def __init__(self, name: str, service: VoyageService) -> None:
        self._model = voyage_model(name, DEFAULT_MODEL)
        self._service = service
        context = _CONTEXT.get(self._model, _USUAL_CONTEXT)
        self._info = RerankerInfo(
            name=f"voyage/{self._model}",
            fingerprint=fingerprint({"reranker": "voyage", "version": 1, "model": self._model}),
            max_tokens=context,
            score_kind=RELEVANCE,
            backend="voyage service",
            source="service",
            precision="as served",
            note=f"texts are sent to the Voyage service; what is beyond {context:,} tokens of "
            "question and passage is cut there",
        )

    @property
    def info(self) -> RerankerInfo:
        """What this reranker is."""
        return self._info

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One score per passage, in the given order, batch by batch."""
        return in_order(self.score_batches(query, passages, cancel=cancel), len(passages))

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        """Scores by index of the passage, one request after the other."""
        question = without_surrogates(query)
        per_passage = len(question.encode())
        most = max(1, min(BATCH_PASSAGES, REQUEST_BYTES // (2 * per_passage + 1)))
        start = 0
        for batch in batches(passages, most, REQUEST_BYTES // 2):
            if cancel is not None:
                cancel.check()
            scores = self._ask(question, [without_surrogates(text) for text in batch], cancel)
            yield {
                start + i: finite_score(score, batch[i], model=self._info.name)
                for i, score in enumerate(scores)
            }
            start += len(batch)

    def read_part(self, query: str, passage: str) -> int:
        """All of the passage: only the service knows where it cuts."""
        del query
        return len(passage)

    def _ask(self, question: str, passages: list[str], cancel: CancelToken | None) -> list[float]:
        reply = self._service.call(
            lambda client: client.rerank(question, passages, model=self._model, truncation=True),
            cancel=cancel,
        )
        scores = {int(row.index): float(row.relevance_score) for row in reply.results}
        if sorted(scores) != list(range(len(passages))):
            raise ModelError(
                f"{self._info.name} gave {len(scores)} scores for {len(passages)} passages",
                "Try again; if it happens again, choose another reranker.",
            )
        return [scores[i] for i in range(len(passages))]
