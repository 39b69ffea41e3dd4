"""Measure start-up, as ratios against an empty Textual app in the same run.

Every figure is from a fresh process in a real pseudo-terminal; the runs are taken in turn, so
that a machine whose speed drifts does not favour one of them. Nothing is asserted.

    python scripts/cold_start.py [RUNS]
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
EMPTY_APP = """
from textual.app import App, ComposeResult
from textual.widgets import Static
class Hello(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("hello-frame")
Hello().run()
"""


def first_frame(command: list[str], marker: bytes, env: dict[str, str]) -> float:
    """Seconds from spawning a command to its marker on the terminal."""
    started = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvpe(command[0], command, env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))
    seen = bytearray()
    elapsed = float("nan")
    try:
        while time.perf_counter() - started < 30:
            ready, _, _ = select.select([fd], [], [], 0.05)
            if ready:
                with contextlib.suppress(OSError):
                    seen.extend(os.read(fd, 65536))
            if marker in seen:
                elapsed = time.perf_counter() - started
                break
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)
    return elapsed


def command_time(command: list[str], env: dict[str, str]) -> float:
    """Seconds a whole command takes."""
    started = time.perf_counter()
    subprocess.run(command, check=False, capture_output=True, cwd=ROOT, env=env)
    return time.perf_counter() - started


def report(name: str, seconds: list[float], baseline: list[float] | None = None) -> None:
    median = statistics.median(seconds)
    ratio = ""
    if baseline is not None:
        pairs = [a / b for a, b in zip(seconds, baseline, strict=True)]
        ratio = f"   {statistics.median(pairs):5.2f} x the empty app"
    print(f"{name:<44} median {median * 1000:6.0f} ms   min {min(seconds) * 1000:6.0f} ms{ratio}")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    python = sys.executable
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "RAG_TUI_CACHE_DIR": cache, "TERM": "xterm-256color"}
        env |= {"HF_HUB_OFFLINE": "1"}
        script = Path(python).with_name("rag-tui")
        rag_tui = [str(script)] if script.exists() else [python, "-m", "rag_tui"]
        question = [*rag_tui, "search", "Can I bring my dog?", "--json"]
        first = command_time(question, env)
        measures: dict[str, Callable[[], float]] = {
            "empty": lambda: first_frame([python, "-c", EMPTY_APP], b"hello-frame", env),
            "full": lambda: first_frame(rag_tui, b"VECTOR", env),
            "help": lambda: command_time([*rag_tui, "--help"], env),
            "second": lambda: command_time(question, env),
        }
        times: dict[str, list[float]] = {name: [] for name in measures}
        for measure in measures.values():  # one uncounted round fills the disk cache
            measure()
        for _ in range(runs):
            for name, measure in measures.items():
                times[name].append(measure())
    print(f"{runs} runs in turn, fresh processes, 160x45 pseudo-terminal")
    report("first frame, empty Textual app", times["empty"])
    report("first frame, rag-tui on the demo corpus", times["full"], times["empty"])
    report("rag-tui --help, whole command", times["help"], times["empty"])
    print(f"{'first search ever (torch, index, export)':<44}        {first * 1000:6.0f} ms")
    report("search on a finished index, whole command", times["second"])
    ratio = first / statistics.median(times["second"])
    print(f"{'first search to later ones':<44}        {ratio:6.1f} x")


if __name__ == "__main__":
    main()
