"""A run as JSON: what is written, and how it is read back."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.types import ColumnRun, EvalRun, QuestionRun, Retrieved
from rag_tui.engine.knobs import make_column

FORMAT = 1


class BadRunError(RagTuiError):
    """A kept run is missing or damaged."""


def write_run_file(path: Path, value: object) -> None:
    """Write a private file whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(value, file, ensure_ascii=True, separators=(",", ":"))
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def read_run_file(path: Path) -> EvalRun:
    """A run from its file, under the file's name.

    Raises:
        BadRunError: When it cannot be read, or is not what was written.
    """
    return run_from_json(_read_json(path), path.stem)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise _damaged(path.stem, reason) from error


def _damaged(name: str, reason: str) -> BadRunError:
    return BadRunError(
        f"The run {name!r} is damaged ({reason}).", f"Remove it: `rag-tui runs delete {name}`."
    )


_Place = tuple[str, str, int, int]
"""Chunk id, document, start, end: written once, and named by number in the rows."""


def run_as_json(run: EvalRun) -> dict[str, Any]:
    """A run as plain values; every chunk stands once, and rows name it by its number."""
    numbers: dict[_Place, int] = {}
    columns = [_column_out(column, numbers) for column in run.columns]
    return {
        "format": FORMAT,
        "name": run.name,
        "created": run.created,
        "folder": run.folder,
        "index_fingerprint": run.index_fingerprint,
        "questions_fingerprint": run.questions_fingerprint,
        "depth": run.depth,
        "knobs": dict(run.knobs),
        "chunks": list(numbers),
        "columns": columns,
    }


def _column_out(run: ColumnRun, numbers: dict[_Place, int]) -> dict[str, Any]:
    return {
        "name": run.column.name,
        "method": run.column.method,
        "knobs": dict(run.column.knobs),
        "score_name": run.score_name,
        "imported_from": run.imported_from,
        "questions": [
            {
                "qid": question.qid,
                "rows": [
                    [numbers.setdefault(_place(row), len(numbers)), row.score]
                    for row in question.rows
                ],
                "error": question.error,
                "elapsed_s": question.elapsed_s,
            }
            for question in run.questions
        ],
    }


def _place(row: Retrieved) -> _Place:
    return (row.chunk_id, row.document, row.start, row.end)


def run_from_json(value: Any, name: str) -> EvalRun:
    """A run from plain values, under a name.

    Raises:
        BadRunError: When they are not what `run_as_json` gives.
    """
    try:
        if value["format"] != FORMAT:
            raise _damaged(name, f"its format is {value['format']}, not {FORMAT}")
        places = [
            (str(chunk_id), str(document), int(start), int(end))
            for chunk_id, document, start, end in value["chunks"]
        ]
        return EvalRun(
            name=name,
            created=str(value["created"]),
            folder=str(value["folder"]),
            index_fingerprint=str(value["index_fingerprint"]),
            questions_fingerprint=str(value["questions_fingerprint"]),
            depth=int(value["depth"]),
            columns=tuple(_column_in(column, places) for column in value["columns"]),
            knobs=dict(value["knobs"]),
        )
    except (LookupError, TypeError, ValueError, AttributeError, UsageError) as error:
        raise _damaged(name, f"{type(error).__name__}: {error}") from error


def _column_in(value: Mapping[str, Any], places: Sequence[_Place]) -> ColumnRun:
    return ColumnRun(
        column=make_column(value["name"], value["method"], value["knobs"]),
        score_name=str(value["score_name"]),
        imported_from=str(value["imported_from"]),
        questions=tuple(
            QuestionRun(
                qid=str(question["qid"]),
                rows=tuple(_row_in(places[number], score) for number, score in question["rows"]),
                error=str(question["error"]),
                elapsed_s=float(question["elapsed_s"]),
            )
            for question in value["questions"]
        ),
    )


def _row_in(place: _Place, score: Any) -> Retrieved:
    chunk_id, document, start, end = place
    return Retrieved(chunk_id, document, start, end, float(score))
