"""The log of searches: private, whole lines, bounded, and no trouble for a search."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_tui.engine.errors import CorpusError
from rag_tui.engine.events import StageError, StageResult
from rag_tui.engine.history import (
    HistoryEntry,
    SearchLog,
    append_entry,
    clear_history,
    compare_entries,
    export_history,
    history_file,
    read_history,
)
from rag_tui.engine.history_entries import make_entry
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import make_column, with_knobs
from rag_tui.engine.searching import final_results, search
from rag_tui.engine.types import Document, SearchRequest
from tests.conftest import ROOT
from tests.engine.small_index import index_of, small_models

NOON = datetime(2026, 1, 2, 12, 0, 5, tzinfo=UTC)
BODIES = ("pump one", "pump two two", "valve three", "pump valve four", "tank")
INDEX = index_of((Document("a.md", "Manual", "\n\n".join(BODIES), ""),))
REQUEST = SearchRequest("pump valve")


def searched(request: SearchRequest = REQUEST, index: Index = INDEX) -> list[StageResult]:
    return list(final_results(search(request, index, small_models())))


def entry(request: SearchRequest = REQUEST, index: Index = INDEX, mark: str = "i") -> HistoryEntry:
    return make_entry(request, index, searched(request, index), time=NOON, index_fingerprint=mark)


def log(cache: Path) -> SearchLog:
    return SearchLog(cache, now=lambda: NOON)


def test_a_finished_search_is_kept_with_all_it_needs_to_be_asked_again(tmp_path: Path) -> None:
    request = replace(
        with_knobs(REQUEST, {"bm25.k1": 0.9, "post.mmr": 0.5}),
        where='path~"a*"',
        methods=("bm25", "vector"),
        columns=(
            make_column("short", "bm25", {"bm25.b": 0.2, "bm25.delta": "off"}),
            make_column("far", "vector", {}),
            make_column("never", "reranked", {}),
        ),
    )
    results = searched(request)
    assert log(tmp_path).record(request, INDEX, results) == ""
    (kept,) = read_history(history_file(tmp_path, INDEX.folder)).entries
    assert kept.time == "2026-01-02T12:00:05Z"
    assert kept.request() == request
    assert dict(kept.knobs) == {"bm25.k1": 0.9, "post.mmr": 0.5}
    assert kept.folder == "made-by-hand"
    assert [column.name for column in kept.columns] == ["short", "far"]
    ranking = results[0].ranking
    assert ranking is not None
    first = kept.columns[0]
    assert [(r.chunk_id, r.score) for r in first.rows] == [
        (h.chunk_id, h.score) for h in ranking.hits
    ]
    assert first.rows[0].location.startswith("a.md:")
    assert first.score_name == "BM25 lucene"


def test_file_and_folder_are_their_owners_alone(tmp_path: Path) -> None:
    log(tmp_path).record(REQUEST, INDEX, searched())
    path = history_file(tmp_path, INDEX.folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_switched_off_nothing_is_kept(tmp_path: Path) -> None:
    assert SearchLog(tmp_path, is_enabled=False).record(REQUEST, INDEX, searched()) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_is_told_once_and_breaks_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file where a folder should be")
    mine = log(blocked)
    assert mine.record(REQUEST, INDEX, searched()).startswith("searches are not kept: ")
    assert mine.record(REQUEST, INDEX, searched()) == ""


def test_damaged_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    append_entry(path, entry())
    with path.open("ab") as file:
        file.write(b'{"time": 1}\n\xff\xfe nothing\n[' + b"[" * 100_000 + b"\n" + b'{"torn": "li')
    append_entry(path, entry(replace(REQUEST, query="second")))
    found = read_history(path)
    assert [e.query for e in found.entries] == ["pump valve", "second"]
    assert found.n_damaged == 4


def test_a_failed_column_is_kept_with_its_reason(tmp_path: Path) -> None:
    results = [StageResult("bm25", error=StageError("The line is down.", "Try again."))]
    kept = make_entry(REQUEST, INDEX, results, time=NOON, index_fingerprint="i")
    append_entry(tmp_path / "h.jsonl", kept)
    assert read_history(tmp_path / "h.jsonl").entries == (kept,)
    assert kept.columns[0].error == "The line is down."


def test_undecodable_names_and_questions_survive(tmp_path: Path) -> None:
    index = index_of((Document("a\udcff.md", "T", "pump \x1b[2J", ""),))
    request = SearchRequest("pump \x1b]0;x\x07 [/] \udc80")
    kept = entry(request, index)
    append_entry(tmp_path / "h.jsonl", kept)
    assert read_history(tmp_path / "h.jsonl").entries == (kept,)
    raw = (tmp_path / "h.jsonl").read_bytes()
    assert raw.isascii()
    assert b"\x1b" not in raw
    assert export_history(tmp_path / "h.jsonl", tmp_path / "copy.jsonl") == 1


def test_a_file_that_is_too_large_keeps_the_newest_half(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    for i in range(40):
        append_entry(path, entry(replace(REQUEST, query=f"question {i:02}")), max_bytes=30_000)
    assert path.stat().st_size <= 30_000
    found = read_history(path)
    assert found.n_damaged == 0
    queries = [e.query for e in found.entries]
    assert queries == [f"question {i:02}" for i in range(40 - len(queries), 40)]
    assert 2 < len(queries) < 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["h.jsonl", "h.lock"]


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    append_entry(path, entry())
    program = (
        "import sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from rag_tui.engine.history import append_entry, read_history\n"
        "path = Path(sys.argv[1])\n"
        "one = read_history(path).entries[0]\n"
        "for i in range(30):\n"
        "    query = f'{sys.argv[2]} {i} ' + 'x' * 20_000\n"
        "    append_entry(path, replace(one, query=query), max_bytes=10**9)\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], cwd=ROOT)
        for name in ("a", "b", "c")
    ]
    assert [process.wait() for process in started] == [0, 0, 0]
    found = read_history(path)
    assert found.n_damaged == 0
    assert len(found.entries) == 91
    for name in ("a", "b", "c"):
        own = [e.query.split()[1] for e in found.entries if e.query.startswith(f"{name} ")]
        assert own == [str(i) for i in range(30)]


def test_comparing_a_search_with_itself_says_that_nothing_changed() -> None:
    same = compare_entries(entry(), entry())
    assert same.summary == "same question, settings and index"
    assert [c.movement.summary for c in same.columns if c.movement] == ["no change"] * 4
    assert not any(c.score_changed for c in same.columns)


def test_comparing_names_the_knobs_the_index_and_what_moved() -> None:
    other = index_of((Document("a.md", "Manual", "\n\n".join(BODIES[:3]), ""),))
    turned = with_knobs(REQUEST, {"bm25.k1": 0.1, "search.rerank": False})
    found = compare_entries(entry(), entry(turned, other, "j"))
    assert dict(found.knobs) == {"bm25.k1": (1.5, 0.1), "search.rerank": (True, False)}
    assert found.summary == "settings differ; the index changed"
    by_name = {change.name: change for change in found.columns}
    bm25 = by_name["bm25"].movement
    assert bm25 is not None
    assert (bm25.n_in, bm25.n_out) == (0, 1)
    assert by_name["bm25"].score_changed
    assert by_name["reranked"].movement is None


def test_another_analyzer_in_a_column_is_another_setting() -> None:
    columns = (make_column("bm25", "bm25", {"bm25.k1": 0.3}), *REQUEST.columns[2:])
    found = compare_entries(entry(), entry(replace(REQUEST, columns=columns)))
    assert not found.is_same_settings
    assert found.is_same_query
    assert found.is_same_index


def test_an_export_is_json_lines_of_what_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    append_entry(path, entry())
    append_entry(path, entry())
    with path.open("a") as file:
        file.write("damaged\n")
    assert export_history(path, tmp_path / "copy.jsonl") == 2
    lines = (tmp_path / "copy.jsonl").read_text().splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["pump valve"] * 2


def test_there_is_nothing_to_export_and_no_place_to_put_it(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    assert read_history(path).entries == ()
    with pytest.raises(CorpusError, match="no searches"):
        export_history(path, tmp_path / "copy.jsonl")
    append_entry(path, entry())
    with pytest.raises(CorpusError, match="cannot be written"):
        export_history(path, tmp_path / "no" / "copy.jsonl")


def test_a_cleared_history_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    append_entry(path, entry())
    clear_history(path)
    clear_history(path)
    assert read_history(path).entries == ()
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    append_entry(path, entry())
    path.chmod(0)
    with pytest.raises(CorpusError, match="cannot be used"):
        read_history(path)
