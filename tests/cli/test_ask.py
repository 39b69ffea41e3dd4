"""``rag-tui ask``: columns, templates, checks, and what JSON holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import env, rag_tui
from tests.hostile import HOSTILE
from tests.sse_server import Script, replay_server, text_events

__all__ = ["env"]

HOUSE = "# House\n\n## Pets\n\nDogs are welcome on the ground floor for 12 euros.\n"
KEYS = "# Keys\n\n## Lost keys\n\nA lost key costs 30 euros. The key opens the street door.\n"


@pytest.fixture
def docs(tmp_path: Path, env: dict[str, str]) -> Path:
    """Two small documents, indexed without any model."""
    env["RAG_TUI_CACHE_DIR"] = str(tmp_path / "cache")
    env["RAG_TUI_MODELS__EMBEDDER"] = "hashing"
    env["RAG_TUI_MODELS__RERANKER"] = str(tmp_path / "no-reranker")
    env["RAG_TUI_SEARCH__RERANK"] = "false"
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "house.md").write_text(HOUSE)
    (folder / "keys.md").write_text(KEYS)
    return folder


def test_an_answer_lists_its_sources_with_their_lines(docs: Path, env: dict[str, str]) -> None:
    done = rag_tui("ask", "What does a lost key cost?", "--folder", str(docs), env=env)
    assert "A lost key costs 30 euros. [1]" in done.stdout
    assert "[1] keys.md:1-5 · Keys > Lost keys" in done.stdout
    assert "Chosen by shared words only" in done.stderr


def test_check_tells_of_each_sentence_what_stands_in_its_source(
    docs: Path, env: dict[str, str]
) -> None:
    text = "Dogs are welcome on the ground floor for 15 euros [1]. The moon is made of cheese [1]."
    with replay_server(Script(text_events(text))) as server:
        env["ANTHROPIC_BASE_URL"] = server.base_url
        flags = ("--folder", str(docs), "--column", "bm25", "--check")
        told = rag_tui("ask", "Are dogs welcome?", *flags, env=env).stdout
        found = json.loads(rag_tui("ask", "Are dogs welcome?", *flags, "--json", env=env).stdout)
    assert "checks: 0 supported, 1 weak, 1 unsupported" in told
    assert "missing: number 15 euros is not in the cited source" in told
    assert "nearest: [1] Dogs are welcome on the ground floor for 12 euros." in told
    assert "An aid, not a verdict." in told
    assert [check["verdict"] for check in found["checks"]] == ["weak", "unsupported"]
    first = found["checks"][0]
    span = first["nearest"]["start"], first["nearest"]["end"]
    assert found["sources"][0]["text"][slice(*span)] == first["nearest"]["text"]
    assert found["text"][first["missing"][0]["start"] : first["missing"][0]["end"]] == "15 euros"
    assert found["usage"]["input_tokens"] == 100
    assert found["usage"]["cost"] == pytest.approx((100 * 5 + 20 * 25) / 1e6)
    assert found["sources"][0]["location"] == "house.md:1-5"
    assert (found["column"], found["template"], found["quotes"]) == ("bm25", "numbered", [])


def test_nothing_to_check_is_said_of_a_refusal(docs: Path, env: dict[str, str]) -> None:
    flags = ("--folder", str(docs), "--check")
    done = rag_tui("ask", "Is there a swimming pool?", *flags, env=env, code=3)
    assert "checks: nothing to check" in done.stdout


def test_template_order_and_column_decide_the_prompt(docs: Path, env: dict[str, str]) -> None:
    flags = ("--folder", str(docs), "--prompt", "--template", "documents")
    first = rag_tui("ask", "lost key", *flags, "--column", "bm25", env=env).stdout
    assert '<document index="1">' in first
    assert "house.md" not in first  # BM25 holds only chunks with a word of the question
    own = ("--column", "mine=bm25:post.min_bm25=99")
    assert "keys.md" not in rag_tui("ask", "lost key", *flags, *own, env=env).stdout
    last = ("--column", "vector", "--order", "best last")
    told = rag_tui("ask", "lost key", *flags, *last, env=env).stdout
    assert told.index("house.md") < told.index("keys.md")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--column", "best"), "There is no column 'best'"),
        (("--column", "x=bm26"), "bm26"),
        (("--template", "nothing"), "nothing"),
        (("--order", "worst first"), "worst first"),
        (("--knob", "bm25.k2=1"), "bm25.k2"),
    ],
)
def test_what_does_not_exist_is_refused_before_indexing(
    docs: Path, env: dict[str, str], flags: tuple[str, ...], says: str
) -> None:
    done = rag_tui("ask", "lost key", "--folder", str(docs), *flags, env=env, code=2)
    assert says in done.stderr
    assert not (Path(env["RAG_TUI_CACHE_DIR"]) / "indexes").exists()


def test_hostile_answers_reach_the_terminal_as_text(docs: Path, env: dict[str, str]) -> None:
    text = "\n".join([*HOSTILE, "99 euros [1]."])
    with replay_server(Script(text_events(text))) as server:
        env["ANTHROPIC_BASE_URL"] = server.base_url
        done = rag_tui("ask", "lost key", "--folder", str(docs), "--check", env=env)
    assert "\x1b" not in done.stdout
    assert "99 euros" in done.stdout
