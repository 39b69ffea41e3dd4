"""``rag-tui sweep``: settings tried on labelled questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_tui.cli.options import (
    EmbedderOption,
    FolderArgument,
    JsonOption,
    KnobOption,
    PresetOption,
    RerankerOption,
    WhereOption,
)
from rag_tui.cli.question_options import QuestionsOption


def register(cli: typer.Typer) -> None:
    """Add the command to the program."""
    cli.command("sweep")(sweep)


def sweep(  # noqa: PLR0917 - typer reads options from the signature
    folder: FolderArgument = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            help="A knob and values: bm25.k1=0.6,0.9,1.2 or chunking.size=128,256; repeatable.",
        ),
    ] = None,
    n_random: Annotated[
        int | None, typer.Option("--random", help="Only so many combinations, at random.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the random choice.")] = 0,
    metric: Annotated[
        str, typer.Option("--metric", help="What is best, such as nDCG@10 or R@5.")
    ] = "nDCG@10",
    column: Annotated[
        str, typer.Option("--column", help="The column that is measured, by its name.")
    ] = "hybrid",
    folds: Annotated[
        int, typer.Option("--folds", help="Parts of the questions that are held out in turn.")
    ] = 5,
    question_file: QuestionsOption = None,
    knob: KnobOption = None,
    preset: PresetOption = None,
    depth: Annotated[int, typer.Option("--depth", help="Candidates per list.")] = 100,
    where: WhereOption = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the best setting into the folder's rag-tui.toml.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write a report as Markdown; - for stdout.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a report as HTML.")] = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    as_json: JsonOption = False,
) -> int:
    """Try settings on labelled questions; says what the best is worth on questions held out."""
    from rag_tui.cli.evaluation_run import Asked
    from rag_tui.cli.sweep_run import Swept, sweep_command
    from rag_tui.engine.errors import UsageError
    from rag_tui.engine.evaluation.sweep_space import parse_space

    if as_json and str(markdown) == "-":
        raise UsageError(
            "--json and --markdown - would both write to stdout.", "Name a file for the report."
        )
    asked = Asked(
        folder=folder,
        questions=question_file,
        knobs=tuple(knob or ()),
        preset=preset or "",
        depth=depth,
        where=where or "",
        overrides={"models.embedder": embedder, "models.reranker": reranker},
    )
    wanted = Swept(
        space=parse_space(tuple(vary or ()), n_random=n_random, seed=seed),
        metric=metric,
        column=column,
        folds=folds,
        is_applied=apply,
        markdown=markdown,
        html=html,
        as_json=as_json,
    )
    return sweep_command(asked, wanted)
