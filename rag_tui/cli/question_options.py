"""``rag-tui questions`` as it is typed, and the option that names a file of questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_tui.cli.options import FolderArgument, FolderOption, JsonOption

QuestionsOption = Annotated[
    Path | None,
    typer.Option(
        "--questions", "-q", help="File of questions, or a BEIR folder (default: the corpus's own)."
    ),
]

questions = typer.Typer(help="Labelled questions: check, export, add.", no_args_is_help=True)


@questions.command("check")
def questions_check(
    folder: FolderArgument = None,
    question_file: QuestionsOption = None,
    as_json: JsonOption = False,
) -> int:
    """Is every question usable, and is every label found in the documents? Exit 1 if not."""
    from rag_tui.cli.evaluation_questions import check_command

    return check_command(folder, question_file, as_json=as_json)


@questions.command("qrels")
def questions_qrels(
    file: Annotated[Path, typer.Argument(help="Where to write the judgements (TREC).")],
    folder: FolderOption = None,
    question_file: QuestionsOption = None,
) -> int:
    """Write the labels as TREC judgements of the chunks there are now."""
    from rag_tui.cli.evaluation_questions import qrels_command

    return qrels_command(file, folder, question_file)


@questions.command("draft")
def questions_draft(
    folder: FolderArgument = None,
    question_file: QuestionsOption = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Passages to draft for.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Another one chooses other passages.")] = 0,
    headings: Annotated[
        bool, typer.Option("--headings", help="Make them from headings; ask no model.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before paying.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Propose questions for passages, for a person to accept; writes no file."""
    from rag_tui.cli.evaluation_drafts import draft_command

    return draft_command(
        folder, question_file, n=n, seed=seed, from_headings=headings, is_agreed=yes,
        as_json=as_json,
    )  # fmt: skip


@questions.command("add")
def questions_add(  # noqa: PLR0917 - typer reads options from the signature
    question: Annotated[str, typer.Argument(help="The question.")],
    folder: FolderOption = None,
    question_file: QuestionsOption = None,
    file: Annotated[str, typer.Option("--file", help="Document that answers it.")] = "",
    quote: Annotated[str, typer.Option("--quote", help="Words that stand there.")] = "",
    heading: Annotated[str, typer.Option("--heading", help="The section's heading.")] = "",
    lines: Annotated[str, typer.Option("--lines", help="First and last line: 10-14.")] = "",
    grade: Annotated[int, typer.Option("--grade", min=0, max=3, help="0 not, 1-3 relevant.")] = 1,
    unanswerable: Annotated[
        bool, typer.Option("--unanswerable", help="Nothing in the documents answers it.")
    ] = False,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable.")] = None,
    answer: Annotated[str, typer.Option("--answer", help="The expected answer.")] = "",
) -> int:
    """Add a labelled question to questions.jsonl; the label must be found in the documents."""
    from rag_tui.cli.evaluation_questions import Added, add_command

    added = Added(
        question, file, quote, heading, lines, grade, unanswerable, tuple(tag or ()), answer
    )
    return add_command(added, folder, question_file)
