"""``rag-tui where``: what became of a passage on its way into the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rag_tui.cli.lab_output import write_trace
from rag_tui.cli.lab_request import LabOptions, open_lab
from rag_tui.cli.output import note, write_json
from rag_tui.cli.session import Session
from rag_tui.cli.tables import chunk_json
from rag_tui.engine.answer_sources import chunks_for_prompt
from rag_tui.engine.evaluation.answer_making import prompt_of
from rag_tui.engine.index import Index
from rag_tui.engine.passage_target import PassagePlace, find_passage
from rag_tui.engine.passage_trace import ColumnTrace, PassageTrace, Remedy, trace_passage
from rag_tui.engine.types import SearchRequest, Source

EXIT_LOST = 3


def where_command(asked: LabOptions, passage: str, *, with_remedies: bool, as_json: bool) -> int:
    """``rag-tui where``: exit 0 when a source of the prompt holds the passage, else 3."""
    request, session = open_lab(asked)
    target = find_passage(passage, session.index)
    trace = trace_passage(
        request.query,
        target,
        request,
        session.index,
        session.models,
        prompt_sources=_sources(request, session) if target.places else None,
        with_remedies=with_remedies,
    )
    if as_json:
        write_json(_trace_json(trace, session.index, str(session.folder)))
    else:
        write_trace(trace, session.index)
    return 0 if trace.verdict.is_present else EXIT_LOST


def _sources(request: SearchRequest, session: Session) -> tuple[Source, ...]:
    """The sources that `rag-tui ask` would send with these knobs."""
    settings = session.settings.engine.answer
    found = chunks_for_prompt(request, session.index, session.models, n_sources=settings.n_sources)
    for remark in found.notes:
        note(remark)
    return prompt_of(request.query, found, settings).sources


def _trace_json(trace: PassageTrace, index: Index, corpus: str) -> dict[str, Any]:
    target = trace.target
    return {
        "query": trace.query,
        "corpus": corpus,
        "passage": {
            "wanted": target.wanted,
            "kind": target.kind,
            "match": target.match,
            "similarity": target.similarity,
            "path": target.path,
            "places": [_place_json(place, index) for place in target.places],
            "nearest": _place_json(target.nearest, index) if target.nearest else None,
        },
        "found": trace.verdict.is_present,
        "verdict": asdict(trace.verdict),
        "missing": asdict(trace.missing) if trace.missing else None,
        "source": trace.number,
        "notes": list(trace.notes),
        "columns": [_column_json(column, index) for column in trace.columns],
        "remedies": [_remedy_json(remedy) for remedy in trace.remedies],
    }


def _place_json(place: PassagePlace, index: Index) -> dict[str, Any]:
    ids = index.chunk_ids
    return {
        "file": place.doc_id,
        "start": place.start,
        "end": place.end,
        "line_start": place.line_start,
        "line_end": place.line_end,
        "chunks": [ids[position] for position in place.holders],
        "parts": [ids[position] for position in place.parts],
    }


def _column_json(column: ColumnTrace, index: Index) -> dict[str, Any]:
    return {
        "column": column.column,
        "method": column.method,
        "chunk_id": column.chunk_id,
        "rank": column.rank,
        "score": column.score,
        "score_kind": column.score_kind,
        "verdict": asdict(column.verdict),
        "lists": [asdict(place) for place in column.places],
        "above": [
            {"rank": hit.rank, "score": hit.score, **chunk_json(hit.position, index)}
            for hit in column.above
        ],
        "remedies": [_remedy_json(remedy) for remedy in column.remedies],
    }


def _remedy_json(remedy: Remedy) -> Mapping[str, Any]:
    return {"knobs": dict(remedy.knobs), "rank": remedy.rank, "note": remedy.note}
