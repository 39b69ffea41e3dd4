from __future__ import annotations

import codecs
import os
from hashlib import sha256
from pathlib import Path

import pytest

from rag_tui.engine.documents.loading import load_folder
from rag_tui.engine.documents.parts import UnusableFileError
from rag_tui.engine.documents.settings import MAX_BYTES
from rag_tui.engine.documents.text import decode
from rag_tui.engine.documents.walk import find_files
from rag_tui.engine.errors import Cancelled, CorpusError
from rag_tui.engine.events import CancelToken


def tree(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}\n")
    return root


def ids(folder: Path) -> list[str]:
    return [file.doc_id for file in find_files(folder).files]


def reasons(folder: Path) -> dict[str, str]:
    return {report.path: report.reason for report in find_files(folder).reports}


def test_documents_are_found_sorted_and_hidden_or_machine_made_ones_are_not(
    tmp_path: Path,
) -> None:
    tree(
        tmp_path,
        *("z.md", "a/b.TXT", "a/c.markdown", "a.mdx", "picture.png"),
        *(".hidden.md", ".git/x.md", ".venv/y.md", "node_modules/m/r.md"),
    )
    assert ids(tmp_path) == ["a.mdx", "a/b.TXT", "a/c.markdown", "z.md"]
    assert find_files(tmp_path).n_hidden == 4
    assert list(reasons(tmp_path)) == ["picture.png"]


def test_a_single_file_is_a_corpus_of_one(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.md")
    assert ids(tmp_path / "a.md") == ["a.md"]


@pytest.mark.parametrize("name", ["missing", "missing/a.md"])
def test_a_folder_that_does_not_exist_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorpusError, match="missing"):
        find_files(tmp_path / name)


def test_a_link_to_a_folder_above_does_not_loop(tmp_path: Path) -> None:
    tree(tmp_path, "inner/a.md")
    (tmp_path / "inner" / "up").symlink_to("..")
    assert ids(tmp_path) == ["inner/a.md"]
    assert "read already" in reasons(tmp_path)["inner/up"]


def test_each_real_file_is_found_once_at_its_own_place(tmp_path: Path) -> None:
    tree(tmp_path, "real.md", "folder/b.md")
    (tmp_path / "a-link.md").symlink_to("real.md")
    (tmp_path / "a-folder").symlink_to("folder")
    os.link(tmp_path / "real.md", tmp_path / "zhard.md")
    assert ids(tmp_path) == ["folder/b.md", "real.md"]
    assert reasons(tmp_path)["a-link.md"] == "the same file as real.md"
    assert set(reasons(tmp_path)) == {"a-folder", "a-link.md", "zhard.md"}


def test_links_out_of_the_folder_and_to_nowhere_are_reported(tmp_path: Path) -> None:
    tree(tmp_path, "out/secret.md", "in/a.md")
    (tmp_path / "in" / "out.md").symlink_to("../out/secret.md")
    (tmp_path / "in" / "gone.md").symlink_to("nowhere.md")
    assert ids(tmp_path / "in") == ["a.md"]
    states = {r.path: r.state for r in find_files(tmp_path / "in").reports}
    assert states == {"gone.md": "failed", "out.md": "skipped"}


def test_a_file_above_the_size_limit_is_skipped_by_name(tmp_path: Path) -> None:
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert ids(tmp_path) == []
    assert "larger than 50 MB" in reasons(tmp_path)["huge.md"]


