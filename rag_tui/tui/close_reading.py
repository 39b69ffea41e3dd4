"""What models see in one chunk for one question, worked out beside the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.events import CancelToken, StageError

if TYPE_CHECKING:
    from rag_tui.engine.chunkers.reach import Unread
    from rag_tui.engine.explain import HeatMap, SentenceScore
    from rag_tui.engine.types import Chunk
    from rag_tui.tui.backend import Backend, Session
    from rag_tui.tui.results import Results

N_LEVELS = 4
"""Heat levels, 0 to 3."""
LEAST_SPREAD = 0.05
"""Words whose similarities differ by less than this are all of one level."""
_BOUNDS = (0.4, 0.6, 0.8)
"""Where levels 1, 2 and 3 begin, as shares of the way from the lowest to the highest."""

log = logging.getLogger("rag_tui")


@dataclass(frozen=True, slots=True)
class Reading:
    """The sentences of a chunk beside the question, and where models stop."""

    chunk_id: str
    sentences: tuple[SentenceScore, ...] = ()
    """By the embedder, in the order of the text; empty without a vector list."""
    unread: Unread | None = None
    """What the index's embedder does not read."""
    reranker_end: int | None = None
    """Character offset where the reranker stops; None: it reads all, or did not read the chunk."""

    @property
    def nearest(self) -> SentenceScore | None:
        """The sentence most similar to the question; the first of equals."""
        return max(self.sentences, key=lambda one: one.score, default=None)


@dataclass(frozen=True, slots=True)
class SentenceTable:
    """The sentences of a chunk, scored each on its own, best first."""

    chunk_id: str
    rows: tuple[SentenceRow, ...] = ()
    similarity: str = ""
    """What the vector list calls its scores; empty without one."""
    reranker: str = ""
    """The same for the reranked list."""


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """One sentence; None for a score that no list has."""

    text: str
    similarity: float | None
    reranked: float | None
    is_read: bool
    """Whether all models that were asked read this far when they read the chunk."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Levels of the words of a chunk's text, and what they mean."""

    chunk_id: str
    words: tuple[tuple[int, int, int], ...]
    """``(start, end, level)`` in ``Chunk.text``, ascending."""
    ranges: tuple[tuple[float, float] | None, ...]
    """Lowest and highest similarity of each level; None for a level without words."""
    best: tuple[tuple[str, str, float], ...]
    """The nearest words: word, the question's word, similarity."""
    model: str
    n_cut: int


def read_closely(
    backend: Backend,
    session: Session,
    results: Results,
    chunk: Chunk,
    column: str,
    *,
    cancel: CancelToken,
) -> Reading:
    """The nearest sentence and the unread ends; only models that the column's lists have used.

    Raises:
        Cancelled: Soon after the token was set.
    """
    request, stages, models = results.request_of(column), results.stages(column), session.models
    index = results.index
    sentences: tuple[SentenceScore, ...] = ()
    reranker_end: int | None = None
    unread: Unread | None = None
    try:
        unread = backend.unread(chunk, models)
        cancel.check()
        if "vector" in stages:
            sentences = backend.sentence_scores(
                chunk.chunk_id, request, index, models, by="vector", cancel=cancel
            )
        cancel.check()
        if "reranked" in stages and stages["reranked"].rank_of(chunk.chunk_id) is not None:
            reranker_end = backend.reranker_end(chunk, request, models)
    except Cancelled:
        raise
    except RagTuiError as error:  # the lists say what is missing; here it is an extra
        log.info("reading %s closely: %s", chunk.chunk_id, error)
    except Exception:
        log.exception("reading %s closely failed", chunk.chunk_id)
    return Reading(chunk.chunk_id, sentences, unread, reranker_end)


