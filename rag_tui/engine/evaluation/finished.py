"""Questions that were asked before: one file of lines for each column of each index.

Every finished question is appended at once, so an evaluation that is interrupted, or run again
after one knob was turned, asks only what is missing. A file is made of an index and a column by
their fingerprints: nothing in it can be out of date.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_tui.engine.evaluation.types import QuestionRun, Retrieved
from rag_tui.engine.ids import text_hash
from rag_tui.engine.index import Index

MAX_FILES = 200
"""Older files than these are removed when a new one is begun."""


@dataclass(frozen=True, slots=True)
class Finished:
    """One column's list for one question text."""

    positions: tuple[int, ...]
    """Positions of chunks, by rank."""
    scores: tuple[float, ...]
    score_name: str
    elapsed_s: float = 0.0

    def as_run(self, qid: str, index: Index) -> QuestionRun:
        """With the chunks' ids and spans as they are in this index."""
        rows = []
        for position, score in zip(self.positions, self.scores, strict=True):
            chunk = index.chunks[position]
            rows.append(Retrieved(chunk.chunk_id, chunk.doc_id, chunk.start, chunk.end, score))
        return QuestionRun(qid, tuple(rows), elapsed_s=self.elapsed_s)


class FinishedStore:
    """The files of one corpus.

    Args:
        folder: Where they are kept; made, private, when the first question is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def column(self, index_fingerprint: str, column_fingerprint: str, n_chunks: int) -> ColumnFile:
        """What is known of a column of an index with so many chunks."""
        name = f"{index_fingerprint[:16]}-{column_fingerprint[:24]}.jsonl"
        return ColumnFile(self._folder / name, n_chunks)


class ColumnFile:
    """One column's questions by text; damaged lines count as not there.

    Several processes may append at once: a line is one write to the end of the file, and one
    that was torn by a crash is closed off before the next.
    """

    def __init__(self, path: Path, n_chunks: int) -> None:
        self._path = path
        self._known: dict[str, Finished] = {}
        for line in _lines(path):
            entry = _read(line, n_chunks)
            if entry is not None:
                self._known[entry[0]] = entry[1]

    def get(self, question: str) -> Finished | None:
        """What the column gave for this text, if it is known."""
        return self._known.get(text_hash(question))

    def put(self, question: str, finished: Finished) -> None:
        """Keep one question; it is in the file when this returns.

        Raises:
            OSError: When the file cannot be written.
        """
        key = text_hash(question)
        line = json.dumps(
            [key, finished.score_name, finished.elapsed_s,
             finished.positions, finished.scores],
            ensure_ascii=True, separators=(",", ":"),
        )  # fmt: skip
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_oldest(self._path.parent)
        handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{_line_end(handle)}{line}\n".encode("ascii"))
        finally:
            os.close(handle)
        self._known[key] = finished


def _line_end(handle: int) -> str:
    """A line feed when the last line was torn."""
    size = os.fstat(handle).st_size
    if not size:
        return ""
    os.lseek(handle, size - 1, os.SEEK_SET)
    return "" if os.read(handle, 1) == b"\n" else "\n"


def _lines(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    yield from text.split("\n")


def _read(line: str, n_chunks: int) -> tuple[str, Finished] | None:
    if not line:
        return None
    try:
        value: Any = json.loads(line)
        key, score_name, elapsed_s, positions, scores = value
        finished = Finished(
            tuple(int(position) for position in positions),
            tuple(float(score) for score in scores),
            str(score_name),
            float(elapsed_s),
        )
    except (ValueError, TypeError, RecursionError):
        return None
    is_sound = len(finished.positions) == len(finished.scores) and all(
        0 <= position < n_chunks for position in finished.positions
    )
    return (str(key), finished) if is_sound else None


def _remove_oldest(folder: Path) -> None:
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - MAX_FILES + 1)]:
            path.unlink()
