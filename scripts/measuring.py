"""What the benches share: timing by turns, and a table of figures beside their goals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, process_time

import numpy as np

Work = Callable[[int], object]
"""Gets the number of the round."""


@dataclass(frozen=True)
class Times:
    """Seconds of each round."""

    wall: list[float]
    cpu: list[float]
    """Of this process, all threads together."""

    def line(self, name: str) -> str:
        """One line of milliseconds, for people."""
        wall = np.percentile(self.wall, [50, 95]) * 1e3
        cpu = np.percentile(self.cpu, [50, 95]) * 1e3
        return (
            f"  {name:<44} wall p50 {wall[0]:8.2f}  p95 {wall[1]:8.2f}   "
            f"CPU p50 {cpu[0]:8.2f}  p95 {cpu[1]:8.2f}  ms"
        )

    @property
    def wall_p50(self) -> float:
        """Median of wall time, seconds."""
        return float(np.median(self.wall))

    @property
    def cpu_p50(self) -> float:
        """Median of CPU time, seconds."""
        return float(np.median(self.cpu))


def by_turns(works: Mapping[str, Work], rounds: int) -> dict[str, Times]:
    """Time several works, one after the other in every round, so that all meet the same machine.

    Each is run once before, with the number -1; in the rounds it gets their number.
    """
    for work in works.values():
        work(-1)
    times = {name: Times([], []) for name in works}
    for n in range(rounds):
        for name, work in works.items():
            started, used = perf_counter(), process_time()
            work(n)
            times[name].cpu.append(process_time() - used)
            times[name].wall.append(perf_counter() - started)
    return times


def timed(work: Work, rounds: int) -> Times:
    """Time one work alone; see `by_turns`."""
    return by_turns({"": work}, rounds)[""]


def times_faster(slow: list[float], fast: list[float]) -> float:
    """The median over the rounds of slow / fast, both lists by round."""
    return float(np.median(np.array(slow) / np.array(fast)))


@contextmanager
def one_core_busy() -> Iterator[None]:
    """A process that computes for nothing meanwhile."""
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


@dataclass
class Report:
    """Figures beside their goals, printed as they come and as a Markdown table at the end."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def said(self, what: str, value: str, goal: str, *, is_met: bool | None = None) -> None:
        """Print and keep a figure; ``is_met`` is None for one without a goal."""
        mark = "" if is_met is None else "yes" if is_met else "no"
        self.rows.append((what, value, goal, mark))
        shown = {"": "    ", "yes": "ok  ", "no": "MISS"}[mark]
        print(f"  {shown} {what}: {value}" + (f" (goal {goal})" if goal else ""), flush=True)

    def markdown(self) -> str:
        """The table."""
        head = "| what | measured | goal | met |\n|---|---:|---:|---|\n"
        return head + "\n".join(f"| {' | '.join(row)} |" for row in self.rows)
