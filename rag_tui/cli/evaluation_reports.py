"""Reports of an evaluation as files."""

from __future__ import annotations

from pathlib import Path

from rag_tui.cli.output import note, write_text
from rag_tui.engine.evaluation.atomic import write_atomically
from rag_tui.engine.evaluation.compare import RunChange
from rag_tui.engine.evaluation.report import (
    report_html,
    report_markdown,
    sweep_html,
    sweep_markdown,
)
from rag_tui.engine.evaluation.score_table import ScoreTable
from rag_tui.engine.evaluation.sweep_types import SweepResult
from rag_tui.engine.evaluation.types import EvalRun


def write_reports(
    table: ScoreTable,
    run: EvalRun,
    markdown: Path | None,
    html: Path | None,
    *,
    change: RunChange | None = None,
) -> None:
    """Write the reports of an evaluation that are wanted; ``-`` as a file is stdout.

    Raises:
        UsageError: When a file cannot be written.
    """
    if markdown is not None:
        _write(markdown, report_markdown(table, run, change))
    if html is not None:
        _write(html, report_html(table, run, change))


def write_sweep_reports(result: SweepResult, markdown: Path | None, html: Path | None) -> None:
    """Write the reports of a sweep that are wanted; ``-`` as a file is stdout.

    Raises:
        UsageError: When a file cannot be written.
    """
    if markdown is not None:
        _write(markdown, sweep_markdown(result))
    if html is not None:
        _write(html, sweep_html(result))


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        write_text(text, end="")
    else:
        write_atomically(path.expanduser(), text.encode("utf-8", "backslashreplace"))
        note(f"report written to {path}")
