"""The sweep dialog: values in, settings measured, one of them used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from rag_tui.config import load_settings
from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.evaluation.sweep_space import Setting
from rag_tui.engine.evaluation.sweep_types import SweepProgress, SweepResult
from rag_tui.engine.events import CancelToken
from rag_tui.engine.knobs import column_request, make_column
from rag_tui.engine.types import SearchRequest
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.backend import Session
from rag_tui.tui.screens.evaluate import EvaluateScreen
from rag_tui.tui.screens.sweep import SweepScreen
from rag_tui.tui.sweep_jobs import SweepJob, with_setting
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import Gate, SmallBackend, screen_text, settle, toasts, until

WIDE = (160, 45)
QUESTIONS = (
    {"id": "dog", "question": "Can I bring my dog?",
     "evidence": [{"file": "house-rules.md", "heading": "Pets"}]},
    {"id": "lockbox", "question": "Where is the lockbox?",
     "evidence": [{"file": "wifi-and-appliances.md", "heading": "Washing machine"}]},
    {"id": "key", "question": "What happens if I lose my key?",
     "evidence": [{"file": "check-in.md", "heading": "Registration and deposit"}]},
)  # fmt: skip


class SweepBackend(SmallBackend):
    """May stop after a setting, fail, or say something hostile."""

    def __init__(self) -> None:
        super().__init__()
        self.pause: Gate | None = None
        self.error = ""

    def sweep(
        self, job: SweepJob, session: Session, folder: Path, *, cancel: CancelToken
    ) -> Iterator[SweepProgress | SweepResult]:
        """The real sweep."""
        if self.error:
            raise RagTuiError(self.error, self.error)
        for item in super().sweep(job, session, folder, cancel=cancel):
            yield item
            if self.pause is not None and isinstance(item, SweepProgress) and item.done == 2:
                self.pause.hold()


@pytest.fixture
def folder(tmp_path: Path, corpus: Path) -> Path:
    folder = tmp_path / "guesthouse"
    shutil.copytree(corpus, folder)
    lines = [json.dumps(one) for one in QUESTIONS]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def small() -> SweepBackend:
    return SweepBackend()


@pytest.fixture
def workbench(folder: Path, small: SweepBackend) -> RagTuiApp:
    return RagTuiApp(folder, backend=small)


async def opened(pilot: Pilot[None]) -> SweepScreen:
    """The dialog, opened with its key."""
    await settle(pilot)
    await pilot.app.switch_mode("evaluate")
    await settle(pilot)
    evaluate = pilot.app.screen
    assert isinstance(evaluate, EvaluateScreen)
    await until(pilot, lambda: evaluate.labelled is not None)
    await pilot.press("w")
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, SweepScreen)
    return screen


async def swept(pilot: Pilot[None], screen: SweepScreen, values: str, column: str = "bm25") -> None:
    """Type the values and wait for what comes of them."""
    screen.query_one("#vary", Input).value = values
    screen.query_one("#sweep-column", Input).value = column
    screen.query_one("#vary", Input).focus()
    before = screen.result
    await pilot.press("enter")
    await until(pilot, lambda: screen.result is not before)
    await pilot.pause()


def said(screen: SweepScreen, name: str) -> str:
    return str(screen.query_one(f"#{name}", Static).render())


async def test_settings_are_measured_and_the_verdict_is_beside_them(workbench: RagTuiApp) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        assert "bm25.k1=0.6,0.9" in screen_text(pilot)
        await pilot.press("tab", "tab", "tab", "w")
        assert "Nothing can be used yet" in said(screen, "sweep-line")
        for values, column, why in (
            ("bm25.k1=much", "bm25", "bm25.k1 must be a number (got 'much')"),
            ("search.rrf_k=10", "bm25", "search.rrf_k changes nothing"),
            ("bm25.k1=1", "nowhere", "There is no column 'nowhere'"),
            ("bm25.k1=1 random=x", "bm25", "must be whole numbers (got 'x')"),
        ):
            screen.query_one("#vary", Input).value = values
            screen.query_one("#sweep-column", Input).value = column
            screen.query_one("#vary", Input).focus()
            await pilot.press("enter")
            assert why in said(screen, "sweep-line")
        await swept(pilot, screen, "bm25.k1=0.2,1.5 bm25.b=0,0.75")
        assert screen.result is not None
        assert len(screen.result.settings) == 4
        shown = screen_text(pilot)
        assert shown.count("k1=0.2 b=0") >= 2
        assert "Best nDCG@10 in bm25" in said(screen, "sweep-verdict")
        assert "Chosen on other questions" in said(screen, "sweep-verdict")
        await pilot.press("y")
        assert "Copied the report" in toasts(pilot)
        assert workbench.clipboard.startswith("# Sweep of bm25")
        # the same again is known
        await swept(pilot, screen, "bm25.k1=0.2,1.5 bm25.b=0,0.75")
        assert all(one.is_known for one in screen.result.settings)


async def test_enter_uses_a_setting_for_the_session_and_tells_its_lines(
    workbench: RagTuiApp, folder: Path
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await swept(pilot, screen, "bm25.k1=0.2")
        rows = [screen.result.settings[i].setting.name for i in screen.result.ranked()]  # type: ignore[union-attr]
        for _ in range(rows.index("bm25.k1=0.2")):
            await pilot.press("down")
        await pilot.press("enter")
        await settle(pilot)
        evaluate = workbench.screen
        assert isinstance(evaluate, EvaluateScreen)
        assert evaluate.request is not None
        assert evaluate.request.bm25.k1 == 0.2
        assert "[bm25]\nk1 = 0.2" in toasts(pilot)
        assert not (folder / "rag-tui.toml").exists()


async def test_w_writes_a_setting_and_another_cut_is_indexed(
    workbench: RagTuiApp, folder: Path
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        before = workbench.index
        await swept(pilot, screen, "chunking.size=64")
        assert workbench.index is before  # measuring has left the index alone
        rows = [screen.result.settings[i].setting.name for i in screen.result.ranked()]  # type: ignore[union-attr]
        for _ in range(rows.index("chunking.size=64")):
            await pilot.press("down")
        await pilot.press("w")
        await settle(pilot)
        await until(
            pilot,
            lambda: workbench.index is not None and workbench.index.manifest.chunking["size"] == 64,
        )
        assert load_settings(folder).chunking.size == 64
        assert "Written into" in toasts(pilot)


async def test_escape_stops_keeps_what_is_finished_and_then_closes(
    workbench: RagTuiApp, small: SweepBackend
) -> None:
    small.pause = gate = Gate()
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        screen.query_one("#vary", Input).value = "bm25.k1=0.2,0.4,0.6"
        screen.query_one("#sweep-column", Input).value = "bm25"
        await pilot.press("enter")
        await until(pilot, gate.reached.is_set)
        await pilot.pause()
        assert "2 of 4 settings" in said(screen, "sweep-line")
        assert "esc stops" in said(screen, "sweep-line")
        await pilot.press("escape")
        assert "stopping" in said(screen, "sweep-line")
        small.pause = None
        gate.opened.set()
        await until(pilot, lambda: screen.result is not None)
        await pilot.pause()
        assert screen.result is not None
        assert (screen.result.is_whole, len(screen.result.settings)) == (False, 2)
        assert "Stopped after 2" in said(screen, "sweep-line")
        await swept(pilot, screen, "bm25.k1=0.2,0.4,0.6")
        assert [one.is_known for one in screen.result.settings] == [True, True, False, False]
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(workbench.screen, EvaluateScreen)


@pytest.mark.parametrize("size", [(100, 30), (40, 12)])
async def test_it_can_be_read_at_every_size_and_foreign_text_is_only_text(
    workbench: RagTuiApp, small: SweepBackend, size: tuple[int, int]
) -> None:
    async with workbench.run_test(size=size) as pilot:
        screen = await opened(pilot)
        await swept(pilot, screen, "bm25.k1=0.2")
        assert "k1=0.2  " in screen_text(pilot)
        hostile = "\n".join((*HOSTILE, LONG_LINE))
        small.error = hostile
        for values in (f"bm25.k1={''.join(hostile.split())[:2_000]}", "bm25.k1=0.3"):
            screen.query_one("#vary", Input).value = values
            screen.query_one("#vary", Input).focus()
            await pilot.press("enter")
            await settle(pilot)
            shown = screen_text(pilot)
            assert "✗" in said(screen, "sweep-line")
            assert [char for char in FORBIDDEN if char in shown] == []


def test_a_knob_that_the_column_sets_itself_is_changed_there() -> None:
    column = make_column("short", "bm25", {"bm25.k1": 0.4})
    request = SearchRequest("", columns=(column,))
    used = with_setting(request, "short", Setting((("bm25.k1", 0.2), ("bm25.b", 0.5))))
    assert (used.bm25.k1, used.bm25.b) == (request.bm25.k1, 0.5)
    own = column_request(used, used.columns[0])
    assert (own.bm25.k1, own.bm25.b) == (0.2, 0.5)
