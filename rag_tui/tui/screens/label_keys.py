"""All keys of the dialogs that label, for settings and documentation."""

from __future__ import annotations

from textual.binding import BindingType

from rag_tui.tui.screens.drafts import DraftsScreen
from rag_tui.tui.screens.grade import GradeScreen
from rag_tui.tui.screens.pooled import PooledScreen


def label_keys() -> list[BindingType]:
    """The bindings by dialog."""
    parts = (GradeScreen, PooledScreen, DraftsScreen)
    return [binding for part in parts for binding in part.BINDINGS]
