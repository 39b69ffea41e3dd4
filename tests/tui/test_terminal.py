"""The real program in a real pseudo-terminal: what it sends, and how it leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.hostile import HOSTILE

pty = pytest.importorskip("pty", reason="pseudo-terminals are a thing of Unix")
fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals are a thing of Unix")

PATIENCE_S = 60


class Terminal:
    """A child in a pseudo-terminal of 120x40."""

    def __init__(self, arguments: list[str], env: dict[str, str]) -> None:
        self.seen = bytearray()
        self.status: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execvpe(sys.executable, [sys.executable, "-m", "rag_tui", *arguments], env)
        import struct
        import termios

        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def read(self) -> None:
        """Take what has come, and notice an end."""
        import select

        ready, _, _ = select.select([self.fd], [], [], 0.05)
        if ready:
            with contextlib.suppress(OSError):
                self.seen.extend(os.read(self.fd, 65536))
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)

    def until(self, marker: bytes) -> None:
        """Read until the program has sent something."""
        deadline = time.monotonic() + PATIENCE_S
        start = len(self.seen)
        while marker not in self.seen[max(0, start - len(marker)) :]:
            if self.status is not None or time.monotonic() > deadline:
                raise AssertionError(f"{marker!r} never came: {bytes(self.seen[-2000:])!r}")
            self.read()

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.fd, text.encode())

    def until_end(self) -> int:
        """Read until the program has ended; its exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while self.status is None and time.monotonic() < deadline:
            self.read()
        if self.status is None:
            raise AssertionError("it did not end")
        return self.status

    def close(self) -> None:
        """End the child if it is still there."""
        if self.status is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    for i, text in enumerate(HOSTILE):
        data = f"# {text}\n\nstartmarker {text} endmarker\n".encode("utf-8", "surrogatepass")
        (root / f"{i:02}.md").write_bytes(data)
    (root / "esc\x1b]0;OWNED-NAME\x07name.md").write_text("# Odd name\n\nstartmarker here.\n")
    (root / "two\nlines.md").write_text("# Odd name\n\nstartmarker there.\n")
    return root


@pytest.fixture
def terminal(folder: Path, tmp_path: Path) -> Iterator[Terminal]:
    env = {
        **os.environ,
        "TERM": "xterm-256color",
        "RAG_TUI_CACHE_DIR": str(tmp_path / "cache"),
        "RAG_TUI_MODELS__EMBEDDER": "hashing",
        "RAG_TUI_SEARCH__TOP_K": "50",
    }
    running = Terminal([str(folder)], env)
    yield running
    running.close()


def test_no_control_sequence_of_a_document_reaches_the_terminal(terminal: Terminal) -> None:
    terminal.until(b"fresh")
    terminal.type("startmarker \x1b[200~pasted \x1b]0;OWNED-QUERY\x07\x1b[201~\r")
    terminal.until(b"depth")  # unchanged cells, such as spaces, are not sent again
    terminal.type("2")
    terminal.until(b"in order")
    for key in ("\t", "j", "j", "G", "f"):
        terminal.type(key)
        terminal.read()
    terminal.until(b"Files")
    for forbidden in (b"\x1b]0;OWNED", b"\x1b]52;c;aGVsbG8", b"\x1b[6n", b"\xc2\x9d0;OWNED"):
        assert forbidden not in terminal.seen
    assert b"startmarker" in terminal.seen


@pytest.mark.parametrize("keys", ["\x11", "qq"])
def test_leaving_restores_the_terminal_and_ends_with_status_0(
    keys: str, terminal: Terminal
) -> None:
    terminal.until(b"fresh")
    terminal.type("\x1b")  # leave the input, where q is a letter
    time.sleep(0.3)  # a lone escape is told from a sequence by a pause
    for key in keys:
        terminal.type(key)
    assert terminal.until_end() == 0
    assert_is_restored(terminal)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_polite_kill_restores_the_terminal(name: str, terminal: Terminal) -> None:
    number = getattr(signal, name)
    terminal.until(b"fresh")
    os.kill(terminal.pid, number)
    assert terminal.until_end() == 128 + number
    assert_is_restored(terminal)


def test_a_single_q_does_not_end_a_session(terminal: Terminal) -> None:
    terminal.until(b"fresh")
    terminal.type("\x1b")
    time.sleep(0.3)
    terminal.type("q")
    terminal.until(b"again")
    assert terminal.status is None


def assert_is_restored(terminal: Terminal) -> None:
    """The alternate screen is left, mouse and paste reports are off, nothing was dumped."""
    seen = terminal.seen
    assert seen.rfind(b"\x1b[?1049l") > seen.rfind(b"\x1b[?1049h")
    assert seen.rfind(b"\x1b[?1000l") > seen.rfind(b"\x1b[?1000h")
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")
    assert b"Traceback" not in seen
