"""Converters hang, crash and lack libraries; loading goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Timer

import pytest

from rag_tui.engine.documents.converters import convert
from rag_tui.engine.documents.isolation import Converters
from rag_tui.engine.documents.loading import load_folder
from rag_tui.engine.documents.parts import Loaded, UnusableFileError
from rag_tui.engine.errors import Cancelled
from rag_tui.engine.events import CancelToken

HANGS = (sys.executable, "-c", "import time; time.sleep(600)")
CRASHES = (sys.executable, "-c", "import os; os.abort()")


def html(converters: Converters, text: str = "<p>one", cancel: CancelToken | None = None) -> Loaded:
    return converters.convert("html", text.encode(), name="a.html", options={}, cancel=cancel)


def test_a_converter_that_hangs_is_given_up_and_its_process_ended() -> None:
    with Converters(timeout_s=0.3, command=HANGS) as converters:
        with pytest.raises(UnusableFileError, match=r"given up after 0\.3 s") as caught:
            html(converters)
        assert caught.value.state == "failed"
        assert converters._process is None


def test_a_large_file_does_not_block_on_a_converter_that_never_reads() -> None:
    with (
        Converters(timeout_s=0.3, command=HANGS) as converters,
        pytest.raises(UnusableFileError, match="given up"),
    ):
        html(converters, "x" * 10_000_000)


def test_a_converter_that_dies_is_a_failed_file() -> None:
    with (
        Converters(timeout_s=60, command=CRASHES) as converters,
        pytest.raises(UnusableFileError, match="the html converter crashed"),
    ):
        html(converters)


def test_a_converter_that_was_ended_starts_again_for_the_next_file() -> None:
    with Converters(timeout_s=60) as converters:
        assert html(converters).text == "one\n"
        first = converters._process
        assert first is not None
        first.kill()
        first.wait()
        assert html(converters, "<p>two").text == "two\n"
        assert converters._process is not first


def test_cancelling_ends_a_conversion_that_is_under_way() -> None:
    cancel = CancelToken()
    timer = Timer(0.2, cancel.cancel)
    with Converters(timeout_s=600, command=HANGS) as converters:
        timer.start()
        with pytest.raises(Cancelled):
            html(converters, cancel=cancel)
        assert converters._process is None
    timer.join()


def test_what_libraries_print_stays_off_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.rst").write_text("Title\n=\n\n.. nonsense::\n\n   `open *unclosed\n")
    ((document, report),) = load_folder(tmp_path)
    assert (document is not None, report.state) == (True, "indexed")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("format_name", "library"),
    [("pdf", "pypdfium2"), ("html", "bs4"), ("docx", "mammoth"), ("xlsx", "openpyxl"),
     ("pptx", "pptx"), ("subtitles", "webvtt")],
)  # fmt: skip
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, format_name: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnusableFileError) as caught:
        convert(format_name, b"x", name="x", options={})
    assert caught.value.state == "skipped"
    assert 'pip install "rag-tui-explorer[formats]"' in caught.value.message


def test_modules_in_the_corpus_are_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bs4", "json", "rag_tui"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the corpus')\n")
    (tmp_path / "page.html").write_text("<p>fine")
    monkeypatch.chdir(tmp_path)
    states = {report.path: report.state for _, report in load_folder(Path())}
    assert states == dict.fromkeys(["bs4.py", "json.py", "page.html", "rag_tui.py"], "indexed")


def test_pages_nested_a_thousand_deep_are_read(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 3000 + "zirconium" + "</div>" * 3000)
    ((document, report),) = load_folder(tmp_path)
    assert report.state == "indexed"
    assert document is not None
    assert "zirconium" in document.text


def test_a_conversion_that_needs_too_much_memory_says_how_much() -> None:
    code = (
        "from rag_tui.engine.documents import converters, worker\n"
        "def convert(*_, **__): raise MemoryError\n"
        "converters.convert = convert\n"
        "worker.main()"
    )
    with (
        Converters(timeout_s=60, command=(sys.executable, "-P", "-c", code)) as converters,
        pytest.raises(UnusableFileError, match="needed more than 4 GB of memory"),
    ):
        html(converters)


def test_a_converter_that_runs_out_of_stack_says_nested_too_deeply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_deep(_raw: bytes, _options: object) -> Loaded:
        raise RecursionError

    monkeypatch.setattr("rag_tui.engine.documents.converters.html.convert_html", too_deep)
    with pytest.raises(UnusableFileError, match="nested too deeply") as caught:
        convert("html", b"x", name="x", options={})
    assert caught.value.state == "failed"
