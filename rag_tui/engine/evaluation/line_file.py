"""A private file of JSON lines that only grows, and survives crashes and two writers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import RagTuiError


class LineFile:
    """One JSON object a line.

    A line is one write to the end of the file, so lines of two processes do not mix; one that a
    crash has torn is closed off before the next and counts as damaged.

    Args:
        path: The file; it and its folder are made, private, with the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_damaged = 0
        """Lines that were passed over by the last `read`."""

    def append(self, value: Mapping[str, Any]) -> None:
        """Keep one object; it is in the file when this returns.

        Raises:
            RagTuiError: When the file cannot be written.
        """
        line = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, f"{_line_end(handle)}{line}\n".encode("ascii"))
            finally:
                os.close(handle)
        except OSError as error:
            raise RagTuiError(
                f"{self.path} cannot be written: {error.strerror or error}.",
                "Free some space, or set RAG_TUI_CACHE_DIR to a folder that can be written.",
            ) from error

    def read(self) -> Iterator[dict[str, Any]]:
        """The objects in order; without a file none."""
        self.n_damaged = 0
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        for line in text.split("\n"):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                yield value
            else:
                self.n_damaged += 1


def _line_end(handle: int) -> str:
    """A line feed when the last line was torn."""
    size = os.fstat(handle).st_size
    if not size:
        return ""
    os.lseek(handle, size - 1, os.SEEK_SET)
    return "" if os.read(handle, 1) == b"\n" else "\n"
