"""What the documents say is what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_tui.__main__ import COMMANDS
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from scripts import demo_report, readme_blocks
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["keys", "settings"])
def test_generated_blocks_of_the_documents_are_up_to_date(name: str) -> None:
    expected = readme_blocks.BLOCKS[name]()
    text = readme_blocks.document_of(name).read_text(encoding="utf-8")
    assert readme_blocks.block_of(text, name) == expected, (
        f"run: python scripts/readme_blocks.py {name}"
    )


def test_every_setting_is_described() -> None:
    rows = readme_blocks.settings_block().splitlines()[2:]
    assert rows
    for row in rows:
        assert row.split(" | ")[2].removesuffix(" |").strip(), row


@pytest.fixture(scope="module")
def found(guesthouse: Index, models: Models) -> list[demo_report.Outcome]:
    return demo_report.outcomes(guesthouse, models)


def test_the_ranks_in_the_readme_are_what_the_real_models_give(
    found: list[demo_report.Outcome],
) -> None:
    told = readme_blocks.block_of(README, "ranks")
    assert told == demo_report.rank_table(found), "run: python scripts/readme_blocks.py ranks"


def test_the_evaluation_in_the_readme_is_what_the_real_models_give(
    guesthouse: Index, models: Models
) -> None:
    told = readme_blocks.block_of(README, "eval")
    assert told == demo_report.eval_table(guesthouse, models), (
        "run: python scripts/readme_blocks.py eval"
    )


def test_the_answers_in_the_readme_are_what_the_extractive_answerer_gives(
    found: list[demo_report.Outcome],
) -> None:
    told = readme_blocks.block_of(README, "extractive")
    assert told == demo_report.answer_table(found), (
        "run: python scripts/readme_blocks.py extractive"
    )


def test_unanswerable_questions_get_the_not_found_sentence(
    found: list[demo_report.Outcome],
) -> None:
    states = [one.answer.state for one in found if not one.is_answerable]
    assert states == ["not found"] * 4


def test_the_demo_shows_what_the_readme_says_it_shows(
    found: list[demo_report.Outcome],
) -> None:
    ranks = {one.question: one.ranks for one in found}
    typhoon = ranks["A typhoon cancelled my flight. Do I get my money back?"]
    assert typhoon == {"vector": 1, "bm25": 7, "hybrid": 4, "reranked": 1}
    lockbox = ranks["Where is the lockbox?"]
    assert lockbox["bm25"] == 1
    assert lockbox["vector"] == 9
    key = ranks["What happens if I lose my key?"]
    assert key == {"vector": 1, "bm25": None, "hybrid": 8, "reranked": 1}
    breakfast = next(one for one in found if "breakfast" in one.question)
    assert not breakfast.is_answerable
    answerable = [one for one in found if one.is_answerable]
    assert sum(breakfast.best_logit > one.best_logit for one in answerable) >= len(answerable) / 2


def test_every_command_is_in_readme_and_help() -> None:
    page = subprocess.run(
        [sys.executable, "-m", "rag_tui", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    for command in COMMANDS:
        assert command in page
        assert command == "open" or f"rag-tui {command}" in README


def test_pictures_and_files_named_in_the_documents_exist() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / target).is_file(), f"{name} names {target}"
        for target in re.findall(r"tests/[\w/]+\.py", text):
            assert (ROOT / target).is_file(), f"{name} names {target}"


def test_no_machine_path_or_registry_host_is_in_the_project() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    words = ("/work" + "/", "/root" + "/", "pypi" + "-more", "file:///" + "opt")
    for name in tracked:
        path = ROOT / name
        if path.is_file() and path.suffix not in {".png"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not [word for word in words if word in text], name


def test_the_example_settings_of_the_readme_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomllib

    from rag_tui.config import load_settings
    from rag_tui.tui.keys import checked_keymap

    examples = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert examples
    for example in examples:
        config = tmp_path / "config.toml"
        config.write_text(example)
        monkeypatch.setenv("RAG_TUI_CONFIG", str(config))
        settings = load_settings(tmp_path)
        _, problems = checked_keymap(settings.ui.keys)
        assert problems == (), tomllib.loads(example)


def test_no_placeholder_is_left_in_the_documents() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/reference.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.findall(r"\b(?:TODO|FIXME|XXX|[A-Z]+_TABLE|COLD_START)\b", text), name
