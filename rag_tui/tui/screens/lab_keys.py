"""All keys of the dialogs about columns and presets, for settings and documentation."""

from __future__ import annotations

from textual.binding import BindingType

from rag_tui.tui.screens.columns import AddColumn, ColumnsScreen
from rag_tui.tui.screens.presets import CopySettings, PresetsScreen


def lab_keys() -> list[BindingType]:
    """The bindings by dialog."""
    parts = (ColumnsScreen, AddColumn, PresetsScreen, CopySettings)
    return [binding for part in parts for binding in part.BINDINGS]
