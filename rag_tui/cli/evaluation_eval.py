"""``rag-tui eval``: run, score, keep, tell, and hold against the gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_tui.cli.evaluation import EXIT_GATE
from rag_tui.cli.evaluation_output import table_json, write_table
from rag_tui.cli.evaluation_run import (
    Asked,
    Opened,
    ask_all,
    make_request,
    note_problems,
    open_questions,
)
from rag_tui.cli.output import note, write_json, write_text
from rag_tui.display import count
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.compare import RunChange, compare_runs
from rag_tui.engine.evaluation.evaluate import check_evaluation, columns_of
from rag_tui.engine.evaluation.gates import (
    Gate,
    GateResult,
    check_gates,
    check_regression,
    parse_gate,
)
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.run_store import check_name
from rag_tui.engine.evaluation.score_table import ScoreTable
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.types import EvalRun

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to come of an evaluation."""

    measures: tuple[str, ...]
    baseline: str | None = None
    """Name of a column of this evaluation, or of a kept run."""
    save: str = ""
    fail_under: tuple[str, ...] = ()
    fail_on_regression: bool = False
    tolerance: float | None = None
    markdown: Path | None = None
    html: Path | None = None
    as_json: bool = False


def eval_command(asked: Asked, wanted: Wanted) -> int:
    """Exit 5 when a gate is not met, 1 when a column failed for every question, 130 when stopped.

    A column that failed for some questions is told, and is no reason to fail.
    """
    request, overrides = make_request(asked)
    check_evaluation(request, asked.depth)
    for name in wanted.measures:
        parse_measure(name)
    columns = [column.name for column in columns_of(request)]
    if not asked.runs:  # else their names are not known yet
        _gates(wanted.fail_under, columns)
    if wanted.save:
        check_name(wanted.save)
    if wanted.fail_on_regression and wanted.baseline is None:
        raise UsageError(
            "--fail-on-regression needs something to compare with.",
            "Give --baseline with the name of a kept run; `rag-tui runs` lists them.",
        )
    if wanted.tolerance is not None and not wanted.fail_on_regression:
        raise UsageError(
            f"--tolerance {wanted.tolerance:g} alone is no gate.",
            "Give --fail-on-regression and --baseline with it.",
        )
    if wanted.as_json and str(wanted.markdown) == "-":
        raise UsageError(
            "--json and --markdown - would both write to stdout.", "Name a file for the report."
        )
    opened = open_questions(asked.folder, asked.questions, overrides)
    note_problems(opened.questions)
    before = _baseline_run(opened, wanted.baseline, columns)
    if wanted.save:
        opened.store.check_free(wanted.save)
    run, is_whole = ask_all(opened, request, asked)
    gates = _gates(wanted.fail_under, [column.column.name for column in run.columns])
    if is_whole or wanted.save:
        run = opened.store.save(run, wanted.save)
    measures = dict.fromkeys([*wanted.measures, *(gate.measure for gate in gates)])
    table = score(
        run,
        opened.resolved,
        tuple(measures),
        opened.questions.unit,
        baseline=before if before is not None else wanted.baseline,
    )
    change = None
    if before is not None:
        change = compare_runs(before, run, opened.resolved, unit=opened.questions.unit)
    _write(table, run, wanted, change)
    if not is_whole:
        note("interrupted: what was asked is kept, the same command goes on from there")
        return EXIT_INTERRUPTED
    if wanted.save:
        note(f"kept as {run.name}")
    return _verdict(table, gates, wanted)


def _gates(texts: Sequence[str], columns: Sequence[str]) -> tuple[Gate, ...]:
    return tuple(parse_gate(text, columns) for text in texts)


def _baseline_run(opened: Opened, name: str | None, columns: Sequence[str]) -> EvalRun | None:
    """The kept run of that name, unless a column is called so."""
    return None if name is None or name in columns else opened.store.load(name)


def _write(table: ScoreTable, run: EvalRun, wanted: Wanted, change: RunChange | None) -> None:
    if wanted.html is not None or wanted.markdown is not None:
        from rag_tui.cli.evaluation_reports import write_reports

        write_reports(table, run, wanted.markdown, wanted.html, change=change)
    if wanted.as_json:
        write_json(table_json(table, run))
    elif wanted.markdown is None or str(wanted.markdown) != "-":
        write_text(f"{run.folder}: run {run.name or '(not kept)'}, {run.depth} candidates a list")
        write_text("")
        write_table(table)


def _verdict(table: ScoreTable, gates: Sequence[Gate], wanted: Wanted) -> int:
    results: list[GateResult] = list(check_gates(gates, table))
    if wanted.fail_on_regression:
        losses = check_regression(table, tolerance=wanted.tolerance)
        on = count(table.n_judged, "question")  # those whose labels are gone are in neither mean
        none_lost = GateResult(True, f"nothing lost against {table.baseline} on {on}")
        results.extend(losses or (none_lost,))
    for result in results:
        note(f"{'met' if result.is_met else 'NOT MET'}: {result.message}")
    if not all(result.is_met for result in results):
        return EXIT_GATE
    failed = [column for column in table.columns if column.reason and column.errors]
    return EXIT_FAILED if failed else 0
