"""The whole app on the demo corpus with the real engine; only the models are small stand-ins."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from textual.pilot import Pilot

from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken, Progress, StageError, StageResult
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.types import Answer, Method, Prompt, ScoreKind, SearchRequest
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.backend import Backend, Settings
from rag_tui.tui.screens.search import SearchScreen

PATIENCE_S = 20
"""How long a gate holds at most, so that a failing test ends."""


class WordOverlapReranker:
    """Scores a passage by how many words it shares with the question, longer ones first."""

    info = RerankerInfo("overlap", "overlap", 512, ScoreKind("logit overlap", "0 and up"))

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """Shared words, then length."""
        wanted = set(re.findall(r"\w+", query.lower()))
        for passage in passages:
            if cancel is not None:
                cancel.check()
            yield len(wanted & set(re.findall(r"\w+", passage.lower()))) + len(passage) / 1e6


@dataclass
class Gate:
    """Something that waits until the test says so."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Wait, without looking at any cancel token: the worst kind of work."""
        self.reached.set()
        self.opened.wait(PATIENCE_S)


class SmallBackend(Backend):
    """The real engine with the hashing embedder and a reranker that counts words."""

    def __init__(self) -> None:
        self.gates: dict[tuple[str, str], Gate] = {}
        self.broken: dict[str, StageError] = {}
        self.answers: Callable[[Prompt], AsyncIterator[Answer]] | None = None
        self.requests: list[SearchRequest] = []

    def load_settings(self, folder: Path, overrides: Mapping[str, object]) -> Settings:
        """As set, with the hashing embedder."""
        return super().load_settings(folder, {"models.embedder": "hashing", **overrides})

    def models(self, settings: Settings, report: Callable[[Progress], None]) -> Models:
        """The stand-ins."""
        return Models(
            settings.engine.models,
            settings.engine.cache_dir,
            report=report,
            embedder=HashingEmbedder(),
            reranker=WordOverlapReranker(),
        )

    def gate(self, question: str, stage: Method) -> Gate:
        """A gate before a stage of the search for a question."""
        return self.gates.setdefault((question, stage), Gate())

    def search(
        self, request: SearchRequest, index: Index, models: Models, *, cancel: CancelToken
    ) -> Iterator[StageResult]:
        """The real search, held up at gates and with lists replaced by errors as told."""
        self.requests.append(request)
        # A token of its own: at a gate the work is deaf, so its results do come too late.
        gated = any(question == request.query for question, _ in self.gates)
        token = CancelToken() if gated else cancel
        for result in super().search(request, index, models, cancel=token):
            if (request.query, result.stage) in self.gates:
                self.gates[request.query, result.stage].hold()
            error = self.broken.get(result.stage)
            yield StageResult(result.stage, error=error) if error is not None else result

    def answer(self, prompt: Prompt, answerer: object) -> AsyncIterator[Answer]:
        """The answers the test has set."""
        if self.answers is None:
            raise ModelError("no answers were set")
        return self.answers(prompt)

    def open_all(self) -> None:
        """Let everything go on."""
        for gate in self.gates.values():
            gate.opened.set()


@pytest.fixture
def backend() -> Iterator[SmallBackend]:
    """A backend whose gates are opened at the end whatever happens."""
    small = SmallBackend()
    yield small
    small.open_all()


@pytest.fixture
def app(backend: SmallBackend, corpus: Path) -> RagTuiApp:
    """The app on the demo corpus."""
    return RagTuiApp(corpus, backend=backend)


async def until(pilot: Pilot[None], is_true: Callable[[], bool]) -> None:
    """Wait for something that is going to happen."""
    for _ in range(PATIENCE_S * 100):
        if is_true():
            await pilot.pause()
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not happen")


async def settle(pilot: Pilot[None]) -> None:
    """Wait until no worker runs and all their messages were handled."""
    await pilot.pause()
    for _ in range(5):
        await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))
        await pilot.pause()


async def ask(pilot: Pilot[None], question: str, *, wait: bool = True) -> SearchScreen:
    """Type a question, press enter, and wait for the lists."""
    screen = search_screen(pilot)
    screen.action_focus_query()
    await pilot.pause()
    screen.query_bar.question = question
    await pilot.press("enter")
    if wait:
        await settle(pilot)
    return screen


def search_screen(pilot: Pilot[None]) -> SearchScreen:
    """The Search screen, which must be on top."""
    screen = pilot.app.screen
    if not isinstance(screen, SearchScreen):
        raise AssertionError(f"{screen} is on top")
    return screen


def toasts(pilot: Pilot[None]) -> str:
    """The texts of all toasts there were."""
    return "\n".join(notification.message for notification in pilot.app._notifications)


def screen_text(pilot: Pilot[None]) -> str:
    """What the terminal shows, line by line."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)
