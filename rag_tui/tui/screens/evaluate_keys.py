"""All keys of the Evaluate screen, its panes and its dialogs, for settings and documentation."""

from __future__ import annotations

from textual.binding import BindingType

from rag_tui.tui.screens.evaluate import EvaluateScreen
from rag_tui.tui.screens.evaluate_asking import AskScreen, SureScreen
from rag_tui.tui.screens.evaluate_changes import ChangesScreen
from rag_tui.tui.screens.evaluate_groups import GroupsScreen
from rag_tui.tui.screens.evaluate_remarks import RemarksScreen
from rag_tui.tui.screens.evaluate_runs import RunsScreen
from rag_tui.tui.screens.evaluate_thresholds import ThresholdsScreen
from rag_tui.tui.screens.sweep import SweepScreen
from rag_tui.tui.widgets.metrics_table import CellList


def evaluate_keys() -> list[BindingType]:
    """The bindings by screen and pane; those of lists are in the registry `rag_tui.tui.keys`."""
    parts = (
        EvaluateScreen, CellList, GroupsScreen, ThresholdsScreen, RemarksScreen, RunsScreen,
        ChangesScreen, AskScreen, SureScreen, SweepScreen,
    )  # fmt: skip
    return [binding for part in parts for binding in part.BINDINGS]
