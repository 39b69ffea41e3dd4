"""An answer as it stands on screen: citations, verdicts and doubtful figures marked in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style

from rag_tui.engine.citations import unknown_of
from rag_tui.engine.types import Answer, Citation, Prompt, Quote, Source
from rag_tui.tui import format as fmt
from rag_tui.tui.prompt_facts import money

if TYPE_CHECKING:
    from rag_tui.engine.faithfulness import ClaimCheck

GOOD_STATES = frozenset({"streaming", "complete", "not found"})
VERDICT_MARKS = {"supported": "✓", "weak": "~", "unsupported": "✗"}
VERDICT_STYLES = {
    "supported": "$text-success",
    "weak": "$text-warning",
    "unsupported": "$text-error",
}
FIGURE_MARK = "⚠"
_FIGURE_STYLE = "bold underline $text-warning"
_DIFFERING_STYLE = "bold underline"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of the list beside an answer: a claim with its check, or a quoted passage."""

    mark: str
    style: str
    text: str
    """The claim, or the passage."""
    lines: tuple[str, ...]
    """What is told about it, a line each; foreign text in it."""
    chunk_id: str = ""
    """Where its evidence stands; empty when it has none."""
    passage: str = ""
    """The evidence, as it is to be found in that chunk."""


def state_line(
    answer: Answer,
    n_sources: int,
    *,
    currency: str = "USD",
    label: str = "",
    again: str = "a asks again",
) -> str:
    """Who answered, how it ended, how fast, what it cost, and what is wrong with it."""
    if answer.state == "streaming" and not answer.text and answer.detail:
        return f"↻ {answer.detail} · by {answer.answerer} · escape stops"
    mark = "" if answer.state in GOOD_STATES else "✗ "
    parts = [f"{mark}{answer.state}"]
    if answer.can_resend and answer.state != "streaming":
        parts.append(again)  # in front: low panes cut the lines below
    parts.append(f"by {answer.answerer}")
    if answer.state != "streaming":
        parts.append(fmt.duration(answer.elapsed_s))
    if answer.first_token_s is not None:
        parts.append(f"first text after {fmt.duration(answer.first_token_s)}")
    if answer.state == "streaming" and answer.thinking and not answer.text:
        parts.append("thinking")
    if answer.tokens_per_s is not None and answer.text and answer.state != "streaming":
        parts.append(f"{answer.tokens_per_s:.0f} tokens/s")
    is_counted = answer.output_tokens is not None
    if answer.input_tokens is not None:
        told = f"{answer.input_tokens:,} tokens in"
        if is_counted:
            told += f", {answer.output_tokens:,} out"
        elif answer.state != "streaming":
            told += ", those out not counted"
        parts.append(told)
    if answer.cache_write_tokens or answer.cache_read_tokens:
        written, read = answer.cache_write_tokens or 0, answer.cache_read_tokens or 0
        parts.append(f"cache {written:,} written, {read:,} read")
    if answer.cost is not None:
        parts.append(("" if is_counted else "at least ") + money(answer.cost, currency))
    if unknown := unknown_of(answer, n_sources):
        numbers = ", ".join(f"[{number}]" for number in unknown)
        parts.append(f"✗ cites {numbers}, which no source has")
    if answer.state == "complete" and not answer.citations and n_sources:
        parts.append("✗ cites no source")
    if label:
        parts.append(f"you: {label}")
    lines = [" · ".join(parts)]
    if answer.detail:
        lines.append(answer.detail)
    return "\n".join(lines)


def summary(checks: Sequence[ClaimCheck]) -> str:
    """How many claims have which verdict."""
    verdicts = [check.verdict for check in checks]
    counts = [f"{verdicts.count(v)} {mark} {v}" for v, mark in VERDICT_MARKS.items()]  # type: ignore[arg-type]
    n_missing = sum(len(check.missing) for check in checks)
    if n_missing:
        counts.append(f"{n_missing} {FIGURE_MARK} in no source")
    return " · ".join(counts)


def evidence_of(
    answer: Answer, prompt: Prompt, checks: Sequence[ClaimCheck]
) -> tuple[Evidence, ...]:
    """The claims in the order of the text, then the passages that the model itself quoted."""
    sources = {source.number: source for source in prompt.sources}
    claims = [_of_claim(check, sources) for check in checks]
    quotes = [_of_quote(quote, sources.get(quote.number)) for quote in answer.quotes]
    return (*claims, *quotes)


def _of_claim(check: ClaimCheck, sources: dict[int, Source]) -> Evidence:
    lines = []
    chunk_id = passage = ""
    if check.nearest is not None:
        source = sources[check.nearest.number]
        chunk_id = chunk_at(source, check.nearest.start)
        passage = source.text[check.nearest.start : check.nearest.end]
        lines.append(f"nearest [{check.nearest.number}]{_scores(check)}: {check.nearest.text}")
    for figure in check.missing:
        where = "its sources" if check.cites else "any source"
        found = ""
        if figure.elsewhere:
            found = f", but in {''.join(f'[{n}]' for n in figure.elsewhere)}"
        elif figure.in_question:
            found = ", but in the question"
        lines.append(f"{FIGURE_MARK} {figure.kind} {figure.text} is not in {where}{found}")
    if check.note:
        lines.append(check.note)
    return Evidence(
        VERDICT_MARKS[check.verdict] + (FIGURE_MARK if check.missing else " "),
        VERDICT_STYLES[check.verdict],
        check.claim.text,
        tuple(lines),
        chunk_id,
        passage,
    )


