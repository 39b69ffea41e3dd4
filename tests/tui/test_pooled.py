"""Judging blind: all columns' rows once each, saved at once, without a word about the columns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import Resolver
from rag_tui.engine.types import METHODS
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.pooled import PooledScreen, open_pooled
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts

ASKED = "Is there somewhere to park?"
WIDE = (160, 45)


@pytest.fixture
def bare(corpus: Path, tmp_path: Path) -> Path:
    """The demo corpus without its questions."""
    folder = Path(shutil.copytree(corpus, tmp_path / "docs"))
    (folder / "questions.jsonl").unlink()
    return folder


def pooled(pilot: Pilot[None]) -> PooledScreen:
    screen = pilot.app.screen
    assert isinstance(screen, PooledScreen)
    return screen


def state(pilot: Pilot[None]) -> str:
    return str(pooled(pilot).query_one("#pool-state", Static).render())


def shown_chunk(pilot: Pilot[None]) -> str:
    chunk = pooled(pilot)._view.chunk
    return chunk.chunk_id if chunk is not None else ""


def judgements(app: RagTuiApp) -> dict[str, int]:
    """Chunk id to grade, as the file says."""
    assert app.index is not None
    resolver = Resolver(app.index)
    return {
        chunk_id: place.evidence.grade
        for question in read_questions(app.folder).questions
        for place in resolver.resolve(question).places
        for chunk_id in place.chunk_ids
    }


async def test_every_row_of_every_column_comes_once_and_each_judgement_is_saved(
    bare: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(bare, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, ASKED)
        union = {row.chunk_id for method in METHODS for row in screen.lists[method].rows}
        open_pooled(app)
        await settle(pilot)
        assert ASKED in screen_text(pilot)
        keys = ["r", "x", "s", "3", *["x"] * len(union)]
        grades = {"r": 1, "x": 0, "3": 3}
        expected, seen = {}, []
        for n, key in enumerate(keys[: len(union)], start=1):
            assert f"passage {n} of {len(union)}" in state(pilot)
            inside = [line[4:-4] for line in screen_text(pilot).split("\n")[2:-2]]
            assert not [word for word in ("VECTOR", "BM25", "cosine", "RRF") if word in str(inside)]
            seen.append(shown_chunk(pilot))
            if key in grades:
                expected[seen[-1]] = grades[key]
            await pilot.press(key)
            await settle(pilot)
            if expected:
                assert judgements(app) == expected
        assert sorted(seen) == sorted(union)
        assert seen != [row.chunk_id for row in screen.lists["hybrid"].rows][: len(seen)]
        assert pooled(pilot).is_done
        assert f"{len(expected)} passages judged, 2 of them relevant, 1 skipped" in screen_text(
            pilot
        )
        await pilot.press("enter")
        await settle(pilot)
        # the lists below show what was judged, and the skipped one is all that is left
        assert dict(search_screen(pilot).lists["hybrid"].gold).keys() == expected.keys()
        open_pooled(app)
        await settle(pilot)
        assert "passage 1 of 1" in state(pilot)
        assert f"{len(expected)} judged before, left out" in state(pilot)


async def test_undo_goes_back_over_skipped_and_judged_passages(
    bare: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(bare, backend=backend)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await ask(pilot, ASKED)
        open_pooled(app)
        await settle(pilot)
        first = shown_chunk(pilot)
        await pilot.press("r", "s", "x", "u", "u")
        await settle(pilot)
        assert judgements(app) == {first: 1}
        assert "passage 2 of" in state(pilot)
        await pilot.press("u", "u", "2")
        await settle(pilot)
        assert "There is nothing to undo here" in toasts(pilot)
        assert judgements(app) == {first: 2}
        await pilot.click("#pool-keys", offset=(2, 1))  # "r relevant"
        await settle(pilot)
        assert sorted(judgements(app).values()) == [1, 2]
        await pilot.press("escape")
        await settle(pilot)
        search_screen(pilot)


async def test_all_questions_without_a_judgement_are_searched_one_after_the_other(
    bare: Path, backend: SmallBackend
) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "question": ASKED},
        {"id": "b", "question": "Pets?", "evidence": [{"file": "house-rules.md"}]},
        {"id": "c", "question": "When is breakfast [/b]?"},
        {"id": "d", "question": "Who is the king?", "answerable": False},
    ]
    path = bare / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    app = RagTuiApp(bare, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        open_pooled(app, all_unjudged=True)
        await settle(pilot)
        assert "question 1 of 2" in state(pilot)
        assert [request.query for request in backend.requests] == [ASKED]
        while "question 1 of 2" in state(pilot):
            await pilot.press("x")
            await settle(pilot)
        assert "When is breakfast [/b]?" in screen_text(pilot)
        assert [request.query for request in backend.requests] == [ASKED, rows[2]["question"]]
        await pilot.press("r", "escape")
        await settle(pilot)
        judged = {q.qid: {e.grade for e in q.evidence} for q in read_questions(bare).questions}
        assert judged == {"a": {0}, "b": {1}, "c": {1}, "d": set()}
        open_pooled(app, all_unjudged=True)
        await settle(pilot)
        assert "has a judgement" in toasts(pilot)


async def test_what_is_missing_is_said_and_a_judgement_that_fails_brings_its_passage_back(
    bare: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = RagTuiApp(bare, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        open_pooled(app)
        open_pooled(app, all_unjudged=True)
        await settle(pilot)
        assert "There are no lists to judge yet" in toasts(pilot)
        assert "There are no questions in" in toasts(pilot)
        await ask(pilot, ASKED)
        open_pooled(app)
        await settle(pilot)

        def refuse(path: Path, data: bytes) -> None:
            raise UsageError(f"{path} cannot be written: Read-only.", "Name another file.")

        monkeypatch.setattr("rag_tui.engine.evaluation.labels.write_atomically", refuse)
        first = shown_chunk(pilot)
        await pilot.press("r")
        await settle(pilot)
        assert "cannot be written: Read-only." in toasts(pilot)
        assert shown_chunk(pilot) == first
        assert "✓ 0 relevant" in state(pilot)
