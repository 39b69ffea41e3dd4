"""Pauses of memory management while an answer streams."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator

from rag_tui.engine.types import Answer, Prompt
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.pauses import no_full_collections
from tests.tui.conftest import SmallBackend, ask, settle

QUESTION = "Where can I leave my luggage before check-in?"


class FullCollections:
    """Counts them."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        self.n += phase == "start" and info["generation"] == 2


def half_as_many_objects_again() -> list[list[int]]:
    """So many new ones that survive make a full collection due: a quarter is enough."""
    return [[] for _ in range(max(len(gc.get_objects()) // 2, 200_000))]


async def test_no_full_collection_stops_the_app_while_an_answer_streams(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    counted = FullCollections()
    kept = []

    async def answers(prompt: Prompt) -> AsyncIterator[Answer]:
        yield Answer("Reception", "streaming", "tester")
        gc.callbacks.append(counted)
        try:
            kept.append(half_as_many_objects_again())
        finally:
            gc.callbacks.remove(counted)
        yield Answer("Reception.", "complete", "tester")

    backend.answers = answers
    thresholds = gc.get_threshold()
    async with app.run_test() as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await pilot.press("a")
        await settle(pilot)
        assert screen.answer_view.body.raw == "Reception."
    assert kept
    assert counted.n == 0
    assert gc.get_threshold() == thresholds


def test_full_collections_come_back_when_the_last_of_several_blocks_has_ended() -> None:
    thresholds = gc.get_threshold()
    with no_full_collections():
        with no_full_collections():
            pass
        assert gc.get_threshold()[:2] == thresholds[:2]
        assert gc.get_threshold()[2] > 1_000_000
    assert gc.get_threshold() == thresholds
