"""Commands of the evaluation: eval, runs, questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_tui.cli.options import (
    ColumnOption,
    EmbedderOption,
    FolderArgument,
    FolderOption,
    JsonOption,
    KnobOption,
    PresetOption,
    RerankerOption,
    WhereOption,
    hand_down,
)
from rag_tui.cli.question_options import QuestionsOption, questions

EXIT_GATE = 5
"""``eval --fail-under`` or ``--fail-on-regression`` was not met."""

MeasuresOption = Annotated[
    str | None,
    typer.Option("--measures", help="Such as R@5,RR@10,nDCG@10,AP; default R@1 to nDCG@10."),
]
CutsOption = Annotated[
    str | None, typer.Option("--k", help="Cut-offs of recall, such as 1,3; short for R@1,R@3.")
]
NameArgument = Annotated[str, typer.Argument(help="Name of a kept run.")]

runs = typer.Typer(help="Kept runs of evaluations.", no_args_is_help=False)


def register(cli: typer.Typer) -> None:
    """Add the commands to the program."""
    cli.command("eval")(eval_)
    cli.add_typer(runs, name="runs")
    cli.add_typer(questions, name="questions")


def eval_(  # noqa: PLR0917 - typer reads options from the signature
    folder: FolderArgument = None,
    question_file: QuestionsOption = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "-m", help="Only these, such as bm25,hybrid; repeatable."),
    ] = None,
    column: ColumnOption = None,
    knob: KnobOption = None,
    preset: PresetOption = None,
    measures: MeasuresOption = None,
    cuts: CutsOption = None,
    depth: Annotated[int, typer.Option("--depth", help="Candidates per list.")] = 100,
    where: WhereOption = None,
    no_rerank: Annotated[bool, typer.Option("--no-rerank", help="No reranked column.")] = False,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", help="Another system's run (TREC) as a column; repeatable."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="Compare with this column, or this kept run."),
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", help="Name to keep the run under (default: its time).")
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option("--fail-under", help="Exit 5 below: hybrid:R@5=0.90; repeatable."),
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option("--fail-on-regression", help="Exit 5 if a measure lost, p < 0.05."),
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", min=0, help="With it: any loss larger than this instead."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write a report as Markdown; - for stdout.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a report as HTML.")] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Answer the questions instead, and check that.")
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="With --answers: a model judges them; costs money.")
    ] = False,
    cost_limit: Annotated[
        float | None,
        typer.Option("--cost-limit", help="With --answers: ask nothing that may cost more (USD)."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Your verdict on the last answer: q01=correct; repeatable."),
    ] = None,
    answer_runs: Annotated[
        bool, typer.Option("--answer-runs", help="List the kept runs of answers.")
    ] = False,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    as_json: JsonOption = False,
) -> int:
    """Measure the lists on labelled questions: which is better, and by more than chance?"""
    from rag_tui.cli.evaluation_eval import Wanted, eval_command
    from rag_tui.cli.evaluation_run import Asked

    asked = Asked(
        folder=folder,
        questions=question_file,
        methods=tuple(name for text in methods or () for name in _names(text)),
        columns=tuple(column or ()),
        knobs=tuple(knob or ()),
        preset=preset or "",
        depth=depth,
        where=where or "",
        no_rerank=no_rerank,
        runs=tuple(run or ()),
        overrides={"models.embedder": embedder, "models.reranker": reranker},
    )
    if answers or answer_runs or label:
        given = {
            "--fail-under": fail_under,
            "--fail-on-regression": fail_on_regression,
            "--tolerance": tolerance is not None,
            "--measures": measures,
            "--k": cuts,
            "--run": run,
            "--markdown": markdown,
            "--html": html,
        }
        if strange := [name for name, value in given.items() if value]:
            # a gate that is passed over would be a gate that is always met
            raise typer.BadParameter(f"{', '.join(strange)} do not go with --answers")
        from rag_tui.cli.answers_eval import AnswersWanted, eval_answers_command

        about_answers = AnswersWanted(
            is_judged=judge,
            cost_limit=cost_limit,
            save=save or "",
            baseline=baseline or "",
            labels=tuple(label or ()),
            lists_runs=answer_runs,
            as_json=as_json,
        )
        return eval_answers_command(asked, about_answers)
    if judge or cost_limit is not None:
        raise typer.BadParameter("--judge and --cost-limit go with --answers")
    wanted = Wanted(
        measures=_measures(measures, cuts),
        baseline=baseline,
        save=save or "",
        fail_under=tuple(fail_under or ()),
        fail_on_regression=fail_on_regression,
        tolerance=tolerance,
        markdown=markdown,
        html=html,
        as_json=as_json,
    )
    return eval_command(asked, wanted)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _measures(measures: str | None, cuts: str | None) -> tuple[str, ...]:
    """The names asked for, checked by whoever uses them; cut-offs come first."""
    from rag_tui.engine.evaluation.measures import DEFAULT_MEASURES

    recalls = [f"R@{cut}" for cut in _names(cuts or "")]
    if measures is not None:
        return (*recalls, *_names(measures))
    if recalls:
        return (*recalls, *(name for name in DEFAULT_MEASURES if not name.startswith("R@")))
    return DEFAULT_MEASURES


@runs.callback(invoke_without_command=True)
def _runs(context: typer.Context, folder: FolderOption = None, as_json: JsonOption = False) -> int:
    """Kept runs of evaluations; without a further word they are listed."""
    if context.invoked_subcommand is None:
        return runs_list(folder, as_json)
    hand_down(context, folder, as_json=as_json)
    return 0


@runs.command("list")
def runs_list(folder: FolderOption = None, as_json: JsonOption = False) -> int:
    """List the kept runs of a corpus, oldest first."""
    from rag_tui.cli.evaluation_runs import list_command

    return list_command(folder, as_json=as_json)


@runs.command("show")
def runs_show(
    name: NameArgument,
    folder: FolderOption = None,
    question_file: QuestionsOption = None,
    measures: MeasuresOption = None,
    cuts: CutsOption = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Compare with this column or run.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Score a kept run with the labels of now."""
    from rag_tui.cli.evaluation_runs import show_command

    names = _measures(measures, cuts)
    return show_command(name, folder, question_file, names, baseline, as_json=as_json)


