"""Writes searches to a file, and deletes them; both ask first and work in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_tui.engine.errors import RagTuiError, UsageError
from rag_tui.tui import format as fmt
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.screens.evaluate_asking import AskScreen, SureScreen

if TYPE_CHECKING:
    from textual.screen import Screen

    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.backend import Settings


def ask_for_file(
    screen: Screen[Any], title: str, name: str, hint: str, write: Callable[[Path], int]
) -> None:
    """Ask for a path, write there, and tell the path; a file that exists is never overwritten.

    Args:
        screen: Under which the question is asked.
        title: What is asked for.
        name: End of the proposed file name, in the working folder.
        hint: What is written.
        write: Runs in a thread; gives back how many searches were written.
    """
    app = cast("RagTuiApp", screen.app)

    async def work(target: Path) -> None:
        try:
            n = await in_thread(lambda _: write(target), "export")
        except RagTuiError as error:
            app.warn(f"{error.message}\n{error.hint}")
            return
        app.tell(f"{fmt.count(n, 'search', 'searches')} written to {target}")

    def take(text: str | None) -> None:
        if text:
            start(screen, lambda: work(Path(text).expanduser()), "export")

    stem = app.folder.resolve().stem or "corpus"
    screen.app.push_screen(
        AskScreen(title, value=str(Path.cwd() / f"{stem}-{name}"), hint=hint, check=_check_new),
        take,
    )


def ask_and_export(screen: Screen[Any], settings: Settings, n: int) -> None:
    """Ask for a file and copy all ``n`` kept searches of the app's corpus there."""
    app = cast("RagTuiApp", screen.app)
    ask_for_file(
        screen,
        f"Export {fmt.count(n, 'search', 'searches')} to",
        "searches.jsonl",
        "JSON Lines: a search a line, with its settings and the first rows of each list.",
        lambda target: app.backend.export_history(settings, app.folder, target),
    )


def ask_and_forget(
    screen: Screen[Any], settings: Settings, n: int, then: Callable[[], Awaitable[None]]
) -> None:
    """Ask whether all ``n`` kept searches are to be deleted; ``then`` is awaited afterwards."""
    app = cast("RagTuiApp", screen.app)

    async def work() -> None:
        try:
            await in_thread(lambda _: app.backend.clear_history(settings, app.folder), "history")
        except RagTuiError as error:
            app.warn(f"{error.message}\n{error.hint}")
        await then()

    def forget(is_meant: bool | None) -> None:
        if is_meant:
            start(screen, work, "history")

    searches = fmt.count(n, "search", "searches")
    question = f"Delete {searches} of this corpus? They cannot be brought back."
    app.push_screen(SureScreen(question), forget)


def _check_new(text: str) -> None:
    if not text:
        raise UsageError("A file needs a name.", "Type one.")
    try:
        is_there = Path(text).expanduser().exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{text} is no path: {error}.", "Type another one.") from error
    if is_there:
        raise UsageError(f"{text} exists already.", "Choose another name.")
