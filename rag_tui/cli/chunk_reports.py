"""Lint, health and facts of a corpus as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rag_tui.cli.tables import label
from rag_tui.display import bar, clip, count, plain
from rag_tui.engine.chunkers.lint import RULES, Finding, count_by_kind
from rag_tui.engine.corpus_facts import CorpusFacts, Prices
from rag_tui.engine.health import HEALTH_KINDS, HEALTH_RULES, ChunkHealth, Health, HealthKind
from rag_tui.engine.index import Index

_Kind = TypeVar("_Kind", bound=str)


def lint_json(findings: Sequence[Finding], index: Index) -> dict[str, Any]:
    """Counts of every kind, and every finding with its place."""
    return {
        "counts": count_by_kind(findings),
        "n_chunks_with_findings": len({finding.position for finding in findings}),
        "findings": [
            {
                "kind": finding.kind,
                **_place(finding.position, index),
                "detail": finding.detail,
                "other": finding.other,
            }
            for finding in findings
        ],
    }


def lint_view(findings: Sequence[Finding], index: Index, *, n_looked_at: int) -> Group:
    """A table of counts and rules, and one of findings."""
    counts = _counted("lint", {k: n for k, n in count_by_kind(findings).items() if n}, RULES)
    n_bad = len({finding.position for finding in findings})
    summary = Text(f"lint: {n_bad:,} of {count(n_looked_at, 'chunk')} with findings")
    if not findings:
        return Group(summary)
    rows = Table(expand=True, pad_edge=False)
    rows.add_column("#", justify="right")
    rows.add_column("kind", no_wrap=True)
    rows.add_column("where", no_wrap=True, overflow="ellipsis", ratio=2)
    rows.add_column("detail", no_wrap=True, overflow="ellipsis", ratio=3)
    for finding in findings:
        chunk = index.chunks[finding.position]
        rows.add_row(
            str(finding.position), finding.kind, plain(chunk.location), plain(finding.detail)
        )
    return Group(summary, counts, rows)


def health_json(state: Health, positions: Sequence[int], index: Index) -> dict[str, Any]:
    """Counts, and the numbers of every chunk that was looked at."""
    near = state.neighbours
    return {
        "counts": _counts_among(state, positions),
        "k": near.k if near is not None else None,
        "hubness_skewness": near.skewness if near is not None else None,
        "chunks": [
            {**_place(position, index), **chunk_health_json(state.chunk(position), index)}
            for position in positions
        ],
    }


def chunk_health_json(one: ChunkHealth, index: Index) -> dict[str, Any]:
    """One chunk's numbers; its nearest neighbour by place too."""
    nearest = _place(one.nearest, index) if one.nearest is not None else None
    return {**asdict(one), "kinds": list(one.kinds), "nearest": nearest}


def health_view(state: Health, positions: Sequence[int], index: Index) -> Group:
    """Counts and rules, the hubs, and every other chunk of a kind that vectors tell."""
    counts = {kind: n for kind, n in _counts_among(state, positions).items() if n}
    near = state.neighbours
    head = Text(f"health: {count(len(positions), 'chunk')}")
    if near is not None:
        head.append(f", {near.k} nearest neighbours each, hubness skewness {near.skewness:.2f}")
    chosen = set(positions)
    rows = Table(expand=True, pad_edge=False)
    rows.add_column("#", justify="right")
    rows.add_column("kinds", no_wrap=True)
    rows.add_column("near", justify="right")
    rows.add_column("cosine", justify="right")
    rows.add_column("where", no_wrap=True, overflow="ellipsis", ratio=2)
    rows.add_column("nearest", no_wrap=True, overflow="ellipsis", ratio=2)
    hubs = [position for position in state.of_kind["hub"] if position in chosen]
    rest = [p for p in positions if state.kinds[p] and p not in set(hubs)]
    for position in (*hubs, *rest):
        one = state.chunk(position)
        other = index.chunks[one.nearest].location if one.nearest is not None else "–"
        rows.add_row(
            str(position),
            ", ".join(one.kinds),
            str(one.n_occurrences) if one.n_occurrences is not None else "–",
            f"{one.cosine:.3f}" if one.cosine is not None else "–",
            plain(index.chunks[position].location),
            plain(other),
        )
    if not rows.row_count:
        return Group(head, Text("nothing to report"))
    return Group(head, _counted("health", counts, HEALTH_RULES), rows)


def facts_json(facts: CorpusFacts, prices: Prices) -> dict[str, Any]:
    """All facts, and the prices they were worked out with."""
    return {
        **asdict(facts),
        "share_over_limit": facts.share_over_limit,
        "fits": facts.fits,
        "verdict": facts.verdict,
        "prices": asdict(prices),
    }


