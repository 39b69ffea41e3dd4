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
