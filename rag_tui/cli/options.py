"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FolderOption = Annotated[
    Path | None, typer.Option("--folder", "-f", help="The corpus (default: the demo corpus).")
]
FolderArgument = Annotated[
    Path | None, typer.Argument(help="The corpus: a folder or one file (default: the demo).")
]
EmbedderOption = Annotated[
    str | None, typer.Option("--embedder", help="Embedding model: hub name or local folder.")
]
RerankerOption = Annotated[
    str | None, typer.Option("--reranker", help="Cross-encoder: hub name or local folder.")
]
WhereOption = Annotated[
    str | None,
    typer.Option("--where", "-w", help="Only chunks that fit, e.g. 'path~\"advanced/*\"'."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
KnobOption = Annotated[
    list[str] | None,
    typer.Option("--knob", help="A knob by its name, e.g. bm25.k1=0.9; repeatable."),
]
PresetOption = Annotated[
    str | None, typer.Option("--preset", help="Knobs of this name in the settings.")
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help='A column of your own, e.g. "short=bm25:bm25.k1=0.9,bm25.b=0.4"; repeatable.',
    ),
]


def hand_down(context: typer.Context, folder: Path | None, *, as_json: bool) -> None:
    """Let the options of a group stand for its command: ``runs --folder F list``.

    What the command is given itself goes before. Without this the group would take ``--folder``
    and the command would tell of the demo corpus.
    """
    if context.invoked_subcommand is not None:
        given = {"folder": folder, "as_json": as_json}
        context.default_map = {context.invoked_subcommand: given}
