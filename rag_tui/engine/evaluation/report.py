"""A score table as a report: Markdown, or one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rag_tui.engine.evaluation.score_table import Cell, ScoreTable
from rag_tui.engine.evaluation.types import EvalRun

Rows = list[list[str]]

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "td,th{border-bottom:1px solid #8886;padding:.3rem .7rem;text-align:left}"
    ":root{color-scheme:light dark}"
)


def report_markdown(table: ScoreTable, run: EvalRun) -> str:
    """The report as Markdown with tables."""
    parts = []
    for title, rows in _sections(table, run):
        parts.append(f"## {_line(title)}\n")
        head, *body = [[_cell(text) for text in row] for row in rows]
        lines = [head, ["---"] * len(head), *body]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n")
    return f"# Evaluation {_line(run.name)}\n\n" + "\n".join(parts)


def report_html(table: ScoreTable, run: EvalRun) -> str:
    """The report as one HTML file, without scripts and without anything from elsewhere."""
    parts = []
    for title, rows in _sections(table, run):
        parts.append(f"<h2>{escape(title)}</h2>")
        head, *body = rows
        lines = ["".join(f"<th>{escape(text)}</th>" for text in head)]
        lines += ["".join(f"<td>{escape(text)}</td>" for text in row) for row in body]
        parts.append(f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")
    name = escape(f"Evaluation {run.name}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
        f"<style>{_STYLE}</style><h1>{name}</h1>{''.join(parts)}</html>\n"
    )


def _sections(table: ScoreTable, run: EvalRun) -> Iterator[tuple[str, Rows]]:
    made = [
        ["folder", run.folder],
        ["made (UTC)", run.created],
        ["candidates a list", str(run.depth)],
        ["index", run.index_fingerprint],
        ["questions", run.questions_fingerprint],
        *([name, str(value)] for name, value in run.knobs.items()),
    ]
    scores = [["column", *table.measures, "questions"]]
    for column in table.columns:
        cells = [_score(cell) for cell in column.cells]
        scores.append([column.name, *cells, column.reason or str(column.n_scored)])
    yield "Scores, with 95 % bootstrap intervals", scores
    compared = [
        [column.name, *(_comparison(cell) for cell in column.cells)]
        for column in table.columns
        if any(cell.comparison for cell in column.cells)
    ]
    if compared:
        title = f"Against {table.baseline}: difference, won/tied/lost, p"
        yield title, [["column", *table.measures], *compared]
    names = [column.name for column in table.columns]
    apart = [["question", "text", *names]]
    for question in table.disagreements():
        ranks = ["–" if rank is None else str(rank) for rank in question.ranks]
        apart.append([question.qid, question.text, *ranks])
    if len(apart) > 1:
        yield "Rank of the first evidence where columns disagree", apart
    counts = [
        ["questions", str(table.n_questions)],
        ["judged", str(table.n_judged)],
        ["unanswerable", str(table.n_unanswerable)],
        ["without a label", ", ".join(table.unlabelled) or "0"],
        *(["label not found", sentence] for sentence in table.unresolved),
        *(["noise", f"{name} {value:.3f}"] for name, value in table.noise.items()),
        *(["note", sentence] for sentence in table.notes),
    ]
    yield "What to keep in mind", [["", ""], *counts]
    yield "How it was made", [["", ""], *made]


def _score(cell: Cell) -> str:
    if cell.interval is None:
        return "–"
    return f"{cell.interval.mean:.4f} ({cell.interval.low:.2f} to {cell.interval.high:.2f})"


def _comparison(cell: Cell) -> str:
    found = cell.comparison
    if found is None:
        return "–"
    if found.is_identical:
        return "no change"
    counts = f"{found.wins}/{found.ties}/{found.losses}"
    return f"{found.delta:+.4f} {counts} p={found.p_value:.3f}"


def _line(text: str) -> str:
    """Foreign text on one line of Markdown, as text and never as markup."""
    escaped = "".join(f"\\{c}" if c in "\\`*_{}[]<>()#|~!" else c for c in text)
    return " ".join(escaped.split())


def _cell(text: str) -> str:
    return _line(text) or " "
