"""The lines of a label file as they are read and written: styles, keys and their order are kept."""

from __future__ import annotations

import json
from typing import Any

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.question_rows import EVIDENCE_KEYS, typed_id
from rag_tui.engine.evaluation.types import Evidence

Row = dict[str, Any]

_IDS = ("id", "_id", "qid", "query_id")
_TEXTS = ("question", "text", "query")
_GRADES = ("grade", "score", "relevance")
_WIDE, _COMPACT = (", ", ": "), (",", ":")


def read_row(line: bytes) -> Row | None:
    """A line as an object; None when it is blank, damaged or something else."""
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def written(row: Row, *, like: bytes = b"") -> bytes:
    """A row as one line without its end, spaced and escaped like another line."""
    example = read_row(like)
    styles = [(_WIDE, False), (_COMPACT, False), (_WIDE, True), (_COMPACT, True)]
    text = like.decode("utf-8-sig", "replace").strip()
    for separators, ascii_only in styles if example is not None else ():
        if json.dumps(example, ensure_ascii=ascii_only, separators=separators) == text:
            return _encoded(row, separators, ascii_only=ascii_only)
    return _encoded(row, _WIDE, ascii_only=False)


def qid_of(row: Row | None) -> str:
    """The id of the question in a row, as reading gives it; empty when it has none."""
    if row is None:
        return ""
    given = next((row[key] for key in _IDS if row.get(key) is not None), None)
    text = _text_of(row)
    if given is None:
        return typed_id(text) if text.strip() else ""
    return str(given).strip() if isinstance(given, (str, int)) else ""


def words_of(row: Row) -> str:
    """The question of a row, for comparing: blank space and case do not count."""
    return " ".join(_text_of(row).split()).casefold()


def evidence_rows(row: Row) -> list[object]:
    """The evidence of a row, also where a single file stands beside the question.

    Raises:
        UsageError: When it is no list: it must be mended by hand before it can be added to.
    """
    given = row.get("evidence")
    if given is None:
        single = {key: value for key, value in row.items() if key in EVIDENCE_KEYS}
        return [single] if single else []
    if isinstance(given, dict):
        return [given]
    if not isinstance(given, list):
        raise UsageError(
            f"The evidence of question {qid_of(row)} is not a list.", "Mend that line by hand."
        )
    return list(given)


def with_evidence(row: Row, evidence: list[object]) -> Row:
    """The row with other evidence, its other keys where they were."""
    if "evidence" in row:
        return {**row, "evidence": evidence}
    return {**{k: v for k, v in row.items() if k not in EVIDENCE_KEYS}, "evidence": evidence}


def with_grade(row: object, grade: int) -> object:
    """Evidence with another grade, under the key it has."""
    if not isinstance(row, dict) or grade_of(row) == grade:
        return row
    key = next((key for key in _GRADES if key in row), "grade")
    return {**row, key: grade}


def grade_of(row: Row) -> object:
    """The grade of evidence as it is written; 1 where none is."""
    return next((row[key] for key in _GRADES if row.get(key) is not None), 1)


def evidence_row(evidence: Evidence) -> Row:
    """New evidence as it is written: what is empty is left out."""
    row: Row = {"file": evidence.document}
    if evidence.heading:
        row["heading"] = evidence.heading
    if evidence.quote:
        row["quote"] = evidence.quote
    if evidence.lines is not None:
        row["lines"] = list(evidence.lines)
    row["grade"] = evidence.grade
    return row


def _text_of(row: Row) -> str:
    text = next((row[key] for key in _TEXTS if row.get(key) is not None), "")
    return text if isinstance(text, str) else ""


def _encoded(row: Row, separators: tuple[str, str], *, ascii_only: bool) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=ascii_only, separators=separators).encode()
    except UnicodeEncodeError:  # a file name with bytes that are no text
        return json.dumps(row, separators=separators).encode()
