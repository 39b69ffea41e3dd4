"""The commands as a user types them: stdout, stderr, exit codes, and no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rag_tui.cli.app import run
from rag_tui.engine.history import history_file, read_history
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.searching import search
from rag_tui.engine.types import METHODS, SearchRequest
from tests.conftest import CORPUS, ROOT
from tests.hostile import HOSTILE
from tests.sse_server import Script, replay_server, text_events

DOG = "Can I bring my dog?"


@pytest.fixture
def env(model_cache: Path, tmp_path: Path) -> dict[str, str]:
    """An environment with the run's model cache and no settings and no key."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAG_TUI_", "ANTHROPIC_"))}
    return {
        **kept,
        "RAG_TUI_CACHE_DIR": str(model_cache),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "160",
    }


def rag_tui(
    *arguments: str, env: Mapping[str, str], code: int = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "rag_tui", *arguments],
        capture_output=True,
        text=True,
        env=dict(env),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def test_search_json_holds_the_numbers_of_the_engine(
    env: dict[str, str], guesthouse: Index, models: Models
) -> None:
    done = rag_tui("search", DOG, "--json", env=env)
    told = json.loads(done.stdout)
    expected = {r.stage: r.ranking for r in search(SearchRequest(DOG), guesthouse, models)}
    assert list(told["methods"]) == list(METHODS)
    for method, ranking in expected.items():
        assert ranking is not None
        rows = told["methods"][method]["hits"]
        assert [(row["chunk_id"], row["rank"]) for row in rows] == [
            (hit.chunk_id, hit.rank) for hit in ranking.hits[:5]
        ]
        for row, hit in zip(rows, ranking.hits, strict=False):
            assert row["score"] == pytest.approx(hit.score, abs=1e-6)
    first = told["methods"]["vector"]["hits"][0]
    text = (CORPUS / first["file"]).read_text()
    assert text[first["start"] : first["end"]] == first["text"]


def test_search_shows_the_four_lists_side_by_side(env: dict[str, str]) -> None:
    done = rag_tui("search", "Where is the lockbox?", "--top-k", "3", env=env)
    header = next(line for line in done.stdout.splitlines() if "VECTOR" in line)
    assert header.index("VECTOR") < header.index("BM25") < header.index("HYBRID")
    assert header.index("HYBRID") < header.index("RERANKED")
    assert "v9  b1" in done.stdout


def test_an_overlap_as_large_as_the_size_is_refused_before_anything_is_read(
    env: dict[str, str],
) -> None:
    sizes = {"RAG_TUI_CHUNKING__SIZE": "10", "RAG_TUI_CHUNKING__OVERLAP": "10"}
    done = rag_tui("index", env={**env, **sizes}, code=2)
    assert "overlap must be smaller" in done.stderr


