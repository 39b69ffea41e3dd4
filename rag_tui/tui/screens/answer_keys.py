"""The keys that the dialogs around prompt and answer declare, for the settings."""

from __future__ import annotations

from textual.binding import BindingType

from rag_tui.tui.screens.compare_answers import CompareAnswersScreen
from rag_tui.tui.screens.copy_prompt import CopyPromptScreen
from rag_tui.tui.screens.edit_source import EditSourceScreen


def answer_keys() -> list[BindingType]:
    """The bindings by screen; those of the panes are in the registry `rag_tui.tui.keys`."""
    parts = (CompareAnswersScreen, CopyPromptScreen, EditSourceScreen)
    return [binding for part in parts for binding in part.BINDINGS]
