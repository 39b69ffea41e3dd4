"""Stream a long answer through the app, and press keys meanwhile.

    python scripts/bench_stream.py [TOKENS]

Two figures: how long a key press takes to be handled while an answer of 2,000 tokens streams (it
must stay below 100 ms; beside it, how long one takes while nothing streams), and how the time to
draw an answer grows with its length (drawing every token; twice the tokens should take about twice
the time). It is the real app on the demo corpus with the hashing embedder and no reranker.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from statistics import quantiles

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

from textual import events
from textual.pilot import Pilot

from rag_tui.engine.llms.base import Answerer
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Answer, Prompt
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.backend import Backend
from rag_tui.tui.screens.search import SearchScreen

CORPUS = Path(__file__).parent.parent / "corpus"
QUESTION = "Where can I leave my luggage before check-in?"
TOKENS_PER_S = 400
LIMIT_S = 0.1
PATIENCE_S = 120

Press = tuple[float, float]
"""Seconds by the clock, and of this thread's own work: on a busy machine they are far apart."""


def tokens(n: int) -> list[str]:
    """An answer with citations and a paragraph every 60 tokens."""
    return [f"token{i}{' [1]' if i % 20 == 9 else ''}{chr(10) * 2 if i % 60 == 59 else ' '}"
            for i in range(n)]  # fmt: skip


class Streaming:
    """Gives its tokens at an even pace."""

    name = "bench"

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        """The tokens, then the whole."""
        started = time.perf_counter()
        for i, piece in enumerate(self._pieces):
            await asyncio.sleep(max(0.0, started + i / TOKENS_PER_S - time.perf_counter()))
            yield piece
        yield Answer("".join(self._pieces), "complete", self.name)


class BenchBackend(Backend):
    """The real engine with a scripted model."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    def make_answerer(self, settings: AnswerSettings, models: Models) -> Answerer:
        """The scripted one."""
        return Streaming(self._pieces)


async def until(is_true: object, what: str) -> None:
    """Wait for something that is going to happen."""
    deadline = time.perf_counter() + PATIENCE_S
    while not is_true():  # type: ignore[operator]
        if time.perf_counter() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S} s for {what}")
        await asyncio.sleep(0.005)


async def ready(pilot: Pilot[None], app: RagTuiApp) -> SearchScreen:
    """The lists of the question."""
    await until(lambda: app.status.phase == "fresh", "the index")
    screen = app.screen
    if not isinstance(screen, SearchScreen):
        raise TypeError(screen)
    screen.search(QUESTION)
    await until(lambda: not screen.is_searching, "the lists")
    await pilot.pause()
    return screen


def is_streaming(screen: SearchScreen) -> bool:
    """Whether the answer is still coming."""
    answer = screen.answer_view.answer
    return answer is not None and answer.state == "streaming"


async def key_latency(
    screen: SearchScreen, app: RagTuiApp, goes_on: Callable[[int], bool]
) -> list[Press]:
    """Press keys as long as told; each is over when its row is selected."""
    screen.lists["vector"].focus()
    await asyncio.sleep(0.1)
    found: list[Press] = []
    while goes_on(len(found)):
        before = screen.selected
        key = "down" if len(found) % 2 == 0 else "up"
        started, worked = time.perf_counter(), time.thread_time()
        app.post_message(events.Key(key, None))
        while screen.selected == before and time.perf_counter() - started < 1:
            await asyncio.sleep(0)
        found.append((time.perf_counter() - started, time.thread_time() - worked))
        await asyncio.sleep(0.02)
    return found


def tell(what: str, presses: list[Press]) -> None:
    """Print how long key presses took, by the clock and by the processor."""
    print(f"{what}: {len(presses)} key presses")
    for by, values in zip(("clock", "own work"), zip(*presses, strict=True), strict=True):
        cuts = quantiles(values, n=20)
        print(
            f"  {by:<8} p50 {cuts[9] * 1e3:.1f} ms, p95 {cuts[18] * 1e3:.1f} ms, "
            f"max {max(values) * 1e3:.1f} ms"
        )


async def drawing(screen: SearchScreen, pilot: Pilot[None], n: int) -> float:
    """Processor seconds to draw an answer of so many tokens, one at a time."""
    screen.answer_view.clear("")
    await pilot.pause()
    pieces = tokens(n)
    text = ""
    started = time.process_time()
    for piece in pieces:
        text += piece
        screen.answer_view.show(Answer(text, "streaming", "bench"))
        await asyncio.sleep(0)
    await pilot.pause()
    return time.process_time() - started


async def main(n: int) -> int:
    """Print the figures; 1 when a key press took too long."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RAG_TUI_CACHE_DIR"] = cache
        overrides = {"models.embedder": "hashing", "search.rerank": False}
        gc.disable()  # as when the app is started: it freezes what is there, and enables it
        app = RagTuiApp(CORPUS, backend=BenchBackend(tokens(n)), overrides=overrides)
        async with app.run_test(size=(160, 45)) as pilot:
            screen = await ready(pilot, app)
            idle = await key_latency(screen, app, lambda done: done < 100)
            tell("nothing streams", idle)
            screen.action_answer()
            await until(lambda: screen.answer_view.body.raw, "the first token")
            latencies = await key_latency(screen, app, lambda _: is_streaming(screen))
            tell(f"{n:,} tokens at {TOKENS_PER_S} a second", latencies)
            screen.stop_answer()
            await until(lambda: all(w.is_finished for w in app.workers), "the checks")
            before = 0.0
            for length in (500, 1_000, 2_000):
                took = await drawing(screen, pilot, length)
                ratio = f", {took / before:.2f} times the time of half of it" if before else ""
                print(f"drawing {length:,} tokens: {took:.2f} s of work{ratio}")
                before = took
    return 0 if max(seconds for seconds, _ in latencies) < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)))
