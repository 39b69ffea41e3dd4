"""Palette entries of the Chunks screen: one for each kind of warning that was found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rag_tui.tui import format as fmt
from rag_tui.tui.commands import Command, Commands
from rag_tui.tui.screens.chunks import ChunksScreen


class WarningCommands(Commands):
    """Show the chunks with one kind of warning."""

    def commands(self) -> Iterator[Command]:
        """One entry a kind, the most frequent first, then one for all chunks."""
        screen = self.screen
        if not isinstance(screen, ChunksScreen):
            return
        for kind, n_chunks in screen.warning_kinds.items():
            yield Command(
                f"Only {kind}", fmt.count(n_chunks, "chunk"), partial(screen.show_warning, kind)
            )
        if screen.selection.warning:
            yield Command("All warnings and none", "All chunks", partial(screen.show_warning, ""))
