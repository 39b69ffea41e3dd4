"""What happens in threads around a prompt and its answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from textual.message import Message

from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.events import CancelToken, StageError
from rag_tui.tui.messages import AnswerGrew
from rag_tui.tui.pauses import leave_libraries_alone, no_full_collections
from rag_tui.tui.prompt_facts import PromptFacts, source_rows

if TYPE_CHECKING:
    from pathlib import Path

    from rag_tui.engine.answer_diff import AnswerDiff
    from rag_tui.engine.faithfulness import ClaimCheck
    from rag_tui.engine.prompt_order import PromptPlan
    from rag_tui.engine.prompt_size import PromptSize
    from rag_tui.engine.types import Answer, Chunk, Prompt
    from rag_tui.tui.backend import Backend, Session
    from rag_tui.tui.results import Results
    from rag_tui.tui.widgets.answer_side import Way

PAINT_S = 0.1
"""A growing answer is told so often: more could not be seen, and would be work for nothing."""

T = TypeVar("T")

log = logging.getLogger("rag_tui")


def make_prompt(
    backend: Backend,
    session: Session,
    results: Results,
    plan: PromptPlan,
    *,
    column: str = "",
) -> PromptFacts | StageError:
    """The prompt of these results with estimated tokens, or why there is none.

    Args:
        backend: Makes it.
        session: Settings and models.
        results: The lists.
        plan: What was changed by hand.
        column: Where the candidates come from; empty, or one without rows: the best list.
    """
    try:
        name = results.source_column(column)
        candidates = results.candidates(name)
        prompt, n_neighbours = _built(backend, session, results, name, candidates, plan)
        answer_settings = session.settings.engine.answer
        size = backend.estimate_size(prompt, session.settings)
        return PromptFacts(
            prompt,
            size,
            plan,
            source_rows(candidates, plan, prompt, size),
            name,
            parameters=_parameters(backend, session, prompt),
            answerer=backend.make_answerer(answer_settings, session.models).name,
            n_neighbours=n_neighbours,
            currency=session.settings.token_prices.currency,
        )
    except Exception as error:
        if not isinstance(error, RagTuiError):
            log.exception("making the prompt failed")
        return StageError.from_exception(error)


def count_prompt(
    backend: Backend, session: Session, facts: PromptFacts, cancel: CancelToken
) -> PromptFacts:
    """The same with the service's own count, where there is a service."""
    size: PromptSize = until_cancelled(
        backend.prompt_size(facts.prompt, session.settings), cancel, otherwise=facts.size
    )
    tokens = dict(zip((s.number for s in facts.prompt.sources), size.source_tokens, strict=False))
    rows = tuple(
        replace(row, n_tokens=tokens.get(row.source.number)) if row.source is not None else row
        for row in facts.rows
    )
    return replace(facts, size=size, rows=rows)


def side_prompt(
    backend: Backend, session: Session, results: Results, way: Way
) -> Prompt | StageError:
    """The prompt of one of two answers that are compared, or why there is none."""
    from rag_tui.engine.prompt_order import PromptPlan
    from rag_tui.tui.widgets.answer_side import NEEDS_A_MODEL

    try:
        if way.is_closed_book:
            answerer = backend.make_answerer(session.settings.engine.answer, session.models)
            if answerer.name == "extractive":
                return StageError(NEEDS_A_MODEL)
            return backend.closed_book_prompt(results.request.query)
        plan = PromptPlan(template=way.template, n_sources=way.n_sources)
        candidates = results.candidates(way.column)
        return _built(backend, session, results, way.column, candidates, plan)[0]
    except RagTuiError as error:
        return StageError.from_exception(error)


def compare_both(
    backend: Backend,
    session: Session,
    pairs: Sequence[tuple[Answer | None, Prompt | None]],
    cancel: CancelToken,
) -> AnswerDiff | None:
    """How two finished answers differ, their claims checked; None where one has no text."""
    from rag_tui.engine.answer_diff import Answered

    both = []
    for answer, prompt in pairs:
        if answer is None or prompt is None or not answer.text:
            return None
        checks = check_answer(backend, session, answer, prompt, cancel) if prompt.sources else ()
        both.append(Answered(answer, prompt, () if isinstance(checks, StageError) else checks))
    return backend.compare_answers(*both)