def test_a_file_name_that_is_not_utf8_round_trips(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"bad-\xff-name.md")  # noqa: PTH118 - bytes
    try:
        Path(os.fsdecode(path)).write_text("zirconium")
    except OSError:
        pytest.skip("this file system takes no such name")
    ((document, report),) = load_folder(tmp_path)
    assert document is not None
    assert os.fsencode(report.path) == b"bad-\xff-name.md"
    assert document.text == "zirconium"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read anything"
)
def test_an_unreadable_file_fails_alone(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.md")
    (tmp_path / "a.md").chmod(0)
    states = [(report.path, report.state) for _, report in load_folder(tmp_path)]
    assert states == [("a.md", "failed"), ("b.md", "indexed")]


def test_a_file_that_vanishes_after_the_walk_fails_alone(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.md")
    rows = load_folder(tmp_path)
    next(rows)
    (tmp_path / "b.md").unlink()
    assert [(d, r.state) for d, r in rows] == [(None, "failed")]


def test_every_file_has_one_report_with_its_reason(tmp_path: Path) -> None:
    files = {
        "blank.md": b" \n\n",
        "empty.txt": b"",
        "good.md": b"# A\n\nbody",
        "nul.md": b"one\x00two",
        "picture.md": b"\x89PNG\r\n\x1a\n....",
        "windows.txt": b"caf\xe9 \x96 pump",
        "words.pdf": b"%PDF-1.7",
        "yaml.md": b"---\ntitle: only\n---\n",
    }
    for name, raw in files.items():
        (tmp_path / name).write_bytes(raw)
    rows = list(load_folder(tmp_path))
    assert [(r.path, r.state, d is not None) for d, r in rows] == [
        ("blank.md", "skipped", False),
        ("empty.txt", "skipped", False),
        ("good.md", "indexed", True),
        ("nul.md", "indexed", True),
        ("picture.md", "skipped", False),
        ("windows.txt", "partly", True),
        ("words.pdf", "failed", False),
        ("yaml.md", "indexed", True),
    ]
    assert [r.path for _, r in rows if not r.reason] == ["good.md"]
    for document, report in rows:
        if document is not None:
            assert document.sha256 == sha256(files[report.path]).hexdigest()


def test_a_cancelled_load_stops_before_the_next_file(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.md")
    cancel = CancelToken()
    rows = load_folder(tmp_path, cancel=cancel)
    next(rows)
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(rows)


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_marked_unicode_is_read_without_its_mark(mark: bytes, codec: str) -> None:
    decoded = decode(mark + "# Crème 水\r\n🫡".encode(codec))
    assert (decoded.text, decoded.notes, decoded.is_exact) == ("# Crème 水\n🫡", (), True)


def test_every_line_end_becomes_one_newline_and_other_separators_stay() -> None:
    assert decode(b"a\r\nb\rc\n\n\x0cd").text == "a\nb\nc\n\n\x0cd"


def test_one_odd_byte_among_utf8_is_replaced_and_said() -> None:
    decoded = decode("naïve café ".encode() + b"\xff end")
    assert (decoded.text, decoded.is_exact) == ("naïve café \ufffd end", False)
    assert "byte 13" in decoded.notes[0]


def test_bytes_that_are_not_utf8_are_read_as_windows_1252_and_said() -> None:
    decoded = decode(b"caf\xe9 \x80 5")
    assert (decoded.text, decoded.is_exact) == ("café € 5", False)
    assert "Windows-1252" in decoded.notes[0]


@pytest.mark.parametrize("raw", [b"PK\x03\x04data", b"%PDF-1.4", b"\x7fELF", b"\x00" * 100])
def test_binary_content_is_refused_whatever_the_name(raw: bytes) -> None:
    with pytest.raises(UnusableFileError, match="not text"):
        decode(raw)


def test_one_nul_byte_is_kept_and_said_and_more_are_refused() -> None:
    one = decode(b"pump\x00 runs")
    assert (one.text, one.notes, one.is_exact) == ("pump\x00 runs", ("1 NUL byte kept",), True)
    with pytest.raises(UnusableFileError, match="not text: 2 NUL bytes") as caught:
        decode(b"pump\x00 runs " * 2 + b"and runs" * 1000)
    assert caught.value.state == "skipped"


def test_one_good_letter_outweighs_one_wrong_byte(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("caf\u00e9 ".encode() + b"\xff end")
    ((document, report),) = load_folder(tmp_path)
    assert document is not None
    assert document.text == "caf\u00e9 \ufffd end"
    assert (report.state, report.reason) == (
        "partly",
        "not UTF-8 at byte 6: 1 wrong byte replaced",
    )
