"""A prompt and what the prompt pane says about it, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rag_tui.engine.prompt_order import PromptPlan, choose
from rag_tui.engine.prompt_size import PromptSize
from rag_tui.engine.types import Chunk, Prompt, Source
from rag_tui.tui import format as fmt

BAR_CELLS = 12


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One chunk that is, or could be, a source."""

    chunk_id: str
    source: Source | None
    """None when it is not in the prompt."""
    is_off: bool
    """Whether it was switched off by hand."""
    is_pinned: bool
    has_edit: bool
    label: str
    place: str
    text: str
    """What an edit begins with: the source's text, else the chunk's."""
    n_tokens: int | None = None
    n_added: int = 0
    """Neighbouring chunks in it."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of it, worst first, in words."""
        found = []
        if self.source is not None and self.source.warning:
            found.append(f"⚠ may be speaking to the model: {self.source.warning}")
        if self.has_edit:
            found.append("✎ edited: not what the document says (i edits, = takes all back)")
        if self.is_pinned:
            found.append("⚑ pinned: in the prompt whatever its rank")
        if self.is_off:
            found.append("switched off: space puts it back")
        elif self.source is None:
            found.append("beyond the number of sources: + takes one more, f pins this one")
        if self.n_added:
            found.append(f"{fmt.count(self.n_added, 'neighbour')} merged in (post.neighbours)")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """A prompt and what is shown about it."""

    prompt: Prompt
    size: PromptSize
    plan: PromptPlan
    rows: tuple[SourceRow, ...]
    """All candidates in the planned order, the best first; blank ones left out."""
    column: str
    """Which list the candidates were taken from; empty when there is none."""
    parameters: str
    """The request without system and messages, as JSON."""
    answerer: str
    """Who would be asked."""
    n_neighbours: int = 0
    currency: str = "USD"

    @property
    def is_sent(self) -> bool:
        """Whether answering sends this request anywhere."""
        return self.answerer != "extractive"

    @property
    def text(self) -> str:
        """System and user text as they are sent, one after the other."""
        return f"{self.prompt.system}\n\n{self.prompt.user}"

    @property
    def header(self) -> str:
        """Two lines: how large and how dear; what the prompt is made of and which key changes it.

        A third where the request is not sent, or does not fit.
        """
        lines = [self._size_line(), self._make_line()]
        if not self.size.fits:
            over = fmt.count(-self.size.n_free, "token")
            lines.append(f"✗ too long by {over}: - takes fewer sources, space switches one off")
        if not self.is_sent:
            lines.append(
                "sent to nobody: extractive answers quote these sources (a model needs a key)"
            )
        return "\n".join(lines)

    def _size_line(self) -> str:
        size = self.size
        window = max(size.context_window, 1)
        share = (size.n_tokens + size.max_tokens) / window
        counted = (
            f"about {size.n_tokens:,} tokens (estimate)"
            if size.is_estimate
            else f"{size.n_tokens:,} tokens (counted)"
        )
        return (
            f"{counted} + {size.max_tokens:,} for the answer "
            f"▕{fmt.bar(min(share, 1.0), BAR_CELLS):<{BAR_CELLS}}▏ "
            f"{share:.1%} of {size.context_window:,} · {money(size.input_cost, self.currency)}, "
            f"at most {money(size.most_cost, self.currency)}"
        )

    def _make_line(self) -> str:
        n_sources = fmt.count(len(self.prompt.sources), "source")
        parts = [
            f"{n_sources} (+ -) from {fmt.one_line(self.column) or 'no list'} (C)",
            f"{self.prompt.order} (s)",
            f"template {fmt.one_line(self.prompt.template)} (T)",
        ]
        if self.n_neighbours:
            parts.append(f"{self.n_neighbours} neighbours on each side")
        if self.plan != PromptPlan():
            parts.append("changed by hand (= as set)")
        return " · ".join(parts)

    def sections(self) -> Iterator[tuple[str, str]]:
        """Name and text of each part of the request; a source is named by its number.

        Of the user's turn, cut at the sources, each part is without the line break at its end.
        """
        yield "parameters", self.parameters
        yield "system", self.prompt.system
        user, at = self.prompt.user, 0
        for number, start, end in self.prompt.spans:
            if between := user[at:start].strip("\n"):
                yield "user", between
            yield str(number), user[start:end]
            at = end
        if rest := user[at:].strip("\n"):
            yield "user", rest


def money(amount: float, currency: str) -> str:
    """A small amount with the digits that say something."""
    digits = 2 if amount >= 1 else 4
    return f"{amount:.{digits}f} {currency}"


def ranked_by_plan(candidates: tuple[Chunk, ...], plan: PromptPlan) -> tuple[Chunk, ...]:
    """The candidates with any text, in the planned order, those switched off among them."""
    all_on = replace(plan, entries=tuple(replace(entry, is_on=True) for entry in plan.entries))
    chosen = choose(candidates, n_sources=len(candidates) or 1, plan=all_on, order="best first")
    return chosen.used


def source_rows(
    candidates: tuple[Chunk, ...], plan: PromptPlan, prompt: Prompt, size: PromptSize
) -> tuple[SourceRow, ...]:
    """A row for each candidate."""
    by_chunk = {source.chunk_id: source for source in prompt.sources}
    tokens = dict(zip((s.number for s in prompt.sources), size.source_tokens, strict=False))
    rows = []
    for chunk in ranked_by_plan(candidates, plan):
        entry, source = plan.entry(chunk.chunk_id), by_chunk.get(chunk.chunk_id)
        own = source.text if source is not None else (entry.edited_text or chunk.body)
        rows.append(
            SourceRow(
                chunk.chunk_id,
                source,
                is_off=not entry.is_on,
                is_pinned=entry.is_pinned,
                has_edit=entry.edited_text is not None,
                label=chunk.label,
                place=chunk.location,
                text=own,
                n_tokens=tokens.get(source.number) if source is not None else None,
                n_added=len({part.chunk_id for part in source.added}) if source else 0,
            )
        )
    return tuple(rows)
