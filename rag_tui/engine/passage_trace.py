"""Where is my passage? Its rank in every list to the full depth, and the step that lost it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_tui.engine.events import CancelToken
from rag_tui.engine.filters import where_mask
from rag_tui.engine.passage_columns import ColumnTrace, PassageColumns
from rag_tui.engine.passage_missing import Missing, why_missing
from rag_tui.engine.passage_places import PassagePlace, PassageTarget
from rag_tui.engine.passage_remedies import Remedy, chunking_remedies
from rag_tui.engine.passage_verdict import ListPlace, Verdict
from rag_tui.engine.searching import check_request
from rag_tui.engine.types import Answer, Method, SearchRequest, Source

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

__all__ = [
    "ColumnTrace",
    "ListPlace",
    "Missing",
    "PassageTrace",
    "Remedy",
    "Verdict",
    "trace_passage",
]

BEST_FIRST: tuple[Method, ...] = ("reranked", "hybrid", "vector", "bm25")
"""The list that comes first here decides what becomes of the passage."""


@dataclass(frozen=True, slots=True)
class PassageTrace:
    """What became of a passage, in every column and on the way to the answer."""

    query: str
    target: PassageTarget
    verdict: Verdict
    """Of the prompt where one is given, else of the column that has come furthest."""
    columns: tuple[ColumnTrace, ...] = ()
    """In the order of the request; empty when no chunk holds the passage."""
    missing: Missing | None = None
    """Why no chunk holds it; None when one does."""
    number: int | None = None
    """Of the source that holds it in the prompt; None when none does or no prompt is given."""
    is_cited: bool | None = None
    """None without an answer, or when the passage is not in the prompt."""
    notes: tuple[str, ...] = ()
    """What else is to be known: how it was matched, that it is split, what models do not read."""
    remedies: tuple[Remedy, ...] = ()
    """Ways of cutting by which one chunk would hold it whole; each was tried on its document."""


def trace_passage(
    query: str,
    target: PassageTarget,
    request: SearchRequest,
    index: Index,
    models: Models,
    *,
    prompt_sources: Sequence[Source] | None = None,
    answer: Answer | None = None,
    with_remedies: bool = True,
    report: Callable[[str], object] | None = None,
    cancel: CancelToken | None = None,
) -> PassageTrace:
    """Follow a passage through every column of a search.

    Every list is made over the whole corpus, so that the passage has a rank wherever it stands.
    A passage with several places counts with the one that stands best in each column; one that
    is split is present only when all its parts are.

    Args:
        query: The question.
        target: What `find_passage` found.
        request: Columns, knobs and filter; its own question does not matter.
        index: The index that is searched.
        models: The session's models; their cache of lists makes moved knobs cheap.
        prompt_sources: The sources of the prompt, when there is one.
        answer: What was answered from these sources.
        with_remedies: Whether to try which knobs would bring it in: many more searches.
        report: Told in words how far the work is, before each column.
        cancel: Polled between searches and by them.

    Raises:
        UsageError: When the request makes no sense.
        Cancelled: Soon after the token was set.
    """
    token = cancel if cancel is not None else CancelToken()
    asked = replace(request, query=query)
    check_request(asked)
    missing = why_missing(target, index, cancel=token)
    if missing is not None:
        told = Verdict(missing.step, missing.detail)
        return PassageTrace(query, target, told, missing=missing, notes=_notes(target, index))
    allowed = where_mask(asked.where, index)
    tracer = PassageColumns(target, asked, index, models, allowed, token)
    wanted = [column for column in asked.columns if column.method in asked.methods]
    columns: list[ColumnTrace] = []
    for number, column in enumerate(wanted, start=1):
        if report is not None:
            report(f"column {number} of {len(wanted)}: {column.name}")
        traced = tracer.trace(column, with_remedies=with_remedies)
        if traced is not None:
            columns.append(traced)
    source_number, is_cited = _in_prompt(tracer.candidates, prompt_sources, answer)
    return PassageTrace(
        query=query,
        target=target,
        verdict=_overall(columns, prompt_sources, source_number, is_cited),
        columns=tuple(columns),
        number=source_number,
        is_cited=is_cited,
        notes=_notes(target, index),
        remedies=chunking_remedies(target, index, models, token) if with_remedies else (),
    )


def _in_prompt(
    candidates: Sequence[str],
    sources: Sequence[Source] | None,
    answer: Answer | None,
) -> tuple[int | None, bool | None]:
    wanted = set(candidates)
    number = next(
        (
            source.number
            for source in sources or ()
            if source.chunk_id in wanted or any(part.chunk_id in wanted for part in source.added)
        ),
        None,
    )
    if number is None or answer is None:
        return number, None
    return number, number in answer.cited


def _overall(
    columns: Sequence[ColumnTrace],
    sources: Sequence[Source] | None,
    number: int | None,
    is_cited: bool | None,
) -> Verdict:
    if not columns:
        return Verdict("no list", "no column was searched")
    ranked = sorted(columns, key=lambda trace: BEST_FIRST.index(trace.method))
    # A column that could not be made decides nothing where another one could.
    deciding = next((trace for trace in ranked if trace.verdict.step != "no list"), ranked[0])
    chunk_id = deciding.chunk_id
    if number is not None:
        if is_cited is False:
            return Verdict("not cited", f"source [{number}], which the answer does not cite")
        cited = ", cited" if is_cited else ""
        return Verdict("present", f"source [{number}] of the prompt{cited}", chunk_id)
    if sources is not None and deciding.verdict.is_present:
        detail = f"{deciding.verdict.detail}, but the prompt takes {len(sources)} sources"
        return Verdict("not among the sources", detail, chunk_id)
    return deciding.verdict


def _notes(target: PassageTarget, index: Index) -> tuple[str, ...]:
    notes: list[str] = []
    if target.match == "fuzzy":
        place = target.places[0]
        where = f"{place.doc_id}:{place.line_start}"
        notes.append(
            f"not the exact words: the most similar text is at {where} "
            f"({target.similarity:.0%} alike)"
        )
    if target.match in ("white space", "capitals"):
        notes.append(f"found with other {target.match}")
    if target.kind == "text" and len(target.places) > 1:
        more = " or more" if target.is_scanned else ""
        notes.append(f"it stands in {len(target.places)}{more} places; the best one counts")
    if target.places and all(place.is_split for place in target.places):
        notes.append(_cut_in(target.places[0], index))
    return tuple(notes)


def _cut_in(place: PassagePlace, index: Index) -> str:
    parts = [index.chunks[position] for position in place.parts]
    cuts = ", ".join(f"line {part.line_start}" for part in parts[1:])
    names = " and ".join(part.location for part in parts)
    return f"no chunk holds all of it: {place.doc_id} is cut at {cuts}, between {names}"
