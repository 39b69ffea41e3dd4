"""What the dialog about a passage says: its way through a pipeline, its rows, its remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from textual.content import Content

from rag_tui.engine.knobs import column_request, knob, with_knobs
from rag_tui.engine.types import Column, KnobValue, Method, SearchRequest
from rag_tui.tui import format as fmt

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.passage_places import PassageTarget
    from rag_tui.engine.passage_trace import ColumnTrace, PassageTrace, Verdict

Mark = Literal["✓", "✗", "–"]
Knobs = tuple[tuple[str, KnobValue], ...]

QUOTED = 120
"""Characters of a passage that are quoted."""
STYLES: dict[Mark, str] = {"✓": "$text-success", "✗": "bold $text-error", "–": "dim"}
NAMES: dict[Method, str] = {
    "vector": "vector",
    "bm25": "BM25",
    "hybrid": "fusion",
    "reranked": "reranked",
}
_EARLY = {
    "never loaded": "files",
    "not found": "text",
    "lost in extraction": "text",
    "lost in cutting": "chunks",
    "split across chunks": "chunks",
    "excluded by the filter": "filter",
}
_LATE = {
    "removed by a step": "steps",
    "cut by top_k": "top_k",
    "fused down": "fusion",
    "below rerank_depth": "reranked",
    "reranked down": "reranked",
}


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step on the way from the file to the answer."""

    name: str
    mark: Mark
    """``✗`` where the passage was lost, ``–`` behind that and where nothing is known."""
    note: str = ""
    """A rank, mostly."""


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """One change that was tried and brings the passage in."""

    column: str
    """Empty for ways of cutting."""
    knobs: Knobs
    change: str
    """``search.depth 50 → 80``."""
    outcome: str

    @property
    def needs_index(self) -> bool:
        """Whether the folder has to be indexed again."""
        return not self.column


def pipeline(
    trace: PassageTrace,
    column: ColumnTrace | None,
    request: SearchRequest,
    *,
    has_prompt: bool,
) -> tuple[PipelineStep, ...]:
    """The steps of one column's pipeline and what became of the passage in each.

    Args:
        trace: The whole trace.
        column: One of its columns; None when no chunk holds the passage.
        request: With the column's knobs.
        has_prompt: Whether the trace knows the prompt's sources.
    """
    verdict = column.verdict if column is not None else trace.verdict
    lost_at = _EARLY.get(verdict.step) or _LATE.get(verdict.step, "")
    names = ["files", "text", "chunks", *(["filter"] if request.where else [])]
    steps: list[PipelineStep] = []
    is_lost = False
    for name in names:
        is_here = name == lost_at
        steps.append(PipelineStep(name, "✗" if is_here else "–" if is_lost else "✓"))
        is_lost = is_lost or is_here
    places = column.places if column is not None else ()
    for place in places:
        name = NAMES[place.method]
        if is_lost:
            steps.append(PipelineStep(name, "–"))
            continue
        note = f"{place.rank}" if place.rank is not None else ""
        if place.rank is None and place.corpus_rank is not None:
            note = f"{place.corpus_rank:,} of {place.n_ranked:,}"
        is_here = place.rank is None or name == lost_at
        steps.append(PipelineStep(name, "✗" if is_here else "✓", note))
        # One of two lists that are fused is enough.
        retrieved = [p for p in places if p.method in ("vector", "bm25")]
        is_last_of_them = bool(retrieved) and place is retrieved[-1]
        are_all_without = is_last_of_them and all(p.rank is None for p in retrieved)
        is_lost = are_all_without or (is_here and place.method in ("hybrid", "reranked"))
    if lost_at == "steps":
        steps.append(PipelineStep("steps", "–" if is_lost else "✗"))
        is_lost = True
    is_shown = column is not None and verdict.is_present
    shown: Mark = "✓" if is_shown else "–" if is_lost or column is None else "✗"
    rank = f"{column.rank}" if column is not None and column.rank is not None and is_shown else ""
    steps.append(PipelineStep("top_k", shown, rank))
    steps.append(_prompt_step(trace, is_shown=is_shown, has_prompt=has_prompt))
    cited: Mark = "–" if trace.is_cited is None else "✓" if trace.is_cited else "✗"
    steps.append(PipelineStep("cited", cited))
    return tuple(steps)


def _prompt_step(trace: PassageTrace, *, is_shown: bool, has_prompt: bool) -> PipelineStep:
    if trace.number is not None:
        # The prompt is made of one list: it may hold what another list has lost.
        through = "" if is_shown else " by another list"
        return PipelineStep("prompt", "✓", f"[{trace.number}]{through}")
    return PipelineStep("prompt", "✗" if has_prompt and is_shown else "–")


def drawn(steps: Sequence[PipelineStep]) -> Content:
    """The steps in a row, each with its mark; a step is never broken over two lines."""
    parts: list[Content] = []
    for step in steps:
        note = f"\u00a0{step.note}".replace(" ", "\u00a0") if step.note else ""
        parts.append(fmt.content(f"{step.name}{note}\u00a0{step.mark}", STYLES[step.mark]))
    return Content.styled(" → ", "dim").join(parts)


