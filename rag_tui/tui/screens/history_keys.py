"""All keys of the history and the bump chart, for settings and documentation."""

from __future__ import annotations

from textual.binding import BindingType

from rag_tui.tui.screens.bump import BumpScreen
from rag_tui.tui.screens.history import HistoryScreen
from rag_tui.tui.screens.history_changes import ChangesSinceScreen


def history_keys() -> list[BindingType]:
    """The bindings by dialog."""
    parts = (HistoryScreen, ChangesSinceScreen, BumpScreen)
    return [binding for part in parts for binding in part.BINDINGS]
