"""`rag-tui contextualise`: estimate first, consent, then the pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import env, rag_tui
from tests.sse_server import Script, replay_server, whole_message

__all__ = ["env"]


@pytest.fixture
def docs(tmp_path: Path, env: dict[str, str]) -> Path:
    env["RAG_TUI_CACHE_DIR"] = str(tmp_path / "cache")
    env["RAG_TUI_MODELS__EMBEDDER"] = "hashing"
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nIt opens at nine.\n\n## Late\n\nRing the bell.\n")
    return folder


def reply(body: Any) -> Mapping[str, Any]:
    usage = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 200}
    return whole_message("The zebra house.", usage=usage)


def test_nothing_is_sent_without_consent(docs: Path, env: dict[str, str]) -> None:
    with replay_server(Script(reply=reply)) as server:
        env["ANTHROPIC_BASE_URL"] = server.base_url
        done = rag_tui("contextualise", str(docs), env=env, code=2)
        assert server.requests == []
    assert "2 chunks of 1 documents" in done.stderr
    assert "Estimated cost: $" in done.stderr
    assert "--yes" in done.stderr
    assert done.stdout == ""


def test_a_pass_is_paid_for_once_and_searches_use_it_when_switched_on(
    docs: Path,
    env: dict[str, str],
) -> None:
    with replay_server(Script(reply=reply)) as server:
        env["ANTHROPIC_BASE_URL"] = server.base_url
        done = rag_tui("contextualise", str(docs), "--yes", "--json", env=env)
        told = json.loads(done.stdout)
        again = rag_tui("contextualise", str(docs), "--yes", env=env)
        assert len(server.requests) == 2
    assert [one["text"] for one in told["situations"]] == ["The zebra house."] * 2
    assert told["usage"] == {
        "input_tokens": 20, "cache_write_tokens": 200, "cache_read_tokens": 400,
        "output_tokens": 10,
    }  # fmt: skip
    # haiku 4.5: 1 and 5 dollars a million: 20 + 200 * 1.25 + 400 * 0.1 + 10 * 5
    assert told["cost_usd"] == pytest.approx(360e-6)
    assert "chunking.situations" in done.stderr
    assert again.stdout.startswith("0 situations written")
    find = ("search", "zebra", "-m", "bm25", "--json", "-f", str(docs))
    off = json.loads(rag_tui(*find, env=env).stdout)
    assert off["methods"]["bm25"]["hits"] == []
    on = json.loads(rag_tui(*find, env={**env, "RAG_TUI_CHUNKING__SITUATIONS": "true"}).stdout)
    assert len(on["methods"]["bm25"]["hits"]) == 2


def test_an_unknown_model_has_no_price_until_it_is_given(
    docs: Path,
    env: dict[str, str],
) -> None:
    arguments = ("contextualise", str(docs), "--model", "m")
    done = rag_tui(*arguments, env=env, code=2)
    assert "is not known" in done.stderr
    assert "$" not in done.stderr
    done = rag_tui(*arguments, "--input-price", "2", "--output-price", "4", env=env, code=2)
    assert "Estimated cost: $" in done.stderr
    done = rag_tui(*arguments, "--input-price", "2", env=env, code=2)
    assert "prices is missing" in done.stderr


def test_without_a_key_the_fix_is_told(docs: Path, env: dict[str, str]) -> None:
    done = rag_tui("contextualise", str(docs), "--yes", env=env, code=1)
    assert "Set ANTHROPIC_API_KEY." in done.stderr
