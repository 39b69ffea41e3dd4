"""The shell around the screens: start, jobs, keys, palette, failures, leaving."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from textual.binding import Binding

from rag_tui.engine.errors import CorpusError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.indexing import IndexReady
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.backend import Session, Settings
from rag_tui.tui.commands import WorkbenchCommands
from rag_tui.tui.jobs import busy_threads, in_thread, start
from rag_tui.tui.keys import KEYS, checked_keymap
from rag_tui.tui.screens.failure import FailureScreen
from rag_tui.tui.screens.search import SearchScreen
from rag_tui.tui.themes import usable_theme
from rag_tui.tui.widgets.job_bar import progress_text
from tests.hostile import HOSTILE
from tests.tui.conftest import (
    Gate,
    SmallBackend,
    ask,
    screen_text,
    search_screen,
    settle,
    toasts,
    until,
)

WIDE = (160, 45)


def phase(app: RagTuiApp) -> str:
    """How the app stands with its folder."""
    return app.status.phase


class GatedIndexing(SmallBackend):
    """Indexing that waits in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_of_index = Gate()
        self.tokens: list[CancelToken] = []

    def refresh_index(
        self, folder: Path, session: Session, *, cancel: CancelToken, rebuild: bool
    ) -> Iterator[Progress | IndexReady]:
        self.tokens.append(cancel)
        yield Progress("embed", 1, 4)
        self.gate_of_index.hold()
        yield from super().refresh_index(folder, session, cancel=cancel, rebuild=rebuild)