def test_a_damaged_index_is_told_in_a_sentence_without_a_traceback(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nsome text\n")
    index = ["index", str(folder), "--embedder", "hashing"]
    rag_tui(*index, env=env)
    place = Path(rag_tui("locate", "index", "--folder", str(folder), env=env).stdout.strip())
    generation = place / (place / "CURRENT").read_text()
    (generation / "chunks.json").write_text("{")
    assert "is damaged" in rag_tui(*index, env=env).stderr
    log = Path(rag_tui("locate", "log", env=env).stdout.strip())
    assert "Traceback" in log.read_text()


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict"])
def test_a_terminal_that_cannot_say_a_character_gets_an_escape(
    encoding: str, env: dict[str, str]
) -> None:
    done = rag_tui("search", "Où est la clé?", env={**env, "PYTHONIOENCODING": encoding})
    assert "RERANKED" in done.stdout


def test_a_full_disk_behind_stdout_is_told(env: dict[str, str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "rag_tui", "chunks"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            cwd=ROOT,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", '{"a": 1}'),
        ("config.json", "null"),
        ("config_sentence_transformers.json", '{"prompts": ["query"]}'),
        ("sentence_bert_config.json", '{"max_seq_length": "many"}'),
        ("sentence_bert_config.json", '{"max_seq_length": -5}'),
    ],
)
def test_a_malformed_model_folder_is_told_and_keyword_search_works(
    name: str, content: str, env: dict[str, str], tmp_path: Path
) -> None:
    from rag_tui.engine.models import resolve

    broken = tmp_path / "model"
    good = resolve("sentence-transformers/all-MiniLM-L6-v2", "embedder", allow_download=False)
    broken.mkdir()
    for path in good.folder.iterdir():
        (broken / path.name).symlink_to(path)
    (broken / name).unlink()
    (broken / name).write_text(content)
    done = rag_tui(
        "search",
        DOG,
        "--embedder",
        str(broken),
        "--folder",
        str(CORPUS / "check-in.md"),
        "-m",
        "bm25",
        env=env,
    )
    assert "Keyword search only" in done.stderr
    assert "BM25" in done.stdout


def test_only_the_methods_asked_for_are_shown(env: dict[str, str]) -> None:
    done = rag_tui("search", DOG, "-m", "bm25", "-m", "hybrid", "--json", env=env)
    assert list(json.loads(done.stdout)["methods"]) == ["bm25", "hybrid"]


def test_knobs_change_the_scores(env: dict[str, str]) -> None:
    def scores(*flags: str) -> list[float]:
        done = rag_tui("search", DOG, "-m", "bm25", "--json", *flags, env=env)
        return [row["score"] for row in json.loads(done.stdout)["methods"]["bm25"]["hits"]]

    assert scores() != scores("--k1", "0.5")
    assert scores() != scores("--b", "0")
    assert scores() != scores("--bm25", "okapi")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["search", "", "--folder", "corpus"], 2, "question is empty"),
        (["search", "word " * 10_000], 2, "10,000 words"),
        (["search", DOG, "--top-k", "0"], 2, "search.top_k"),
        (["search", DOG, "--top-k", "many"], 2, "--top-k"),
        (["search", DOG, "--method", "magic"], 2, "magic"),
        (["search", DOG, "--folder", "no/such/folder"], 2, "does not exist"),
        (["search", DOG, "--b", "3"], 2, "bm25.b"),
        (["index", "no/such/folder"], 2, "does not exist"),
        (["chunks", "--document", "none.md"], 2, "not a document"),
        (["search", DOG, "--embedder", "no/such-model"], 1, "no/such-model"),
        (["locate", "treasure"], 2, "treasure"),
        (["open", "no/such/folder"], 2, "does not exist"),
        (["no/such/folder"], 2, "does not exist"),
        (["corpus"], 2, "needs a terminal"),
        (["--frobnicate"], 2, "frobnicate"),
    ],
)
def test_a_users_mistake_is_told_with_its_exit_code_and_no_traceback(
    arguments: list[str], code: int, words: str, env: dict[str, str]
) -> None:
    done = rag_tui(*arguments, env=env, code=code)
    assert words in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("kind", ["empty", "unreadable types", "blank files"])
