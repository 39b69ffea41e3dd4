"""A run of answers for people and as JSON."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from rich.table import Table
from rich.text import Text

from rag_tui.cli.output import note, write_rich, write_text
from rag_tui.display import count, display, duration, one_line, plain
from rag_tui.engine.evaluation.agreement import Agreement, AnswerLabels
from rag_tui.engine.evaluation.answer_scoring import AnswerRunChange, AnswerSummary, summarise
from rag_tui.engine.evaluation.answer_types import AnswerRow, AnswerRun
from rag_tui.engine.evaluation.refusals import OUTCOMES


def write_run(
    run: AnswerRun, labels: AnswerLabels, change: AnswerRunChange | None, agreed: Agreement
) -> None:
    """A run as a table, with its totals and what changed."""
    summary = summarise(run)
    write_text(f"{run.folder}: run {run.name}, answers by {run.answerer}")
    write_text("")
    write_rich(_questions_table(run, labels))
    write_text("")
    for line in summary_lines(run, summary):
        write_text(line)
    if agreed.n or agreed.n_no_verdict:
        write_text(agreement_line(agreed))
    if change is not None:
        write_text("")
        for line in change_lines(change):
            write_text(line)
    if run.stopped and run.stopped != "cancelled":
        note(f"stopped: {run.stopped}; what was answered is kept")


def _questions_table(run: AnswerRun, labels: AnswerLabels) -> Table:
    is_judged = any(row.judgement for row in run.rows)
    is_labelled = any(labels.of(row) for row in run.rows)
    table = Table(box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("question", ratio=1)
    table.add_column("outcome", no_wrap=True)
    table.add_column("support", justify="right", no_wrap=True)
    for name, is_wanted in (("judge", is_judged), ("label", is_labelled)):
        if is_wanted:
            table.add_column(name, no_wrap=True)
    for row in run.rows:
        cells: list[str | Text] = [
            plain(row.qid),
            plain(one_line(row.question)),
            plain(row.outcome if row.kind != "no answer" else f"{row.outcome}: {row.state}"),
            _support(row),
        ]
        if is_judged:
            cells.append(row.judgement.verdict if row.judgement else "")
        if is_labelled:
            cells.append(labels.of(row) or "")
        table.add_row(*cells)
    return table


def _support(row: AnswerRow) -> str:
    checks = row.checks
    if not checks.n_claims:
        return ""
    missing = f", {count(checks.n_missing, 'figure')} missing" if checks.n_missing else ""
    return f"{checks.supported}/{checks.n_claims}{missing}"


def summary_lines(run: AnswerRun, summary: AnswerSummary) -> list[str]:
    """The totals for people; outcomes that no question has are left out, the usual ones apart."""
    usual = (
        "right section", "other section", "refused rightly", "false refusal", "missing refusal",
    )  # fmt: skip
    lines = [
        f"{name + ':':<17}{n:>4}  {OUTCOMES[name]}"
        for name, n in summary.outcomes.items()
        if n or name in usual
    ]
    if summary.support is not None:
        s = summary.support
        lines.append(
            f"{'support:':<17}{s.mean:>4.0%}  of the claims of an answer, mean of {s.n} "
            f"(95 % interval {s.low:.0%} to {s.high:.0%}); an aid, not a verdict"
        )
        lines.append(
            f"claims: {summary.n_claims}, {summary.n_uncited_claims} of them without a citation; "
            f"figures and names that stand in no source: {summary.n_missing_figures}; "
            f"answers that cite a source that is not there: {summary.n_unknown_citations}"
        )
    if summary.verdicts:
        told = ", ".join(f"{n} {verdict}" for verdict, n in summary.verdicts.items())
        lines.append(f"judge ({run.settings.get('judge', '')}): {told}")
    if summary.mean_elapsed_s is not None:
        cost = "nothing" if summary.cost is None else f"{summary.cost:.4f} {run.currency}"
        lines.append(
            f"mean time {duration(summary.mean_elapsed_s)}; {summary.input_tokens:,} tokens read, "
            f"{summary.output_tokens:,} written; cost {cost}, {run.spent:.4f} {run.currency} of it "
            f"in this pass ({run.n_known} answers were known)"
        )
    if summary.n_missing:
        lines.append(f"not asked: {count(summary.n_missing, 'question')}")
    return [*lines, *summary.notes]


def agreement_line(agreed: Agreement) -> str:
    """How far judge and people agree, for people."""
    if agreed.kappa is None:
        told = f"kappa {agreed.note}"
    else:
        interval = "no interval" if agreed.low is None else f"{agreed.low:.2f} to {agreed.high:.2f}"
        told = f"Cohen's kappa {agreed.kappa:.2f} (unweighted; 95 % interval {interval})"
        told += f", {agreed.observed:.0%} alike, {agreed.expected:.0%} by chance"
    no_verdict = f"; {agreed.n_no_verdict} without a verdict" if agreed.n_no_verdict else ""
    return f"judge and labels, n={agreed.n}: {told}{no_verdict}"


def change_lines(change: AnswerRunChange) -> list[str]:
    """What differs from the run before, for people."""
    lines = [
        f"fixed {change.n('fixed')}, broken {change.n('broken')}, otherwise changed "
        f"{change.n('changed')}, same {change.n_same} ({change.n_same_text} word for word)"
    ]
    lines += [
        f"  {one.kind} {display(one.qid)}: {one.before} -> {one.after} ({one_line(one.question)})"
        for one in change.changes
    ]
    for name, qids in (("before", change.only_before), ("now", change.only_after)):
        if qids:
            lines.append(f"  only {name}: {display(', '.join(qids))}")
    return [*lines, *(f"  {one_line(remark)}" for remark in change.notes)]


def run_json(
    run: AnswerRun, labels: AnswerLabels, change: AnswerRunChange | None, agreed: Agreement
) -> dict[str, Any]:
    """A run with its numbers as JSON values."""
    kappa = {**asdict(replace(agreed, table={}))}
    kappa["table"] = [[a, b, n] for (a, b), n in agreed.table.items()]
    return {
        **head_json(run),
        **summary_json(summarise(run)),
        "stopped": run.stopped,
        "settings": dict(run.settings),
        "rows": [{**asdict(row), "label": labels.of(row)} for row in run.rows],
        "agreement": kappa,
        "change": None if change is None else asdict(change),
    }


def head_json(run: AnswerRun) -> dict[str, Any]:
    """What made a run, without its rows."""
    return {
        "name": run.name,
        "created": run.created,
        "folder": run.folder,
        "answerer": run.answerer,
        "n_questions": run.n_questions,
        "n_known": run.n_known,
        "spent": run.spent,
        "currency": run.currency,
    }


def summary_json(summary: AnswerSummary) -> dict[str, Any]:
    """Its numbers."""
    return {"summary": asdict(summary)}


def share(value: float | None) -> str:
    """A share in percent, or a dash."""
    return "–" if value is None else f"{value:.0%}"
