"""Writing labels: every change goes to the file at once, and touches one line of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.atomic import folder_lock, write_atomically
from rag_tui.engine.evaluation.evidence_choice import evidence_for
from rag_tui.engine.evaluation.holding import overlap
from rag_tui.engine.evaluation.label_rows import (
    Row,
    evidence_row,
    evidence_rows,
    grade_of,
    qid_of,
    read_row,
    with_evidence,
    with_grade,
    words_of,
    written,
)
from rag_tui.engine.evaluation.question_files import read_bytes
from rag_tui.engine.evaluation.question_rows import evidence_of, typed_id
from rag_tui.engine.evaluation.resolving import Resolver
from rag_tui.engine.evaluation.types import Evidence, Place, Question

_UNDO_STEPS = 100
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Change:
    """One line as it was and as it was left."""

    what: str
    qid: str
    before: bytes | None
    """None: there was no such line."""
    after: bytes


class LabelFile:
    r"""A ``questions.jsonl`` that is written while people judge.

    The file is read anew for every change, under a lock, and written atomically: what someone
    else changed meanwhile stays. Only the line of the question is made anew, with its keys in
    their order; all others stay byte for byte, damaged ones too. A missing file is created with
    the first change.

    Args:
        path: The file; its suffix must be ``.jsonl`` or ``.ndjson``.

    Raises:
        UsageError: When the suffix says it is another kind of file.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() not in (".jsonl", ".ndjson"):
            raise UsageError(
                f"Labels are kept as JSON lines (got {path.name}).",
                "Name a file that ends in .jsonl; other formats can only be read.",
            )
        self.path = path
        self._done: list[_Change] = []

    @property
    def can_undo(self) -> bool:
        """Whether `undo` has something to take back."""
        return bool(self._done)

    def add(self, text: str, *, synthetic: bool = False) -> str:
        """Add a question and return its id; one with the same words is not added again.

        The id is made of the question's words, so it is the same wherever it is typed.

        Raises:
            UsageError: When the question is blank, or the file cannot be written.
        """
        words = " ".join(text.split())
        if not words:
            raise UsageError("A question needs words.", "Type one.")
        known: dict[str, str] = {}

        def make(rows: Mapping[str, Row]) -> tuple[str, Row] | None:
            for qid, row in rows.items():
                known[words_of(row)] = qid
            if words.casefold() in known:
                return None
            qid, n = typed_id(words), 2
            while qid in rows:
                qid, n = f"{typed_id(words)}-{n}", n + 1
            known[words.casefold()] = qid
            made: Row = {"id": qid, "question": words, "evidence": []}
            return qid, {**made, "synthetic": True} if synthetic else made

        self._change("added the question", make)
        return known[words.casefold()]

    def judge(self, question: Question, position: int, resolver: Resolver, grade: int) -> Evidence:
        """Judge a chunk for a question and return the evidence that is kept for it.

        Evidence that lies in this chunk gets the new grade; where there is none, a quote is
        chosen (`evidence_for`). A question that is not in the file yet is added. A relevant
        chunk makes an unanswerable question answerable.

        Args:
            question: The question; of its labels only those in the file count.
            position: The chunk's.
            resolver: Of the index the chunk is in.
            grade: 0 not relevant, 1 to 3 relevant.

        Raises:
            UsageError: When the grade is out of range, nothing of the chunk can be quoted, or
                the file cannot be written.
        """
        if not 0 <= grade <= 3:
            raise UsageError(f"a grade must be 0, 1, 2 or 3 (got {grade})", "Press 0 to 3.")
        chosen = evidence_for(position, resolver, question=question.text, grade=grade)
        kept = [chosen]

        def make(row: Row) -> Row:
            evidence = evidence_rows(row)
            mine = [i for i, one in enumerate(evidence) if _lies_in(one, position, resolver)]
            _refuse_part(evidence, mine, position, resolver, grade)
            for i in mine:
                evidence[i] = with_grade(evidence[i], grade)
                kept[0] = evidence_of(evidence[i], _silent) or chosen
            if not mine:
                evidence.append(evidence_row(chosen))
            changed = with_evidence(row, evidence)
            if grade > 0 and changed.get("answerable") is False:
                del changed["answerable"]
            return changed

        what = f"graded a passage {grade}" if grade else "called a passage not relevant"
        self._edit(what, question, make)
        return kept[0]

    def unjudge(self, question: Question, position: int, resolver: Resolver) -> int:
        """Remove all evidence that lies in a chunk; returns how many pieces there were.

        Raises:
            UsageError: When the file cannot be written.
        """
        n_removed = [0]

        def make(row: Row) -> Row:
            evidence = evidence_rows(row)
            kept = [one for one in evidence if not _lies_in(one, position, resolver)]
            n_removed[0] = len(evidence) - len(kept)
            return with_evidence(row, kept) if n_removed[0] else row

        self._edit("removed a judgement", question, make)
        return n_removed[0]

    def set_answerable(self, question: Question, is_answerable: bool) -> None:
        """Say whether the documents answer a question.

        Raises:
            UsageError: When it shall be unanswerable and has relevant evidence, or the file
                cannot be written.
        """

        def make(row: Row) -> Row:
            changed = {key: value for key, value in row.items() if key != "answerable"}
            if is_answerable:
                return changed
            relevant = [e for e in evidence_rows(row) if isinstance(e, dict) and grade_of(e) != 0]
            if relevant:
                raise UsageError(
                    f"Question {question.qid} has evidence, so the documents do answer it.",
                    "Remove its relevant judgements first.",
                )
            return {**row, "answerable": False}

        word = "answerable" if is_answerable else "unanswerable"
        self._edit(f"marked the question {word}", question, make)

    def undo(self) -> str:
        """Take back the last change made here and say what it was.

        Raises:
            UsageError: When there is none, or someone else has changed that question since: then
                the change is no longer offered.
        """
        if not self._done:
            raise UsageError("There is nothing to undo.", "Only changes of this session are kept.")
        change = self._done.pop()
        with folder_lock(self.path.parent):
            lines = self._lines()
            at = next(
                (i for i, line in enumerate(lines) if qid_of(read_row(line)) == change.qid), None
            )
            if at is None or lines[at].rstrip(b"\r\n") != change.after.rstrip(b"\r\n"):
                raise UsageError(
                    f"Question {change.qid} was changed by someone else since; it was left alone.",
                    "Change it by hand if need be.",
                )
            if change.before is None:
                del lines[at]
            else:
                lines[at] = change.before
            write_atomically(self.path, b"".join(lines))
        return change.what

    def _edit(self, what: str, question: Question, make: Callable[[Row], Row]) -> None:
        """Change the row of a question, or make one."""

        def of_rows(rows: Mapping[str, Row]) -> tuple[str, Row] | None:
            row = rows.get(question.qid)
            start = row if row is not None else _new_row(question)
            changed = make(start)
            return None if changed == row else (question.qid, changed)

        self._change(what, of_rows)

    def _change(
        self, what: str, make: Callable[[Mapping[str, Row]], tuple[str, Row] | None]
    ) -> None:
        with folder_lock(self.path.parent):
            lines = self._lines()
            at_of: dict[str, int] = {}
            rows: dict[str, Row] = {}
            for i, line in enumerate(lines):
                row = read_row(line)
                qid = qid_of(row)
                if row is not None and qid and qid not in rows:
                    at_of[qid], rows[qid] = i, row
            changed = make(rows)
            if changed is None:
                return
            qid, row = changed
            at = at_of.get(qid)
            before = lines[at] if at is not None else None
            example = (
                before if before is not None else next((lines[i] for i in at_of.values()), b"")
            )
            after = written(row, like=example)
            end = b"\r\n" if example.endswith(b"\r\n") else b"\n"
            if before is not None and before.startswith(_BOM):
                after = _BOM + after
            if at is not None:
                lines[at] = after + (end if lines[at].endswith(b"\n") else b"")
            else:
                if lines and not lines[-1].endswith(b"\n"):
                    lines[-1] += b"\n"
                lines.append(after + end)
            write_atomically(self.path, b"".join(lines))
        self._done = [*self._done, _Change(what, qid, before, after)][-_UNDO_STEPS:]

    def _lines(self) -> list[bytes]:
        """The file's lines with their ends; none when it does not exist."""
        return read_bytes(self.path).splitlines(keepends=True) if self.path.exists() else []


