"""The ``rag-tui`` command.

Opening the app must not pay for the command-line parser: with nothing but a folder on the
command line, Textual is all that is imported before the first frame.
"""

from __future__ import annotations

import sys

COMMANDS = (
    "open", "index", "search", "chunks", "ask", "contextualise", "doctor", "locate", "eval", "runs",
    "questions", "explain", "where", "history", "sweep",
)  # fmt: skip
"""The command names; a folder that is called like one is written ``./index``."""


def main() -> None:
    """Entry point of the console script and of ``python -m rag_tui``."""
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(_open(None))
    if len(arguments) == 1 and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        sys.exit(_open(arguments[0]))
    if arguments[0] in ("--version", "-V"):
        from rag_tui import __version__

        sys.stdout.write(f"rag-tui {__version__}\n")
        return
    from rag_tui.cli.app import run

    sys.exit(run(arguments))


def _open(folder: str | None) -> int:
    from rag_tui.tui.run import run_app

    return run_app(folder)


if __name__ == "__main__":
    main()
