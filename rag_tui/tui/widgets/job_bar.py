"""Progress of a long job: stage, count, time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from rag_tui.tui import format as fmt

if TYPE_CHECKING:
    from textual.content import Content

    from rag_tui.engine.events import Progress

DELAY_S = 0.5
"""A job that is over sooner is not shown: a bar that flashes tells nothing."""

STAGES = {
    "scan": "looking for files",
    "read": "reading",
    "chunk": "chunking",
    "bm25": "counting words",
    "model": "loading the model",
    "embed": "embedding",
    "write": "writing the index",
    "wait": "waiting",
    "situate": "writing situations",
}


def progress_text(progress: Progress, elapsed_s: float, width: int) -> str:
    """One line: ``embedding ████▌   120/400  30%  12 s left  esc cancels``.

    Args:
        progress: The newest report.
        elapsed_s: Seconds since this stage began.
        width: Cells there are.
    """
    parts = [STAGES[progress.stage]]
    if progress.total > 0:
        share = progress.done / progress.total
        if width >= 70:
            parts.append(fmt.bar(share, 20))
        parts.append(f"{progress.done:,}/{progress.total:,}  {share:.0%}")
        if progress.done > 0 and elapsed_s >= DELAY_S and progress.done < progress.total:
            left_s = elapsed_s / progress.done * (progress.total - progress.done)
            parts.append(f"{fmt.duration(left_s)} left")
    if progress.note:
        parts.append(fmt.one_line(progress.note))
    return fmt.clip("  ".join([*parts, "esc cancels"]), max(0, width))


class JobBar(Widget):
    """Shown from half a second after a job began until it ends."""

    DEFAULT_CSS = """
    JobBar {
        display: none; height: 1; min-width: 1; padding: 0 1;
        background: $panel; color: $foreground;
        &.-shown { display: block; }
    }
    """

    progress: reactive[Progress | None] = reactive(None)

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._stage_began = 0.0
        self._delay: Timer | None = None

    def render(self) -> Content:
        """The line for the present width."""
        if self.progress is None:
            return fmt.content("")
        elapsed_s = self._clock() - self._stage_began
        return fmt.content(progress_text(self.progress, elapsed_s, self.size.width))

    def watch_progress(self, old: Progress | None, new: Progress | None) -> None:
        """Begin, go on, or end."""
        if new is None:
            if self._delay is not None:
                self._delay.stop()
                self._delay = None
            self.remove_class("-shown")
            return
        if old is None or old.stage != new.stage:
            self._stage_began = self._clock()
        if old is None:
            self._delay = self.set_timer(DELAY_S, self._show)

    def _show(self) -> None:
        self.add_class("-shown")
