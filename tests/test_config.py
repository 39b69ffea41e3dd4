"""Settings: layers, and errors that name file, key, value, rule and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_tui.config import load_settings, user_file
from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import SearchRequest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    return root


def write_user(text: str) -> Path:
    path = user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_defaults_are_those_of_the_engine(folder: Path) -> None:
    settings = load_settings(folder)
    assert settings.request("q") == SearchRequest("q")
    assert settings.engine.chunking.size == 256
    assert settings.engine.models.embedder == "sentence-transformers/all-MiniLM-L6-v2"


def test_each_layer_overrides_the_one_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_user("[search]\ntop_k = 1\ndepth = 11\nrrf_k = 1\nrerank_depth = 1\n")
    (folder / "rag-tui.toml").write_text("[search]\ntop_k = 2\nrrf_k = 2\nrerank_depth = 2\n")
    monkeypatch.setenv("RAG_TUI_SEARCH__TOP_K", "3")
    monkeypatch.setenv("RAG_TUI_SEARCH__RRF_K", "3")
    request = load_settings(folder, {"search.top_k": 4, "bm25.k1": None}).request("q")
    assert (request.depth, request.rerank_depth, request.rrf_k, request.top_k) == (11, 2, 3.0, 4)


def test_one_file_as_corpus_reads_the_project_file_beside_it(folder: Path) -> None:
    (folder / "rag-tui.toml").write_text("[search]\ntop_k = 2\n")
    (folder / "a.md").write_text("# A\n\ntext\n")
    assert load_settings(folder / "a.md").search.top_k == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[search]\ntop_k = 0\n", ["search.top_k", "greater than or equal to 1", "got 0"]),
        ("[search]\ntop_k = 'many'\n", ["search.top_k", "valid integer", "got 'many'"]),
        ("[search]\ntop_kk = 3\n", ["search.top_kk", "is not a setting"]),
        ("[serach]\ntop_k = 3\n", ["serach", "is not a setting"]),
        ("[search]\ntop_k = 60\n", ["top_k must not be larger than depth", "60"]),
        ("[chunking]\nsize = 10\noverlap = 10\n", ["overlap must be smaller than size"]),
        ("[bm25]\nb = 1.5\n", ["bm25.b", "less than or equal to 1", "got 1.5"]),
        ("[bm25]\nk1 = nan\n", ["bm25.k1", "finite"]),
        ("[models]\nbackend = 'gpu'\n", ["models.backend", "'auto'", "got 'gpu'"]),
        ("[search\n", ["is not valid TOML"]),
        ("x = " + "[" * 5000, ["nested too deeply"]),
        ("x = " + "9" * 5000, ["is not valid TOML"]),
        ("search = 5\n", ["search", "got 5"]),
    ],
)
def test_a_bad_project_file_is_named_with_key_value_and_rule(
    text: str, words: list[str], folder: Path
) -> None:
    path = folder / "rag-tui.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(folder)
    assert str(path) in caught.value.message
    for word in words:
        assert word in caught.value.message
    assert caught.value.hint


def test_an_unknown_key_lists_the_known_ones(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(folder, {"search.top": 3})
    assert "top_k, depth" in caught.value.hint
    assert "the command line" in caught.value.message


def test_a_bad_environment_variable_is_blamed_on_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_TUI_BM25__K1", "-3")
    with pytest.raises(UsageError, match=r"bm25\.k1 \(in the environment\)"):
        load_settings(folder)


@pytest.mark.parametrize(
    "text",
    [
        "[answer]\nbase_url = 'http://127.0.0.1:1'\n",
        "[answer]\nprovider = 'claude'\n",
        "[models]\nallow_download = true\n",
    ],
)
def test_a_folder_of_documents_may_not_decide_where_a_key_is_sent(text: str, folder: Path) -> None:
    (folder / "rag-tui.toml").write_text(text)
    with pytest.raises(UsageError, match="may not decide"):
        load_settings(folder)
    (folder / "rag-tui.toml").unlink()
    write_user(text)
    load_settings(folder)


def test_a_config_variable_that_names_no_file_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAG_TUI_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="RAG_TUI_CONFIG"):
        load_settings(folder)


def test_a_section_of_the_wrong_type_is_not_hidden_by_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "rag-tui.toml").write_text("search = 5\n")
    monkeypatch.setenv("RAG_TUI_SEARCH__TOP_K", "3")
    with pytest.raises(UsageError, match="must be a table"):
        load_settings(folder)


@pytest.mark.parametrize("text", ['["*.md", "a/**"]', "*.md, a/**"])
def test_a_list_in_the_environment_is_json_or_parts_between_commas(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_TUI_LOADING__INCLUDE", text)
    assert load_settings(folder).engine.loading.include == ("*.md", "a/**")


@pytest.mark.parametrize("line", ["outside_links = true", "pdf_passwords = ['x']"])
def test_a_folder_may_neither_lead_out_of_itself_nor_name_passwords(
    line: str, folder: Path
) -> None:
    (folder / "rag-tui.toml").write_text(f"[loading]\n{line}\n")
    with pytest.raises(UsageError, match="may not decide"):
        load_settings(folder)


def test_prices_of_the_settings_reach_the_facts(folder: Path) -> None:
    (folder / "rag-tui.toml").write_text("[prices]\ninput = 2\ncurrency = 'EUR'\n")
    prices = load_settings(folder).token_prices
    assert (prices.input, prices.cache_read, prices.currency) == (2.0, 0.5, "EUR")
