"""Which files ignore rules, globs and limits leave in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rag_tui.engine.documents.loading import load_folder
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.documents.walk import find_files
from rag_tui.engine.errors import UsageError


def tree(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}\n")
    return root


def ids(folder: Path, settings: LoadSettings | None = None) -> list[str]:
    return [file.doc_id for file in find_files(folder, settings=settings).files]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def notes_tree(root: Path) -> Path:
    tree(
        root,
        *("logs/a.md", "x.draft.md", "keep.draft.md", "docs/logs/b.md", "sub/out.md", "sub/in.md"),
        ".venv/c.md",
    )
    (root / ".gitignore").write_text("logs/\n*.draft.md\n!keep.draft.md\n.venv/\n")
    (root / "sub" / ".gitignore").write_text("out.md\n")
    return root


def test_negation_folder_rules_and_nested_ignore_files_hold(tmp_path: Path) -> None:
    found = find_files(notes_tree(tmp_path))
    assert [file.doc_id for file in found.files] == ["keep.draft.md", "sub/in.md"]
    assert found.n_ignored == 4
    assert {r.path: r.reason for r in found.reports} == dict.fromkeys(
        ["docs/logs", "logs", "sub/out.md", "x.draft.md"], "ignored by .gitignore"
    )


def test_ignore_rules_can_be_switched_off(tmp_path: Path) -> None:
    assert len(ids(notes_tree(tmp_path), LoadSettings(gitignore=False))) == 6


RULES = {
    ".gitignore": (
        "# comment\n\n/top.md\nbuild/\n*.tmp.md\n!important.tmp.md\ndoc/**/deep.md\n"
        "\\#hash.md\ntrailing.md   \nre[0-9].md\n**/any/\nwide/*\n!wide/kept.md\n"
    ),
    "a/.gitignore": "!x.tmp.md\nonly-here.md\n/anchored.md\n",
    "a/b/.gitignore": "*\n!back.md\n",
}
PATHS = (
    *("top.md", "a/top.md", "build/x.md", "a/build/y.md", "one.tmp.md", "important.tmp.md"),
    *("a/x.tmp.md", "a/z.tmp.md", "doc/deep.md", "doc/1/2/deep.md", "#hash.md", "trailing.md"),
    *("re5.md", "rex.md", "any/1.md", "q/any/2.md", "wide/lost.md", "wide/kept.md"),
    *("only-here.md", "a/only-here.md", "a/anchored.md", "a/c/anchored.md", "a/b/gone.md"),
    *("a/b/back.md", "plain.md", "excluded.md"),
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("below", ["", "a", "doc/1"])
def test_the_files_are_those_that_git_lists(tmp_path: Path, below: str) -> None:
    tree(tmp_path, *PATHS)
    for name, rules in RULES.items():
        (tmp_path / name).write_text(rules)
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "info" / "exclude").write_text("excluded.md\n")
    folder = tmp_path / below
    listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    expected = sorted(p for p in listed.split("\0") if p.endswith(".md"))
    assert ids(folder) == expected
    assert below or len(expected) == 9


def test_globs_choose_and_leave_out(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.txt", "sub/c.md", "sub/old/d.md", "notes.weird")
    assert ids(tmp_path, LoadSettings(include=("*.md",))) == ["a.md", "sub/c.md", "sub/old/d.md"]
    assert ids(tmp_path, LoadSettings(exclude=("old/", "a.md"))) == ["b.txt", "sub/c.md"]
    assert ids(tmp_path, LoadSettings(include=("sub/**",), exclude=("old/",))) == ["sub/c.md"]
    assert ids(tmp_path, LoadSettings(include=("*.weird",))) == ["notes.weird"]


def test_hidden_files_are_found_when_asked_for_but_never_those_of_git(tmp_path: Path) -> None:
    tree(tmp_path, ".notes/a.md", ".git/b.md", "c.md")
    assert ids(tmp_path) == ["c.md"]
    assert ids(tmp_path, LoadSettings(hidden=True)) == [".notes/a.md", "c.md"]


def test_links_out_of_the_folder_are_followed_when_asked_for(tmp_path: Path) -> None:
    tree(tmp_path, "out/secret.md", "in/a.md")
    (tmp_path / "in" / "out").symlink_to("../out")
    assert ids(tmp_path / "in") == ["a.md"]
    assert ids(tmp_path / "in", LoadSettings(outside_links=True)) == ["a.md", "out/secret.md"]


def test_the_size_limit_is_a_setting_and_its_message_names_both_sizes(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_bytes(b"x" * 2_500_000)
    (report,) = find_files(tmp_path, settings=LoadSettings(max_bytes=1_000_000)).reports
    assert report.reason == "larger than 1 MB (2.5 MB)"


def test_a_named_file_is_read_whatever_its_suffix(tmp_path: Path) -> None:
    tree(tmp_path, "notes.weird")
    ((document, report),) = load_folder(tmp_path / "notes.weird")
    assert report.state == "indexed"
    assert document is not None
    assert document.text == "text of notes.weird\n"


def test_minified_code_and_endless_lines_are_skipped_by_name(tmp_path: Path) -> None:
    (tmp_path / "app.min.js").write_text("var a=1;" * 3000)
    (tmp_path / "fine.js").write_text("var a = 1;\n" * 3000)
    (tmp_path / "one-line.md").write_text("a" * 3000)
    settings = LoadSettings(max_line=2000)
    reports = {r.path: r for _, r in load_folder(tmp_path, settings=settings)}
    assert reports["app.min.js"].state == "skipped"
    assert "a line of 24,000 characters, limit 20,000" in reports["app.min.js"].reason
    assert reports["fine.js"].state == "indexed"
    assert "a line of 3,000 characters" in reports["one-line.md"].reason


def test_a_limit_that_is_not_positive_is_refused() -> None:
    with pytest.raises(UsageError, match=r"loading\.max_bytes must be positive \(got 0\)"):
        LoadSettings(max_bytes=0)


def test_a_password_is_not_part_of_what_is_printed() -> None:
    assert "hunter2" not in repr(LoadSettings(pdf_passwords=("hunter2",)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_called_gitignore_is_not_waited_for(tmp_path: Path) -> None:
    tree(tmp_path, "a.md")
    os.mkfifo(tmp_path / ".gitignore")
    code = (
        "import sys; from pathlib import Path\n"
        "from rag_tui.engine.documents.walk import find_files\n"
        "print([file.doc_id for file in find_files(Path(sys.argv[1])).files])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert done.stdout == "['a.md']\n"


def test_a_huge_file_called_gitignore_holds_no_rules(tmp_path: Path) -> None:
    tree(tmp_path, "a.md")
    (tmp_path / ".gitignore").write_bytes(b"*.md\n" + b"#" * 999_995)
    assert ids(tmp_path) == []
    (tmp_path / ".gitignore").write_bytes(b"*.md\n" + b"#" * 999_996)
    assert ids(tmp_path) == ["a.md"]
