"""Drafted questions: offered with their cost, accepted, edited, rejected, taken back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from rag_tui.engine.evaluation.drafts import heading_question
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import resolve
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.drafts import DraftsScreen, open_drafts
from tests.hostile import FORBIDDEN, HOSTILE
from tests.sse_server import Script, replay_server, text_events
from tests.tui.conftest import SmallBackend, screen_text, search_screen, settle, toasts, until

WIDE = (160, 45)


@pytest.fixture
def bare(corpus: Path, tmp_path: Path) -> Path:
    """The demo corpus without its questions."""
    folder = Path(shutil.copytree(corpus, tmp_path / "docs"))
    (folder / "questions.jsonl").unlink()
    return folder


def drafts(pilot: Pilot[None]) -> DraftsScreen:
    screen = pilot.app.screen
    assert isinstance(screen, DraftsScreen)
    return screen


def question(pilot: Pilot[None]) -> str:
    return str(drafts(pilot).query_one("#draft-question", Static).render())


def rows_in(folder: Path) -> list[dict[str, object]]:
    path = folder / "questions.jsonl"
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if (path.exists())
        else []
    )


async def test_drafts_from_headings_are_accepted_edited_rejected_and_taken_back(
    bare: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(bare, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        open_drafts(app)
        await settle(pilot)
        assert app.index is not None
        screen = drafts(pilot)
        shown = screen_text(pilot)
        assert "draft 1 of 10 · from headings by template, without a model" in shown
        assert "keyword search finds them more easily" in " ".join(shown.split())
        first = screen.drafts[0]
        assert question(pilot) == heading_question(app.index.chunks[first.position])
        assert f"evidence: “{first.evidence.quote[:40]}" in shown
        await pilot.press("y")
        await settle(pilot)
        (row,) = rows_in(bare)
        assert row["question"] == first.text
        assert row["synthetic"] is True
        (kept,) = read_questions(bare).questions
        (place,) = resolve(kept, app.index).places
        assert first.position in place.positions
        # edited: enter takes the words, a second one accepts them; escape leaves them
        await pilot.press("e", "home", *"So: ", "enter", "e", *"zzz", "escape")
        assert question(pilot) == f"So: {screen.drafts[1].text}"
        await pilot.press("enter", "n")
        await settle(pilot)
        assert [row["question"] for row in rows_in(bare)] == [
            first.text,
            f"So: {screen.drafts[1].text}",
        ]
        assert "✓ 2 accepted  ✗ 1 rejected" in screen_text(pilot)
        # back over the rejected one to the edited one, which leaves the file
        await pilot.press("u", "u")
        await settle(pilot)
        assert [row["question"] for row in rows_in(bare)] == [first.text]
        assert question(pilot) == f"So: {screen.drafts[1].text}"
        await pilot.press(*["n"] * 9)
        await settle(pilot)
        assert "1 question accepted." in screen_text(pilot)
        assert f"Saved in {bare / 'questions.jsonl'}" in screen_text(pilot)
        # more: other passages than before, as long as there are any
        await pilot.press("m")
        await settle(pilot)
        positions = [draft.position for draft in screen.drafts]
        assert len(positions) > 10
        assert len(set(positions)) == len(positions)
        await pilot.press("escape")
        await settle(pilot)
        search_screen(pilot)


async def test_a_model_is_offered_with_its_cost_and_asked_only_after_enter(
    bare: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-12345678")
    monkeypatch.setattr("rag_tui.engine.evaluation.drafts.secrets.token_hex", lambda _: "c0de")
    monkeypatch.setattr("rag_tui.tui.screens.drafts.N_DRAFTS", 3)
    asked = "".join(HOSTILE)[:380]
    reply = json.dumps({"code": "c0de", "question": asked})
    with replay_server(Script(text_events(reply))) as server:
        app = RagTuiApp(bare, backend=backend, overrides={"answer.base_url": server.base_url})
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            open_drafts(app)
            await settle(pilot)
            shown = " ".join(screen_text(pilot).replace("│", " ").split())
            assert "would be sent 3 passages of your documents" in shown
            assert "at most" in shown
            assert "USD in all" in shown
            assert server.requests == []
            await pilot.press("enter")
            await until(pilot, lambda: bool(drafts(pilot).drafts or drafts(pilot).failures))
            await settle(pilot)
            assert len(server.requests) == 3
            screen = drafts(pilot)
            assert [draft.text for draft in screen.drafts] == [" ".join(asked.split())] * 3
            assert "see [/etc/hosts] for names" in screen_text(pilot)
            shown = screen_text(pilot).replace("\n", "")
            assert not [char for char in FORBIDDEN if char in shown]


async def test_escape_stops_a_model_and_h_asks_none(
    bare: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-12345678")
    with replay_server(Script(text_events("{"), ending="hang")) as server:
        app = RagTuiApp(bare, backend=backend, overrides={"answer.base_url": server.base_url})
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            open_drafts(app)
            await settle(pilot)
            await pilot.press("enter")
            await until(pilot, server.sent.is_set)
            assert "Waiting for the next draft… esc stops." in screen_text(pilot)
            await pilot.press("escape")
            await until(pilot, server.client_gone.is_set)
            search_screen(pilot)
            assert len(server.requests) == 1
            open_drafts(app)
            await settle(pilot)
            await pilot.press("h")
            await settle(pilot)
            assert "from headings by template" in screen_text(pilot)
            assert len(server.requests) == 1


async def test_failures_are_told_in_words(
    bare: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in bare.glob("*.md"):
        path.write_text("No heading, and short.", "utf-8")
    app = RagTuiApp(bare, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        open_drafts(app)
        await settle(pilot)
        assert "There is no index yet" in toasts(pilot)
        open_drafts(app)
        await settle(pilot)
        shown = screen_text(pilot)
        assert "✗ No passage with a heading is left" in shown
        assert "→ Set ANTHROPIC_API_KEY" in shown
        await pilot.press("enter", "y", "n", "e", "u", "m", "h", "escape")
        await settle(pilot)
        search_screen(pilot)