def _new_row(question: Question) -> Row:
    return {"id": question.qid, "question": question.text, "evidence": []}


def _place_of(row: object, resolver: Resolver) -> Place | None:
    """Where a row of evidence stands in the index; None when it stands nowhere."""
    evidence = evidence_of(row, _silent)
    if evidence is None:
        return None
    return next(iter(resolver.resolve(Question("", "", (evidence,))).places), None)


def _lies_in(row: object, position: int, resolver: Resolver) -> bool:
    """Whether evidence is about a chunk rather than about more: half of it lies there."""
    place = _place_of(row, resolver)
    if place is None or position not in place.positions:
        return False
    chunk = resolver.index.chunks[position]
    return 2 * overlap(chunk.start, chunk.end, place.start, place.end) >= place.end - place.start


def _refuse_part(
    evidence: list[object], mine: list[int], position: int, resolver: Resolver, grade: int
) -> None:
    """A part cannot be worth less than the whole that was judged: it would have no effect."""
    for i, row in enumerate(evidence):
        place = _place_of(row, resolver) if i not in mine else None
        if place is not None and position in place.positions and place.evidence.grade > grade:
            what = place.evidence.heading or place.document
            raise UsageError(
                f"This passage is part of {what}, which is judged {place.evidence.grade} as a "
                "whole.",
                "Change that label in the file, then judge its passages one by one.",
            )


def _silent(_: str) -> None:
    """What is wrong with a label is said when the file is read."""
