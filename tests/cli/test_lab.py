"""`explain`, `where` and `history` as a user types them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import pytest
from rich.cells import cell_len

from rag_tui.__main__ import COMMANDS
from rag_tui.cli.app import EPILOG, run
from tests.cli.test_commands import env, rag_tui
from tests.hostile import HOSTILE

__all__ = ["env"]

PUMP = "The pump must be primed with clean water before the first start of the season."


class Shell:
    """Runs commands in this process on one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """stdout; stderr is kept in ``told``."""
        found = run([*arguments, "--folder", str(self.folder)])
        out, self.told = self._capsys.readouterr()
        assert found == code, f"{found}\n{out}\n{self.told}"
        assert "Traceback" not in self.told
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        """stdout as JSON in which every number is finite."""
        return json.loads(self(*arguments, "--json", code=code), parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} in the JSON")


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setenv("RAG_TUI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RAG_TUI_MODELS__EMBEDDER", "hashing")
    monkeypatch.setenv("RAG_TUI_SEARCH__RERANK", "false")
    monkeypatch.setenv("RAG_TUI_CHUNKING__SIZE", "40")
    monkeypatch.setenv("RAG_TUI_CHUNKING__OVERLAP", "0")
    folder = tmp_path / "docs"
    (folder / "drafts").mkdir(parents=True)
    (folder / "pump.md").write_text(f"# Pump\n\n{PUMP}\n\n## Noise\n\nA loud pump is dry.\n")
    for i in range(8):
        (folder / f"water{i}.md").write_text(f"# Water {i}\n\nClean water for pump {i}.\n")
    (folder / "drafts" / "plan.md").write_text("# Plan\n\nThe moon base opens in spring.\n")
    (folder / ".gitignore").write_text("drafts/\n")
    (folder / "hostile.md").write_text(f"# Hostile\n\nstart {HOSTILE} pump end\n")
    return Shell(folder, capsys)


def check_lines(text: str) -> None:
    assert text.strip()
    for line in text.splitlines():
        assert cell_len(line) <= 80, line
        assert line.isprintable()


def test_the_names_of_the_commands_are_no_folders() -> None:
    assert {"explain", "where", "history"} <= set(COMMANDS)


def test_explain_shows_the_arithmetic_in_80_columns(shell: Shell) -> None:
    out = shell("explain", "the pump noise zebra", "pump.md:3", "--sentences", "--words")
    check_lines(out)
    for told in ("similarity", "↑ this chunk", "idf", "1/(60 + ", "without bm25: rank"):
        assert told in out
    assert "zebra (in none)" in out
    assert "▶" in out


def test_explain_as_json_holds_parts_that_sum_to_the_scores_of_search(shell: Shell) -> None:
    question = "the pump noise"
    rows = shell.json("search", question)["methods"]
    row = rows["hybrid"]["hits"][0]
    told = shell.json("explain", question, row["chunk_id"][:10], "--sentences", "--words")
    assert told["chunk"]["chunk_id"] == row["chunk_id"]
    (column,) = told["columns"]
    assert (column["column"], column["method"]) == ("hybrid", "hybrid")
    sum_ = math.fsum(part["addend"] for part in column["hybrid"]["parts"])
    assert sum_ == pytest.approx(row["score"], abs=1e-9)
    bm25 = next(r for r in rows["bm25"]["hits"] if r["chunk_id"] == row["chunk_id"])
    shares = math.fsum(term["contribution"] for term in column["bm25"]["terms"])
    assert shares == pytest.approx(bm25["score"], abs=1e-9)
    assert sum(column["vector"]["histogram"]["counts"]) == column["vector"]["n_corpus"]
    assert {"sentences", "words"} <= set(column)


def test_explain_takes_columns_by_name_or_definition_and_knobs(shell: Shell) -> None:
    told = shell.json(
        "explain", "pump", "pump.md:3",
        "--column", "bm25", "--column", "plus=bm25:bm25.variant=bm25plus,bm25.k1=0.5",
        "--knob", "bm25.b=0.25",
    )  # fmt: skip
    assert [column["column"] for column in told["columns"]] == ["bm25", "plus"]
    params = [column["bm25"]["params"] for column in told["columns"]]
    assert [(p["variant"], p["k1"], p["b"]) for p in params] == [
        ("lucene", 1.5, 0.25),
        ("bm25plus", 0.5, 0.25),
    ]
    shell("explain", "pump", "pump.md:3", "--column", "bm26", code=2)
    assert "no column 'bm26'" in shell.told
    shell("explain", "pump", "0000ffff", code=2)
    assert "no chunk" in shell.told


def test_a_passage_among_the_sources_exits_0_and_a_lost_one_3(shell: Shell) -> None:
    out = shell("where", "prime the pump with clean water", "--passage", PUMP[4:60])
    check_lines(out)
    assert out.startswith("✓ present: source [")
    out = shell("where", "clean water", "-p", "A loud pump is dry.", code=3)
    check_lines(out)
    assert out.startswith("✗")
    assert "pump.md:7" in out
    assert "brings it in" in out
    told = shell.json("where", "clean water", "-p", "a LOUD  pump is dry", code=3)
    assert told["found"] is False
    assert told["passage"]["match"] == "capitals"
    assert [column["column"] for column in told["columns"]] == ["vector", "bm25", "hybrid"]
    for column in told["columns"]:
        assert column["lists"]
        for remedy in column["remedies"]:
            assert remedy["rank"] >= 1
    again = shell.json("where", "clean water", "-p", "a LOUD  pump is dry", "--no-remedies", code=3)
    assert all(column["remedies"] == [] for column in again["columns"])


