"""Finished settings of sweeps as files: one line each, written as soon as it is measured."""

from __future__ import annotations

import contextlib
import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_tui.engine.evaluation.run_store import RunStore
from rag_tui.engine.evaluation.sweep_types import Measured, SpanMeans
from rag_tui.engine.stores.local import index_dir

MAX_FILES = 50
"""Older files than these are removed when a new one is begun."""


class SweepStore:
    """What sweeps of one corpus have measured, as private files beside its index.

    Args:
        folder: The corpus's own folder in the cache; ``sweeps`` is made in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "sweeps"
        self.asked = RunStore(self._folder)
        """Lists of the questions of settings that are not finished; an evaluation's own lists
        are kept elsewhere, so that a large sweep does not push them out."""

    @classmethod
    def of(cls, cache_dir: Path, corpus: Path) -> SweepStore:
        """The sweeps of a corpus, beside its index."""
        return cls(index_dir(cache_dir, corpus))

    def file(self, key: str) -> SweepFile:
        """What is known under a key that names corpus, questions, metric and prompt."""
        return SweepFile(self._folder / f"{key}.jsonl")


class SweepFile:
    """Settings by their fingerprint; damaged lines count as not there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Measured] = {}
        text = ""
        with contextlib.suppress(OSError):
            text = path.read_text(encoding="ascii", errors="replace")
        for line in text.split("\n"):
            entry = _read(line)
            if entry is not None:
                self._known[entry[0]] = entry[1]

    def get(self, key: str) -> Measured | None:
        """What a setting gave, if it is known."""
        return self._known.get(key)

    def put(self, key: str, measured: Measured) -> None:
        """Keep one setting; it is in the file when this returns.

        Raises:
            OSError: When the file cannot be written.
        """
        value = {
            "values": dict(measured.values),
            "latency_ms": measured.latency_ms,
            "prompt_tokens": measured.prompt_tokens,
            "spans": None if measured.spans is None else asdict(measured.spans),
            "n_chunks": measured.n_chunks,
        }
        line = json.dumps([key, value], ensure_ascii=True, separators=(",", ":"))
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_oldest(self._path.parent)
        # a line that a crash has torn is closed off by the line end in front
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"\n{line}\n".encode("ascii"))
        finally:
            os.close(handle)
        self._known[key] = measured


def _read(line: str) -> tuple[str, Measured] | None:
    if not line.strip():
        return None
    try:
        key, value = json.loads(line)
        spans: Any = value["spans"]
        numbers = {str(qid): float(v) for qid, v in value["values"].items()}
        measured = Measured(
            values=numbers,
            latency_ms=_number(value["latency_ms"]),
            prompt_tokens=_number(value["prompt_tokens"]),
            spans=None if spans is None else _spans(spans),
            n_chunks=int(value["n_chunks"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (str(key), measured) if all(map(math.isfinite, numbers.values())) else None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _spans(value: Any) -> SpanMeans:
    return SpanMeans(
        recall=float(value["recall"]),
        precision=float(value["precision"]),
        iou=float(value["iou"]),
        unit="tokens" if value["unit"] == "tokens" else "characters",
    )


def _remove_oldest(folder: Path) -> None:
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - MAX_FILES + 1)]:
            path.unlink()
