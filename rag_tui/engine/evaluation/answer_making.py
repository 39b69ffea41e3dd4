"""One answer of an evaluation: its prompt, the asking, and what is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rag_tui.engine.answer_sources import PromptChunks
from rag_tui.engine.answering import answer
from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.evaluation.answer_types import AnswerRow, CheckCounts, SourceRef
from rag_tui.engine.evaluation.holding import row_holds
from rag_tui.engine.evaluation.refusals import outcome_of
from rag_tui.engine.evaluation.types import Resolved, Retrieved
from rag_tui.engine.events import CancelToken
from rag_tui.engine.faithfulness import check_faithfulness
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.types import Answer, Prompt

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.llms.base import Answerer
    from rag_tui.engine.loading import Models
    from rag_tui.engine.settings import AnswerSettings

_POLL_S = 0.1
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """How questions are answered, beside the search."""

    settings: AnswerSettings
    column: str = ""
    """The column that sources come from; empty: the best that can be made."""
    prices: Prices = field(default_factory=Prices)
    cost_limit: float | None = None
    """In the currency of the prices, for this pass."""
    is_checked: bool = True
    """Whether claims are compared with their sources."""


def prompt_of(question: str, found: PromptChunks, settings: AnswerSettings) -> Prompt:
    """The prompt of a question by the answer's settings."""
    return build_prompt(
        question,
        found.chunks,
        max_sources=settings.n_sources,
        template=settings.template,
        order=settings.order,
        extra=found.around,
    )


async def final_answer(prompt: Prompt, answerer: Answerer, prices: Prices) -> Answer:
    """The finished answer, with its cost where the service counts tokens."""
    final = Answer("", "ended early", answerer.name)
    async with aclosing(answer(prompt, answerer, prices=prices)) as growing:  # type: ignore[type-var]
        async for one in growing:
            final = one
    return final


def wait_for(work: Coroutine[Any, Any, _Value], cancel: CancelToken) -> _Value:
    """Run a coroutine to its end, in a thread without an event loop.

    Raises:
        Cancelled: Soon after the token was set; the coroutine has been closed then.
    """

    async def watched() -> _Value:
        task = asyncio.create_task(work)
        while not task.done():
            if cancel.is_cancelled:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                raise Cancelled
            await asyncio.wait({task}, timeout=_POLL_S)
        return task.result()

    return asyncio.run(watched())


def count_checks(
    final: Answer, prompt: Prompt, models: Models, cancel: CancelToken | None = None
) -> CheckCounts:
    """How many claims of an answer are supported, and what the check had to do without."""
    checks = check_faithfulness(final, prompt, models, cancel=cancel)
    verdicts = [check.verdict for check in checks]
    missing_models = {
        part for check in checks for part in check.note.split("; ") if part.startswith("without")
    }
    return CheckCounts(
        supported=verdicts.count("supported"),
        weak=verdicts.count("weak"),
        unsupported=verdicts.count("unsupported"),
        n_missing=sum(len(check.missing) for check in checks),
        n_uncited=sum(not check.cites for check in checks),
        note="; ".join(sorted(missing_models)),
    )


def source_refs(prompt: Prompt, index: Index) -> tuple[SourceRef, ...]:
    """Where the sources of a prompt stand in the documents of an index."""
    refs = []
    for source in prompt.sources:
        ids = (source.chunk_id, *(part.chunk_id for part in source.added))
        parts = [index.chunk(chunk_id) for chunk_id in ids if chunk_id in index.position_of]
        start = min((part.start for part in parts), default=0)
        end = max((part.end for part in parts), default=0)
        refs.append(SourceRef(source.number, source.chunk_id, source.path, start, end))
    return tuple(refs)


def with_outcome(row: AnswerRow, resolved: Resolved) -> AnswerRow:
    """The row with what became of it, by the labels as they are resolved now."""
    places = [place for place in resolved.places if place.evidence.grade > 0]
    holding = {
        ref.number
        for ref in row.sources
        for place in places
        if row_holds(Retrieved(ref.chunk_id, ref.document, ref.start, ref.end, 0.0), place)
    }
    outcome = outcome_of(
        row.kind,
        is_answerable=row.is_answerable,
        cites_evidence=bool(holding & set(row.cited)) if places else None,
        has_evidence=bool(holding) if places else None,
    )
    return replace(row, outcome=outcome)


def models_of(models: Models) -> str:
    """The fingerprints of the models that choose the sentences of extractive answers."""
    prints = []
    for load in (models.reranker, models.embedder):
        try:
            prints.append(load().info.fingerprint)
        except ModelError:
            prints.append("none")
    return " ".join(prints)
