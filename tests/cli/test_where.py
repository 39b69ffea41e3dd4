"""`--where` and `where:` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import env, rag_tui

__all__ = ["env"]


@pytest.fixture
def docs(tmp_path: Path, env: dict[str, str]) -> Path:
    env["RAG_TUI_CACHE_DIR"] = str(tmp_path / "cache")
    env["RAG_TUI_MODELS__EMBEDDER"] = "hashing"
    env["RAG_TUI_SEARCH__RERANK"] = "false"
    folder = tmp_path / "docs"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.md").write_text("---\ntags: [red, blue]\n---\n# A\n\nThe lockbox.\n")
    (folder / "b.md").write_text("# B\n\nA lockbox, lockbox.\n")
    return folder


def files(stdout: str) -> dict[str, list[str]]:
    told = json.loads(stdout)["methods"]
    return {method: [row["file"] for row in told[method]["hits"]] for method in told}


@pytest.mark.parametrize(
    "arguments",
    [
        ["lockbox", "--where", "path~in/*"],
        ["lockbox where: path~in/*"],
        ["lockbox where: tag=red", "-w", "tag=blue"],
        ["lockbox where: path~*.md or path~*.txt", "-w", "tag=red"],
    ],
)
def test_search_shows_only_what_the_filter_allows(
    docs: Path,
    env: dict[str, str],
    arguments: list[str],
) -> None:
    done = rag_tui("search", *arguments, "--folder", str(docs), "--json", env=env)
    found = files(done.stdout)
    assert set(found) == {"vector", "bm25", "hybrid"}
    assert all(names == ["in/a.md"] for names in found.values())
    assert json.loads(done.stdout)["query"] == "lockbox"
    assert "1 of 2 chunks" in done.stderr


def test_the_inline_filter_cannot_widen_that_of_the_flag(
    docs: Path,
    env: dict[str, str],
) -> None:
    done = rag_tui(
        "search", "lockbox where: x=1) or (path=b.md", "-w", "tag=red", "-f", str(docs),
        env=env, code=2,
    )  # fmt: skip
    assert "cannot be read" in done.stderr
    assert "b.md" not in done.stdout


def test_chunks_and_prompt_keep_to_the_filter(
    docs: Path,
    env: dict[str, str],
) -> None:
    done = rag_tui("chunks", "-f", str(docs), "--where", "tag=blue", "--json", env=env)
    assert [row["file"] for row in json.loads(done.stdout)] == ["in/a.md"]
    done = rag_tui(
        "ask", "Where is the lockbox? where: tag=blue", "-f", str(docs), "--prompt", "--json",
        env=env,
    )  # fmt: skip
    prompt = json.loads(done.stdout)
    assert prompt["question"] == "Where is the lockbox?"
    assert [source["path"] for source in prompt["sources"]] == ["in/a.md"]


@pytest.mark.parametrize(
    ("where", "words"),
    [("path", "column 5"), ("tga=red", "Did you mean tags?"), ("page>x", "with a number")],
)
@pytest.mark.parametrize("command", [["search", "lockbox"], ["chunks"], ["ask", "lockbox"]])
def test_a_wrong_filter_is_a_usage_error(
    docs: Path,
    env: dict[str, str],
    command: list[str],
    where: str,
    words: str,
) -> None:
    done = rag_tui(*command, "-f", str(docs), "--where", where, env=env, code=2)
    assert words in done.stderr
    assert done.stdout == ""
