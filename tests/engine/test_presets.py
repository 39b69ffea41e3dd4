"""Settings as text that gives the same search again, presets in a person's file, undo."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.config import PROJECT_FILE, Settings, load_settings
from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import KNOBS, make_column, with_knobs
from rag_tui.engine.preset_file import save_preset
from rag_tui.engine.presets import Undo, apply_preset, as_python, as_toml, toml_text
from rag_tui.engine.types import KnobValue, SearchRequest
from tests.conftest import CORPUS, ROOT

PLAIN = SearchRequest("q")
TURNED: dict[str, KnobValue] = {
    "search.top_k": 7,
    "search.fusion": "zscore",
    "search.weight_bm25": 0.25,
    "search.rerank": False,
    "search.reranker": 'a "quoted" \\ path\n\x1b[2J',
    "bm25.variant": "bm25plus",
    "bm25.k1": 0.9,
    "bm25.delta": 0.5,
    "post.min_vector": 0.2,
    "post.fold": True,
    "post.mmr": 0.7,
    "post.neighbours": 1,
}
COLUMNS = (
    make_column("bm25 k1=0.9", "bm25", {"bm25.k1": 0.9, "bm25.delta": "off"}),
    make_column('odd ] " name', "reranked", {"search.reranker": "x", "post.fold": "true"}),
    make_column("all", "hybrid", {}),
)


def read_back(text: str, base: str = "") -> SearchRequest:
    values = tomllib.loads(base)
    for section, table in tomllib.loads(text).items():
        values[section] = {**values.get(section, {}), **table} if section != "columns" else table
    return Settings.model_validate(values).request("q")


def test_toml_of_a_request_is_read_back_to_an_equal_request() -> None:
    request = replace(with_knobs(PLAIN, TURNED), columns=COLUMNS)
    text = as_toml(request, PLAIN)
    for table in ("[search]", "[bm25]", "[post]", "[[columns]]"):
        assert table in text
    assert read_back(text) == request


def test_only_what_differs_is_written() -> None:
    assert as_toml(PLAIN, PLAIN) == ""
    assert as_toml(with_knobs(PLAIN, {"bm25.k1": 0.9}), PLAIN) == "[bm25]\nk1 = 0.9\n"


def test_a_knob_that_the_settings_set_can_be_written_off() -> None:
    base = "[post]\nmin_vector = 0.5\nmmr = 0.5\n[bm25]\ndelta = 1.0\n"
    defaults = read_back("", base)
    request = with_knobs(defaults, {"post.min_vector": None, "post.mmr": None, "bm25.delta": None})
    assert read_back(as_toml(request, defaults), base) == request


def values_of(name: str) -> st.SearchStrategy[object]:
    spec = next(spec for spec in KNOBS if spec.name == name)
    match spec.type:
        case "switch":
            found: st.SearchStrategy[object] = st.booleans()
        case "choice":
            found = st.sampled_from(spec.choices)
        case "text":
            found = st.text(st.characters(exclude_categories=["Cs"]))
        case "whole":
            found = st.integers(6, 10**6)
        case _:
            found = st.floats(spec.least or 0, spec.most if spec.most is not None else 1e6)
    return st.none() | found if spec.may_be_off else found


@given(st.data())
def test_any_knobs_survive_the_way_through_toml(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from([spec.name for spec in KNOBS]), unique=True))
    chosen = {n: data.draw(values_of(n)) for n in names if n not in ("search.top_k",)}
    request = with_knobs(PLAIN, chosen)
    assert read_back(as_toml(request, PLAIN)) == request


def test_text_that_toml_cannot_hold_is_marked() -> None:
    assert tomllib.loads("x = " + toml_text("a\udc80b")) == {"x": "a?b"}


def test_the_python_script_makes_the_very_request() -> None:
    request = replace(
        with_knobs(PLAIN, TURNED), columns=COLUMNS, where='path~"a*"', methods=("bm25",)
    )
    tree = ast.parse(as_python(request, PLAIN))
    wanted = [
        node
        for node in tree.body
        if (isinstance(node, ast.ImportFrom) and node.module in
        ("rag_tui.engine.knobs", "rag_tui.engine.types"))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "request")
    ]  # fmt: skip
    made: dict[str, object] = {}
    exec(compile(ast.Module([*wanted], []), "script", "exec"), made)
    assert made["request"] == request


def test_the_python_script_does_not_depend_on_the_settings_it_came_from() -> None:
    defaults = with_knobs(PLAIN, {"bm25.k1": 2.0, "bm25.b": 0.3})
    request = with_knobs(defaults, {"bm25.k1": 1.5})
    script = as_python(request, defaults)
    assert "'bm25.k1': 1.5" in script
    assert "'bm25.b': 0.3" in script


def test_the_python_script_runs(tmp_path: Path) -> None:
    request = SearchRequest("luggage", methods=("bm25",), top_k=1)
    script = as_python(request, PLAIN, folder=str(CORPUS / "check-in.md"))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "RAG_TUI_CACHE_DIR": str(tmp_path),
            "RAG_TUI_MODELS__EMBEDDER": "hashing",
            "PYTHONPATH": str(ROOT),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[1] == "bm25"
    assert lines[2].startswith("  1  ")
    assert "check-in.md:" in lines[2]


def test_a_preset_sets_its_knobs_and_a_wrong_name_is_told_the_nearest() -> None:
    presets: dict[str, dict[str, object]] = {"short": {"bm25.b": 0.2, "post.mmr": "off"}}
    assert apply_preset(PLAIN, presets, "short").bm25.b == 0.2
    with pytest.raises(UsageError, match="Did you mean short"):
        apply_preset(PLAIN, presets, "shrot")
    with pytest.raises(UsageError, match="presets"):
        apply_preset(PLAIN, {}, "short")
    with pytest.raises(UsageError, match=r"Preset 'bad'.*bm25\.k2"):
        apply_preset(PLAIN, {"bad": {"bm25.k2": 1}}, "bad")


MINE = """\
# my settings
[search]
top_k = 3   # few rows

