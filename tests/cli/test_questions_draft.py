"""`rag-tui questions draft`: proposals on stdout, the cost and the consent on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import env, rag_tui
from tests.sse_server import Script, replay_server, text_events

__all__ = ["env"]

BODY = "Guests may borrow a bicycle from the shed whenever the weather is dry and the day is long."


@pytest.fixture
def docs(tmp_path: Path, env: dict[str, str]) -> Path:
    env["RAG_TUI_CACHE_DIR"] = str(tmp_path / "cache")
    env["RAG_TUI_MODELS__EMBEDDER"] = "hashing"
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(f"# House\n\n## Bicycles\n\n{BODY}\n", "utf-8")
    return folder


def test_without_a_key_drafts_come_from_headings_and_no_file_is_written(
    docs: Path, env: dict[str, str]
) -> None:
    done = rag_tui("questions", "draft", str(docs), "--n", "3", "--json", env=env)
    (row,) = json.loads(done.stdout)
    assert row["question"] == "What does House say about bicycles?"
    assert row["evidence"] == [{"file": "a.md", "heading": "Bicycles", "quote": BODY, "grade": 1}]
    assert row["synthetic"] is True
    assert "from headings by template, without a model" in done.stderr
    assert [path.name for path in docs.iterdir()] == ["a.md"]


def test_a_model_is_asked_only_with_consent_and_its_trouble_is_told(
    docs: Path, env: dict[str, str]
) -> None:
    with replay_server(Script(text_events("Where are the bikes?"))) as server:
        env["ANTHROPIC_BASE_URL"] = server.base_url
        done = rag_tui("questions", "draft", str(docs), env=env, code=2)
        assert server.requests == []
        assert "at most" in done.stderr
        assert "--yes" in done.stderr
        done = rag_tui("questions", "draft", str(docs), "--yes", env=env, code=1)
        assert len(server.requests) == 1
    assert "no draft for a.md:1-5: the reply is not one JSON object" in done.stderr
    assert done.stdout == ""
