"""Open a file at a line in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App, SuspendNotSupported

from rag_tui.engine.errors import UsageError
from rag_tui.tui import format as fmt

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import Chunk

_PLUS_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe"}
)
"""Editors that take ``+LINE FILE``."""
_COLON_LINE = frozenset({"hx", "helix", "subl", "zed"})
"""Editors that take ``FILE:LINE``."""
_GOTO = frozenset({"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"})
"""Editors that take ``-g FILE:LINE``."""


def editor_command(environ: Mapping[str, str], path: Path, line: int) -> list[str]:
    """The command that opens ``path`` at a 1-based ``line``.

    ``$VISUAL`` is preferred to ``$EDITOR``, as is the custom. An unknown editor gets the file only.

    Raises:
        UsageError: When neither names a command.
    """
    text = environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"$VISUAL or $EDITOR is not a command: {text} ({error})",
            "Set it to the name of your editor, for example: export EDITOR=nano",
        ) from error
    if not command:
        raise UsageError(
            "No editor is set", "Set $VISUAL or $EDITOR, for example: export EDITOR=nano"
        )
    name = Path(command[0]).name.removesuffix(".exe")
    if name in _PLUS_LINE:
        return [*command, f"+{line}", str(path)]
    if name in _COLON_LINE:
        return [*command, f"{path}:{line}"]
    if name in _GOTO:
        return [*command, "-g", f"{path}:{line}"]
    return [*command, str(path)]


def open_in_editor(app: App[object], path: Path, line: int) -> bool:
    """Open a file at a line and wait for the editor; trouble becomes a toast.

    Returns:
        Whether an editor ran and ended well.
    """
    try:
        if not path.is_file():
            raise UsageError(f"The file is gone: {path}", "Index the folder again")
        command = editor_command(os.environ, path.absolute(), line)
        with app.suspend():
            # The command is the user's own setting; the path is one argument, never a shell word.
            status = subprocess.run(command, check=False).returncode  # noqa: S603
        if status:
            raise UsageError(f"{command[0]} ended with status {status}")
    except SuspendNotSupported:
        _warn(app, "This terminal cannot be handed to an editor.")
    except UsageError as error:
        _warn(app, str(error))
    except OSError as error:
        _warn(app, f"The editor did not start: {error}")
    else:
        return True
    return False


def _warn(app: App[object], message: str) -> None:
    app.notify(fmt.display(message, newlines=True), severity="warning", markup=False)


LINE_FORMATS = frozenset({"markdown", "text", "code"})
"""Formats whose text is the file itself, so that a chunk's lines are the file's."""


def source_of(index: Index, chunk: Chunk) -> tuple[Path, int]:
    """The file a chunk comes from and the line to open it at; 1 where lines say nothing."""
    document = index.document_of[chunk.doc_id]
    path = index.folder if index.folder.is_file() else index.folder / chunk.doc_id
    if not path.exists() and "#" in chunk.doc_id:  # a record of a file
        path = index.folder / chunk.doc_id.rpartition("#")[0]
    return path, chunk.line_start if document.format in LINE_FORMATS else 1
