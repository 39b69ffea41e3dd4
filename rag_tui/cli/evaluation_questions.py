"""``rag-tui questions``: are they usable, where is their evidence, one more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rag_tui.cli.evaluation_run import open_questions
from rag_tui.cli.evaluation_runs import id_kind
from rag_tui.cli.output import note, write_json, write_text
from rag_tui.cli.session import Session, open_session
from rag_tui.display import count
from rag_tui.engine.documents.beir import QUESTIONS
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.atomic import folder_lock, write_atomically
from rag_tui.engine.evaluation.label_rows import (
    Row,
    evidence_row,
    qid_of,
    read_row,
    words_of,
    written,
)
from rag_tui.engine.evaluation.question_rows import typed_id
from rag_tui.engine.evaluation.resolving import resolve
from rag_tui.engine.evaluation.trec import write_qrels
from rag_tui.engine.evaluation.types import Evidence, Question, Resolved
from rag_tui.engine.index import Index

EXIT_FAILED = 1


@dataclass(frozen=True, slots=True)
class Added:
    """A question to add, as it was typed."""

    question: str
    file: str = ""
    quote: str = ""
    heading: str = ""
    lines: str = ""
    grade: int = 1
    unanswerable: bool = False
    tags: tuple[str, ...] = ()
    answer: str = ""


def check_command(folder: Path | None, questions: Path | None, *, as_json: bool) -> int:
    """Exit 1 when there is a problem, a label that is nowhere, or a question without labels."""
    opened = open_questions(folder, questions)
    index = opened.session.index
    unlabelled = [qid for qid, one in opened.resolved.items() if _is_unlabelled(one)]
    n_lost = sum(len(one.unresolved) for one in opened.resolved.values())
    is_sound = not (opened.questions.problems or unlabelled or n_lost)
    if as_json:
        write_json(
            {
                "questions": opened.questions.name,
                "unit": opened.questions.unit,
                "problems": list(opened.questions.problems),
                "unlabelled": unlabelled,
                "resolved": {qid: _as_json(one, index) for qid, one in opened.resolved.items()},
            }
        )
        return 0 if is_sound else EXIT_FAILED
    for one in opened.resolved.values():
        for line in _lines_of(one, index):
            write_text(line)
    for problem in opened.questions.problems:
        write_text(f"problem: {problem}")
    n_places = sum(len(one.places) for one in opened.resolved.values())
    write_text(
        f"{opened.questions.name}: {count(len(opened.resolved), 'question')}, "
        f"{count(n_places, 'label')} found, {n_lost} not found, {len(unlabelled)} without a label, "
        f"{count(len(opened.questions.problems), 'problem')}"
    )
    return 0 if is_sound else EXIT_FAILED


def _is_unlabelled(one: Resolved) -> bool:
    return one.question.answerable and not any(e.grade > 0 for e in one.question.evidence)


def _lines_of(one: Resolved, index: Index) -> list[str]:
    text = " ".join(one.question.text.split())
    lines = [f"{one.question.qid}  {text}"]
    if not one.question.answerable:
        lines.append("  unanswerable")
    elif _is_unlabelled(one):
        lines.append("  without a label")
    for place in one.places:
        chunks = ", ".join(index.chunks[position].location for position in place.positions[:3])
        rest = f" and {len(place.positions) - 3} more" if len(place.positions) > 3 else ""
        lines.append(f"  grade {place.evidence.grade}: {chunks}{rest}")
    lines.extend(f"  NOT FOUND: {e.document}: {reason}" for e, reason in one.unresolved)
    return lines


def _as_json(one: Resolved, index: Index) -> dict[str, object]:
    return {
        "question": one.question.text,
        "answerable": one.question.answerable,
        "places": [
            {
                "file": place.document,
                "start": place.start,
                "end": place.end,
                "grade": place.evidence.grade,
                "chunks": list(place.chunk_ids),
                "locations": [index.chunks[position].location for position in place.positions],
            }
            for place in one.places
        ],
        "unresolved": [
            {"file": evidence.document, "quote": evidence.quote, "reason": reason}
            for evidence, reason in one.unresolved
        ],
    }


def qrels_command(file: Path, folder: Path | None, questions: Path | None) -> int:
    """Write the labels as judgements of what the index holds now."""
    opened = open_questions(folder, questions)
    ids = id_kind(opened.questions.unit)
    write_qrels(file, opened.resolved.values(), ids=ids)
    write_text(f"{file}: {count(len(opened.resolved), 'question')}, labels by {ids}")
    return 0


def add_command(added: Added, folder: Path | None, questions: Path | None) -> int:
    """Add one question, or one label to a question with the same words."""
    evidence = _evidence(added)
    session = open_session(folder, {})
    base = session.folder if session.folder.is_dir() else session.folder.parent
    path = questions.expanduser() if questions is not None else base / QUESTIONS
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise UsageError(
            f"Questions are only added to JSON lines (got {path.name}).",
            "Name a file that ends in .jsonl.",
        )
    where = _checked_place(evidence, session) if evidence is not None else "unanswerable"
    row: Row = {"id": typed_id(added.question), "question": " ".join(added.question.split())}
    if not row["question"]:
        raise UsageError("A question needs words.", "Type one.")
    row["evidence"] = [evidence_row(evidence)] if evidence is not None else []
    if added.answer:
        row["answer"] = added.answer
    if added.tags:
        row["tags"] = list(added.tags)
    if added.unanswerable:
        row["answerable"] = False
    with folder_lock(path.parent):
        data = path.read_bytes() if path.exists() else b""
        lines = data.splitlines(keepends=True)
        for old in map(read_row, lines):
            if old is not None and (qid_of(old) == row["id"] or words_of(old) == words_of(row)):
                raise UsageError(
                    f"{path.name} has this question already, as {qid_of(old)}.",
                    "Add the label to that line, or judge the passage in the app.",
                )
        gap = b"" if not data or data.endswith(b"\n") else b"\n"
        like = next((line for line in lines if read_row(line) is not None), b"")
        write_atomically(path, data + gap + written(row, like=like) + b"\n")
    note(f"added to {path}")
    write_text(f"{row['id']}: {where}")
    return 0


def _evidence(added: Added) -> Evidence | None:
    """The label that was typed; None for an unanswerable question."""
    if added.unanswerable:
        if added.file:
            raise UsageError(
                "An unanswerable question has no document that answers it.",
                "Leave --file or --unanswerable out.",
            )
        return None
    if not added.file:
        raise UsageError(
            "A question needs the document that answers it.",
            "Give --file with --quote, --heading or --lines, or --unanswerable.",
        )
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", added.lines) if added.lines else None
    span = (int(match[1]), int(match[2] or match[1])) if match is not None else None
    if added.lines and (span is None or not 1 <= span[0] <= span[1]):
        raise UsageError(
            f"{added.lines!r} are no lines: first-last, counted from 1.", "Write --lines 10-14."
        )
    return Evidence(added.file, added.quote, added.heading, span, added.grade)


def _checked_place(evidence: Evidence, session: Session) -> str:
    """Where the label is in the documents of now."""
    found = resolve(Question("", "", (evidence,)), session.index)
    for _, reason in found.unresolved:
        raise UsageError(
            f"The label is not found: {evidence.document}: {reason}.",
            "Copy the words from the document; blank space does not matter.",
        )
    positions = found.places[0].positions
    return ", ".join(session.index.chunks[position].location for position in positions[:3])
