"""Running converters in another process, which can hang or die without taking us along."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

from rag_tui.engine.documents.parts import Loaded, UnusableFileError
from rag_tui.engine.events import CancelToken

_POLL_S = 0.05
# -P: the folder we were started in, which may be the corpus, is no place for modules
WORKER = (sys.executable, "-P", "-m", "rag_tui.engine.documents.worker")
"""The command whose process converts files."""


class Converters:
    """A process that converts one file at a time.

    It is started when first needed, and again after it had to be ended. Use it as a context
    manager: leaving ends the process.
    """

    def __init__(self, *, timeout_s: float, command: Sequence[str] = WORKER) -> None:
        self._timeout_s = timeout_s
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def convert(
        self,
        format_name: str,
        raw: bytes,
        *,
        name: str,
        options: dict[str, Any],
        cancel: CancelToken | None = None,
    ) -> Loaded:
        """What the converter for a format makes of a file's bytes.

        Raises:
            UnusableFileError: When the file cannot be used, a library is missing, the converter
                took longer than the time limit or crashed.
            Cancelled: Soon after the token was set.
        """
        process = self._running()
        request = {"format": format_name, "name": name, "n_bytes": len(raw), "options": options}
        answer: list[bytes] = []
        thread = Thread(target=_exchange, args=(process, request, raw, answer), daemon=True)
        thread.start()
        deadline = time.monotonic() + self._timeout_s
        while thread.is_alive():
            thread.join(_POLL_S)
            if not thread.is_alive():
                break
            if cancel is not None and cancel.is_cancelled:
                self.close()
                cancel.check()
            if time.monotonic() > deadline:
                self.close()
                raise UnusableFileError(
                    f"given up after {self._timeout_s:g} s in the {format_name} converter",
                    state="failed",
                )
        if not answer or not answer[0].endswith(b"\n"):
            self.close()
            raise UnusableFileError(f"the {format_name} converter crashed", state="failed")
        return _read_answer(json.loads(answer[0]))

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        return self._process


def _environment() -> dict[str, str]:
    """Ours; and this very copy of the package comes first where it is not an installed one."""
    root = Path(__file__).resolve().parents[3]
    if root.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path}


def _exchange(
    process: subprocess.Popen[bytes], request: dict[str, Any], raw: bytes, answer: list[bytes]
) -> None:
    """Runs in a thread: both ends of a pipe may block for as long as the other process likes."""
    if process.stdin is None or process.stdout is None:
        return
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(json.dumps(request).encode("ascii") + b"\n" + raw)
        process.stdin.flush()
        answer.append(process.stdout.readline())


def _read_answer(answer: dict[str, Any]) -> Loaded:
    if "reason" in answer:
        raise UnusableFileError(answer["reason"], state=answer["state"], hint=answer["hint"])
    return Loaded.from_json(answer)
