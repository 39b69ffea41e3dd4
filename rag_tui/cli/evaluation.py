"""Commands of the evaluation: eval, sweep, runs, questions."""

from __future__ import annotations

import typer


def register(cli: typer.Typer) -> None:
    """Add the commands to the program."""
    del cli
