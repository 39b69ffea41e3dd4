"""Answers, judgements and runs of answers of one corpus, kept as private files in its cache."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.answer_types import (
    VERDICTS,
    AnswerRow,
    AnswerRun,
    CheckCounts,
    Judgement,
    SourceRef,
)
from rag_tui.engine.evaluation.line_file import LineFile
from rag_tui.engine.evaluation.refusals import OUTCOMES, AnswerKind
from rag_tui.engine.evaluation.run_store import BadRunError, check_name
from rag_tui.engine.stores.local import index_dir
from rag_tui.engine.types import AnswerState

FORMAT = 1


class AnswerStore:
    """The answers of one corpus.

    ``asked.jsonl`` holds every finished answer and judgement by its key, ``runs/NAME.json`` whole
    runs. No key of a service is ever in any of them.

    Args:
        folder: The corpus's own folder in the cache; ``answers`` is made in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "answers"
        self._asked = LineFile(self.folder / "asked.jsonl")
        self._rows: dict[str, AnswerRow] = {}
        self._judgements: dict[str, Judgement] = {}
        self.n_damaged = 0
        """Lines that could not be read, and count as not there."""
        for value in self._asked.read():
            try:
                if "answer" in value:
                    row = row_in(value["answer"])
                    self._rows[row.key] = row
                else:
                    self._judgements[str(value["of"])] = _judgement_in(value["judgement"])
            except (LookupError, TypeError, ValueError, AttributeError):
                self.n_damaged += 1
        self.n_damaged += self._asked.n_damaged

    @classmethod
    def of(cls, cache_dir: Path, corpus: Path) -> AnswerStore:
        """The answers of a corpus, beside its index."""
        return cls(index_dir(cache_dir, corpus))

    def answer(self, key: str) -> AnswerRow | None:
        """The answer that is known by this key."""
        return self._rows.get(key)

    def put_answer(self, row: AnswerRow) -> None:
        """Keep a finished answer at once; raises `RagTuiError` when it cannot be written."""
        self._asked.append({"answer": row_out(row)})
        self._rows[row.key] = row

    def judgement(self, key: str) -> Judgement | None:
        """The judgement that is known by this key."""
        return self._judgements.get(key)

    def put_judgement(self, key: str, judgement: Judgement) -> None:
        """Keep a judgement at once; raises as `put_answer` does."""
        self._asked.append({"of": key, "judgement": asdict(judgement)})
        self._judgements[key] = judgement

    def save(self, run: AnswerRun, name: str = "") -> AnswerRun:
        """Keep a run; without a name it is called by its time and a number.

        Returns:
            The run with its name.

        Raises:
            UsageError: When the name cannot be a file's name, or is taken.
            RagTuiError: When it cannot be written.
        """
        folder = self.folder / "runs"
        if name:
            check_name(name)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            named = replace(run, name=name or _free_name(folder, run.created))
            if not name:
                _write(folder / f"{named.name}.json", _run_out(named))
            elif not _write_new(folder / f"{name}.json", _run_out(named)):
                raise UsageError(
                    f"There is a run of answers {name!r} already.", "Choose another name."
                )
        except OSError as error:
            raise RagTuiError(
                f"The run could not be kept in {folder}: {error.strerror or error}.",
                "Free some space, or set RAG_TUI_CACHE_DIR to a folder that can be written.",
            ) from error
        return named

    def load(self, name: str) -> AnswerRun:
        """A run by its name.

        Raises:
            BadRunError: When there is none, or it is damaged.
            UsageError: When it cannot be a run's name.
        """
        check_name(name)
        path = self.folder / "runs" / f"{name}.json"
        if not path.exists():
            known = ", ".join(run.name for run in self.runs()[0][-8:]) or "none yet"
            raise BadRunError(f"There is no run of answers {name!r}.", f"There are: {known}.")
        try:
            return _run_in(json.loads(path.read_text(encoding="utf-8")))
        except (
            OSError,
            RecursionError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            raise BadRunError(
                f"The run of answers {name!r} is damaged ({type(error).__name__}: {error}).",
                f"Remove {path}.",
            ) from error

    def runs(self) -> tuple[tuple[AnswerRun, ...], tuple[str, ...]]:
        """All runs, oldest first, and one sentence about each file that is damaged."""
        found: list[AnswerRun] = []
        damaged: list[str] = []
        folder = self.folder / "runs"
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            try:
                found.append(self.load(path.stem))
            except (BadRunError, UsageError) as error:
                damaged.append(error.message)
        return tuple(sorted(found, key=lambda run: (run.created, run.name))), tuple(damaged)


def row_out(row: AnswerRow) -> dict[str, Any]:
    """A row as JSON values."""
    return asdict(row)


def row_in(value: Mapping[str, Any]) -> AnswerRow:
    """The row of `row_out`.

    Raises:
        ValueError: When it is something else; `LookupError` and `TypeError` too.
    """
    known = {field.name for field in fields(AnswerRow)}
    values = {name: value[name] for name in known if name in value}
    if (
        values["state"] not in get_args(AnswerState)
        or values["kind"] not in get_args(AnswerKind)
        or values["outcome"] not in OUTCOMES
        or not all(isinstance(values[name], str) for name in ("key", "qid", "question", "text"))
    ):
        raise ValueError("no row of answers")
    values["sources"] = tuple(SourceRef(**source) for source in value["sources"])
    values["checks"] = CheckCounts(**value["checks"])
    values["cited"] = tuple(int(number) for number in value["cited"])
    values["unknown"] = tuple(int(number) for number in value["unknown"])
    judgement = value.get("judgement")
    values["judgement"] = None if judgement is None else _judgement_in(judgement)
    return AnswerRow(**values)


def _judgement_in(value: Mapping[str, Any]) -> Judgement:
    judgement = Judgement(**value)
    if judgement.verdict not in VERDICTS:
        raise ValueError(f"no verdict is called {judgement.verdict!r}")
    return judgement


def _run_out(run: AnswerRun) -> dict[str, Any]:
    plain = replace(run, rows=(), settings={})
    return {
        "format": FORMAT,
        **asdict(plain),
        "settings": dict(run.settings),
        "rows": [row_out(row) for row in run.rows],
    }


def _run_in(value: dict[str, Any]) -> AnswerRun:
    if value.pop("format") != FORMAT:
        raise ValueError("made by another version")
    rows = tuple(row_in(row) for row in value.pop("rows"))
    return AnswerRun(**value, rows=rows)


def _free_name(folder: Path, created: str) -> str:
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        moment = datetime.now(UTC)
    number = 1
    while True:
        name = f"{moment:%Y-%m-%d-%H%M}-{number}"
        try:  # taken at once: another process may look for a name at this moment
            (folder / f"{name}.json").touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return name


def _write_new(path: Path, value: object) -> bool:
    """Write a file that must not be there yet; False when it is."""
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    _write(path, value)
    return True


def _write(path: Path, value: object) -> None:
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