def run_answer(
    backend: Backend,
    session: Session,
    prompt: Prompt,
    *,
    generation: int,
    post: Callable[[Message], object],
    cancel: CancelToken,
) -> None:
    """Stream an answer in this thread's own event loop, so that no import or score blocks keys.

    What grows is told every `PAINT_S`, the finished answer at once.
    """
    newest: list[Answer] = []

    def tell() -> None:
        if newest:
            post(AnswerGrew(generation, newest.pop()))

    async def stream() -> None:
        answerer = backend.make_answerer(session.settings.engine.answer, session.models)
        is_first = True
        async for answer in backend.answer(prompt, answerer):
            is_final = answer.state != "streaming"
            cost = backend.answer_cost(answer, session.settings) if is_final else None
            newest[:] = [replace(answer, cost=cost)]
            if is_first:
                leave_libraries_alone()
            if is_first or is_final:
                tell()
            is_first = False

    try:
        until_cancelled(stream(), cancel, otherwise=None, meanwhile=tell)
    except RagTuiError as error:
        failed = StageError.from_exception(error)
        detail = f"{failed.message} {failed.hint}".strip()
        post(AnswerGrew(generation, _failed(detail)))


def check_answer(
    backend: Backend, session: Session, answer: Answer, prompt: Prompt, cancel: CancelToken
) -> tuple[ClaimCheck, ...] | StageError:
    """The claims of a finished answer against its sources, or why they could not be looked at."""
    try:
        return backend.check_answer(answer, prompt, session.models, cancel=cancel)
    except RagTuiError as error:
        return StageError.from_exception(error)


def label_answer(
    backend: Backend, session: Session, folder: Path, answer: Answer, prompt: Prompt, label: str
) -> str | StageError:
    """Keep a person's label of an answer, or take it back if it has that one; the label it has."""
    try:
        labels, row = backend.answer_label(
            session.settings.engine.cache_dir, folder, answer, prompt
        )
        known = labels.of(row) or ""
        labels.put(row, "" if known == label else label)
        return labels.of(row) or ""
    except RagTuiError as error:
        return StageError.from_exception(error)


def label_of(
    backend: Backend, session: Session, folder: Path, answer: Answer, prompt: Prompt
) -> str:
    """The label that an answer with this text has; empty for none."""
    try:
        labels, row = backend.answer_label(
            session.settings.engine.cache_dir, folder, answer, prompt
        )
        return labels.of(row) or ""
    except RagTuiError:
        return ""


def until_cancelled(
    work: Coroutine[Any, Any, T],
    cancel: CancelToken,
    *,
    otherwise: T,
    meanwhile: Callable[[], None] | None = None,
) -> T:
    """Run a coroutine in this thread; soon after the token is set it is closed.

    Meanwhile no full collection stops the app.

    Args:
        work: The coroutine.
        cancel: Looked at every `PAINT_S`.
        otherwise: What is given back when it was cancelled.
        meanwhile: Called as often.
    """

    async def watched() -> T:
        task = asyncio.ensure_future(work)
        while not task.done():
            if cancel.is_cancelled:
                task.cancel()
            await asyncio.wait({task}, timeout=PAINT_S)
            if meanwhile is not None and not cancel.is_cancelled:
                meanwhile()
        return otherwise if task.cancelled() else task.result()

    with no_full_collections():
        return asyncio.run(watched())


def _built(
    backend: Backend,
    session: Session,
    results: Results,
    column: str,
    candidates: tuple[Chunk, ...],
    plan: PromptPlan,
) -> tuple[Prompt, int]:
    """The prompt, and how many neighbours each source was to get."""
    from rag_tui.engine.answer_sources import neighbours_of
    from rag_tui.engine.filters import where_mask

    settings = session.settings.engine.answer
    n_neighbours = results.request_of(column).post.neighbours if column else 0
    allowed = where_mask(results.request.where, results.index) if n_neighbours else None
    extra = neighbours_of(candidates, results.index, n_neighbours, allowed)
    prompt = backend.build_prompt(
        results.request.query,
        candidates,
        settings.n_sources,
        plan=plan,
        template=settings.template,
        order=settings.order,
        extra=extra,
    )
    return prompt, n_neighbours


def _parameters(backend: Backend, session: Session, prompt: Prompt) -> str:
    body = dict(backend.request_body(prompt, session.settings.engine.answer))
    for told_below in ("system", "messages"):
        body.pop(told_below, None)
    return json.dumps(body, ensure_ascii=False)


def _failed(detail: str) -> Answer:
    from rag_tui.engine.types import Answer

    return Answer("", "failed", "nobody", detail=detail)
