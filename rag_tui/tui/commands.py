"""The command palette's entries, made from the registry of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode

from rag_tui.tui.keys import KEYS


@dataclass(frozen=True, slots=True)
class Command:
    """One entry."""

    title: str
    help: str
    run: Callable[[], object]


class Commands(Provider):
    """Entries from a list that is made anew each time; subclasses say which."""

    def commands(self) -> Iterator[Command]:
        """The entries in the order in which they are offered."""
        raise NotImplementedError

    async def discover(self) -> Hits:
        """All entries."""
        for command in self.commands():
            yield DiscoveryHit(command.title, command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        """Those that match what was typed."""
        matcher = self.matcher(query)
        for command in self.commands():
            score = matcher.match(command.title)
            if score > 0:
                yield Hit(score, matcher.highlight(command.title), command.run, help=command.help)


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
