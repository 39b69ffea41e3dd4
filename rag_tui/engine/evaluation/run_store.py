"""Runs as files: ``runs/NAME.json`` beside the index of a folder."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.engine.evaluation.finished import FinishedStore
from rag_tui.engine.evaluation.run_files import (
    BadRunError,
    read_run_file,
    run_as_json,
    write_run_file,
)
from rag_tui.engine.evaluation.types import EvalRun
from rag_tui.engine.stores.local import index_dir

__all__ = ["KEPT_UNNAMED", "BadRunError", "RunHead", "RunList", "RunStore", "check_name"]

KEPT_UNNAMED = 20
"""Of the runs that nobody named so many are kept, the newest."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=-]{0,79}")
_UNNAMED = re.compile(r"\d{4}-\d\d-\d\d-\d{4}-\d+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


@dataclass(frozen=True, slots=True)
class RunHead:
    """What a list of runs shows."""

    name: str
    created: str
    columns: tuple[str, ...]
    n_questions: int
    """Most that any column was asked."""
    index_fingerprint: str
    questions_fingerprint: str


@dataclass(frozen=True, slots=True)
class RunList:
    """All runs, oldest first, and what could not be read."""

    runs: tuple[RunHead, ...]
    damaged: tuple[str, ...] = ()
    """One sentence each, with the file's name and the reason."""


class RunStore:
    """The runs of one corpus, as private files.

    Args:
        folder: The corpus's own folder in the cache; ``runs`` and ``asked`` are made in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "runs"
        self.finished = FinishedStore(folder / "asked")

    @classmethod
    def of(cls, cache_dir: Path, corpus: Path) -> RunStore:
        """The runs of a corpus, beside its index."""
        return cls(index_dir(cache_dir, corpus))

    def save(self, run: EvalRun, name: str = "") -> EvalRun:
        """Keep a run; without a name it is called by its time and a number.

        Returns:
            The run with the name that it got.

        Raises:
            UsageError: When the name cannot be a file's name, or is taken.
            RagTuiError: When the file cannot be written.
        """
        if name:
            self.check_free(name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            named = replace(run, name=name or self._free_name(run.created))
            write_run_file(self._path(named.name), run_as_json(named))
        except OSError as error:
            raise RagTuiError(
                f"The run could not be kept in {self.folder}: {error.strerror or error}.",
                "Free some space, or set RAG_TUI_CACHE_DIR to a folder that can be written.",
            ) from error
        if not name:
            self._remove_old_unnamed()
        return named

    def check_free(self, name: str) -> None:
        """Refuse a name that is taken or cannot be a file's.

        Raises:
            UsageError: With the reason.
        """
        check_name(name)
        if self._path(name).exists():
            raise UsageError(
                f"There is a run {name!r} already.",
                "Choose another name, or delete it with `rag-tui runs delete`.",
            )

    def load(self, name: str) -> EvalRun:
        """A run by its name.

        Raises:
            BadRunError: When there is none (the message lists those there are), or it is damaged.
            UsageError: When it cannot be a run's name.
        """
        check_name(name)
        path = self._path(name)
        if not path.exists():
            known = [head.name for head in self.list().runs]
            there = f"There are: {', '.join(known[-8:])}." if known else "There is none yet."
            raise BadRunError(f"There is no run {name!r}.", f"{there} `rag-tui runs` lists them.")
        return read_run_file(path)

    def list(self) -> RunList:
        """All runs, oldest first; a damaged file is named and passed over."""
        heads: list[RunHead] = []
        damaged: list[str] = []
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                heads.append(_head(read_run_file(path)))
            except BadRunError as error:
                damaged.append(error.message)
        heads.sort(key=lambda head: (head.created, head.name))
        return RunList(tuple(heads), tuple(damaged))

    def rename(self, name: str, new_name: str) -> None:
        """Give a run another name; raises as `load` and `save` do."""
        run = self.load(name)
        self.save(run, new_name)
        self.delete(name)

    def delete(self, name: str) -> None:
        """Remove a run, also a damaged one.

        Raises:
            BadRunError: When there is none, or it cannot be removed.
        """
        check_name(name)
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise BadRunError(f"There is no run {name!r}.", "`rag-tui runs` lists them.") from None
        except OSError as error:
            raise BadRunError(f"The run {name!r} cannot be removed: {error.strerror}.") from error

    def _remove_old_unnamed(self) -> None:
        unnamed = [path for path in self.folder.glob("*.json") if _UNNAMED.fullmatch(path.stem)]
        with contextlib.suppress(OSError):
            unnamed.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in unnamed[:-KEPT_UNNAMED]:
                path.unlink()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _free_name(self, created: str) -> str:
        try:
            moment = datetime.fromisoformat(created)
        except ValueError:
            moment = datetime.now(UTC)
        day = f"{moment:%Y-%m-%d-%H%M}"
        number = 1
        while True:
            try:  # taken at once: another process may look for a name at this moment
                self._path(f"{day}-{number}").touch(mode=0o600, exist_ok=False)
            except FileExistsError:
                number += 1
            else:
                return f"{day}-{number}"


def check_name(name: str) -> None:
    """Refuse what cannot be a file's name on every system.

    Raises:
        UsageError: With the rule.
    """
    if not _NAME.fullmatch(name) or name.endswith((" ", ".")) or _RESERVED.fullmatch(name):
        raise UsageError(
            f"A run cannot be called {name!r}.",
            "Use up to 80 letters, digits, blanks and . _ + = -, beginning with a letter or digit.",
        )


def _head(run: EvalRun) -> RunHead:
    return RunHead(
        name=run.name,
        created=run.created,
        columns=tuple(column.column.name for column in run.columns),
        n_questions=max((len(column.questions) for column in run.columns), default=0),
        index_fingerprint=run.index_fingerprint,
        questions_fingerprint=run.questions_fingerprint,
    )