def verdict_line(verdict: Verdict) -> Content:
    """The verdict in one sentence, marked."""
    mark: Mark = "✓" if verdict.is_present else "✗"
    style = STYLES[mark] if verdict.is_present else "$text-error"
    detail = fmt.one_line(verdict.detail)
    return fmt.content(f"{mark} {verdict.step}: {detail}", f"bold {style}")


def above_lines(column: ColumnTrace, index: Index) -> Iterator[Content]:
    """What beat the passage in a column, a row each."""
    if not column.above:
        return
    n = fmt.count(len(column.above), "row")
    yield fmt.content(f"{n} above it in {fmt.one_line(column.column)}:", "dim")
    for hit in column.above:
        chunk = index.chunks[hit.position]
        score = fmt.score(hit.score, column.score_kind)
        label = fmt.one_line(chunk.label)
        yield fmt.content(f"  {hit.rank:>2}  {score:>8}  {label}") + fmt.content(
            f"  {chunk.location}", "dim"
        )


def about(trace: PassageTrace, index: Index) -> Content:
    """The question, the passage in its words and where it stands, and what else is to be known."""
    target = trace.target
    lines = [fmt.content(f"question: {fmt.one_line(trace.query)}", "dim")]
    if target.kind == "chunk":
        lines.append(passage_name(target.wanted, index))
    else:
        places = ", ".join(
            f"{place.doc_id}:{place.line_start}-{place.line_end}" for place in target.places[:3]
        )
        words = target.wanted if target.kind == "text" else _words_at(target, index)
        where = places or target.path or "in no document"
        lines.append(_quoted(words) + fmt.content(f"  {where}", "dim"))
    lines += [fmt.content(fmt.one_line(note), "$text-warning") for note in trace.notes]
    return Content("\n").join(lines)


def passage_name(wanted: str, index: Index) -> Content:
    """A chunk by its headings and place, anything else as it was typed."""
    position = index.position_of.get(wanted)
    if position is None:
        return _quoted(wanted)
    chunk = index.chunks[position]
    name = fmt.content(f"passage: {fmt.one_line(chunk.context or chunk.label)}")
    return name + fmt.content(f"  {chunk.location}", "dim")


def _quoted(words: str) -> Content:
    return fmt.content(f"passage: “{fmt.clip(' '.join(words.split()), QUOTED)}”")


def _words_at(target: PassageTarget, index: Index) -> str:
    """The text of a place that was named."""
    if not target.places:
        return target.wanted
    place = target.places[0]
    return index.document_of[place.doc_id].text[place.start : place.end]


def remedies_told(trace: PassageTrace, rows: Sequence[RemedyRow]) -> str:
    """What stands over the changes that were tried, or instead of them."""
    if rows:
        return "What brings it in, each one tried (enter applies it and searches again):"
    if trace.missing is not None:
        return "No knob of a search can bring in what no chunk holds."
    if all(column.verdict.is_present for column in trace.columns):
        return "Nothing to mend: every column shows it."
    return "No knob that was tried brings it into the columns that lack it."


def remedy_rows(trace: PassageTrace, request: SearchRequest) -> tuple[RemedyRow, ...]:
    """All changes that bring the passage in: those of columns, then other ways of cutting."""
    found = [
        RemedyRow(
            column.column,
            remedy.knobs,
            _changes(remedy.knobs, _own(request, column.column)),
            f"rank {remedy.rank}" if remedy.rank is not None else "in",
        )
        for column in trace.columns
        for remedy in column.remedies
    ]
    found += [
        RemedyRow("", remedy.knobs, knobs_told(remedy.knobs), remedy.note)
        for remedy in trace.remedies
    ]
    return tuple(found)


def with_remedy(request: SearchRequest, column: str, knobs: Knobs) -> SearchRequest:
    """The request with a remedy of one column: in the column where it has a knob of its own."""
    of = next((one for one in request.columns if one.name == column), None)
    own = {name for name, _ in of.knobs} if of is not None else set()
    changed = with_knobs(request, {name: value for name, value in knobs if name not in own})
    if of is None or not own.intersection(name for name, _ in knobs):
        return changed
    values = dict(of.knobs) | {name: value for name, value in knobs if name in own}
    replaced = Column(of.name, of.method, tuple(values.items()))
    columns = tuple(replaced if one is of else one for one in request.columns)
    return replace(changed, columns=columns)


def knobs_told(knobs: Knobs) -> str:
    """``search.depth 80, search.top_k 12``."""
    return ", ".join(f"{name} {_value(value)}" for name, value in knobs)


def _own(request: SearchRequest, name: str) -> SearchRequest:
    column = next((one for one in request.columns if one.name == name), None)
    return request if column is None else column_request(request, column)


def _changes(knobs: Knobs, own: SearchRequest) -> str:
    return ", ".join(
        f"{name} {_value(knob(own, name))} → {_value(value)}"
        for name, value in knobs
        if knob(own, name) != value
    )


def _value(value: KnobValue) -> str:
    if value is None:
        return "off"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else fmt.one_line(str(value))
