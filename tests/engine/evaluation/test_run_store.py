"""Runs as files: they come back as they were, and nothing of another's is overwritten."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.run_files import BadRunError
from rag_tui.engine.evaluation.run_store import KEPT_UNNAMED, RunStore
from rag_tui.engine.evaluation.types import ColumnRun, EvalRun, QuestionRun, Retrieved
from rag_tui.engine.types import Column

ROWS = (Retrieved("c1", "a.md", 0, 10, 0.1 + 0.2), Retrieved("c2", "b\udcff.md", 5, 9, -1e-300))


def make_run(created: str = "2031-05-04T10:20:30+00:00") -> EvalRun:
    return EvalRun(
        name="",
        created=created,
        folder="/docs",
        index_fingerprint="i",
        questions_fingerprint="q",
        depth=100,
        columns=(
            ColumnRun(
                Column("bm25 k1=0.9", "bm25", (("bm25.k1", 0.9), ("post.mmr", None))),
                "BM25 lucene",
                (
                    QuestionRun("a", ROWS, elapsed_s=0.25),
                    QuestionRun("b", error="out of order [/b]"),
                    QuestionRun("c"),
                ),
            ),
            ColumnRun(Column("other", "vector"), "score", (), imported_from="other.trec"),
        ),
        knobs={"bm25.k1": 1.5, "post.mmr": None, "post.fold": False, "where": "path=a.md"},
    )


def test_a_run_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    kept = store.save(make_run(), "before")
    assert kept.name == "before"
    assert store.load("before") == kept


def test_runs_are_private_whole_files_of_json(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(make_run(), "before")
    (path,) = (tmp_path / "runs").iterdir()
    assert path.name == "before.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert json.loads(path.read_text())["depth"] == 100


def test_a_run_without_a_name_is_called_by_its_time_and_a_number(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    names = [store.save(make_run()).name for _ in range(3)]
    assert names == ["2031-05-04-1020-1", "2031-05-04-1020-2", "2031-05-04-1020-3"]


def test_a_name_that_is_taken_is_refused_and_the_old_run_stays(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    old = store.save(make_run(), "before")
    with pytest.raises(UsageError, match="already"):
        store.save(make_run("2032-01-01T00:00:00+00:00"), "before")
    assert store.load("before") == old


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "con", "x" * 81, "a\nb", "a.", "é[/]"])
def test_a_name_that_cannot_be_a_file_everywhere_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        RunStore(tmp_path).save(make_run(), name)
    assert not (tmp_path / "runs").exists()


def test_runs_are_listed_by_time_and_damaged_ones_are_named(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(make_run("2031-05-05T00:00:00+00:00"), "a later one")
    store.save(make_run("2031-05-04T00:00:00+00:00"), "b first")
    (tmp_path / "runs" / "half.json").write_text('{"format": 1, "name')
    (tmp_path / "runs" / "list.json").write_text("[]")
    (tmp_path / "runs" / "old.json").write_text('{"format": 0}')
    listed = store.list()
    assert [head.name for head in listed.runs] == ["b first", "a later one"]
    assert listed.runs[0].columns == ("bm25 k1=0.9", "other")
    assert listed.runs[0].n_questions == 3
    assert [line.split(" is damaged")[0] for line in listed.damaged] == [
        "The run 'half'",
        "The run 'list'",
        "The run 'old'",
    ]


def test_a_damaged_run_can_be_deleted(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(make_run(), "x")
    (tmp_path / "runs" / "x.json").write_text("{")
    with pytest.raises(BadRunError, match="damaged"):
        store.load("x")
    store.delete("x")
    assert store.list().runs == ()


def test_a_renamed_run_has_only_its_new_name(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(make_run(), "x")
    store.rename("x", "y")
    assert [head.name for head in store.list().runs] == ["y"]
    assert store.load("y").name == "y"


def test_a_run_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(make_run(), "before")
    with pytest.raises(BadRunError) as told:
        store.load("after")
    assert "before" in told.value.hint
    with pytest.raises(BadRunError):
        store.delete("after")


def test_no_half_written_file_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path)
    store.save(make_run(), "x")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(Exception, match="No space left"):
        store.save(make_run(), "y")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["x.json"]


def test_of_runs_that_nobody_named_the_newest_are_kept(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.save(make_run(), "mine")
    names = [store.save(make_run()).name for _ in range(KEPT_UNNAMED + 2)]
    assert {head.name for head in store.list().runs} == {"mine", *names[2:]}
