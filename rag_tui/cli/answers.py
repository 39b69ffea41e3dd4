"""``rag-tui ask``: one answer, streamed, with its citations and, if wanted, its checks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rag_tui.cli.knob_options import parse_column, with_options
from rag_tui.cli.output import note, write_json, write_text
from rag_tui.cli.session import Session, open_session
from rag_tui.config import load_settings
from rag_tui.display import one_line
from rag_tui.engine.answer_sources import chunks_for_prompt, prompt_columns
from rag_tui.engine.answering import answer, make_answerer
from rag_tui.engine.citations import unknown_of
from rag_tui.engine.evaluation.answer_making import prompt_of
from rag_tui.engine.faithfulness import ABOUT, ClaimCheck, check_faithfulness
from rag_tui.engine.filters import combine, split_query, where_mask
from rag_tui.engine.index import Index
from rag_tui.engine.prompt_templates import load_template
from rag_tui.engine.searching import check_request
from rag_tui.engine.types import Answer, Prompt, SearchRequest

EXIT_FAILED = 1
EXIT_NOT_FOUND = 3
_SIGNS = {"supported": "+", "weak": "~", "unsupported": "-"}


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What ``rag-tui ask`` was asked for, beside settings."""

    where: str = ""
    column: str = ""
    """A column's name, or ``name=method:knob=value,…``; empty: the best that can be made."""
    preset: str = ""
    knobs: tuple[str, ...] = ()
    show_prompt: bool = False
    is_checked: bool = False
    as_json: bool = False


def ask_command(
    question: str, folder: Path | None, overrides: Mapping[str, object], asked: AskOptions
) -> int:
    """``rag-tui ask``: exit 3 for not found, 1 for a failed or incomplete answer."""
    question, inline = split_query(question)
    where = combine(asked.where, inline)
    settings = load_settings(folder, overrides)
    own = parse_column(asked.column) if "=" in asked.column else None
    column = own.name if own is not None else asked.column
    request = with_options(
        settings.request(question),
        settings.presets,
        preset=asked.preset,
        flags={},
        knobs=asked.knobs,
        columns=(asked.column,) if own is not None else (),
    )
    request = replace(request, where=where)
    # All of this before minutes of indexing, not after.
    check_request(request)
    prompt_columns(request, column)
    load_template(settings.answer.template)
    session = open_session(folder, overrides)
    if (allowed := where_mask(where, session.index)) is not None:
        note(f"filter {where}: {int(allowed.sum()):,} of {len(session.index.chunks):,} chunks")
    prompt, used = _prompt(question, request, session, column)
    if asked.show_prompt:
        if asked.as_json:
            write_json(asdict(prompt))
        else:
            write_text(f"{prompt.system}\n\n{prompt.user}")
        return 0
    final = asyncio.run(_stream(prompt, session, echo=not asked.as_json))
    checks = None
    if asked.is_checked:
        checks = check_faithfulness(final, prompt, session.models)
    if asked.as_json:
        write_json(answer_json(final, prompt, session.index, used, checks))
    else:
        _write_sources(prompt, final, session.index)
        if checks is not None:
            write_text(checks_text(checks))
    if final.state == "not found":
        return EXIT_NOT_FOUND
    return 0 if final.state == "complete" else EXIT_FAILED


def _prompt(
    question: str, request: SearchRequest, session: Session, column: str
) -> tuple[Prompt, str]:
    settings = session.settings.engine.answer
    found = chunks_for_prompt(
        request, session.index, session.models, n_sources=settings.n_sources, column=column
    )
    for remark in found.notes:
        note(remark)
    return prompt_of(question, found, settings), found.column


