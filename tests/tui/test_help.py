"""Help is made from the bindings: nothing is listed by hand, nothing is forgotten."""

from __future__ import annotations

from typing import ClassVar

import pytest
from textual.binding import Binding, BindingType

from rag_tui import __version__
from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.help import HelpScreen, key_groups
from tests.tui.chunk_samples import IndexApp, guesthouse, screen_text


class HelpApp(IndexApp):
    """Chunks with a help key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", tooltip="All keys", id="app.help"),
        Binding("q", "leave", "Leave", id="app.leave"),
    ]

    def __init__(self, keymap: dict[str, str] | None = None) -> None:
        super().__init__(ChunksScreen(), guesthouse())
        self.wanted = keymap or {}
        self.left = False

    def on_mount(self) -> None:
        super().on_mount()
        self.set_keymap(self.wanted)

    def action_help(self) -> None:
        self.push_screen(HelpScreen(self.wanted))

    def action_leave(self) -> None:
        self.left = True


async def test_help_names_version_purpose_and_the_keys_of_every_pane() -> None:
    async with (app := HelpApp()).run_test(size=(120, 90)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        shown = screen_text(app)
    assert f"rag-tui {__version__}" in shown
    assert "what the index really holds" in " ".join(shown.replace("│", " ").split())
    for title in ("Chunk list", "Document tree", "Chunk text", "Chunks", "Everywhere"):
        assert title in shown
    assert "Help: All keys" in shown


async def test_every_binding_of_the_screen_and_its_panes_is_listed() -> None:
    async with (app := HelpApp()).run_test(size=(120, 60)) as pilot:
        await pilot.pause()
        groups = key_groups(app.screen)
        listed = {text for rows in groups.values() for _, text in rows}
        for node in (app.screen, *app.screen.query("#list, #tree, #view").results()):
            own = Binding.make_bindings(type(node).BINDINGS)
            texts = {
                f"{binding.description}: {binding.tooltip}"
                if binding.tooltip
                else binding.description
                for binding in own
            }
            assert texts <= listed
        assert ("↓ j", "Next row") in groups["Chunk list"]


async def test_remapped_keys_are_shown_as_remapped() -> None:
    keymap = {"chunks.sort": "z", "list.down": "n", "tree.down": "n"}
    async with (app := HelpApp(keymap)).run_test(size=(120, 60)) as pilot:
        await pilot.pause()
        groups = key_groups(app.screen, keymap=keymap)
    assert ("z", "Sort") in groups["Chunks"]
    assert ("n", "Next row") in groups["Chunk list"]
    assert ("n", "Next line") in groups["Document tree"]


@pytest.mark.parametrize("key", ["escape", "q", "question_mark"])
async def test_help_closes_with_each_of_its_keys_and_nothing_else_happens(key: str) -> None:
    async with (app := HelpApp()).run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(app.screen, ChunksScreen)
        assert not app.left


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (20, 5), (80, 24)])
async def test_help_opens_at_any_size(size: tuple[int, int]) -> None:
    async with (app := HelpApp()).run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press("question_mark", "j", "k", "down", "pagedown", "end")
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert "esc: close" in screen_text(app)
