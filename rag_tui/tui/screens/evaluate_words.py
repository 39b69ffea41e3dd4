"""What the Evaluate screen says of itself: what there is, what is running, which key comes next."""

from __future__ import annotations

from collections.abc import Iterator

from rag_tui.tui import format as fmt
from rag_tui.tui.screens.evaluate_state import DEPTH, EvaluateState

BAR = 16
"""Cells of the bar of progress."""

HOW_TO = """\
How to get some:
  · Search (1): ask a question and press r on the row that answers it, u if nothing does
  · have questions drafted from your documents: ctrl+p, "Draft questions"
  · or write questions.jsonl into the folder, one object a line:
    {"id": "q1", "question": "…", "evidence": [{"file": "a.md", "quote": "…"}], "tags": ["…"]}
    also read: questions.json, .toml, .csv, and BEIR folders (queries.jsonl, qrels/*.tsv)

Evidence points at text, so that labels survive another way of chunking."""


def job_parts(state: EvaluateState) -> Iterator[str]:
    """The line of progress, most important first."""
    progress = state.progress
    if state.is_stopping:
        yield "stopping after this question…"
        return
    if progress is None:
        yield "beginning…"
        return
    share = progress.done / progress.total if progress.total else 1.0
    yield f"asking {fmt.bar(share, BAR)} {progress.done:,}/{progress.total:,} {share:.0%}"
    left = state.seconds_left
    if left is not None:
        yield f"{'more than ' if left[1] else ''}{fmt.duration(left[0])} left"
    yield "esc stops"
    if progress.n_known:
        yield f"{progress.n_known:,} known before"
    if progress.columns:
        yield fmt.one_line(", ".join(progress.columns)[:200])


def set_line(state: EvaluateState) -> str:
    """What is measured, with what, and whether that is still true; most important first."""
    parts: list[str] = []
    scored, labelled = state.scored, state.labelled
    if scored is not None:
        run = scored.run
        parts.append(f"run {fmt.one_line(run.name)}" if run.name else "run not kept (n keeps it)")
        if not scored.is_whole:
            parts.append("⚠ stopped half-way, r goes on")
        if labelled is not None and _has_other_questions(state):
            parts.append("⚠ questions or labels are others now: r asks what is missing")
        if state.has_other_knobs:
            parts.append("⚠ the knobs are others now: r runs them")
        if scored.is_whole and scored.n_known:
            total = sum(len(c.questions) for c in run.columns if not c.imported_from)
            parts.append(f"reused {scored.n_known:,} of {total:,} lists")
    if labelled is not None:
        n = len(labelled.questions.questions)
        parts.append(f"{fmt.one_line(labelled.questions.name)}: {fmt.count(n, 'question')}")
        if labelled.questions.problems:
            parts.append(f"⚠ {fmt.count(len(labelled.questions.problems), 'problem')} (i)")
    if scored is not None:
        parts.append(f"{scored.run.depth} candidates a list")
    return " · ".join(parts)


def _has_other_questions(state: EvaluateState) -> bool:
    scored, labelled = state.scored, state.labelled
    if scored is None or labelled is None:
        return False
    return scored.run.questions_fingerprint != labelled.questions.fingerprint


def intro(state: EvaluateState) -> str:
    """What there is, and which key comes next."""
    app = state.workbench
    if app.index is None:
        return f"There is no index yet: {app.status.message or 'it is being opened…'}"
    if state.problem is not None:
        return f"There are no questions to measure with.\n{state.problem.message}\n\n{HOW_TO}"
    if (labelled := state.labelled) is None:
        return "reading the questions…"
    questions = labelled.questions
    n, columns = len(questions.questions), state.column_names
    no = n - labelled.n_answerable
    found = sum(one.is_judged for one in labelled.resolved.values())
    lost = sum(len(one.unresolved) for one in labelled.resolved.values())
    names = ", ".join(fmt.one_line(name[:80]) for name in columns) or "none"
    lines = [
        f"{fmt.one_line(questions.name)} in {fmt.one_line(str(labelled.base))}",
        "",
        f"{n:>6,} questions: {labelled.n_answerable:,} answerable, {no:,} that nothing answers",
        f"{found:>6,} have evidence that was found in the documents"
        + (f"; {fmt.count(lost, 'label')} not found" if lost else ""),
        f"{len(questions.problems):>6,} problems in the file",
        *(f"       ⚠ {fmt.one_line(one[:300])}" for one in questions.problems[:4]),
        "",
        f"Press r to ask them in {fmt.count(len(columns), 'column')}: {names}",
        f"       {n * len(columns):,} lists of {DEPTH} candidates; esc stops, nothing is lost",
        "",
        "o opens an earlier run, I imports another system's (TREC).",
        "Columns and knobs are those of the Search screen (1).",
    ]
    return "\n".join(lines)
