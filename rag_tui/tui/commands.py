"""The command palette's entries, made from the registry of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.fuzzy import Matcher

from rag_tui.tui import format as fmt
from rag_tui.tui.keys import KEYS


@dataclass(frozen=True, slots=True)
class Command:
    """One entry."""

    title: str
    help: str
    run: Callable[[], object]


def highlighted(matcher: Matcher, text: str) -> Content:
    """A displayed title with what was typed marked; the matcher's own way parses it as markup."""
    content = Content(text)
    score, offsets = matcher.fuzzy_search.match(matcher.query, text)
    for offset in offsets if score else ():
        if not text[offset].isspace():
            content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


def as_help(text: str) -> str:
    """The line below a title. The palette parses strings as markup, and takes contents as well."""
    return cast("str", fmt.content(text))


class Commands(Provider):
    """Entries from a list that is made anew each time; subclasses say which."""

    def commands(self) -> Iterator[Command]:
        """The entries in the order in which they are offered."""
        raise NotImplementedError

    async def discover(self) -> Hits:
        """All entries."""
        for command in self.commands():
            title, about = fmt.content(command.title), as_help(command.help)
            yield DiscoveryHit(title, command.run, text=command.title, help=about)

    async def search(self, query: str) -> Hits:
        """Those that match what was typed."""
        matcher = self.matcher(query)
        for command in self.commands():
            score = matcher.match(command.title)
            if score > 0:
                title = highlighted(matcher, command.title)
                yield Hit(score, title, command.run, help=as_help(command.help))


class WorkbenchCommands(Commands):
    """Every action of the app and of the screen beneath the palette."""

    def commands(self) -> Iterator[Command]:
        """The entries: the screen's own first, then the app's."""
        screen = self.screen
        target = getattr(screen, "command_target", None)
        if target is not None:
            for key in KEYS:
                if key.scope != "app":
                    node = target(key.scope)
                    yield Command(key.label, key.tooltip, partial(self._run, key.action, node))
        else:
            for binding in Binding.make_bindings(getattr(screen, "BINDINGS", ())):
                if binding.description:
                    yield Command(
                        binding.description,
                        binding.tooltip or "",
                        partial(self._run, binding.action, screen),
                    )
        for key in KEYS:
            if key.scope == "app":
                yield Command(key.label, key.tooltip, partial(self._run, key.action, self.app))

    async def _run(self, action: str, node: DOMNode) -> None:
        await self.app.run_action(action, default_namespace=node)
