"""``rag-tui history``: the finished searches of a corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rag_tui.cli.lab_output import value_text
from rag_tui.cli.output import note, write_json, write_text
from rag_tui.cli.session import open_session
from rag_tui.config import bundled_corpus, cache_dir
from rag_tui.display import clip, count, one_line
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.fingerprints import index_fingerprint
from rag_tui.engine.history import (
    EntryComparison,
    HistoryEntry,
    clear_history,
    compare_entries,
    entry_as_json,
    export_history,
    history_file,
    read_history,
)
from rag_tui.engine.history_entries import make_entry
from rag_tui.engine.indexing_files import check_folder
from rag_tui.engine.searching import final_results, search
from rag_tui.engine.types import KnobValue

WIDTH = 80


def list_command(folder: Path | None, n: int, *, as_json: bool) -> int:
    """``rag-tui history list``."""
    entries = _entries(folder)[:n]
    if as_json:
        write_json([{"number": i, **entry_as_json(e)} for i, e in enumerate(entries, start=1)])
        return 0
    if not entries:
        note("no searches are kept yet")
    for number, entry in enumerate(entries, start=1):
        changed = ", ".join(_knob(name, value) for name, value in entry.knobs.items())
        tail = f"  [{changed}]" if changed else ""
        line = f"{number:>3}  {_time(entry)}  {one_line(entry.query)}{tail}"
        write_text(clip(line, WIDTH))
    return 0


def show_command(number: int, folder: Path | None, *, as_json: bool) -> int:
    """``rag-tui history show``."""
    entry = _entry(_entries(folder), number)
    if as_json:
        write_json({"number": number, **entry_as_json(entry)})
        return 0
    for line in _shown(entry):
        write_text(clip(line, WIDTH))
    return 0


def compare_command(before: int, after: int, folder: Path | None, *, as_json: bool) -> int:
    """``rag-tui history compare``."""
    entries = _entries(folder)
    _tell(_entry(entries, before), _entry(entries, after), as_json=as_json)
    return 0


def rerun_command(number: int, folder: Path | None, *, as_json: bool) -> int:
    """``rag-tui history rerun``: the search as it is now, compared with what it was."""
    entry = _entry(_entries(folder), number)
    request = entry.request()
    session = open_session(folder, {})
    results = list(final_results(search(request, session.index, session.models)))
    for result in results:
        if result.error is not None:
            note(f"{result.stage}: {result.error.message}")
    now = make_entry(
        request,
        session.index,
        results,
        time=datetime.now(UTC),
        index_fingerprint=index_fingerprint(session.index),
    )
    _tell(entry, now, as_json=as_json)
    return 1 if any(result.error for result in results) else 0


def export_command(target: Path, folder: Path | None) -> int:
    """``rag-tui history export``."""
    n = export_history(_file(folder), target)
    write_text(f"{count(n, 'search', 'searches')} written to {target}")
    return 0


def clear_command(folder: Path | None, *, is_agreed: bool) -> int:
    """``rag-tui history clear``: exit 2 where nobody can be asked."""
    n = len(_entries(folder))
    if not is_agreed:
        if not sys.stdin.isatty():
            raise UsageError(
                "Clearing the history asks first, and there is nobody to ask.", "Give --yes."
            )
        note(f"Forget {count(n, 'search', 'searches')} of this corpus? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            note("nothing was removed")
            return 0
    clear_history(_file(folder))
    write_text(f"{count(n, 'search', 'searches')} forgotten")
    return 0


def _file(folder: Path | None) -> Path:
    """Where they are kept; of a folder that is gone they can still be read and forgotten.

    Raises:
        MissingCorpusError: For a folder that is not there and has none.
    """
    path = (folder if folder is not None else bundled_corpus()).expanduser()
    kept = history_file(cache_dir(), path)
    if not kept.exists():
        check_folder(path)
    return kept


def _entries(folder: Path | None) -> list[HistoryEntry]:
    """The newest first."""
    history = read_history(_file(folder))
    if history.n_damaged:
        note(f"{count(history.n_damaged, 'line')} of the history cannot be read")
    return list(reversed(history.entries))


def _entry(entries: list[HistoryEntry], number: int) -> HistoryEntry:
    if number > len(entries):
        raise UsageError(
            f"There is no search {number} among the {len(entries)} that are kept.",
            "`rag-tui history` lists them.",
        )
    return entries[number - 1]


def _shown(entry: HistoryEntry) -> Iterator[str]:
    yield one_line(entry.query)
    yield f"{_time(entry)} · {entry.folder} · {entry.model}"
    if entry.where:
        yield f"filter {entry.where}"
    if entry.knobs:
        yield ", ".join(_knob(name, value) for name, value in entry.knobs.items())
    for column in entry.columns:
        yield ""
        yield f"{column.name} · {column.score_name or column.method}"
        for remark in (column.error, column.note):
            if remark:
                yield f"  {remark}"
        for rank, row in enumerate(column.rows, start=1):
            yield f"{rank:>5}  {row.score:9.4f}  {row.location}"


def _tell(before: HistoryEntry, after: HistoryEntry, *, as_json: bool) -> None:
    compared = compare_entries(before, after)
    if as_json:
        write_json(
            {
                "before": entry_as_json(before),
                "after": entry_as_json(after),
                "is_same_query": compared.is_same_query,
                "is_same_index": compared.is_same_index,
                "is_same_settings": compared.is_same_settings,
                "knobs": {name: list(pair) for name, pair in compared.knobs.items()},
                "columns": [
                    {
                        "column": change.name,
                        "score_changed": change.score_changed,
                        "movement": asdict(change.movement) if change.movement else None,
                    }
                    for change in compared.columns
                ],
            }
        )
        return
    for line in _differences(before, after, compared):
        write_text(clip(line, WIDTH))


def _differences(
    before: HistoryEntry, after: HistoryEntry, compared: EntryComparison
) -> Iterator[str]:
    yield f"{_time(before)}  {one_line(before.query)}"
    yield f"{_time(after)}  {one_line(after.query)}"
    yield compared.summary
    for name, (old, new) in compared.knobs.items():
        yield f"  {_knob(name, old)} → {value_text(new)}"
    names = {r.chunk_id: r.location for entry in (before, after) for c in entry.columns
             for r in c.rows}  # fmt: skip
    for change in compared.columns:
        if change.movement is None:
            yield f"{change.name}: only one of the searches has this list"
            continue
        scores = ", other scores" if change.score_changed else ""
        yield f"{change.name}: {change.movement.summary}{scores}"
        for move in (*change.movement.rows, *change.movement.gone):
            if move.arrow != "═":
                yield f"  {move.arrow:<5} {names.get(move.chunk_id, move.chunk_id)}"


def _knob(name: str, value: KnobValue) -> str:
    return f"{name}={value_text(value)}"


def _time(entry: HistoryEntry) -> str:
    return entry.time.replace("T", " ").removesuffix("Z")
