"""stdout is data, stderr is narration: the only writers of both."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType

from rag_tui.display import display
from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.events import Progress

_RAW_CONTROLS = re.compile("[\x7f-\x9f]")
"""What JSON leaves as it is and a terminal obeys."""

PLAIN_WIDTH = 160
"""Columns of tables in pipes and files."""

STAGES = {
    "scan": "looking for files",
    "read": "reading",
    "chunk": "cutting",
    "bm25": "indexing words",
    "model": "loading model",
    "embed": "embedding",
    "write": "writing",
    "wait": "waiting",
    "situate": "writing situations",
}
"""What each stage of indexing is called on screen."""


def write_json(value: Any) -> None:
    """One JSON value and a line end; control characters and lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    text = _RAW_CONTROLS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


def write_text(text: str, *, end: str = "\n") -> None:
    """Plain lines for people; control characters made visible."""
    sys.stdout.write(display(text, newlines=True) + end)
    sys.stdout.flush()


def stdout_width() -> int:
    """Columns of stdout: of the terminal, or enough when it is none."""
    return Console().width if sys.stdout.isatty() else PLAIN_WIDTH


def write_rich(renderable: RenderableType) -> None:
    """A table or another renderable whose foreign parts are ready-made text."""
    Console(markup=False, emoji=False, highlight=False, width=stdout_width()).print(renderable)


def note(text: str) -> None:
    """One line of narration."""
    sys.stderr.write(display(text, newlines=True) + "\n")
    sys.stderr.flush()


def note_error(error: RagTuiError) -> None:
    """A user's mistake or an expected failure, with its fix; never a traceback."""
    note(f"error: {error.message}")
    if error.hint:
        note(error.hint)


@contextmanager
def narrated() -> Iterator[Any]:
    """A progress line on stderr when that is a terminal; the context value takes `Progress`."""
    if not sys.stderr.isatty():
        yield lambda _progress: None
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with console.status("") as status:

        def show(progress: Progress) -> None:
            share = f" {progress.done:,}/{progress.total:,}" if progress.total else ""
            tail = f" · {display(progress.note)}" if progress.note else ""
            status.update(f"{STAGES[progress.stage]}{share}{tail}")

        yield show
