"""``rag-tui runs``: kept runs listed, scored anew, compared, exchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from rag_tui.cli.evaluation_output import N_QUESTIONS, table_json, write_table
from rag_tui.cli.evaluation_run import N_PROBLEMS, note_problems, open_questions
from rag_tui.cli.output import note, write_json, write_rich, write_text
from rag_tui.config import bundled_corpus, cache_dir
from rag_tui.display import clip, count, plain
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.compare import (
    ChangeKind,
    ColumnChange,
    QuestionChange,
    RunChange,
    compare_runs,
)
from rag_tui.engine.evaluation.fingerprints import index_fingerprint
from rag_tui.engine.evaluation.run_store import RunStore
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.trec import IdKind, read_run, write_qrels, write_run
from rag_tui.engine.evaluation.types import EvalRun, Unit
from rag_tui.engine.indexing_files import check_folder

_SHOWN: tuple[ChangeKind, ...] = ("fixed", "broken", "better", "worse")


def _store(folder: Path | None) -> RunStore:
    """The runs of a corpus, without opening its index."""
    path = (folder if folder is not None else bundled_corpus()).expanduser()
    check_folder(path)
    return RunStore.of(cache_dir(), path)


def list_command(folder: Path | None, *, as_json: bool) -> int:
    """``rag-tui runs list``."""
    found = _store(folder).list()
    for line in found.damaged:
        note(line)
    if as_json:
        write_json({"runs": [asdict(head) for head in found.runs], "damaged": list(found.damaged)})
        return 0
    if not found.runs:
        write_text("no kept runs: `rag-tui eval` makes one")
        return 0
    shown = Table(pad_edge=False, show_edge=False)
    for title in ("run", "made (UTC)", "questions", "columns"):
        shown.add_column(title, no_wrap=True, overflow="ellipsis")
    for head in found.runs:
        made = head.created[:16].replace("T", " ")
        names = clip(", ".join(head.columns), 80)
        shown.add_row(plain(head.name), plain(made), str(head.n_questions), plain(names))
    write_rich(shown)
    return 0


def show_command(
    name: str,
    folder: Path | None,
    questions: Path | None,
    measures: Sequence[str],
    baseline: str | None,
    *,
    as_json: bool,
) -> int:
    """``rag-tui runs show``: scored with the labels of now."""
    store = _store(folder)
    run = store.load(name)
    columns = [column.column.name for column in run.columns]
    before = store.load(baseline) if baseline is not None and baseline not in columns else None
    opened = open_questions(folder, questions)
    note_problems(opened.questions)
    if run.index_fingerprint != index_fingerprint(opened.session.index):
        note("the index has changed since: evidence is found by its place in the documents")
    if run.questions_fingerprint != opened.questions.fingerprint:
        note("the questions or labels have changed since: those of now are used")
    table = score(
        run, opened.resolved, measures, opened.questions.unit, baseline=before or baseline
    )
    if as_json:
        write_json(table_json(table, run))
    else:
        write_table(table)
    return 0


def compare_command(
    before: str,
    after: str,
    folder: Path | None,
    questions: Path | None,
    k: int,
    column: str | None,
    *,
    as_json: bool,
) -> int:
    """``rag-tui runs compare``."""
    store = _store(folder)
    runs = (store.load(before), store.load(after))
    pairs = _pairs(column, *runs)
    opened = open_questions(folder, questions)
    note_problems(opened.questions)
    change = compare_runs(
        *runs, opened.resolved, k=k, unit=opened.questions.unit, pairs=pairs
    )  # fmt: skip
    if as_json:
        write_json({**asdict(change), "is_identical": change.is_identical})
    else:
        _write_change(change)
    return 0


def _pairs(column: str | None, before: EvalRun, after: EvalRun) -> tuple[tuple[str, str], ...]:
    """The one pair of columns that is wanted; empty for all of the same name."""
    if column is None:
        return ()
    names = [{one.column.name for one in run.columns} for run in (before, after)]
    if column in names[0] and column in names[1]:
        return ((column, column),)
    for match in re.finditer("=", column):
        one, other = column[: match.start()], column[match.end() :]
        if one in names[0] and other in names[1]:
            return ((one, other),)
    raise UsageError(
        f"There is no column {column!r} in both runs.",
        f"{before.name} has {', '.join(sorted(names[0]))}; {after.name} has "
        f"{', '.join(sorted(names[1]))}. Write a=b for two names.",
    )


def _write_change(change: RunChange) -> None:
    for line in change.notes:
        write_text(line)
    if change.is_identical:
        write_text("no change")
        return
    for column in change.columns:
        _write_column(column, change.k)


def _write_column(column: ColumnChange, k: int) -> None:
    name = column.name if column.name == column.other_name else f"{column.name} → "
    name += "" if column.name == column.other_name else column.other_name
    if column.is_identical and not column.n_not_compared:
        write_text(f"{name}: no change")
        return
    counts = ", ".join(f"{len(column.of_kind(kind))} {kind}" for kind in _SHOWN)
    alone = f"; {column.n_not_compared} with a list in one run only" * bool(column.n_not_compared)
    write_text(f"{name}: {counts} of {count(len(column.changes), 'question')} at {k}{alone}")
    moved = [one for one in column.changes if one.kind != "same"]
    shown = Table(pad_edge=False, show_edge=False)
    for title in ("", "evidence", f"first {k} rows"):
        shown.add_column(title, no_wrap=True)
    shown.add_column("question", no_wrap=True, overflow="ellipsis")
    for one in moved[:N_QUESTIONS]:
        text = plain(f"{clip(one.qid, 12)}  {clip(one.text, 60)}")
        shown.add_row(one.kind, _ranks(one), _rows(one), text)
    if moved:
        write_rich(shown)
    if len(moved) > N_QUESTIONS:
        write_text(f"and {len(moved) - N_QUESTIONS:,} more (--json has all)")


def _ranks(one: QuestionChange) -> str:
    if one.kind == "unjudged":
        return ""
    before, after = ("–" if rank is None else str(rank) for rank in (one.before, one.after))
    return f"{before} → {after}"


def _rows(one: QuestionChange) -> str:
    parts = (
        (len(one.new), "in"),
        (len(one.dropped), "out"),
        (len(one.promoted), "up"),
        (len(one.demoted), "down"),
    )
    return " ".join(f"{n} {word}" for n, word in parts if n)


def export_command(
    name: str,
    folder: Path | None,
    questions: Path | None,
    trec: Path | None,
    qrels: Path | None,
    column: str | None,
) -> int:
    """``rag-tui runs export``."""
    if trec is None and qrels is None:
        raise UsageError("Nothing to write.", "Name a file with --trec, with --qrels, or both.")
    run = _store(folder).load(name)
    chosen = [one for one in run.columns if column is None or one.column.name == column]
    if not chosen:
        there = ", ".join(one.column.name for one in run.columns)
        raise UsageError(f"There is no column {column!r} in {name}.", f"Columns are: {there}.")
    opened = open_questions(folder, questions)
    note_problems(opened.questions)
    ids = id_kind(opened.questions.unit)
    if trec is not None:
        for one in chosen:
            path = trec if len(chosen) == 1 else _named(trec, one.column.name)
            write_run(path, one, ids=ids)
            write_text(f"{path}: {one.column.name}, {count(len(one.questions), 'question')}")
    if qrels is not None:
        write_qrels(qrels, opened.resolved.values(), ids=ids)
        write_text(f"{qrels}: labels by {ids}")
    return 0


def id_kind(unit: Unit) -> IdKind:
    """What the ids of exported files are: chunks, or documents by the names that BEIR gave them."""
    return "chunk" if unit == "passage" else "record"


def _named(path: Path, column: str) -> Path:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", column).strip("-.") or "column"
    return path.with_name(f"{path.stem}-{slug}{path.suffix}")


def import_command(file: Path, folder: Path | None, questions: Path | None, save: str) -> int:
    """``rag-tui runs import``."""
    store = _store(folder)
    if save:
        store.check_free(save)
    opened = open_questions(folder, questions)
    note_problems(opened.questions)
    found = read_run(file, opened.questions.questions, opened.session.index)
    for problem in found.problems[:N_PROBLEMS]:
        note(problem)
    depth = max((len(one.rows) for one in found.column.questions), default=0)
    run = EvalRun(
        name="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        folder=str(opened.session.folder),
        index_fingerprint=index_fingerprint(opened.session.index),
        questions_fingerprint=opened.questions.fingerprint,
        depth=depth,
        columns=(replace(found.column),),
    )
    write_text(f"kept as {store.save(run, save).name}")
    return 0


def rename_command(name: str, new_name: str, folder: Path | None) -> int:
    """``rag-tui runs rename``."""
    _store(folder).rename(name, new_name)
    write_text(f"{name} is now {new_name}")
    return 0


def delete_command(name: str, folder: Path | None) -> int:
    """``rag-tui runs delete``."""
    _store(folder).delete(name)
    write_text(f"{name} deleted")
    return 0
