"""Make the pictures of screenshots/ from the running app with real models.

python scripts/screenshots.py [NAME …]
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from textual.pilot import Pilot

from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.widgets.answer_view import AnswerView

ROOT = Path(__file__).parent.parent
OUT = ROOT / "screenshots"
TYPHOON = "A typhoon cancelled my flight. Do I get my money back?"
PATIENCE_S = 120

Step = Callable[[Pilot[None]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: a terminal size, a question, and what is pressed before it is taken."""

    name: str
    size: tuple[int, int]
    title: str
    keys: tuple[str, ...] = ()
    question: str = TYPHOON
    pause_s: float = 0.0
    """For what begins only after a pause in typing."""
    settings: str = ""
    """What stands in the folder's ``rag-tui.toml``."""


ANALYZERS = """
[[columns]]
name = "bm25 words"
method = "bm25"

[[columns]]
name = "bm25 english"
method = "bm25"
knobs = { "bm25.analyzer" = "english" }

[[columns]]
name = "bm25 english okapi"
method = "bm25"
knobs = { "bm25.analyzer" = "english", "bm25.variant" = "okapi" }

[[columns]]
name = "vector"
method = "vector"

[[columns]]
name = "hybrid english"
method = "hybrid"
knobs = { "bm25.analyzer" = "english" }
"""

SHOTS = (
    Shot("search", (160, 45), "rag-tui corpus"),
    Shot("search-narrow", (80, 24), "rag-tui corpus", ("right_square_bracket",)),
    Shot("explain", (160, 45), "rag-tui corpus: explain", ("e",)),
    Shot(
        "columns",
        (160, 45),
        "rag-tui corpus: columns",
        ("e",),
        "Where do guests smoke?",
        settings=ANALYZERS,
    ),
    Shot("bump", (160, 45), "rag-tui corpus: movement", ("v",)),
    Shot(
        "passage",
        (160, 45),
        "rag-tui corpus: where is my passage?",
        ("w",),
        "What happens if I lose my key?",
    ),
    Shot("evaluate", (160, 45), "rag-tui corpus: evaluate", ("3", "r")),
    Shot("prompt", (160, 45), "rag-tui corpus: prompt", ("p",)),
    Shot("answer", (160, 45), "rag-tui corpus: answer", ("a",)),
    Shot("chunks", (160, 45), "rag-tui corpus: chunks", ("2", "d", "j", "j")),
    Shot(
        "recut", (160, 45), "rag-tui corpus: re-cut", ("2", "x", "6", "4", "tab", "8"), pause_s=1.5
    ),
)


async def until(pilot: Pilot[None], what: str, is_so: Callable[[], bool]) -> None:
    """Wait for a state of the app, not for a time."""
    for _ in range(PATIENCE_S * 20):
        await pilot.pause(0.05)
        if is_so():
            return
    raise TimeoutError(f"waited {PATIENCE_S} s for {what}")


async def take(shot: Shot, cache: Path) -> None:
    os.environ["RAG_TUI_CACHE_DIR"] = str(cache)
    folder = ROOT / "corpus"
    if shot.settings:
        folder = cache / shot.name / "corpus"
        shutil.copytree(ROOT / "corpus", folder, dirs_exist_ok=True)
        (folder / "rag-tui.toml").write_text(shot.settings, encoding="utf-8")
    app = RagTuiApp(folder)
    async with app.run_test(size=shot.size) as pilot:
        await until(pilot, "the index", lambda: app.status.phase == "fresh")
        screen = app.screen
        if not isinstance(screen, SearchScreen):
            raise TypeError(screen)
        await pilot.click("#query")
        for character in shot.question:
            await pilot.press(character if character.isalnum() else _key(character))
        await pilot.press("enter")
        await until(pilot, "the lists", lambda: bool(screen.results) and not screen.is_searching)
        for key in shot.keys:
            await pilot.press(key)
            await pilot.pause()
        if "a" in shot.keys:
            await until(pilot, "the answer", lambda: _has_answered(screen))
        await pilot.pause(shot.pause_s)
        await until(pilot, "all work", lambda: all(w.is_finished for w in app.workers))
        await pilot.pause()
        app.clear_notifications()
        await pilot.pause()
        svg = app.export_screenshot(title=shot.title)
    (OUT / f"{shot.name}.svg").write_text(svg, encoding="utf-8")
    print(f"screenshots/{shot.name}.svg")


def _has_answered(screen: SearchScreen) -> bool:
    answer = screen.query_one(AnswerView).answer
    return answer is not None and answer.state != "streaming"


def _key(character: str) -> str:
    return {" ": "space", ".": "full_stop", "?": "question_mark", "'": "apostrophe"}[character]


async def main() -> None:
    OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as cache:
        for shot in SHOTS:
            if not wanted or shot.name in wanted:
                await take(shot, Path(cache))


if __name__ == "__main__":
    asyncio.run(main())
