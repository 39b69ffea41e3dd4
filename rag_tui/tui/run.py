"""Starting the app from the command line, with nothing imported that the first frame can spare."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


def run_app(folder: str | None, overrides: Mapping[str, object] | None = None) -> int:
    """Open the app on a folder (default: the demo corpus) and return the exit code.

    A folder that does not exist, and a terminal that cannot show the app, are told on stderr
    before the terminal is touched.
    """
    path = Path(folder).expanduser() if folder is not None else _demo_corpus()
    if not path.exists():
        sys.stderr.write(
            f"error: {_shown(str(path))} does not exist.\n"
            "Name an existing folder, or leave it out to open the demo corpus.\n"
        )
        return EXIT_USAGE
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("TERM") == "dumb":
        sys.stderr.write(
            "error: the app needs a terminal (stdin or stderr is not one, or TERM is dumb).\n"
            'Use a command instead, e.g. rag-tui search "question" --folder FOLDER --json.\n'
        )
        return EXIT_USAGE
    # Textual draws on stderr, so that stdout may be redirected
    gc.disable()  # collections during start-up find nothing; the app switches it on again
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.jobs import leave

    app = RagTuiApp(path, overrides=overrides)
    app.run()
    # a thread inside native code cannot be stopped, and must not keep the user waiting
    code = app.return_code or EXIT_OK
    leave(code)
    return code


def _demo_corpus() -> Path:
    package = Path(__file__).parent.parent
    inside = package / "corpus"
    return inside if inside.is_dir() else package.parent / "corpus"


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
