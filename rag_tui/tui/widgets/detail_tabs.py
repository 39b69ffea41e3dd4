"""Panes of which one is shown, under one line of titles.

A `TabbedContent` of four panes is made of fifteen widgets, which the first frame pays for; this is
made of two, and takes one line less.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget

from rag_tui.tui import format as fmt


class TabStrip(Widget):
    """The titles; the active one is reversed and can be told apart without colours."""

    DEFAULT_CSS = "TabStrip { height: 1; min-width: 1; background: $panel; }"

    def __init__(self, titles: Mapping[str, str]) -> None:
        super().__init__()
        self._titles = titles
        self.active = ""

    def render(self) -> Content:
        """All titles in a row; each can be clicked."""
        titles = [
            Content.styled(f" {title} ", "reverse bold")
            if name == self.active
            else fmt.content(f" {title} ").stylize(
                Style.from_meta({"@click": f"screen.tab('{name}')"})
            )
            for name, title in self._titles.items()
        ]
        return Content(" ").join(titles)


class DetailTabs(Vertical):
    """The panes by name; the titles are there before them."""

    DEFAULT_CSS = """
    DetailTabs {
        min-width: 8; height: 1fr;
        & > .pane { height: 1fr; padding: 0 1; display: none; &.-shown { display: block; } }
    }
    """

    active: reactive[str] = reactive("", init=False)
    """Name of the pane that is shown."""

    class Changed(Message):
        """Another pane is shown."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, titles: Mapping[str, str]) -> None:
        """Make the tabs.

        Args:
            titles: By the panes' names, in the order of the tabs.
        """
        super().__init__(id="tabs")
        self._strip = TabStrip(titles)
        self._panes: dict[str, Widget] = {}
        self._show(next(iter(titles)))
        self.set_reactive(DetailTabs.active, next(iter(titles)))

    def compose(self) -> ComposeResult:
        """The titles."""
        yield self._strip

    async def add_panes(self, panes: Mapping[str, Widget]) -> None:
        """Mount the panes; only the active one is shown."""
        for name, pane in panes.items():
            self._panes[name] = pane.add_class("pane")
        self._show(self.active)
        await self.mount_all(panes.values())

    def focus_pane(self) -> None:
        """Give the focus to the first widget of the shown pane that takes it."""
        pane = self._panes.get(self.active)
        if pane is None:
            return
        for widget in pane.walk_children(with_self=True):
            if isinstance(widget, Widget) and widget.focusable:
                widget.focus()
                return

    def watch_active(self, active: str) -> None:
        """Show the pane and tell the screen."""
        self._show(active)
        self.post_message(self.Changed(active))

    def _show(self, active: str) -> None:
        for name, pane in self._panes.items():
            pane.set_class(name == active, "-shown")
        self._strip.active = active
        self._strip.refresh()