def score_sentences(
    backend: Backend,
    session: Session,
    results: Results,
    chunk_id: str,
    column: str,
    *,
    report: Callable[[str], object],
    cancel: CancelToken,
) -> SentenceTable | StageError:
    """The scores of each sentence alone by the models of a column's pipeline, best first.

    Sorted by the reranker where the pipeline has one, else by similarity.

    Raises:
        Cancelled: Soon after the token was set.
    """
    request, stages = results.request_of(column), results.stages(column)
    found: dict[str, tuple[SentenceScore, ...]] = {}
    try:
        for method in ("vector", "reranked"):
            if method not in stages:
                continue
            report("embedding each sentence" if method == "vector" else "reranking each sentence")
            found[method] = backend.sentence_scores(
                chunk_id,
                request,
                results.index,
                session.models,
                by=method,
                report=lambda done, total: report(f"reranking sentence {done:,} of {total:,}"),
                cancel=cancel,
            )
            cancel.check()
    except Cancelled:
        raise
    except Exception as error:
        if not isinstance(error, RagTuiError):
            log.exception("scoring the sentences of %s failed", chunk_id)
        return StageError.from_exception(error)
    if not found:
        return StageError(
            "There is no vector or reranked list whose model could score sentences.",
            "Choose a column that has one, or wait until the vectors are there.",
        )
    return SentenceTable(
        chunk_id,
        _sorted_rows(found),
        stages["vector"].score_kind.name if "vector" in found else "",
        stages["reranked"].score_kind.name if "reranked" in found else "",
    )


def _sorted_rows(found: dict[str, tuple[SentenceScore, ...]]) -> tuple[SentenceRow, ...]:
    vector, reranked = found.get("vector"), found.get("reranked")
    rows = [
        SentenceRow(
            one.text,
            vector[i].score if vector else None,
            reranked[i].score if reranked else None,
            all(scores[i].is_read for scores in found.values()),
        )
        for i, one in enumerate(vector or reranked or ())
    ]

    def key(row: SentenceRow) -> float:
        score = row.reranked if row.reranked is not None else row.similarity
        return -(score or 0.0)

    return tuple(sorted(rows, key=key))


def heat_of(
    backend: Backend, session: Session, results: Results, chunk: Chunk, column: str
) -> Heat | StageError:
    """How near each word of a chunk is to the question, in levels, or why that is not known."""
    try:
        found = backend.heat_map(
            chunk.chunk_id, results.request_of(column), results.index, session.models
        )
        return heat_levels(chunk, found)
    except Exception as error:
        if not isinstance(error, RagTuiError):
            log.exception("the heat map of %s failed", chunk.chunk_id)
        return StageError.from_exception(error)


def heat_levels(chunk: Chunk, found: HeatMap) -> Heat:
    """The words of the chunk's own text by level: shares of the way between its extremes.

    What counts as near differs from model to model, so that levels compare words of one chunk.
    """
    placed = [
        (start, start + span.end - span.start, span)
        for span in found.spans
        if (start := found.in_chunk(span.start)) is not None
    ]
    values = [span.similarity for _, _, span in placed]
    low, high = min(values, default=0.0), max(values, default=0.0)

    def level(value: float) -> int:
        if high - low < LEAST_SPREAD:
            return 1
        return sum((value - low) / (high - low) >= bound for bound in _BOUNDS)

    words = tuple((start, end, level(span.similarity)) for start, end, span in placed)
    of_level: list[list[float]] = [[] for _ in range(N_LEVELS)]
    for (_, _, at), value in zip(words, values, strict=True):
        of_level[at].append(value)
    best: dict[str, tuple[str, str, float]] = {}
    for start, end, span in sorted(placed, key=lambda one: -one[2].similarity):
        word = chunk.text[start:end]
        best.setdefault(word.casefold(), (word, span.query_word, span.similarity))
    return Heat(
        chunk.chunk_id,
        words,
        tuple((min(v), max(v)) if v else None for v in of_level),
        tuple(best.values())[:3],
        found.model,
        found.n_cut,
    )