def _of_quote(quote: Quote, source: Source | None) -> Evidence:
    if source is None or not quote.chunk_id:
        told = f"✗ quoted from [{quote.number}], which no source has"
        return Evidence("✗❝", VERDICT_STYLES["unsupported"], quote.quoted, (told,))
    if not quote.is_in_source:
        told = f"✗ source [{quote.number}] does not hold this passage"
        return Evidence(
            "✗❝", VERDICT_STYLES["unsupported"], quote.quoted, (told,), quote.chunk_id, ""
        )
    at = passage_span(source.text, quote.quoted)
    told = f"[{quote.number}] holds this passage word for word"
    return Evidence(
        "❝ ",
        VERDICT_STYLES["supported"],
        quote.quoted,
        (told,),
        chunk_at(source, at[0]) if at else quote.chunk_id,
        quote.quoted,
    )


def _scores(check: ClaimCheck) -> str:
    if check.by == "quotation":
        return " (word for word)"
    told = [f"logit {check.logit:.1f}"] if check.logit is not None else []
    if check.cosine is not None:
        told.append(f"cosine {check.cosine:.2f}")
    return f" ({', '.join(told) or f'{check.shared_words:.0%} of its words'})"


def chunk_at(source: Source, offset: int) -> str:
    """The chunk that a place in a source's text comes from: its own, or a neighbour's."""
    inside = (part.chunk_id for part in source.added if part.start <= offset < part.end)
    return next(inside, source.chunk_id)


def passage_span(text: str, passage: str) -> tuple[int, int] | None:
    """Where a passage stands in a text, white space apart; None when it does not."""
    words = passage.split()
    if not words:
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return found.span() if found else None


def annotated(
    text: str,
    start: int,
    citations: Iterable[Citation],
    checks: Sequence[ClaimCheck] = (),
    *,
    differing: Iterable[tuple[int, int]] = (),
) -> Content:
    """A stretch of an answer with everything that is known of it marked.

    Numbers of sources that exist can be clicked, others carry a ``?``; figures that stand in no
    source are underlined and carry a ``⚠``; behind each claim stands the mark of its verdict.

    Args:
        text: Raw text of the stretch.
        start: Its character offset in the answer.
        citations: All of the answer; those outside are passed over.
        checks: Likewise.
        differing: Spans in the answer that another one has not; they are underlined.
    """
    end = start + len(text)
    spans: list[tuple[int, int, Style | str]] = [
        (max(a, start), min(b, end), _DIFFERING_STYLE)
        for a, b in differing
        if a < end and start < b
    ]
    behind: dict[int, list[Content]] = {}
    for check in checks:
        for figure in check.missing:
            if start <= figure.start < figure.end <= end:
                spans.append((figure.start, figure.end, _FIGURE_STYLE))
                behind.setdefault(figure.end, []).append(Content.styled(FIGURE_MARK, "bold"))
    for citation in citations:
        if start <= citation.start and citation.end <= end:
            marker = text[citation.start - start : citation.end - start]
            spans += _link_spans(citation, marker)
            if citation.unknown:
                behind.setdefault(citation.end, []).append(Content.styled("?", "bold reverse"))
    for check in checks:
        if start < check.claim.end <= end:
            mark = Content.styled(
                f" {VERDICT_MARKS[check.verdict]}", f"bold {VERDICT_STYLES[check.verdict]}"
            )
            behind.setdefault(check.claim.end, []).append(mark)
    return Content("").join(_pieces(text, start, spans, behind))


def _pieces(
    text: str,
    start: int,
    spans: list[tuple[int, int, Style | str]],
    behind: dict[int, list[Content]],
) -> Iterator[Content]:
    edges = {start, start + len(text), *behind}
    edges.update(edge for a, b, _ in spans for edge in (a, b))
    at = start
    for edge in sorted(edges):
        if edge > at:
            piece = fmt.content(text[at - start : edge - start], newlines=True)
            for a, b, style in spans:
                if a <= at and edge <= b:
                    piece = piece.stylize(style)
            yield piece
        yield from behind.get(edge, ())
        at = max(at, edge)


def _link_spans(citation: Citation, marker: str) -> Iterator[tuple[int, int, Style | str]]:
    yield citation.start, citation.end, "bold"
    known = set(citation.numbers) - set(citation.unknown)
    for match in re.finditer(r"\d+", marker):
        if match[0].isdecimal() and int(match[0]) in known:
            left, right = citation.start + match.start(), citation.start + match.end()
            yield left, right, _link_style(int(match[0]))


def _link_style(number: int) -> Style:
    return Style(bold=True, underline=True) + Style.from_meta(
        {"@click": f"screen.follow({number})"}
    )
