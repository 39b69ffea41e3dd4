"""``rag-tui sweep`` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rag_tui.config import load_settings
from tests.cli.test_eval import (  # noqa: F401 - fixtures
    Command,
    house,
    rag_tui,
)
from tests.conftest import ROOT

VARIED = ("--vary", "bm25.k1=0.2,1.5", "--vary", "chunking.size=40,256", "--column", "bm25")


@pytest.fixture(name="folder")
def _folder(house: Path) -> Path:  # noqa: F811 - the fixture of that name
    return house


@pytest.fixture(name="command")
def _command(rag_tui: Command) -> Command:  # noqa: F811 - the fixture of that name
    return rag_tui


def test_the_table_says_what_is_best_and_what_that_is_worth(folder: Path, command: Command) -> None:
    out, err = command("sweep", folder, *VARIED, "--metric", "RR@5")
    assert "4 settings on 4 questions" in err
    lines = out.splitlines()
    assert "RR@5" in lines[0]
    rows = [line for line in lines if line.startswith("chunking.size=")]
    assert len(rows) == 4
    assert sum(" now" in row for row in rows) == 1
    assert "Best RR@5 in bm25:" in out
    assert "Chosen on other questions" in out
    assert "3 questions are few" in out
    assert "front: nothing is better, faster and shorter at once" in out
    assert "Traceback" not in err


def test_json_holds_every_setting_and_a_second_sweep_measures_nothing(
    folder: Path, command: Command
) -> None:
    told = json.loads(command("sweep", folder, *VARIED, "--json")[0])
    assert [one["is_present"] for one in told["settings"]] == [True, False, False, False]
    assert told["settings"][0]["knobs"] == {"chunking.size": 256, "bm25.k1": 1.5}
    assert told["cross_validation"]["n_folds"] == 3
    assert told["is_whole"] is True
    assert told["front"]
    out, err = command("sweep", folder, *VARIED, "--json")
    assert "4 settings known" in err
    again = json.loads(out)
    assert all(one["is_known"] for one in again["settings"])
    assert [one["values"] for one in again["settings"]] == [
        one["values"] for one in told["settings"]
    ]
    # the index of the folder is as it was: the next search refreshes nothing
    assert load_settings(folder).chunking.size == 256


def test_a_random_part_is_what_the_seed_says(folder: Path, command: Command) -> None:
    many = ("--vary", "bm25.k1=0.1,0.3,0.5,0.7,0.9,1.1", "--column", "bm25", "--json")
    names = []
    for seed in (1, 1, 2):
        told = json.loads(command("sweep", folder, *many, "--random", "2", "--seed", seed)[0])
        names.append([one["name"] for one in told["settings"]])
    assert names[0] == names[1] != names[2]
    assert [len(one) for one in names] == [3, 3, 3]


def test_use_this_writes_the_best_setting_and_the_next_evaluation_has_it(
    folder: Path, command: Command
) -> None:
    # every document is one chunk: nothing differs, and of equals the settings in force stay
    (folder / "rag-tui.toml").write_text("# ours\n[bm25]\nk1 = 1.5 # as always\nb = 0.75\n")
    _, err = command(
        "sweep", folder, "--vary", "post.max_per_document=0,1", "--column", "bm25", "--apply"
    )
    assert "nothing was written" in err
    text = (folder / "rag-tui.toml").read_text()
    assert text == "# ours\n[bm25]\nk1 = 1.5 # as always\nb = 0.75\n"
    # a threshold in force that nothing passes: any other setting is better
    (folder / "rag-tui.toml").write_text("# ours\n[post]\nmin_bm25 = 99 # too high\n")
    _, err = command(
        "sweep", folder, "--vary", "post.min_bm25=off,50", "--column", "bm25", "--apply"
    )
    assert 'post.min_bm25 = "off"' in err
    assert (folder / "rag-tui.toml").read_text() == '# ours\n[post]\nmin_bm25 = "off" # too high\n'
    assert load_settings(folder).post.min_bm25 is None
    told = json.loads(command("eval", folder, "--no-rerank", "--json")[0])
    assert told["knobs"]["post.min_bm25"] is None


def test_what_a_column_sets_itself_is_not_written_into_a_section(
    folder: Path, command: Command
) -> None:
    (folder / "rag-tui.toml").write_text(
        '[[columns]]\nname = "short"\nmethod = "bm25"\nknobs = { "bm25.k1" = 0.4 }\n'
    )
    _, err = command(
        "sweep", folder, "--vary", "bm25.k1=0.2", "--column", "short", "--apply", code=2
    )
    assert "'short' sets bm25.k1 itself" in err
    out, _ = command("sweep", folder, "--vary", "bm25.k1=0.2", "--column", "short")
    assert "bm25.k1=0.4" in out


def test_reports_are_written_and_hold_what_the_sweep_found(
    folder: Path, command: Command, tmp_path: Path
) -> None:
    page, text = tmp_path / "s.html", tmp_path / "s.md"
    command("sweep", folder, *VARIED, "--html", page, "--markdown", text)
    assert "Chosen on other questions" in text.read_text()
    assert "<svg" in page.read_text()
    out, _ = command("sweep", folder, *VARIED, "--markdown", "-")
    assert out.startswith("# Sweep of bm25")


def test_a_report_of_an_evaluation_tells_what_changed_since_its_baseline(
    folder: Path, command: Command, tmp_path: Path
) -> None:
    command("eval", folder, "--no-rerank", "--save", "all")
    text = tmp_path / "r.md"
    command(
        "eval", folder, "--no-rerank", "--baseline", "all", "--where", "path=pets.md",
        "--markdown", text,
    )  # fmt: skip
    report = text.read_text()
    assert "## Changes from all to" in report
    assert "| broken |" in report


def test_errors_name_the_knob_and_the_value(folder: Path, command: Command, tmp_path: Path) -> None:
    for arguments, said in (
        (["--vary", "bm25.k1=0.9,much"], "bm25.k1 must be a number (got 'much')"),
        (["--vary", "bm25.kk=1"], "bm25.k1"),
        (["--vary", "chunking.size=0"], "chunking.size must be 1 or more (got '0')"),
        (["--vary", "search.rrf_k=10", "--column", "bm25"], "search.rrf_k changes nothing"),
        (["--vary", "bm25.k1=1", "--column", "bm52"], "bm52"),
        (["--vary", "bm25.k1=1", "--metric", "Q@3"], "Q@3"),
        (["--vary", "bm25.k1=1", "--folds", "1"], "at least 2 folds"),
        (["--vary", "bm25.k1=1", "--random", "0"], "at least 1 setting"),
        (["--vary", "bm25.k1=1", "--questions", tmp_path / "no.jsonl"], "no.jsonl"),
        (["--vary", "bm25.k1=1", "--json", "--markdown", "-"], "both write to stdout"),
        ([], "--vary"),
    ):
        _, err = command("sweep", folder, *arguments, code=2)
        assert said in err
        assert "Traceback" not in err
    assert not (tmp_path / "cache" / "indexes").exists()


def test_a_sweep_in_which_nothing_works_ends_with_1(folder: Path, command: Command) -> None:
    out, _ = command(
        "sweep", folder, "--vary", "search.embedder=no/such-model", "--column", "vector",
        "--knob", "search.embedder=nor/this-one", "--knob", "models.allow_download=false", code=1,
    )  # fmt: skip
    assert "No setting could be scored" in out
    assert "not compared: search.embedder=no/such-model:" in out


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    folder: Path, tmp_path: Path
) -> None:
    ks = ",".join(f"{k / 100}" for k in range(1, 401))
    command = [
        sys.executable, "-m", "rag_tui", "sweep", str(folder), "--vary", f"bm25.k1={ks}",
        "--column", "bm25", "--json",
    ]  # fmt: skip
    env = {
        **os.environ,
        "RAG_TUI_CACHE_DIR": str(tmp_path / "cache"),
        "RAG_TUI_MODELS__EMBEDDER": "hashing",
    }
    process = subprocess.Popen(
        command, env=env, cwd=ROOT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip

    def n_kept() -> int:
        files = (tmp_path / "cache" / "indexes").glob("*/sweeps/*.jsonl")
        return sum(file.read_text().count('"values"') for file in files)

    while n_kept() < 3:
        try:
            process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"ended by itself: {process.communicate()}")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted: finished settings are kept" in err
    assert "Traceback" not in err
    told = json.loads(out)
    assert told["is_whole"] is False
    assert 3 <= len(told["settings"]) < 400
    assert n_kept() >= len(told["settings"])
