"""Evaluations and sweeps as reports: Markdown, or one HTML file that needs nothing else.

The same values give the same bytes: a report has the time of its run, not of its writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rag_tui.engine.evaluation.compare import RunChange
from rag_tui.engine.evaluation.report_html import page
from rag_tui.engine.evaluation.report_sections import Section, evaluation_sections
from rag_tui.engine.evaluation.report_sweep import sweep_sections
from rag_tui.engine.evaluation.score_table import ScoreTable
from rag_tui.engine.evaluation.sweep_types import SweepResult
from rag_tui.engine.evaluation.types import EvalRun
from rag_tui.engine.prompt_text import one_line, visible

_MARKS = frozenset("\\`*_[]<>#|~&$")
_LINKS = re.compile(r"(?i)(:)(//)|(www)(\.)")


def report_markdown(table: ScoreTable, run: EvalRun, change: RunChange | None = None) -> str:
    """An evaluation as Markdown.

    Args:
        table: The scores.
        run: What was scored.
        change: What changed from an earlier run, where there is one to compare with.
    """
    return _markdown(_evaluation_title(run), evaluation_sections(table, run, change))


def report_html(table: ScoreTable, run: EvalRun, change: RunChange | None = None) -> str:
    """The same as one HTML file, with plots."""
    return page(_evaluation_title(run), evaluation_sections(table, run, change))


def sweep_markdown(result: SweepResult) -> str:
    """A sweep as Markdown."""
    return _markdown(_sweep_title(result), sweep_sections(result))


def sweep_html(result: SweepResult) -> str:
    """The same as one HTML file, with plots."""
    return page(_sweep_title(result), sweep_sections(result))


def _evaluation_title(run: EvalRun) -> str:
    return f"Evaluation {run.name or run.created}"


def _sweep_title(result: SweepResult) -> str:
    return f"Sweep of {result.column}, {result.metric}, {result.created}"


def _markdown(title: str, sections: Iterable[Section]) -> str:
    return "\n".join([f"# {_line(title)}", *(part for one in sections for part in _parts(one))])


def _parts(section: Section) -> Iterator[str]:
    yield f"\n## {_line(section.title)}\n"
    if section.lines:
        yield "\n".join(f"- {_line(line)}" for line in section.lines) + "\n"
    if section.rows:
        rows = [section.head, ("---",) * len(section.head), *section.rows]
        cells = [[cell if cell == "---" else _line(cell) or " " for cell in row] for row in rows]
        yield "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"
    if section.code:
        longest = max((len(ticks) for ticks in re.findall("`+", section.code)), default=0)
        fence = "`" * max(3, longest + 1)
        yield f"{fence}toml\n{visible(section.code).rstrip()}\n{fence}\n"
    if section.after:
        yield "\n".join(_line(line) for line in section.after) + "\n"


def _line(text: str) -> str:
    """Foreign text on one line of Markdown: as text, never as markup or a link."""
    words = one_line(" ".join(text.split()))
    escaped = "".join(f"\\{char}" if char in _MARKS else char for char in words)
    escaped = _LINKS.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"{m[3]}\\{m[4]}", escaped)
    # lists and rules begin at the beginning only
    escaped = re.sub(r"^([-+=])(?=\1*\s|\1*$)", r"\\\1", escaped)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", escaped)
