"""Commands of the ranking lab: explain, where, history."""

from __future__ import annotations

import typer


def register(cli: typer.Typer) -> None:
    """Add the commands to the program."""
    del cli