@runs.command("compare")
def runs_compare(
    before: NameArgument,
    after: NameArgument,
    folder: FolderOption = None,
    question_file: QuestionsOption = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Rows that count as found.")] = 5,
    column: Annotated[
        str | None, typer.Option("--column", help="Only this column; a=b pairs two names.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Which questions were fixed, which were broken, and what moved."""
    from rag_tui.cli.evaluation_runs import compare_command

    return compare_command(before, after, folder, question_file, k, column, as_json=as_json)


@runs.command("export")
def runs_export(
    name: NameArgument,
    trec: Annotated[
        Path | None, typer.Option("--trec", help="Run file; with several columns NAME-COLUMN.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Judgements.")] = None,
    folder: FolderOption = None,
    question_file: QuestionsOption = None,
    column: Annotated[str | None, typer.Option("--column", help="Only this column.")] = None,
) -> int:
    """Write a kept run and the labels for trec_eval, ir_measures and others."""
    from rag_tui.cli.evaluation_runs import export_command

    return export_command(name, folder, question_file, trec, qrels, column)


@runs.command("import")
def runs_import(
    file: Annotated[Path, typer.Argument(help="Run of another system, TREC format.")],
    folder: FolderOption = None,
    question_file: QuestionsOption = None,
    save: Annotated[str, typer.Option("--save", help="Name to keep it under.")] = "",
) -> int:
    """Keep another system's run beside our own."""
    from rag_tui.cli.evaluation_runs import import_command

    return import_command(file, folder, question_file, save)


@runs.command("rename")
def runs_rename(
    name: NameArgument,
    new_name: Annotated[str, typer.Argument(help="The new name.")],
    folder: FolderOption = None,
) -> int:
    """Give a kept run another name."""
    from rag_tui.cli.evaluation_runs import rename_command

    return rename_command(name, new_name, folder)


@runs.command("delete")
def runs_delete(name: NameArgument, folder: FolderOption = None) -> int:
    """Remove a kept run."""
    from rag_tui.cli.evaluation_runs import delete_command

    return delete_command(name, folder)