[presets.old]   # keep me
"bm25.k1" = 1.0

# about the other one
[presets."wide net"]
# deep
"search.depth" = 200

# the look
[ui]
theme = "nord"
"""


def test_a_new_preset_is_added_at_the_end_and_nothing_else_is_touched(tmp_path: Path) -> None:
    path = tmp_path / PROJECT_FILE
    path.write_text(MINE)
    save_preset(path, "short", {"bm25.b": 0.2, "post.mmr": None, "post.fold": True})
    text = path.read_text()
    assert text == MINE + '\n[presets."short"]\n"bm25.b" = 0.2\n"post.mmr" = "off"\n' + (
        '"post.fold" = true\n'
    )
    settings = load_settings(tmp_path)
    request = apply_preset(settings.request("q"), settings.presets, "short")
    assert (request.bm25.b, request.post.fold, request.top_k) == (0.2, True, 3)


def test_a_preset_of_the_same_name_is_replaced_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / PROJECT_FILE
    path.write_text(MINE)
    save_preset(path, "wide net", {"search.depth": 99})
    assert path.read_text() == MINE.replace("# deep\n", "").replace(" = 200", " = 99")
    save_preset(path, "old", {"bm25.k1": 2.0})
    assert path.read_text().count("[presets") == 2
    assert '[presets."old"]\n"bm25.k1" = 2.0\n\n# about the other one\n' in path.read_text()


def test_a_bracket_in_a_text_or_list_of_the_table_does_not_confuse(tmp_path: Path) -> None:
    path = tmp_path / PROJECT_FILE
    tricky = (
        '[presets.a]\n"search.reranker" = """\n[ui]\ntheme = 1\n"""\n\n'
        "[loading]\nexclude = [\n[presets.a]\n]\n"
    ).replace("[presets.a]\n]", '"[presets.a]",\n]')
    path.write_text(tricky)
    save_preset(path, "a", {"bm25.k1": 1.0})
    assert path.read_text() == (
        '[presets."a"]\n"bm25.k1" = 1.0\n\n[loading]\nexclude = [\n"[presets.a]",\n]\n'
    )


@pytest.mark.parametrize(
    "text",
    ['[presets]\na = { "bm25.k1" = 1.0 }\n', 'presets.a."bm25.k1" = 1.0\n'],
)
def test_a_preset_in_another_form_is_left_alone_with_the_fix(text: str, tmp_path: Path) -> None:
    path = tmp_path / PROJECT_FILE
    path.write_text(text)
    with pytest.raises(UsageError, match=r'\[presets."a"\]'):
        save_preset(path, "a", {"bm25.k1": 2.0})
    assert path.read_text() == text
    save_preset(path, "b", {"bm25.k1": 2.0})
    assert tomllib.loads(path.read_text())["presets"]["b"] == {"bm25.k1": 2.0}


def test_line_ends_byte_order_mark_rights_and_links_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_bytes(b"\xef\xbb\xbf[search]\r\ntop_k = 3")
    real.chmod(0o640)
    link = tmp_path / PROJECT_FILE
    link.symlink_to(real)
    save_preset(link, "a", {"bm25.k1": 1.0})
    assert link.is_symlink()
    assert real.read_bytes() == (
        b'\xef\xbb\xbf[search]\r\ntop_k = 3\r\n\r\n[presets."a"]\r\n"bm25.k1" = 1.0\r\n'
    )
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == [PROJECT_FILE, "real.toml"]


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    save_preset(tmp_path / PROJECT_FILE, "a", {"bm25.k1": 1.0})
    assert load_settings(tmp_path).presets == {"a": {"bm25.k1": 1.0}}


@pytest.mark.parametrize(
    ("name", "knobs", "text", "words"),
    [
        (" ", {"bm25.k1": 1.0}, "", "needs a name"),
        ("a", {"bm25.k2": 1.0}, "", "no knob"),
        ("a", {"bm25.k1": 1.0}, "[search\n", "not valid TOML"),
    ],
)
def test_what_cannot_be_saved_is_told_and_changes_nothing(
    name: str, knobs: dict[str, KnobValue], text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / PROJECT_FILE
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        save_preset(path, name, knobs)
    assert path.read_text() == text


def test_a_write_that_fails_leaves_the_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / PROJECT_FILE
    path.write_text(MINE)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        save_preset(path, "a", {"bm25.k1": 1.0})
    assert path.read_text() == MINE
    assert list(tmp_path.iterdir()) == [path]


def test_undo_and_redo_walk_through_the_requests() -> None:
    one, two, three = (with_knobs(PLAIN, {"bm25.k1": k}) for k in (1.0, 2.0, 3.0))
    history = Undo(one).push(two).push(two).push(three)
    assert history.undo().present == two
    assert history.undo().undo().present == one
    assert history.undo().undo().undo().present == one
    assert history.undo().undo().redo().redo().redo().present == three
    assert history.undo().push(one).redo().present == one
    assert history.present == three