async def _stream(prompt: Prompt, session: Session, *, echo: bool) -> Answer:
    answerer = make_answerer(session.settings.engine.answer, session.models, os.environ)
    written = 0
    told = ""
    final = Answer("", "empty answer", answerer.name)
    growing = answer(prompt, answerer, prices=session.settings.token_prices)
    async with aclosing(growing) as answers:  # type: ignore[type-var]
        async for final in answers:
            if final.state == "streaming" and not final.text and final.detail != told:
                told = final.detail
                note(told)
            if echo and len(final.text) > written:
                write_text(final.text[written:], end="")
                written = len(final.text)
    if echo:
        write_text("")
    return final


def _write_sources(prompt: Prompt, final: Answer, index: Index) -> None:
    for source in prompt.sources:
        if source.number in final.cited:
            place = _location(source.chunk_id, source.path, index)
            write_text(f"[{source.number}] {one_line(f'{place} · {source.heading}')}")
    n_sources = len(prompt.sources)
    for label in unknown_of(final, n_sources):
        write_text(f"[{label}] does not exist: the prompt had sources 1 to {n_sources}")
    for quote in final.quotes:
        if not quote.is_in_source:
            write_text(f'[{quote.number}] does not hold the quote "{one_line(quote.quoted)}"')
    if final.state == "complete" and not final.citations:
        note("the answer cites no source")
    if final.state not in ("complete", "not found"):
        note(f"the answer is not complete: {final.state}. {final.detail}".strip())
    elif final.detail:
        note(final.detail)


def _location(chunk_id: str, path: str, index: Index) -> str:
    """``path:first-last`` of a source."""
    return index.chunk(chunk_id).location if chunk_id in index.position_of else path


def checks_text(checks: Sequence[ClaimCheck]) -> str:
    """The checks for people: each claim with its verdict, the nearest sentence, what is missing."""
    if not checks:
        return "\nchecks: nothing to check"
    verdicts: list[str] = [check.verdict for check in checks]
    told = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in _SIGNS)
    lines = ["", f"checks: {told}"]
    for check in checks:
        lines.append(f"  {_SIGNS[check.verdict]} {check.verdict}: {one_line(check.claim.text)}")
        if check.nearest is not None:
            near = f"[{check.nearest.number}] {one_line(check.nearest.text)}"
            lines.append(f"      nearest: {near}{_scores(check)}")
        for figure in check.missing:
            where = ""
            if figure.elsewhere:
                where = f", but in {''.join(f'[{n}]' for n in figure.elsewhere)}"
            elif figure.in_question:
                where = ", but in the question"
            lines.append(
                f"      missing: {figure.kind} {one_line(figure.text)} is not in "
                f"{'the cited source' if check.cites else 'any source'}{where}"
            )
        if check.note:
            lines.append(f"      note: {one_line(check.note)}")
    return "\n".join([*lines, ABOUT])


def _scores(check: ClaimCheck) -> str:
    if check.by == "quotation":
        return " (its own words)"
    told = [f"logit {check.logit:.1f}"] if check.logit is not None else []
    if check.cosine is not None:
        told.append(f"cosine {check.cosine:.2f}")
    if not told:
        told.append(f"{check.shared_words:.0%} of its words")
    return f" ({', '.join(told)})"


def answer_json(
    final: Answer,
    prompt: Prompt,
    index: Index,
    column: str,
    checks: Sequence[ClaimCheck] | None,
) -> dict[str, Any]:
    """An answer with all that it was made from, as JSON values; ``checks`` null when unchecked."""
    sources = [
        {**asdict(source), "location": _location(source.chunk_id, source.path, index)}
        for source in prompt.sources
    ]
    return {
        **asdict(final),
        "cited": list(final.cited),
        "unknown": list(final.unknown),
        "question": prompt.question,
        "column": column,
        "template": prompt.template,
        "order": prompt.order,
        "sources": sources,
        "usage": {
            "input_tokens": final.input_tokens,
            "output_tokens": final.output_tokens,
            "cache_write_tokens": final.cache_write_tokens,
            "cache_read_tokens": final.cache_read_tokens,
            "cost": final.cost,
        },
        "checks": None if checks is None else [asdict(check) for check in checks],
        "about_checks": None if checks is None else ABOUT,
    }
