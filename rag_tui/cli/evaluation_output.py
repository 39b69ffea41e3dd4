"""A score table for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from rag_tui.cli.output import write_rich, write_text
from rag_tui.display import clip, duration, plain, score
from rag_tui.engine.evaluation.conscience import conscience
from rag_tui.engine.evaluation.gates import SIGNIFICANT
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.score_table import (
    Cell,
    GroupKind,
    QuestionScores,
    ScoreTable,
)
from rag_tui.engine.evaluation.types import Comparison, EvalRun

N_QUESTIONS = 10
"""Disagreements shown; all are in the JSON."""
N_GROUPS = 8
"""Groups of one kind shown."""
_QUESTION_WIDTH = 56

_GROUP_TITLES: Mapping[GroupKind, str] = {
    "tag": "by tag",
    "document": "by document of the evidence",
    "length": "by length of the question",
}


def write_table(table: ScoreTable) -> None:
    """The whole table: scores, comparisons, disagreements, groups, and what to keep in mind."""
    write_rich(_scores(table))
    for line in _legend(table):
        write_text(line)
    if any(cell.comparison for column in table.columns for cell in column.cells):
        write_text("")
        write_rich(_comparisons(table))
        write_text("Mean difference, questions won/tied/lost, p.")
    _write_disagreements(table)
    for kind in _GROUP_TITLES:
        _write_groups(table, kind)
    _write_unanswerable(table)
    write_text("")
    for line in (*conscience(table), *_times(table)):
        write_text(line)


def _scores(table: ScoreTable) -> Table:
    shown = Table(pad_edge=False, show_edge=False)
    shown.add_column("column", no_wrap=True, overflow="ellipsis", max_width=28)
    for measure in table.measures:
        shown.add_column(measure)
    shown.add_column("n", justify="right", no_wrap=True)
    for column in table.columns:
        if column.reason:
            cells = [Text("not scored", "dim"), *[Text("") for _ in table.measures[1:]]]
        else:
            cells = [_score_cell(cell) for cell in column.cells]
        shown.add_row(plain(clip(column.name, 28)), *cells, str(column.n_scored))
    return shown


def _score_cell(cell: Cell) -> Text:
    if cell.interval is None:
        return Text("–", "dim")
    text = Text(f"{cell.interval.mean:.3f}", "bold")
    text.append(mark(cell.comparison))
    text.append(f" {cell.interval.low:.2f}–{cell.interval.high:.2f}", "dim")
    return text


def mark(compared: Comparison | None) -> str:
    """``▲`` or ``▼`` for a difference that chance does not explain, ``=`` for no change."""
    if compared is None:
        return " "
    if compared.is_identical:
        return "="
    if compared.p_value >= SIGNIFICANT or compared.delta == 0:
        return " "
    is_better = (compared.delta > 0) == parse_measure(compared.measure).higher_is_better
    return "▲" if is_better else "▼"


def _legend(table: ScoreTable) -> Iterator[str]:
    yield f"Mean and 95 % bootstrap interval over the n scored questions; labels are {table.unit}s."
    if table.baseline:
        yield (
            f"▲ ▼ better or worse than {table.baseline}, p < {SIGNIFICANT:g}, paired "
            "randomisation test; = no change."
        )
    for column in table.columns:
        if column.reason:
            yield f"{column.name} is not scored: {column.reason}"


def _comparisons(table: ScoreTable) -> Table:
    shown = Table(pad_edge=False, show_edge=False)
    shown.add_column(plain(f"against {table.baseline}"), no_wrap=True, max_width=28)
    for measure in table.measures:
        shown.add_column(measure)
    for column in table.columns:
        if any(cell.comparison for cell in column.cells):
            cells = [_comparison_cell(cell.comparison) for cell in column.cells]
            shown.add_row(plain(clip(column.name, 28)), *cells)
    return shown


def _comparison_cell(compared: Comparison | None) -> Text:
    if compared is None:
        return Text("–", "dim")
    if compared.is_identical:
        return Text("no change", "dim")
    chance = "p<0.001" if compared.p_value < 0.0005 else f"p={compared.p_value:.3f}"
    counts = f"{compared.wins}/{compared.ties}/{compared.losses}"
    return Text(f"{compared.delta:+.3f} {counts} {chance}")


def _write_disagreements(table: ScoreTable) -> None:
    apart = table.disagreements()
    if not apart:
        return
    write_text("")
    shown = Table(pad_edge=False, show_edge=False)
    title = f"rank of the first evidence, {len(apart)} of {len(table.questions)} disagree"
    shown.add_column(title, no_wrap=True, overflow="ellipsis", min_width=_QUESTION_WIDTH)
    for column in table.columns:
        shown.add_column(plain(clip(column.name, 14)), justify="right", no_wrap=True)
    for question in apart[:N_QUESTIONS]:
        text = plain(f"{clip(question.qid, 12)}  {clip(question.text, _QUESTION_WIDTH - 14)}")
        shown.add_row(text, *_ranks(question))
    write_rich(shown)
    if len(apart) > N_QUESTIONS:
        write_text(f"and {len(apart) - N_QUESTIONS:,} more (--json has all)")
    write_text("– is in no row of the list; a blank has no list.")


def _ranks(question: QuestionScores) -> list[str]:
    return [
        ("" if not has_list else "–") if rank is None else str(rank)
        for rank, has_list in zip(question.ranks, question.has_list, strict=True)
    ]


def _write_groups(table: ScoreTable, kind: GroupKind) -> None:
    groups = [group for group in table.groups if group.kind == kind]
    if not groups or not table.measures:
        return
    write_text("")
    shown = Table(pad_edge=False, show_edge=False)
    shown.add_column(f"{_GROUP_TITLES[kind]}: {table.measures[0]}", no_wrap=True, max_width=48)
    shown.add_column("n", justify="right")
    for column in table.columns:
        shown.add_column(plain(clip(column.name, 14)), justify="right", no_wrap=True)
    for group in groups[:N_GROUPS]:
        means = [values[0] for values in group.means]
        cells = ["–" if value is None else f"{value:.3f}" for value in means]
        shown.add_row(plain(clip(group.name, 48)), str(group.n), *cells)
    write_rich(shown)
    if len(groups) > N_GROUPS:
        write_text(f"and {len(groups) - N_GROUPS:,} more (--json has all)")


def _write_unanswerable(table: ScoreTable) -> None:
    if not table.n_unanswerable:
        return
    write_text("")
    separations = [(column, found) for column in table.columns if (found := column.separation)]
    if not separations:
        write_text("No column can tell the unanswerable questions apart: one kind has no list.")
        return
    shown = Table(pad_edge=False, show_edge=False)
    for title in ("best score of a question", "answerable", "not", "AUC", "answer from", "right"):
        shown.add_column(title, no_wrap=True)
    for column, found in separations:
        kind = column.score_name
        shown.add_row(
            plain(clip(f"{column.name} {kind}", 32)),
            f"{score(found.answerable.median, kind)} ({found.answerable.n})",
            f"{score(found.unanswerable.median, kind)} ({found.unanswerable.n})",
            f"{found.auc.mean:.2f} {found.auc.low:.2f}–{found.auc.high:.2f}",
            score(found.threshold, kind),
            f"{found.balanced_accuracy:.2f}",
        )
    write_rich(shown)
    write_text(
        "Medians (questions); AUC 0.5 is chance; the threshold and how often it is right were "
        "chosen on these questions."
    )


def _times(table: ScoreTable) -> Iterator[str]:
    told = [f"{one.name} {duration(one.seconds)}" for one in table.columns if one.seconds]
    if told:
        yield f"time for all lists: {', '.join(told)}"


def table_json(table: ScoreTable, run: EvalRun) -> dict[str, Any]:
    """Everything the table knows, and what made the run."""
    return {
        **_finite(asdict(table)),
        "noise": table.noise,
        "disagreements": [question.qid for question in table.disagreements()],
        "folder": run.folder,
        "created": run.created,
        "depth": run.depth,
        "index_fingerprint": run.index_fingerprint,
        "questions_fingerprint": run.questions_fingerprint,
        "knobs": dict(run.knobs),
    }


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON cannot say."""
    match value:
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
