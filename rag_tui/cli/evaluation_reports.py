"""Reports of an evaluation as files."""

from __future__ import annotations

from pathlib import Path

from rag_tui.cli.output import note, write_text
from rag_tui.engine.evaluation.atomic import write_atomically
from rag_tui.engine.evaluation.report import report_html, report_markdown
from rag_tui.engine.evaluation.score_table import ScoreTable
from rag_tui.engine.evaluation.types import EvalRun


def write_reports(
    table: ScoreTable, run: EvalRun, markdown: Path | None, html: Path | None
) -> None:
    """Write the reports that are wanted; ``-`` as a file is stdout.

    Raises:
        UsageError: When a file cannot be written.
    """
    for path, text in (
        (markdown, report_markdown(table, run) if markdown is not None else ""),
        (html, report_html(table, run) if html is not None else ""),
    ):
        if path is None:
            continue
        if str(path) == "-":
            write_text(text, end="")
        else:
            write_atomically(path.expanduser(), text.encode("utf-8", "backslashreplace"))
            note(f"report written to {path}")