def test_a_remedy_of_where_is_true_for_search(shell: Shell) -> None:
    told = shell.json("where", "clean water", "-p", "A loud pump is dry.", code=3)
    column = next(column for column in told["columns"] if column["method"] == "hybrid")
    assert column["remedies"]
    for remedy in column["remedies"]:
        knobs = [f"--knob={name}={value}" for name, value in remedy["knobs"].items()]
        hits = shell.json("search", "clean water", *knobs)["methods"]["hybrid"]["hits"]
        assert (column["chunk_id"], remedy["rank"]) in [(h["chunk_id"], h["rank"]) for h in hits]


def test_where_tells_of_files_that_were_never_loaded_and_of_wrong_places(shell: Shell) -> None:
    out = shell("where", "moon", "-p", "The moon base opens in spring.", code=3)
    assert "never loaded" in out
    assert "drafts" in out
    told = shell.json("where", "moon", "-p", "drafts/plan.md", code=3)
    assert told["missing"]["path"] == "drafts/plan.md"
    assert told["columns"] == []
    shell("where", "moon", "-p", "pump.md:99", code=2)
    assert "no line 99" in shell.told


def test_hostile_text_is_made_visible_in_all_of_it(shell: Shell) -> None:
    for arguments in (
        ("explain", f"pump {HOSTILE}", "hostile.md:3", "--sentences", "--words"),
        ("where", f"pump {HOSTILE}", "-p", "hostile.md:3"),
    ):
        out = shell(*arguments, code=0)
        check_lines(out)
        assert "\x1b" not in out + shell.told


def test_explain_of_one_list_alone_tells_of_no_fusion(shell: Shell) -> None:
    out = shell("explain", "pump noise", "pump.md:3", "--column", "bm25")
    assert "bm25" in out
    assert "hybrid" not in out


def test_a_folder_before_the_word_after_history_is_not_passed_over(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell("search", "pump noise")
    assert run(["history", "--folder", str(shell.folder), "list"]) == 0
    assert "pump noise" in capsys.readouterr().out


def test_history_lists_shows_compares_reruns_exports_and_clears(
    shell: Shell, tmp_path: Path
) -> None:
    assert shell("history", "list") == ""
    assert "no searches" in shell.told
    shell("search", "pump noise")
    shell("search", "pump noise", "--k1", "3", "--knob", "search.weight_bm25=9")
    shell("search", f"hostile {HOSTILE}")
    listed = shell("history", "list")
    check_lines(listed)
    assert [line.split()[0] for line in listed.splitlines()] == ["1", "2", "3"]
    assert "[search.weight_bm25=9, " in listed.splitlines()[1]
    check_lines(shell("history", "show", "2"))
    shown = shell.json("history", "show", "3")
    assert shown["query"] == "pump noise"
    assert [column["name"] for column in shown["columns"]] == ["vector", "bm25", "hybrid"]

    compared = shell("history", "compare", "3", "2")
    check_lines(compared)
    assert "settings differ" in compared
    assert "bm25.k1=1.5 → 3" in compared
    assert "vector: no change" in compared
    told = shell.json("history", "compare", "3", "2")
    assert told["knobs"]["bm25.k1"] == [1.5, 3.0]
    assert told["is_same_index"]

    (shell.folder / "new.md").write_text("# New\n\nPump noise, noise of a pump.\n")
    rerun = shell("history", "rerun", "3")
    assert "the index changed" in rerun
    assert "new.md" in rerun

    target = tmp_path / "copy.jsonl"
    assert "3 searches" in shell("history", "export", str(target))
    assert len(target.read_text().splitlines()) == 3
    shell("history", "show", "9", code=2)
    assert "no search 9 among the 3" in shell.told
    shell("history", "clear", code=2)
    assert "--yes" in shell.told
    assert "3 searches forgotten" in shell("history", "clear", "--yes")
    assert shell.json("history", "list") == []


def test_where_and_explain_run_as_programs(env: dict[str, str]) -> None:
    done = rag_tui("where", "Can I bring my dog?", "-p", "house-rules.md#Pets", env=env)
    assert done.stdout.startswith("✓ present")
    assert "reranked" in done.stdout
    done = rag_tui("explain", "Can I bring my dog?", "house-rules.md:9", env=env)
    assert "house-rules.md" in done.stdout
    assert "hybrid rank" in done.stdout


def test_the_history_of_a_folder_that_is_not_there_is_no_empty_history(shell: Shell) -> None:
    shell.folder = shell.folder.with_name("dosc")
    shell("history", code=2)
    assert "dosc does not exist" in shell.told


def test_the_history_of_a_folder_that_is_gone_can_be_read_and_forgotten(shell: Shell) -> None:
    shell("search", "pump")
    shell.folder.rename(shell.folder.with_name("moved"))
    assert "pump" in shell("history")
    shell("history", "clear", "--yes")
    shell("history", code=2)


def test_the_help_tells_what_exit_code_3_of_where_means(shell: Shell) -> None:
    shell("where", "pump", "--passage", "nowhere at all in here", code=3)
    assert "3 ask found no answer, or the passage of where is not among the sources" in EPILOG
