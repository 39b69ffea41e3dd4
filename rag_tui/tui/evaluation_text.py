"""What an evaluation says, in words; all foreign text in it is still raw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_tui.engine.evaluation.gates import SIGNIFICANT
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.score_table import ColumnScores, ScoreTable
from rag_tui.engine.evaluation.types import Comparison, Interval
from rag_tui.tui import format as fmt

BLOCKS = " ▁▂▃▄▅▆▇█"


def share(value: float) -> str:
    """``.722``, ``1.000``; differences keep their sign elsewhere."""
    shown = f"{value:.3f}"
    return shown.replace("0.", ".", 1) if shown.startswith(("0.", "-0.")) else shown


def short_interval(interval: Interval) -> str:
    """``.50–.89``."""
    ends = (f"{end:.2f}" for end in (interval.low, interval.high))
    return "–".join(end.removeprefix("0") for end in ends)


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


def cell_sentence(table: ScoreTable, column: ColumnScores, measure: str) -> str:
    """All that is known of one cell of the table."""
    if column.reason:
        return f"{column.name} is not scored: {column.reason}"
    cell = column.cell(measure)
    if cell is None or cell.interval is None:
        return f"{column.name} has no {measure}."
    around = cell.interval
    parts = [
        f"{column.name} {measure} {share(around.mean)}, 95 % interval {short_interval(around)}, "
        f"{fmt.count(around.n, 'question')}"
    ]
    compared = cell.comparison
    if compared is not None and compared.is_identical:
        parts.append(f"no change against {table.baseline}: every list is the same")
    elif compared is not None:
        chance = "p < .001" if compared.p_value < 0.0005 else f"p = {share(compared.p_value)}"
        verdict = "more than chance" if compared.p_value < SIGNIFICANT else "may be chance"
        sign = "+" if compared.delta >= 0 else "−"
        parts.append(
            f"{sign}{share(abs(compared.delta))} against {table.baseline}, {chance}: {verdict}; "
            f"won {compared.wins}, tied {compared.ties}, lost {compared.losses}"
        )
    elif table.baseline == column.name:
        parts.append("the baseline")
    if cell.low is not None and cell.high is not None and cell.high - cell.low > 0.0005:
        parts.append(f"more labels could put it at {share(cell.low)} to {share(cell.high)}")
    return " · ".join(parts)


def conscience(table: ScoreTable, measure: str, column: str = "") -> str:
    """What keeps a reader from being fooled, in one line.

    Args:
        table: The scores.
        measure: Name of the measure under the cursor.
        column: Name of the column under the cursor; the baseline, or none: all columns.
    """
    parts = []
    noise = table.noise_of(measure)
    if column in noise:
        told = f"{column} differs in {measure} by up to {share(noise[column])} by chance"
        parts.append(f"{told} on this set")
    elif noise:
        ends = sorted({share(min(noise.values())), share(max(noise.values()))})
        told = f"{' or '.join(ends)}{', by column,' if len(ends) > 1 else ''}"
        parts.append(f"differences in {measure} up to {told} are noise on this set")
    parts.append(f"{table.n_judged} of {fmt.count(table.n_questions, 'question')} judged")
    if table.unlabelled:
        parts.append(f"{len(table.unlabelled)} without a label")
    if table.n_unanswerable:
        parts.append(f"{table.n_unanswerable} unanswerable (u)")
    if table.unresolved:
        parts.append(f"⚠ {fmt.count(len(table.unresolved), 'label')} not found (i)")
    unjudged = sum(column.n_unjudged for column in table.columns)
    rows = sum(column.n_rows for column in table.columns)
    if rows:
        parts.append(f"{unjudged:,} of {rows:,} rows in the first {table.k} unjudged")
    failed = [column.name for column in table.columns if column.reason or column.n_without_list]
    if failed:
        parts.append(f"⚠ not scored everywhere: {', '.join(failed)} (i)")
    return " · ".join(parts)


def remarks(table: ScoreTable, problems: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Everything to keep in mind, as titled lists; empty ones are left out."""
    noise = tuple(
        f"{measure}: differences from {table.baseline} that are noise: "
        + ", ".join(f"{name} up to {share(value)}" for name, value in found.items())
        for measure in table.measures
        if (found := table.noise_of(measure))
    )
    failed = tuple(
        f"{column.name}: not scored: {column.reason}" for column in table.columns if column.reason
    )
    errors = tuple(
        f"{column.name}, {qid}: {reason}"
        for column in table.columns
        if not column.reason
        for qid, reason in column.errors
    )
    without = tuple(
        f"{column.name}: {fmt.count(column.n_without_list, 'judged question')} without a list; "
        "left out of its means, never counted as 0"
        for column in table.columns
        if column.n_without_list and not column.reason
    )
    bounds = tuple(
        f"{column.name}: {column.n_unjudged:,} of {column.n_rows:,} rows among the first {table.k} "
        f"unjudged"
        + "".join(
            f"; {cell.measure} between {share(cell.low)} and {share(cell.high)}"
            for cell in column.cells
            if cell.low is not None and cell.high is not None and cell.high > cell.low
        )
        for column in table.columns
        if column.n_unjudged
    )
    times = tuple(
        f"{column.name}: {fmt.duration(column.seconds)} for all lists"
        for column in table.columns
        if column.seconds
    )
    everything = (
        ("Labels that are nowhere in the documents", table.unresolved),
        ("Problems of the question file", tuple(problems)),
        ("Questions without a label (p judges them blind)", table.unlabelled),
        ("Columns that are not scored", failed + without),
        ("Questions that failed", errors),
        ("Noise", noise),
        ("Unjudged rows: what more labels could make of the means", bounds),
        ("Time", times),
        ("Also", table.notes),
    )
    return ((title, lines) for title, lines in everything if lines)


def histogram(scores: Sequence[float], low: float, high: float, width: int) -> str:
    """Scores as blocks between two ends, the fullest bin a full block; ``width`` cells."""
    counts = [0] * max(1, width)
    span = high - low
    for value in scores:
        share_of = (value - low) / span if span > 0 else 0.5
        place = int(share_of * len(counts))
        counts[max(0, min(len(counts) - 1, place))] += 1
    most = max(counts)
    steps = len(BLOCKS) - 1
    return "".join(BLOCKS[0] if not n else BLOCKS[max(1, round(n / most * steps))] for n in counts)
