"""What keeps the reader of a score table from being fooled, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_tui.engine.evaluation.score_table import ColumnScores, ScoreTable

N_NAMED = 10
"""Labels and questions that are named; the others are counted."""


def conscience(table: ScoreTable) -> Iterator[str]:
    """Judged and unjudged, found and not found, failed, bounds and noise: one sentence each.

    Why a column is not scored at all stands in `ColumnScores.reason`.
    """
    lost = table.n_answerable - table.n_judged - len(table.unlabelled)
    told = f"{lost} whose labels are not found, " if lost else ""
    yield (
        f"{_count(table.n_questions, 'question')}: {table.n_judged} judged, "
        f"{len(table.unlabelled)} without a label, {told}{table.n_unanswerable} unanswerable"
    )
    if table.unlabelled:
        yield f"without a label: {_some(table.unlabelled)}"
    for sentence in table.unresolved[:N_NAMED]:
        yield f"label not found: {sentence}"
    if len(table.unresolved) > N_NAMED:
        yield f"and {len(table.unresolved) - N_NAMED:,} more labels are not found"
    for column in table.columns:
        yield from _of_column(column, table)
    for measure in table.measures:
        if noise := table.noise_of(measure):
            parts = ", ".join(f"{name} {value:.3f}" for name, value in noise.items())
            yield (
                f"{measure}: differences from {table.baseline} below these are noise on this "
                f"set: {parts}"
            )
    yield from table.notes


def _of_column(column: ColumnScores, table: ScoreTable) -> Iterator[str]:
    if column.reason:
        return
    if column.n_without_list:
        why = f" ({column.errors[0][0]}: {column.errors[0][1]})" if column.errors else ""
        count = _count(column.n_without_list, "judged question")
        yield f"{column.name}: {count} without a list, not scored{why}"
    if column.n_unjudged:
        told = (
            f"{column.name}: {column.n_unjudged:,} of {column.n_rows:,} rows among the first "
            f"{table.k} have no label"
        )
        last = column.cells[-1] if column.cells else None
        if last is not None and last.low is not None and last.high is not None:
            told += f"; labels could put {last.measure} at {last.low:.3f}–{last.high:.3f}"
        yield told


def _some(names: Sequence[str]) -> str:
    rest = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
