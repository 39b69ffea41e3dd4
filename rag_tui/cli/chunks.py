"""``rag-tui chunks``: what the index really holds, what is wrong with it, and how large it is."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import RenderableType

from rag_tui.cli.chunk_reports import (
    Warned,
    chunk_health_json,
    facts_json,
    facts_view,
    health_json,
    health_view,
    lint_json,
    lint_view,
    warned_table,
    warnings_by_position,
    whole_chunk,
)
from rag_tui.cli.output import note, write_json, write_rich, write_text
from rag_tui.cli.session import Session, open_session
from rag_tui.cli.tables import chunk_json, chunks_table
from rag_tui.engine.chunkers.lint import LINT_KINDS, Finding, LintKind, lint
from rag_tui.engine.corpus_facts import CorpusFacts, Prices, corpus_facts
from rag_tui.engine.errors import UsageError
from rag_tui.engine.filters import parse, where_mask
from rag_tui.engine.health import HEALTH_KINDS, Health, HealthKind, health
from rag_tui.engine.index import Index
from rag_tui.engine.patterns import Pattern
from rag_tui.engine.types import Chunk

EXIT_FOUND = 4
"""``--fail-on`` found something."""

Order = Literal["order", "longest", "shortest"]

ANY = "any"
"""``--fail-on any``: every kind of lint."""


@dataclass(frozen=True, slots=True)
class ChunksRequest:
    """What of the chunks is wanted, as it was typed."""

    document: str | None = None
    where: str = ""
    text: str | None = None
    regex: str | None = None
    warnings: tuple[str, ...] = ()
    sort: Order = "order"
    sample: int | None = None
    seed: int | None = None
    lint: bool = False
    health: bool = False
    facts: bool = False
    fail_on: tuple[str, ...] = ()
    context_window: int | None = None
    prices: str | None = None


@dataclass(frozen=True, slots=True)
class _Checked:
    """What was typed, made usable; whatever is wrong with it is told before any indexing."""

    pattern: Pattern | None
    lint_kinds: tuple[LintKind, ...]
    """Kinds the listing is narrowed to."""
    health_kinds: tuple[HealthKind, ...]
    fail_lint: tuple[LintKind, ...]
    fail_health: tuple[HealthKind, ...]
    prices: Prices | None
    """None: those of the settings."""


def chunks_command(
    folder: Path | None, overrides: Mapping[str, object], request: ChunksRequest, *, as_json: bool
) -> int:
    """``rag-tui chunks``: exit 4 when a chunk that was looked at has what ``--fail-on`` names."""
    checked = _check(request)
    session = open_session(folder, overrides)
    index = session.index
    shows_lint = request.lint or bool(checked.fail_lint)
    shows_health = request.health or bool(checked.fail_health)
    findings = lint(index) if shows_lint or checked.lint_kinds else ()
    state = health(index) if shows_health or checked.health_kinds else None
    if state is not None and index.vectors is None:
        note(
            "the index has no vectors yet: hubs, orphans, isolated chunks and copies that are not "
            "equal in text are not told"
        )
    positions = _selected(index, request, checked)
    findings = _findings_within(set(positions), findings, index)
    if request.warnings:
        positions = _warned(positions, checked, findings, state)
    chosen = set(positions)
    findings = tuple(finding for finding in findings if finding.position in chosen)
    told: dict[str, Any] = {}
    views: list[RenderableType] = []
    if shows_lint:
        kinds = checked.lint_kinds or LINT_KINDS
        shown = [finding for finding in findings if finding.kind in kinds]
        told["lint"] = lint_json(shown, index)
        views.append(lint_view(shown, index, n_looked_at=len(positions)))
    if shows_health and state is not None:
        told["health"] = health_json(state, positions, index)
        views.append(health_view(state, positions, index))
    if request.facts:
        prices = checked.prices or session.settings.token_prices
        facts, n_sources = _facts(session, request, prices), _n_sources(session)
        told["facts"] = facts_json(facts, prices)
        views.append(facts_view(facts, prices, n_sources))
    if not told:
        _list(index, request, positions, findings, state, as_json=as_json)
    elif as_json:
        write_json({"folder": str(session.folder), "n_chunks": len(index.chunks), **told})
    else:
        for view in views:
            write_rich(view)
    return EXIT_FOUND if _fails(checked, findings, state, chosen) else 0


def _n_sources(session: Session) -> int:
    return session.settings.answer.n_sources


def _facts(session: Session, request: ChunksRequest, prices: Prices) -> CorpusFacts:
    return corpus_facts(
        session.index,
        counter=session.models.token_counter(),
        context_window=request.context_window or session.settings.prices.context_window,
        prices=prices,
        n_sources=_n_sources(session),
    )


def _list(
    index: Index,
    request: ChunksRequest,
    positions: Sequence[int],
    findings: Sequence[Finding],
    state: Health | None,
    *,
    as_json: bool,
) -> None:
    if request.sample is not None:
        positions = _sampled(positions, request.sample, request.seed)
    if request.sort != "order":
        sign = -1 if request.sort == "longest" else 1
        positions = sorted(positions, key=lambda position: sign * int(index.n_tokens[position]))
    warnings = warnings_by_position(findings, state)
    if as_json:
        write_json([_listed(position, index, warnings, state) for position in positions])
    elif request.sample is not None:
        for i, position in enumerate(positions):
            write_text(("\n" if i else "") + whole_chunk(position, index, warnings))
    elif request.warnings:
        write_rich(warned_table(index, positions, warnings))
    else:
        write_rich(chunks_table(index, positions))


def _sampled(positions: Sequence[int], n: int, seed: int | None) -> list[int]:
    """Random, but the same seed gives the same ones; in corpus order."""
    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    n = min(n, len(positions))
    note(f"{n} of {len(positions)} chunks; --seed {seed} shows the same ones again")
    return sorted(random.Random(seed).sample(positions, n))  # noqa: S311 - not for secrets


def _check(request: ChunksRequest) -> _Checked:
    if request.sample is not None and request.sample < 1:
        raise UsageError(
            f"--sample must be at least 1 (got {request.sample})", "Ask for 10, for example."
        )
    if request.seed is not None and request.sample is None:
        raise UsageError("--seed does nothing without --sample", "Add --sample 10.")
    if request.sample is not None and (
        request.lint or request.health or request.facts or request.fail_on
    ):
        raise UsageError(
            "--sample shows chunks to read; it does not go with --lint, --health, --facts or "
            "--fail-on",
            "Ask for them one after the other.",
        )
    if request.context_window is not None and request.context_window < 1:
        raise UsageError(
            f"--window must be at least 1 token (got {request.context_window})",
            "Give the context window of your model, e.g. 200000.",
        )
    if request.where.strip():
        parse(request.where)
    pattern = None
    if request.regex is not None:
        pattern = Pattern(
            request.regex,
            name=f"--regex {request.regex!r}",
            hint="Correct it, or use --filter, which takes the text as it is.",
        )
    lint_kinds, health_kinds = _kinds("--warning", request.warnings)
    if ANY in request.fail_on:
        fail_lint, fail_health = _kinds(
            "--fail-on", (*LINT_KINDS, *(k for k in request.fail_on if k != ANY))
        )
    else:
        fail_lint, fail_health = _kinds("--fail-on", request.fail_on)
    return _Checked(
        pattern, lint_kinds, health_kinds, fail_lint, fail_health, _prices(request.prices)
    )


def _kinds(flag: str, names: Sequence[str]) -> tuple[tuple[LintKind, ...], tuple[HealthKind, ...]]:
    """Names as kinds of lint and of health; a name that both have is one of lint."""
    for name in names:
        if name not in LINT_KINDS and name not in HEALTH_KINDS:
            known = ", ".join(dict.fromkeys((*LINT_KINDS, *HEALTH_KINDS)))
            raise UsageError(f"{flag} {name} is no kind of warning", f"There are {known}.")
    of_lint = tuple(kind for kind in LINT_KINDS if kind in names)
    of_health = tuple(kind for kind in HEALTH_KINDS if kind in names and kind not in LINT_KINDS)
    return of_lint, of_health


def _prices(text: str | None) -> Prices | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 4:
        raise UsageError(
            f"--prices must be four numbers: input, cache write, cache read, output (got {text!r})",
            "Give them per million tokens, e.g. --prices 5,6.25,0.5,25.",
        )
    read, write, cached, written = numbers
    return Prices(input=read, cache_write=write, cache_read=cached, output=written)


def _selected(index: Index, request: ChunksRequest, checked: _Checked) -> list[int]:
    """What document, filter, text and pattern leave, whatever is wrong with it."""
    if request.document is not None and request.document not in index.document_of:
        known = ", ".join(list(index.document_of)[:5])
        raise UsageError(
            f"{request.document} is not a document of this index.", f"There are {known} and so on."
        )
    allowed = where_mask(request.where, index)
    words = request.text.casefold() if request.text is not None else None
    positions = [
        position
        for position, chunk in enumerate(index.chunks)
        if (request.document is None or chunk.doc_id == request.document)
        and (allowed is None or allowed[position])
        and (words is None or words in _searched(chunk).casefold())
        and (checked.pattern is None or checked.pattern.found_in(chunk))
    ]
    if allowed is not None:
        note(f"filter {request.where}: {int(allowed.sum()):,} of {len(index.chunks):,} chunks")
    return positions


def _findings_within(
    selected: set[int], findings: Sequence[Finding], index: Index
) -> tuple[Finding, ...]:
    """The findings about selected chunks, naming no chunk that was left out."""
    found = []
    for finding in findings:
        if finding.position not in selected:
            continue
        if finding.other is not None and finding.other not in selected:
            named = f"#{finding.other} {index.chunks[finding.other].location}"
            detail = finding.detail.replace(named, "a chunk outside this selection")
            found.append(replace(finding, detail=detail, other=None))
        else:
            found.append(finding)
    return tuple(found)


def _warned(
    positions: Sequence[int], checked: _Checked, findings: Sequence[Finding], state: Health | None
) -> list[int]:
    """Those of the chunks that have a kind of warning that was asked for."""
    warned = {f.position for f in findings if f.kind in checked.lint_kinds}
    if state is not None:
        warned.update(p for kind in checked.health_kinds for p in state.of_kind[kind])
    return [position for position in positions if position in warned]


def _searched(chunk: Chunk) -> str:
    return f"{chunk.doc_id}\n{chunk.context}\n{chunk.text}"


def _listed(
    position: int, index: Index, warnings: Mapping[int, Sequence[Warned]], state: Health | None
) -> dict[str, Any]:
    row = chunk_json(position, index)
    if position in warnings:
        row["warnings"] = [asdict(one) for one in warnings[position]]
    if state is not None:
        row["health"] = chunk_health_json(state.chunk(position), index)
    return row


def _fails(
    checked: _Checked, findings: Sequence[Finding], state: Health | None, chosen: set[int]
) -> bool:
    found: set[str] = {finding.kind for finding in findings if finding.kind in checked.fail_lint}
    if state is not None:
        found |= {
            kind for kind in checked.fail_health if not chosen.isdisjoint(state.of_kind[kind])
        }
    if found:
        note(f"--fail-on: there are chunks with {', '.join(sorted(found))}")
    return bool(found)
