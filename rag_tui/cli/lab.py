"""Commands of the ranking lab: explain, where, history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_tui.cli.options import (
    EmbedderOption,
    FolderOption,
    JsonOption,
    KnobOption,
    PresetOption,
    RerankerOption,
    WhereOption,
    hand_down,
)

QuestionArgument = Annotated[str, typer.Argument(help="The question.")]
LabColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help='A column of the settings by name, or your own: "short=bm25:bm25.k1=0.9"; repeatable.',
    ),
]
NumberArgument = Annotated[
    int, typer.Argument(min=1, help="Of a search as it is listed; 1 is the newest.")
]

history = typer.Typer(help="Finished searches of a corpus: list, show, compare, rerun.")


def register(cli: typer.Typer) -> None:
    """Add the commands to the program."""
    cli.command("explain")(explain)
    cli.command("where")(where_)
    cli.add_typer(history, name="history")


def explain(  # noqa: PLR0917 - typer reads options from the signature
    question: QuestionArgument,
    chunk: Annotated[
        str, typer.Argument(help="A chunk: its id, the beginning of it, or path:line.")
    ],
    folder: FolderOption = None,
    column: LabColumnOption = None,
    sentences: Annotated[
        bool, typer.Option("--sentences", help="Score each sentence on its own.")
    ] = False,
    words: Annotated[
        bool, typer.Option("--words", help="The words nearest to the question's, by the model.")
    ] = False,
    knob: KnobOption = None,
    preset: PresetOption = None,
    where: WhereOption = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    as_json: JsonOption = False,
) -> int:
    """Why a chunk stands where it stands: the arithmetic of its score in each list."""
    from rag_tui.cli.lab_explain import explain_command
    from rag_tui.cli.lab_request import LabOptions

    asked = LabOptions(
        question=question,
        folder=folder,
        where=where or "",
        preset=preset or "",
        knobs=tuple(knob or ()),
        columns=tuple(column or ()),
        overrides={"models.embedder": embedder, "models.reranker": reranker},
    )
    return explain_command(
        asked, chunk, with_sentences=sentences, with_words=words, as_json=as_json
    )


def where_(  # noqa: PLR0917 - typer reads options from the signature
    question: QuestionArgument,
    passage: Annotated[
        str,
        typer.Option(
            "--passage", "-p", help="A sentence, path:line, path#heading, a path, or a chunk's id."
        ),
    ],
    folder: FolderOption = None,
    column: LabColumnOption = None,
    remedies: Annotated[
        bool, typer.Option("--remedies/--no-remedies", help="Try which knobs would bring it in.")
    ] = True,
    knob: KnobOption = None,
    preset: PresetOption = None,
    where: WhereOption = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    as_json: JsonOption = False,
) -> int:
    """Where is my passage? Its rank in every list, what lost it, and what would bring it in.

    Exit code 0 when it is among the sources of the prompt, 3 when it is not.
    """
    from rag_tui.cli.lab_passage import where_command
    from rag_tui.cli.lab_request import LabOptions

    asked = LabOptions(
        question=question,
        folder=folder,
        where=where or "",
        preset=preset or "",
        knobs=tuple(knob or ()),
        columns=tuple(column or ()),
        overrides={"models.embedder": embedder, "models.reranker": reranker},
    )
    return where_command(asked, passage, with_remedies=remedies, as_json=as_json)


@history.callback(invoke_without_command=True)
def _history(
    context: typer.Context, folder: FolderOption = None, as_json: JsonOption = False
) -> int:
    """Finished searches of a corpus, the newest first; without a further word they are listed."""
    if context.invoked_subcommand is None:
        return history_list(folder, as_json=as_json)
    hand_down(context, folder, as_json=as_json)
    return 0


@history.command("list")
def history_list(
    folder: FolderOption = None,
    n: Annotated[int, typer.Option("--last", "-n", min=1, help="So many at most.")] = 20,
    as_json: JsonOption = False,
) -> int:
    """List the searches, the newest first."""
    from rag_tui.cli.lab_history import list_command

    return list_command(folder, n, as_json=as_json)


@history.command("show")
def history_show(
    number: NumberArgument = 1, folder: FolderOption = None, as_json: JsonOption = False
) -> int:
    """Show a search as it was: its columns, scores and knobs."""
    from rag_tui.cli.lab_history import show_command

    return show_command(number, folder, as_json=as_json)


@history.command("compare")
def history_compare(
    before: NumberArgument,
    after: NumberArgument = 1,
    folder: FolderOption = None,
    as_json: JsonOption = False,
) -> int:
    """What changed from one search to another: rows in and out, settings, index."""
    from rag_tui.cli.lab_history import compare_command

    return compare_command(before, after, folder, as_json=as_json)


@history.command("rerun")
def history_rerun(
    number: NumberArgument = 1, folder: FolderOption = None, as_json: JsonOption = False
) -> int:
    """Search again with the question and settings of then, and tell what is different now."""
    from rag_tui.cli.lab_history import rerun_command

    return rerun_command(number, folder, as_json=as_json)


@history.command("export")
def history_export(
    target: Annotated[Path, typer.Argument(help="The file to write, JSON Lines.")],
    folder: FolderOption = None,
) -> int:
    """Copy the searches of a corpus into a file."""
    from rag_tui.cli.lab_history import export_command

    return export_command(target, folder)


@history.command("clear")
def history_clear(
    folder: FolderOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> int:
    """Forget the searches of a corpus."""
    from rag_tui.cli.lab_history import clear_command

    return clear_command(folder, is_agreed=yes)