def facts_view(facts: CorpusFacts, prices: Prices, n_sources: int) -> Group:
    """Size, lengths and costs."""
    over = "the model's limit is not known"
    if facts.max_tokens:
        over = (
            f"{count(facts.n_over_limit, 'chunk')} ({facts.share_over_limit:.1%}) over the "
            f"{facts.max_tokens:,} tokens the model reads, {facts.n_lost_tokens:,} tokens lost"
        )
    lines = [
        f"{count(facts.n_documents, 'document')}, {count(facts.n_chunks, 'chunk')}, "
        f"{count(facts.n_characters, 'character')}, "
        f"{'about ' if facts.is_estimate else ''}{facts.n_tokens:,} tokens "
        f"({facts.n_chunk_tokens:,} as chunks, with context and overlap)",
        f"tokens a chunk: {facts.shortest} to {facts.longest}, median {facts.median:g}; {over}",
    ]
    return Group(
        *map(Text, lines), _histogram(facts), Text(facts.verdict), _costs(facts, prices, n_sources)
    )


@dataclass(frozen=True, slots=True)
class Warned:
    """One reason why a chunk is listed."""

    kind: str
    detail: str


def warnings_by_position(
    findings: Sequence[Finding], state: Health | None
) -> dict[int, tuple[Warned, ...]]:
    """Findings of lint and kinds of health, by chunk."""
    found: dict[int, list[Warned]] = {}
    for finding in findings:
        found.setdefault(finding.position, []).append(Warned(finding.kind, finding.detail))
    for position, kinds in enumerate(state.kinds if state is not None else ()):
        for kind in kinds:
            found.setdefault(position, []).append(Warned(kind, HEALTH_RULES[kind]))
    return {position: tuple(warned) for position, warned in found.items()}


def warned_table(
    index: Index, positions: Sequence[int], warnings: Mapping[int, Sequence[Warned]]
) -> Table:
    """The chunk list with the reasons for each."""
    table = Table(expand=True, pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("where", no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column("warnings", overflow="fold", ratio=4)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=3)
    for position in positions:
        chunk = index.chunks[position]
        reasons = [f"{one.kind}: {one.detail}" for one in warnings.get(position, ())]
        table.add_row(
            str(position),
            str(index.n_tokens[position]),
            plain(chunk.location),
            plain("\n".join(reasons), newlines=True),
            plain(clip(" ".join(chunk.body.split()), 80)),
        )
    return table


def whole_chunk(position: int, index: Index, warnings: Mapping[int, Sequence[Warned]]) -> str:
    """One chunk to be read: where it is, its context, its warnings, all of its text."""
    chunk = index.chunks[position]
    lines = [f"── #{position} {chunk.location} · {index.n_tokens[position]} tokens"]
    if chunk.context:
        lines.append(f"   {chunk.context}")
    if chunk.situation:
        lines.append(f"   situation: {chunk.situation}")
    if chunk.prefix:
        lines.append(f"   repeated before it: {chunk.prefix}")
    lines += [f"   {one.kind}: {one.detail}" for one in warnings.get(position, ())]
    return "\n".join([*lines, "", chunk.text.strip("\n")])


def _place(position: int, index: Index) -> dict[str, Any]:
    chunk = index.chunks[position]
    return {
        "position": position,
        "chunk_id": chunk.chunk_id,
        "file": chunk.doc_id,
        "line_start": chunk.line_start,
        "line_end": chunk.line_end,
        "heading": label(chunk),
    }


def _counts_among(state: Health, positions: Sequence[int]) -> dict[HealthKind, int]:
    chosen = set(positions)
    return {kind: len(chosen.intersection(state.of_kind[kind])) for kind in HEALTH_KINDS}


def _counted(name: str, counts: Mapping[_Kind, int], rules: Mapping[_Kind, str]) -> Table:
    table = Table(pad_edge=False)
    table.add_column(name)
    table.add_column("chunks", justify="right")
    table.add_column("rule")
    for kind, n in counts.items():
        table.add_row(kind, f"{n:,}", rules[kind])
    return table


def _histogram(facts: CorpusFacts) -> Table:
    table = Table(pad_edge=False)
    table.add_column("tokens", justify="right")
    table.add_column("chunks", justify="right")
    table.add_column("", min_width=32)
    most = max((one.n_chunks for one in facts.histogram), default=1) or 1
    for one in facts.histogram:
        high = f"{one.low}–{one.high}" if one.high is not None else f"{one.low} and more"
        drawn = Text(bar(one.n_chunks / most, 32), "red" if one.is_over else "")
        table.add_row(f"{high}{' !' if one.is_over else ''}", f"{one.n_chunks:,}", drawn)
    return table


def _costs(facts: CorpusFacts, prices: Prices, n_sources: int) -> Group:
    table = Table(pad_edge=False)
    table.add_column("a question costs")
    table.add_column(clip(prices.currency, 8), justify="right")
    paste = facts.pasting
    table.add_row(f"with {count(n_sources, 'retrieved chunk')}", f"{paste.retrieved:.4f}")
    table.add_row("with everything pasted, no cache", f"{paste.uncached:.4f}")
    table.add_row("with everything pasted, first with prompt cache", f"{paste.first_cached:.4f}")
    table.add_row("with everything pasted, next with prompt cache", f"{paste.next_cached:.4f}")
    pays = paste.caching_pays_from
    pays_from = f"from {count(pays, 'question')}" if pays else "never"
    note = Text(
        f"at {prices.input:g} in, {prices.cache_write:g} cache write, {prices.cache_read:g} cache "
        f"read, {prices.output:g} out per million tokens (examples: give yours with --prices); "
        f"caching pays {pays_from} within its life"
    )
    return Group(table, note)
