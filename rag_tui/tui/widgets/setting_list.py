"""The settings of a sweep as rows: what they are, what they give, what they cost."""

from __future__ import annotations

from collections.abc import Iterable

from rag_tui.engine.evaluation.report_sweep import marks
from rag_tui.engine.evaluation.sweep_space import Setting, shown
from rag_tui.engine.evaluation.sweep_types import SweepResult
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

_LEAST_NAME = 30
"""Cells that a setting's name should have before its figures are left out."""


class SettingList(VirtualList):
    """Settings, best first: what they are, the metric against now, what they cost."""

    BINDING_GROUP_TITLE = "Settings"

    def __init__(self) -> None:
        super().__init__(id="settings")
        self.result: SweepResult | None = None
        self.order: tuple[int, ...] = ()
        self.empty_note = "Nothing is measured yet."

    def show(self, result: SweepResult) -> None:
        """Show what came of a sweep."""
        self.result = result
        self.order = result.ranked()
        self.empty_note = "No setting could be scored."
        self.set_n_rows(len(self.order), cursor=0)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One setting."""
        if self.result is None:
            return
        place = self.order[row]
        one = self.result.settings[place]
        mean, found, compared = one.interval, one.measured, one.comparison
        parts = [(f" {marks(self.result, place)}", 12, "")]
        if mean is not None:
            parts.append((f" {mean.mean:.3f} {mean.low:.2f}–{mean.high:.2f}", 17, ""))
        told = f" {compared.delta:+.3f} p={compared.p_value:.2f}" if compared is not None else ""
        parts.append((told, 15, "virtual-list--dim"))
        if found.latency_ms is not None and found.prompt_tokens is not None:
            costs = f" {found.latency_ms:.3g} ms {found.prompt_tokens:,.0f} tok"
            parts.append((costs, 18, "virtual-list--dim"))
        while len(parts) > 1 and width - sum(part[1] for part in parts) < _LEAST_NAME:
            parts.pop()  # what cannot be told apart by name is not worth its costs
        name = max(8, width - sum(part[1] for part in parts))
        yield fmt.fit(fmt.one_line(_short(one.setting)[:500]), name), "virtual-list--strong"
        for text, n_cells, style in parts:
            yield fmt.fit(text, n_cells), style


def _short(setting: Setting) -> str:
    """Its name without the sections of the knobs, where they are plain without them."""
    fields = [name.partition(".")[2] for name, _ in setting.knobs]
    if len(set(fields)) < len(fields):
        return setting.name
    return " ".join(f"{f}={shown(v)}" for f, (_, v) in zip(fields, setting.knobs, strict=True))