def test_a_folder_without_anything_to_index_is_named(
    kind: str, env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    if kind == "unreadable types":
        (folder / "a.bin").write_bytes(b"\0\1\2")
    if kind == "blank files":
        (folder / "a.md").write_bytes(b"")
    done = rag_tui("search", DOG, "--folder", str(folder), env=env, code=1)
    assert "could be indexed" in done.stderr or "can be indexed" in done.stderr
    assert "Markdown" in done.stderr or "rag-tui index --json" in done.stderr


def test_index_reports_every_file_with_its_state(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\ntext here\n")
    (folder / "blank.md").write_bytes(b"")
    (folder / "latin.md").write_bytes("# Caf\xe9\n\nna\xefve text\n".encode("latin-1"))
    done = rag_tui("index", str(folder), "--embedder", "hashing", "--json", env=env)
    told = json.loads(done.stdout)
    assert {row["path"]: row["state"] for row in told["files"]} == {
        "good.md": "indexed",
        "blank.md": "skipped",
        "latin.md": "partly",
    }
    assert told["states"] == {"indexed": 1, "partly": 1, "skipped": 1}
    again = json.loads(
        rag_tui("index", str(folder), "--embedder", "hashing", "--json", env=env).stdout
    )
    assert again["n_embedded"] == 0


def test_searching_an_index_of_another_model_is_refused_and_index_is_the_fix(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nsome text\n")
    rag_tui("index", str(folder), "--embedder", "hashing", env=env)
    done = rag_tui("search", "text", "--folder", str(folder), env=env, code=1)
    assert "was made with hashing" in done.stderr
    assert "rag-tui index" in done.stderr
    rag_tui("index", str(folder), env=env)
    rag_tui("search", "text", "--folder", str(folder), env=env)


def test_chunks_lists_spans_that_hold(env: dict[str, str]) -> None:
    told = json.loads(rag_tui("chunks", "--json", env=env).stdout)
    assert len(told) == 13
    for row in told:
        text = (CORPUS / row["file"]).read_text()
        assert text[row["start"] : row["end"]] == row["text"]
        assert 0 < row["n_tokens"] <= row["max_tokens"] == 256
    table = rag_tui("chunks", "--document", "check-in.md", env=env).stdout
    assert "Arrival times" in table
    assert "house-rules.md" not in table


def test_ask_quotes_and_cites_and_not_found_has_its_own_exit_code(env: dict[str, str]) -> None:
    done = rag_tui("ask", "What is the Wi-Fi password?", env=env)
    assert "[1]" in done.stdout
    assert "wifi-and-appliances.md" in done.stdout
    told = json.loads(
        rag_tui("ask", "Is there a place to park the car?", "--json", env=env, code=3).stdout
    )
    assert told["state"] == "not found"
    assert told["cited"] == []


def test_ask_prompt_prints_the_exact_prompt_without_asking(env: dict[str, str]) -> None:
    done = rag_tui("ask", DOG, "--prompt", "--sources", "2", env=env)
    assert '<source id="1"' in done.stdout
    assert '<source id="2"' in done.stdout
    assert '<source id="3"' not in done.stdout
    assert done.stdout.rstrip().endswith(f"<question>\n{DOG}\n</question>")


def test_ask_streams_from_a_server_that_speaks_the_messages_api(env: dict[str, str]) -> None:
    script = Script(text_events("Dogs are wel", "come [1]. So is the ", "moon [9]."))
    with replay_server(script) as server:
        done = rag_tui("ask", DOG, env={**env, "ANTHROPIC_BASE_URL": server.base_url})
    assert "Dogs are welcome [1]. So is the moon [9]." in done.stdout
    assert "[9] does not exist" in done.stdout
    assert "<source id=" in json.dumps(server.requests[0].body)


def test_an_incomplete_answer_is_marked_and_has_its_exit_code(env: dict[str, str]) -> None:
    with replay_server(Script(text_events("Dogs are", stop_reason="max_tokens"))) as server:
        done = rag_tui("ask", DOG, env={**env, "ANTHROPIC_BASE_URL": server.base_url}, code=1)
    assert "Dogs are" in done.stdout
    assert "cut at the token limit" in done.stderr


def test_an_invalid_key_is_told_without_showing_it(env: dict[str, str]) -> None:
    key = "sk-secret-value-123"
    with replay_server(Script(status=401)) as server:
        secret = {**env, "ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": key}
        done = rag_tui("ask", DOG, env=secret, code=1)
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert key not in done.stdout + done.stderr


def test_a_server_that_is_not_there_is_told(env: dict[str, str]) -> None:
    done = rag_tui("ask", DOG, env={**env, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, code=1)
    assert "failed" in done.stderr


def test_doctor_tells_versions_models_hashes_index_and_never_the_key(env: dict[str, str]) -> None:
    key = "sk-secret-value-456"
    done = rag_tui("doctor", env={**env, "ANTHROPIC_API_KEY": key})
    for words in ("textual: ", "offline extra", "sha256 ok", "13 chunks", "present", "TERM"):
        assert words in done.stdout
    assert key not in done.stdout + done.stderr
    assert "key: none" in rag_tui("doctor", env=env).stdout


def test_doctor_json_names_a_model_that_is_nowhere_as_a_problem(env: dict[str, str]) -> None:
    told = rag_tui(
        "doctor", "--json", env={**env, "RAG_TUI_MODELS__EMBEDDER": "no/such-model"}, code=1
    )
    problems = [row for row in json.loads(told.stdout) if row["state"] == "problem"]
    assert any("no/such-model" in row["name"] for row in problems)
    assert any("rag-tui-explorer[offline]" in row["detail"] for row in problems)


def test_version_and_help(env: dict[str, str]) -> None:
    from rag_tui import __version__

    assert rag_tui("--version", env=env).stdout == f"rag-tui {__version__}\n"
    page = rag_tui("--help", env=env).stdout
    for command in ("index", "search", "chunks", "ask", "doctor", "locate"):
        assert command in page
    assert "Exit codes" in page


def test_locate_prints_the_places(env: dict[str, str], model_cache: Path) -> None:
    assert rag_tui("locate", "cache", env=env).stdout.strip() == str(model_cache)


def test_hostile_documents_and_questions_leave_no_control_sequence_on_stdout(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for i, text in enumerate(HOSTILE):
        data = f"# {text}\n\nmarker {text}\n".encode("utf-8", "surrogatepass")
        (folder / f"{i:02}.md").write_bytes(data)
    question = "marker [/] \x1b]0;OWNED\x07 \x9d0;OWNED2"
    for arguments in (
        ["index", str(folder), "--embedder", "hashing"],
        ["search", question, "--folder", str(folder), "--embedder", "hashing", "-m", "bm25"],
        ["chunks", "--folder", str(folder), "--embedder", "hashing"],
        [
            "search",
            question,
            "--folder",
            str(folder),
            "--embedder",
            "hashing",
            "-m",
            "bm25",
            "--json",
        ],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rag_tui", *arguments],
            capture_output=True,
            env=env,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        printed = (done.stdout + done.stderr).decode("utf-8")
        assert not set(printed) & {"\x1b", "\x07", "\x9b", "\x9d", "\0"}
    assert json.loads(done.stdout)["methods"]["bm25"]["hits"][0]["text"].count("marker") == 1


def test_one_document_can_come_from_stdin(env: dict[str, str]) -> None:
    arguments = ["chunks", "--folder", "-", "--embedder", "hashing", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "rag_tui", *arguments],
        input="# Pump\n\nPrime it first.\n\n## Valve\n\nOpen slowly.\n",
        capture_output=True,
        text=True,
        env=env,
        cwd=ROOT,
        check=True,
    )
    told = json.loads(done.stdout)
    assert [row["heading_path"] for row in told] == [["Pump"], ["Pump", "Valve"]]
    assert [row["file"] for row in told] == ["stdin.md", "stdin.md"]


def test_ask_takes_the_model_of_the_index(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Pump\n\nThe pump is primed with water.\n")
    rag_tui("index", str(folder), "--embedder", "hashing", env=env)
    flags = ["--folder", str(folder), "--embedder", "hashing", "--prompt"]
    assert "primed with water" in rag_tui("ask", "How is the pump primed?", *flags, env=env).stdout


def test_settings_and_questions_of_a_folder_are_no_documents(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nsome text\n")
    (folder / "rag-tui.toml").write_text("[search]\ntop_k = 3\n")
    (folder / "questions.jsonl").write_text('{"question": "some text?"}\n')
    told = json.loads(
        rag_tui("index", str(folder), "--embedder", "hashing", "--json", env=env).stdout
    )
    assert told["n_documents"] == 1
    states = {row["path"]: (row["state"], row["reason"]) for row in told["files"]}
    for name in ("rag-tui.toml", "questions.jsonl"):
        assert states[name] == ("skipped", "questions, labels or settings, not documents")


def test_a_file_of_records_with_a_broken_line_is_partly_indexed(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "rec.jsonl").write_text(
        '{"id": "x", "text": "first record"}\nnot json\n{"id": "y", "text": "second record"}\n'
    )
    fields = {"RAG_TUI_LOADING__JSON_TEXT_FIELDS": "text", "RAG_TUI_LOADING__JSON_ID_FIELD": "id"}
    done = rag_tui("index", str(folder), "--embedder", "hashing", "--json", env={**env, **fields})
    states = {row["path"]: row["state"] for row in json.loads(done.stdout)["files"]}
    assert states["rec.jsonl"] == "partly"
    assert states["rec.jsonl#x"] == states["rec.jsonl#y"] == "indexed"


def test_a_fault_of_ours_is_told_in_two_lines_and_logged(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import rag_tui.cli.commands as commands\n"
        "def broken(*arguments, **options):\n"
        "    raise ZeroDivisionError('for [/] a test')\n"
        "commands.search_table = broken\n"
    )
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = rag_tui("search", DOG, env={**env, "PYTHONPATH": path}, code=1)
    assert "unexpected ZeroDivisionError: for [/] a test" in done.stderr
    log = Path(rag_tui("locate", "log", env=env).stdout.strip())
    assert str(log) in done.stderr
    assert "ZeroDivisionError" in log.read_text()


def small_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    text = "The pump is primed with clean water before it is started for the first time each {}."
    (folder / "a.md").write_text(f"# Pump\n\n{text.format('spring')}\n")
    (folder / "b.md").write_text(f"# Pump\n\n{text.format('year')}\n")
    (folder / "c.md").write_text("# Valve\n\nOpen the valve slowly, then start the pump.\n")
    return folder


def searched(
    folder: Path, *flags: str, env: Mapping[str, str], question: str = "prime the pump"
) -> dict[str, Any]:
    arguments = ["search", question, "--folder", str(folder), "--embedder", "hashing", "--json"]
    told: dict[str, Any] = json.loads(rag_tui(*arguments, *flags, env=env).stdout)
    return told


def test_columns_of_your_own_stand_side_by_side_with_their_knobs(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = small_folder(tmp_path)
    columns = ("--column", "bm25 k1=0=bm25:bm25.k1=0", "--column", "plain=bm25")
    told = searched(folder, *columns, env=env)
    assert list(told["methods"]) == ["bm25 k1=0", "plain"]
    mine = told["methods"]["bm25 k1=0"]
    assert (mine["method"], mine["knobs"]) == ("bm25", {"bm25.k1": 0.0})
    assert mine["hits"][0]["score"] != told["methods"]["plain"]["hits"][0]["score"]
    same = searched(folder, "--knob", "bm25.k1=0", "-m", "bm25", env=env)
    assert [row["score"] for row in mine["hits"]] == [
        row["score"] for row in same["methods"]["bm25"]["hits"]
    ]
    flags = ("--folder", str(folder), "--embedder", "hashing", *columns)
    header = rag_tui("search", "prime the pump", *flags, env=env).stdout.splitlines()[1]
    assert header.index("bm25 k1=0 BM25 lucene") < header.index("plain BM25 lucene")


def test_any_knob_can_be_set_and_steps_after_ranking_are_told(
    env: dict[str, str], tmp_path: Path
) -> None:
    folder = small_folder(tmp_path)
    knobs = ("--knob", "post.fold=true", "--knob", "post.min_bm25=off", "-m", "bm25")
    told = searched(folder, *knobs, env=env)["methods"]["bm25"]
    (step,) = told["steps"]
    assert step["note"] == "folded 1 row into 1 of the same text"
    assert [row["file"] for row in told["hits"]] == ["c.md", "a.md"]
    assert told["folded"] == {told["hits"][1]["chunk_id"]: list(step["removed"])}
    flags = ("--folder", str(folder), "--embedder", "hashing", *knobs)
    shown = rag_tui("search", "prime the pump", *flags, env=env).stdout
    assert "bm25: fold: folded 1 row into 1 of the same text" in shown
    assert "(same text in 2 places)" in shown


def test_a_search_without_steps_or_columns_says_nothing_about_them(env: dict[str, str]) -> None:
    told = json.loads(rag_tui("search", DOG, "-m", "bm25", "--json", env=env).stdout)
    assert set(told["methods"]["bm25"]) == {
        "score", "depth", "n_found", "elapsed_ms", "note", "hits",
    }  # fmt: skip


def test_a_preset_is_below_flags_and_knobs(env: dict[str, str], tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    (folder / "rag-tui.toml").write_text(
        '[bm25]\nk1 = 2.0\n[presets."short words"]\n"bm25.k1" = 0.5\n"bm25.b" = 0.1\n'
        '"search.top_k" = 1\n'
    )

    def bm25(*flags: str) -> tuple[float, float, int]:
        told = searched(folder, "--preset", "short words", *flags, env=env)["request"]
        return told["bm25"]["k1"], told["bm25"]["b"], told["top_k"]

    assert bm25() == (0.5, 0.1, 1)
    assert bm25("--k1", "0.7") == (0.7, 0.1, 1)
    assert bm25("--k1", "0.7", "--knob", "bm25.k1=0.9", "-k", "2") == (0.9, 0.1, 2)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--knob", "bm25.k2=1"], "Did you mean bm25.k1?"),
        (["--knob", "bm25.k1"], "not of the form"),
        (["--knob", "bm25.k1=-1"], "must be 0 or more"),
        (["--preset", "none"], "no preset 'none'"),
        (["--column", "a=magic"], "method of column 'a'"),
        (["--column", "a"], "not of the form"),
        (["--column", "a=bm25", "--column", "a=vector"], "Two columns are called 'a'"),
        (["--column", "a=bm25:bm25.k3=1"], "no knob 'bm25.k3'"),
    ],
)
def test_a_wrong_knob_column_or_preset_is_told_before_anything_is_indexed(
    flags: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cache = tmp_path / "fresh"
    monkeypatch.setenv("RAG_TUI_CACHE_DIR", str(cache))
    assert run(["search", DOG, *flags]) == 2
    assert words in capsys.readouterr().err
    assert not cache.exists()


def test_searches_are_kept_unless_that_is_switched_off(env: dict[str, str], tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    cache = tmp_path / "cache"
    own = {**env, "RAG_TUI_CACHE_DIR": str(cache)}
    searched(folder, "-m", "bm25", env={**own, "RAG_TUI_HISTORY__ENABLED": "false"})
    assert not (cache / "history").exists()
    searched(folder, "-m", "bm25", env=own)
    (entry,) = read_history(history_file(cache, folder)).entries
    assert entry.query == "prime the pump"
    assert [column.name for column in entry.columns] == ["bm25"]


def test_a_search_without_any_list_is_refused_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("RAG_TUI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RAG_TUI_SEARCH__RERANK", "false")
    assert run(["search", DOG, "-m", "reranked"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "search.rerank" in err
    assert run(["search", DOG, "-m", "bm25", "--column", "mine=vector"]) == 2
    assert "mine" in capsys.readouterr().err
    assert not (tmp_path / "cache" / "indexes").exists()