class BrokenIndexing(SmallBackend):
    """Indexing that fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def refresh_index(
        self, folder: Path, session: Session, *, cancel: CancelToken, rebuild: bool
    ) -> Iterator[Progress | IndexReady]:
        if self.error is not None:
            raise self.error
        yield from super().refresh_index(folder, session, cancel=cancel, rebuild=rebuild)


@pytest.fixture
def gated() -> Iterator[GatedIndexing]:
    backend = GatedIndexing()
    yield backend
    backend.gate_of_index.opened.set()


async def test_the_whole_layout_is_there_while_the_folder_is_being_opened(
    corpus: Path, gated: GatedIndexing
) -> None:
    app = RagTuiApp(corpus, backend=gated)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, gated.gate_of_index.reached.is_set)
        text = screen_text(pilot)
        for part in ("VECTOR", "BM25", "HYBRID", "RERANKED", "Explain", "Prompt", "Answer"):
            assert part in text
        assert f"opening {corpus.name}…" in text


async def test_escape_cancels_indexing_and_the_old_index_stays(
    corpus: Path, gated: GatedIndexing
) -> None:
    app = RagTuiApp(corpus, backend=gated)
    async with app.run_test(size=WIDE) as pilot:
        gated.gate_of_index.opened.set()
        await settle(pilot)
        before = app.index
        assert phase(app) == "fresh"
        gated.gate_of_index = Gate()
        await pilot.press("escape", "ctrl+r")
        await until(pilot, gated.gate_of_index.reached.is_set)
        await pilot.press("escape")
        assert phase(app) == "not refreshed"
        assert app.progress is None
        await until(pilot, lambda: gated.tokens[-1].is_cancelled)
        gated.gate_of_index.opened.set()
        await until(pilot, lambda: busy_threads() == 0)
        await settle(pilot)
        assert app.index is before
        assert phase(app) == "not refreshed"


async def test_the_command_palette_does_not_cancel_indexing(
    corpus: Path, gated: GatedIndexing
) -> None:
    app = RagTuiApp(corpus, backend=gated)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, gated.gate_of_index.reached.is_set)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: not isinstance(app.screen, SearchScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        assert not gated.tokens[0].is_cancelled
        gated.gate_of_index.opened.set()
        await settle(pilot)
        assert phase(app) == "fresh"


async def test_keys_are_handled_while_indexing_runs(corpus: Path, gated: GatedIndexing) -> None:
    app = RagTuiApp(corpus, backend=gated)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, gated.gate_of_index.reached.is_set)
        await pilot.press(*"dog")
        assert search_screen(pilot).query_bar.question == "dog"


async def test_leaving_does_not_wait_for_a_thread_that_is_busy(
    corpus: Path, gated: GatedIndexing
) -> None:
    app = RagTuiApp(corpus, backend=gated)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, gated.gate_of_index.reached.is_set)
        await pilot.press("ctrl+q")
    assert busy_threads() == 1
    assert gated.tokens[0].is_cancelled
    assert app.return_code == 0


async def test_a_folder_without_documents_says_what_to_do(
    tmp_path: Path, backend: SmallBackend
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    app = RagTuiApp(folder, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        message = search_screen(pilot).lists["bm25"].message
        assert "no files that can be indexed" in message
        assert "Markdown" in message
        assert phase(app) == "failed"
        (folder / "a.md").write_text("# A\n\nA dog.\n")
        await pilot.press("escape", "ctrl+r")
        await settle(pilot)
        assert phase(app) == "fresh"
        screen = await ask(pilot, "dog")
        assert len(screen.lists["bm25"].rows) == 1


async def test_an_expected_failure_is_shown_in_the_lists_letter_for_letter(corpus: Path) -> None:
    backend = BrokenIndexing(CorpusError("no [/b] here", "look at [link]"))
    app = RagTuiApp(corpus, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "✗ no [/b] here" in screen_text(pilot)
        assert "→ look at [link]" in screen_text(pilot)


async def test_an_unexpected_failure_opens_a_dialog_and_is_logged(corpus: Path) -> None:
    backend = BrokenIndexing(ZeroDivisionError("a fault of [/ours]"))
    app = RagTuiApp(corpus, backend=backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, FailureScreen)
        assert "a fault of [/ours]" in screen_text(pilot)
        assert app.session is not None
        log_file = app.session.settings.engine.cache_dir / "log" / "rag-tui.log"
        assert str(log_file) in app.screen.text
        assert "ZeroDivisionError: a fault of [/ours]" in log_file.read_text()
        await pilot.press("y")
        assert "ZeroDivisionError" in app.clipboard
        await pilot.press("escape")
        backend.error = None
        await pilot.press("escape", "ctrl+r")
        await settle(pilot)
        assert phase(app) == "fresh"


async def test_unreadable_settings_are_told_and_the_app_stays_up(corpus: Path) -> None:
    class BadSettings(SmallBackend):
        def load_settings(self, folder: Path, overrides: Mapping[str, object]) -> Settings:
            return super().load_settings(folder, {"search.top_k": 0})

    app = RagTuiApp(corpus, backend=BadSettings())
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "top_k" in search_screen(pilot).lists["hybrid"].message


async def test_a_worker_that_dies_is_not_silent(app: RagTuiApp) -> None:
    async def die() -> None:
        raise LookupError("gone [/]")

    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        start(search_screen(pilot), die, "something")
        await settle(pilot)
        assert isinstance(app.screen, FailureScreen)
        assert "gone [/]" in screen_text(pilot)


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_question_is_searched_and_shown(app: RagTuiApp, text: str) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, text)
        app.warn(text)
        await pilot.press("e")
        await settle(pilot)
        assert search_screen(pilot) is screen
        drawn = screen_text(pilot)
        assert not [c for c in drawn.replace("\n", "") if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]


# -- keys and palette ------------------------------------------------------------------------


async def test_every_key_of_the_registry_has_its_action(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        for key in KEYS:
            node = app if key.scope == "app" else screen.command_target(key.scope)
            name = key.action.partition("(")[0]
            if name.startswith("screen."):
                node, name = screen, name.removeprefix("screen.")
            assert hasattr(node, f"action_{name}"), key.id


async def test_every_action_has_a_palette_entry_and_a_tooltip(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        titles = {command.title for command in WorkbenchCommands(app.screen).commands()}
        assert titles == {key.label for key in KEYS}
        assert all(key.tooltip for key in KEYS)


async def test_a_palette_entry_does_what_its_key_does(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        entries = {c.title: c.run for c in WorkbenchCommands(screen).commands()}
        await pilot.press("ctrl+p")
        await until(pilot, lambda: not isinstance(app.screen, SearchScreen))
        await pilot.press(*"explain", "down", "enter")
        await until(pilot, lambda: screen.tabs.active == "explain")
        assert "Explain" in entries


async def test_numbers_switch_modes_and_back(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("escape", "2")
        assert app.current_mode == "chunks"
        await pilot.press("1")
        assert app.current_mode == "search"


async def test_a_key_can_be_remapped(corpus: Path, backend: SmallBackend) -> None:
    overrides = {"ui.keys": {"search.explain": "f6,ctrl+e"}}
    app = RagTuiApp(corpus, backend=backend, overrides=overrides)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "dog")
        await pilot.press("e")
        assert screen.tabs.active == "chunk"
        await pilot.press("f6")
        assert screen.tabs.active == "explain"


async def test_an_unknown_key_name_is_told_with_the_nearest_one(
    corpus: Path, backend: SmallBackend
) -> None:
    app = RagTuiApp(corpus, backend=backend, overrides={"ui.keys": {"search.explian": "x"}})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "'search.explian'" in toasts(pilot)
        assert "did you mean 'search.explain'" in toasts(pilot)


def test_a_key_that_is_taken_in_the_same_place_is_refused() -> None:
    keymap, problems = checked_keymap({"search.explain": "y", "list.up": "p", "knobs.less": "d"})
    assert keymap == {"knobs.less": "d"}
    assert len(problems) == 2
    assert "'search.copy'" in problems[0]
    assert "'search.prompt'" in problems[1]


def test_two_keys_can_be_exchanged() -> None:
    keymap, problems = checked_keymap({"search.explain": "p", "search.prompt": "e"})
    assert keymap == {"search.explain": "p", "search.prompt": "e"}
    assert problems == ()


def test_leaving_the_program_cannot_be_remapped_away() -> None:
    keymap, problems = checked_keymap({"search.explain": "ctrl+q"})
    assert keymap == {}
    assert "ctrl+q" in problems[0]


def test_no_two_default_keys_clash() -> None:
    defaults = {key.id: key.keys for key in KEYS}
    keymap, problems = checked_keymap(defaults)
    assert problems == ()
    assert keymap.keys() == defaults.keys()


def test_key_ids_are_unique_and_every_binding_carries_its_id() -> None:
    assert len({key.id for key in KEYS}) == len(KEYS)
    assert all(isinstance(key.binding, Binding) and key.binding.id == key.id for key in KEYS)


# -- threads, progress, themes ---------------------------------------------------------------


async def test_cancelling_the_wait_sets_the_token_of_the_thread() -> None:
    tokens: list[CancelToken] = []
    gate = Gate()

    def work(cancel: CancelToken) -> None:
        tokens.append(cancel)
        gate.hold()

    task = asyncio.create_task(in_thread(work, "test"))
    await asyncio.to_thread(gate.reached.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tokens[0].is_cancelled
    gate.opened.set()


async def test_what_a_thread_raises_reaches_whoever_waits() -> None:
    def fail(_: CancelToken) -> None:
        raise LookupError("here")

    def leave(_: CancelToken) -> None:
        raise SystemExit(3)

    with pytest.raises(LookupError, match="here"):
        await in_thread(fail, "test")
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await in_thread(leave, "test")


async def test_a_thread_of_ours_never_holds_up_the_interpreter() -> None:
    assert await in_thread(lambda _: threading.current_thread().daemon, "test") is True


def test_progress_shows_stage_count_share_and_time_left() -> None:
    text = progress_text(Progress("embed", 30, 120), elapsed_s=10, width=120)
    assert "embedding" in text
    assert "30/120" in text
    assert "25%" in text
    assert "30 s left" in text
    assert "esc cancels" in text


@pytest.mark.parametrize("width", [0, 1, 5, 40])
def test_progress_fits_any_width(width: int) -> None:
    text = progress_text(Progress("embed", 30, 120, "note"), elapsed_s=10, width=width)
    assert len(text) <= width


def test_an_unknown_theme_is_told() -> None:
    name, problem = usable_theme("nope", ["textual-dark", "nord"], no_color=False)
    assert name == "textual-dark"
    assert "'nope'" in problem
    assert "nord" in problem


def test_without_colours_a_theme_that_has_none_of_its_own_is_replaced() -> None:
    themes = ["ansi-dark", "ansi-light", "textual-dark", "textual-light"]
    assert usable_theme("ansi-light", themes, no_color=True)[0] == "textual-light"
    assert usable_theme("ansi-dark", themes, no_color=True)[0] == "textual-dark"
    assert usable_theme("ansi-dark", themes, no_color=False) == ("ansi-dark", "")
