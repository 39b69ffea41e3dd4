"""Runs and judgements in TREC's format, so that trec_eval and others agree with our numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.atomic import write_atomically
from rag_tui.engine.evaluation.document_names import DocumentNames, record_name
from rag_tui.engine.evaluation.question_files import read_text
from rag_tui.engine.evaluation.question_rows import Problems
from rag_tui.engine.evaluation.trec_ids import plain_id, trec_id
from rag_tui.engine.evaluation.types import (
    ColumnRun,
    Question,
    QuestionRun,
    Resolved,
    Retrieved,
)
from rag_tui.engine.types import Column

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

IdKind = Literal["chunk", "document", "record"]
"""What stands in the document column: the chunk's id, the document's, or of a document that is a
record its own id (``4711`` of ``corpus.jsonl#4711``), as in the files of BEIR and TREC."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run of another system, and what was odd about it."""

    column: ColumnRun
    problems: tuple[str, ...]
    unknown: tuple[str, ...]
    """Document ids that name nothing in the index, each once. Their rows stay where they are, as
    rows that no label says anything about: dropping them would lift the rows below."""
    missing: tuple[str, ...]
    """Questions that the run does not mention: it found nothing for them, which scores 0."""


def write_run(path: Path, column: ColumnRun, *, ids: IdKind = "chunk") -> None:
    """Write a column as a TREC run: ``query Q0 id rank score tag``.

    Readers order a run by score and ties by id, and read scores as 32-bit floats. So that our
    order survives, a score that is not lower than the one before in that precision is replaced
    by the next lower number. Document and record ids stand once, at their best row. Questions
    without a list are left out.

    Raises:
        UsageError: When the file cannot be written, or an id is empty.
    """
    write_atomically(path, _encode(run_lines(column, ids=ids)))


def run_lines(column: ColumnRun, *, ids: IdKind = "chunk") -> Iterator[str]:
    """The lines of `write_run`, each with its line end."""
    tag = trec_id(column.column.name)
    for run in column.questions:
        if run.error:
            continue
        qid = trec_id(run.qid)
        named = {_id_of(row, ids): row.score for row in reversed(run.rows)}
        order = dict.fromkeys(_id_of(row, ids) for row in run.rows)
        scores = falling([named[name] for name in order])
        for rank, (name, score) in enumerate(zip(order, scores, strict=True), start=1):
            yield f"{qid} Q0 {trec_id(name)} {rank} {score} {tag}\n"


def falling(scores: Sequence[float]) -> list[str]:
    """Scores as text, strictly falling even when read as 32-bit floats; changed where needed."""
    written: list[str] = []
    before = np.float32(np.inf)
    for score in scores:
        with np.errstate(over="ignore"):
            value = np.float32(score)
        if not value < before or not np.isfinite(value):
            value = np.nextafter(before, np.float32(-np.inf))
        written.append(np.format_float_positional(value, unique=True, trim="0"))
        before = value
    return written


def write_qrels(
    path: Path,
    labels: Iterable[Resolved],
    *,
    ids: IdKind = "chunk",
) -> None:
    """Write labels as TREC judgements: ``query 0 id grade``, the highest grade of an id.

    With ``chunk`` every chunk that holds a place is judged. That is not quite what our measures
    count: there a place counts once, however many chunks hold it.

    Raises:
        UsageError: When the file cannot be written, or an id is empty.
    """
    write_atomically(path, _encode(qrels_lines(labels, ids=ids)))


def qrels_lines(labels: Iterable[Resolved], *, ids: IdKind = "chunk") -> Iterator[str]:
    """The lines of `write_qrels`, each with its line end."""
    for resolved in labels:
        grades: dict[str, int] = {}
        for place in resolved.places:
            document = record_name(place.document) if ids == "record" else place.document
            for name in place.chunk_ids if ids == "chunk" else (document,):
                grades[name] = max(place.evidence.grade, grades.get(name, 0))
        qid = trec_id(resolved.question.qid)
        for name, grade in grades.items():
            yield f"{qid} 0 {trec_id(name)} {grade}\n"


def read_run(
    path: Path, questions: Sequence[Question], index: Index, *, name: str = ""
) -> ImportedRun:
    """Read a run of another system: six columns, ``query Q0 id rank score tag``.

    Ids may be chunk ids, document ids or BEIR record ids of this index. Rows are ordered by
    score, equal scores by the rank that is written. A row of a whole document spans all of it.
    An id that a question has twice counts at its best row. Damaged lines are named and left out.

    Args:
        path: The run.
        questions: Those it is scored on, in their order.
        index: Where the ids come from.
        name: The column's name; empty: the run's tag, else the file's name.

    Raises:
        UsageError: When the file cannot be read, or no line of it is a run's.
    """
    problems = Problems()
    known = {question.qid for question in questions}
    lines, tag = _read_lines(path, known, problems)
    strangers = [qid for qid in lines if qid not in known]
    if strangers:
        problems.add(
            path.name,
            f"{len(strangers):,} questions are not in the question set: {_some(strangers)}",
        )
    targets = _Targets(index)
    runs: list[QuestionRun] = []
    missing: list[str] = []
    for question in questions:
        rows = lines.get(question.qid, ())
        if not rows:
            missing.append(question.qid)
        runs.append(QuestionRun(question.qid, _ordered(question.qid, rows, targets, problems)))
    if missing:
        problems.add(
            path.name,
            f"{len(missing):,} of {len(questions):,} questions are not in the run and count as "
            f"nothing found: {_some(missing)}",
        )
    if targets.unknown:
        problems.add(
            path.name,
            f"{len(targets.unknown):,} ids name nothing in the index: {_some(targets.unknown)}",
        )
    column = ColumnRun(
        column=Column(name or tag or path.stem, "hybrid"),
        score_name="score",
        questions=tuple(runs),
        imported_from=path.name,
    )
    return ImportedRun(column, problems.sentences(), tuple(targets.unknown), tuple(missing))


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    rank: float
    score: float


def _read_lines(
    path: Path, known: Collection[str], problems: Problems
) -> tuple[Mapping[str, list[_Line]], str]:
    found: dict[str, list[_Line]] = {}
    tag = ""
    for number, line in enumerate(read_text(path, problems).split("\n"), start=1):
        cells = line.split()
        if not cells:
            continue
        place = f"{path.name}:{number}"
        if len(cells) != 6:
            problems.add(place, f"not six columns but {len(cells)}; left out")
            continue
        try:
            rank, score = float(cells[3]), float(cells[4])
        except ValueError:
            problems.add(place, "rank and score must be numbers; left out")
            continue
        if not (math.isfinite(rank) and math.isfinite(score)):
            problems.add(place, "rank and score must be finite; left out")
            continue
        tag = tag or cells[5]
        qid = cells[0] if cells[0] in known else plain_id(cells[0])
        found.setdefault(qid, []).append(_Line(cells[2], rank, score))
    if not found:
        why = f" ({problems.found[0]})" if problems.found else ""
        raise UsageError(
            f"{path} is not a TREC run{why}.", "Each line has: query Q0 document rank score tag."
        )
    return found, tag


def _ordered(
    qid: str, lines: Sequence[_Line], targets: _Targets, problems: Problems
) -> tuple[Retrieved, ...]:
    ordered = sorted(lines, key=lambda line: (-line.score, line.rank))
    ranks = [line.rank for line in ordered]
    if any(after < before for before, after in pairwise(ranks)):
        problems.add("", f"question {qid}: ranks and scores disagree; the scores decide")
    rows: dict[tuple[str, str], Retrieved] = {}
    n_again = 0
    for line in ordered:
        row = replace(targets.row_of(line.name), score=line.score)
        n_again += (row.chunk_id, row.document) in rows
        rows.setdefault((row.chunk_id, row.document), row)
    if n_again:
        problems.add("", f"question {qid}: {n_again} ids stand there again; their best row counts")
    return tuple(rows.values())


class _Targets:
    """What the ids of a run mean in an index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._names = DocumentNames(index.document_of, index.reports)
        self._known: dict[str, Retrieved] = {}
        self.unknown: dict[str, None] = {}

    def row_of(self, written: str) -> Retrieved:
        if written not in self._known:
            row = self._find(written) or self._find(plain_id(written))
            if row is None:
                self.unknown[written] = None
                row = Retrieved("", written, 0, 0, 0.0)
            self._known[written] = row
        return self._known[written]

    def _find(self, name: str) -> Retrieved | None:
        position = self._index.position_of.get(name)
        if position is not None:
            chunk = self._index.chunks[position]
            return Retrieved(chunk.chunk_id, chunk.doc_id, chunk.start, chunk.end, 0.0)
        doc_id = self._names.find(name)
        if doc_id is None:
            return None
        return Retrieved("", doc_id, 0, len(self._index.document_of[doc_id].text), 0.0)


def _id_of(row: Retrieved, ids: IdKind) -> str:
    if ids == "chunk":
        return row.chunk_id or row.document
    return record_name(row.document) if ids == "record" else row.document


def _encode(lines: Iterable[str]) -> bytes:
    return "".join(lines).encode("utf-8")


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:3]) + (" …" if len(shown) > 3 else "")
