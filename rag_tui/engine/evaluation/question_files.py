"""The files that hold questions in rows: JSONL, JSON, TOML and CSV."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.question_rows import EVIDENCE_KEYS, Problems

Row = tuple[str, Any]
"""``questions.jsonl:12`` and the plain values that stand there."""

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MAX_CELL = 10_000_000


def read_bytes(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        UsageError: When it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.", "Check the path and the name.") from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}.", "Name another file."
        ) from error


def read_text(path: Path, problems: Problems) -> str:
    r"""A file's text: UTF-8, with or without a byte-order mark, with ``\n`` line ends.

    Bytes that are not UTF-8 become replacement characters and are named.

    Raises:
        UsageError: When it cannot be read, or is not text at all.
    """
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        if b"\0" in raw:
            raise UsageError(
                f"{path} is not a text file in UTF-8 (line {line}).", "Save it as UTF-8."
            ) from error
        problems.add(f"{path.name}:{line}", "not UTF-8; the bytes that are wrong were replaced")
        text = raw.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def jsonl_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """One object a line; blank lines are passed over, damaged ones named."""
    for number, line in enumerate(read_text(path, problems).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path.name}:{number}"
        try:
            yield place, json.loads(line)
        except RecursionError:
            problems.add(place, "not JSON that can be read: nested too deeply; left out")
        except ValueError as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:80]
            at = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            problems.add(place, f"not valid JSON: {what}{at}; left out")


def json_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """The items of a list, or of the list ``questions`` in an object.

    Raises:
        UsageError: When it is not JSON, or holds no list.
    """
    try:
        value = json.loads(read_text(path, problems))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path} is not valid JSON: {str(error)[:120]}.", "Mend it, or write JSON lines."
        ) from error
    if isinstance(value, dict):
        value = value.get("questions")
    if not isinstance(value, list):
        raise UsageError(
            f"{path} holds no list of questions.", 'Write [{"question": …}, …], or JSON lines.'
        )
    yield from ((f"{path.name}, item {i}", item) for i, item in enumerate(value, start=1))


def toml_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """The tables ``[[question]]``.

    Raises:
        UsageError: When it is not TOML, or holds no such table.
    """
    try:
        value = tomllib.loads(read_text(path, problems))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.", "Mend that line.") from error
    tables = value.get("question", value.get("questions"))
    if not isinstance(tables, list):
        raise UsageError(
            f"{path} holds no [[question]] table.",
            'Begin each question with [[question]] and give it question = "…".',
        )
    yield from ((f"{path.name}, question {i}", item) for i, item in enumerate(tables, start=1))


def csv_rows(path: Path, problems: Problems) -> Iterator[Row]:
    """One question or one piece of its evidence a row, under the column names of the first.

    Rows with the same id and question belong together: one question with several pieces of
    evidence. The separator is the one among tab, semicolon and comma that the first row has most.

    Raises:
        UsageError: When it cannot be read as a table, or has no column with questions.
    """
    text = read_text(path, problems)
    first = text.lstrip("\n").split("\n", 1)[0]
    delimiter = max("\t;,", key=lambda sign: (first.count(sign), sign == ","))
    csv.field_size_limit(_MAX_CELL)
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=delimiter, restkey="")
    try:
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        if not {"question", "text", "query"} & set(names):
            raise UsageError(
                f"{path} has no column named question (its columns: {', '.join(names)[:200]}).",
                "Name the columns in the first row: id, question, file, heading, quote, lines, "
                "grade.",
            )
        reader.fieldnames = names
        rows = [(f"{path.name}:{reader.line_num}", row) for row in reader]
    except csv.Error as error:
        raise UsageError(
            f"{path}, line {reader.line_num}, is not a readable table: {error}.", "Mend that row."
        ) from error
    yield from _joined([(place, _csv_values(row, place, problems)) for place, row in rows])


def _csv_values(row: dict[str, Any], place: str, problems: Problems) -> dict[str, Any]:
    """Cells as JSON would have them; empty ones are left out."""
    if row.pop("", None):
        problems.add(place, "more cells than the first row; the rest not used")
    values: dict[str, Any] = {k: v.strip() for k, v in row.items() if v and v.strip()}
    for key in ("grade", "score", "relevance"):
        if key in values and values[key].lstrip("+-").isdecimal():
            values[key] = int(values[key])
    for key in ("answerable", "synthetic"):
        if key in values:
            values[key] = _TRUTH.get(values[key].lower(), values[key])
    return values


def _joined(rows: list[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    """Rows of one question made one, at the place of the first."""
    groups: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {}
    for place, values in rows:
        if not values:
            continue
        evidence = {key: values.pop(key) for key in EVIDENCE_KEYS & values.keys()}
        ids = [values.get(key) for key in ("id", "_id", "qid", "query_id")]
        key = (*ids, *(values.get(key) for key in ("question", "text", "query")))
        kept = groups.setdefault(key, (place, values))[1]
        for name, value in values.items():
            kept.setdefault(name, value)
        if evidence:
            kept.setdefault("evidence", []).append(evidence)
    yield from groups.values()
