"""The keys of the Evaluate screen; those that the footer names come first."""

from __future__ import annotations

from textual.binding import Binding, BindingType


def _hidden(key: str, action: str, label: str, tooltip: str, name: str) -> Binding:
    return Binding(key, action, label, tooltip=tooltip, show=False, id=f"evaluate.{name}")


EVALUATE_BINDINGS: list[BindingType] = [
    Binding("r", "run", "Run", tooltip="Ask what is not known yet", id="evaluate.run"),
    Binding("o", "runs", "Runs", tooltip="Open, compare, export", id="evaluate.runs"),
    Binding("b", "baseline", "Baseline", tooltip="Compare with this row", id="evaluate.baseline"),
    Binding("m", "measures", "Measures", tooltip="Choose them and k", id="evaluate.measures"),
    Binding("s", "sort", "Sort", tooltip="Order of the questions", id="evaluate.sort"),
    Binding(
        "slash",
        "filter",
        "Filter",
        key_display="/",
        tooltip="Words, tag:x, file:x",
        id="evaluate.filter",
    ),
    Binding("t", "groups", "Groups", tooltip="By tag, document, length", id="evaluate.groups"),
    Binding("n", "keep", "Name", tooltip="Keep this run under a name", id="evaluate.keep"),
    _hidden("u", "thresholds", "Unanswerable", "Scores, and a not-found rule", "thresholds"),
    _hidden("i", "remarks", "Remarks", "What to keep in mind", "remarks"),
    _hidden("w", "sweep", "Sweep", "Try many settings", "sweep"),
    _hidden("I", "import", "Import", "A TREC run as a column", "import"),
    _hidden("x", "export", "Export", "TREC run and qrels", "export"),
    _hidden("y", "copy", "Copy", "The report as Markdown", "copy"),
    _hidden("p", "pool", "Judge blind", "Questions without a label", "pool"),
    _hidden("tab", "pane", "Other pane", "Scores, or questions", "pane"),
    _hidden("escape", "back", "Back", "Stop asking, leave the filter", "back"),
]
