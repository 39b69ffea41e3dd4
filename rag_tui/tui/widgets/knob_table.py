"""The list of knobs: one row a knob, turned in place."""

from __future__ import annotations

from collections.abc import Iterable

from textual.message import Message

from rag_tui.engine.knobs import SPECS, knob
from rag_tui.engine.types import KnobValue, SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui import knob_values as values
from rag_tui.tui.keys import bindings
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

LINES: tuple[str, ...] = tuple(
    line for section, names in values.SECTIONS.items() for line in (section, *names)
)
"""Section names, and below each of them the names of its knobs."""

NAME_WIDTH = 16
CHANGED = "≠"


class KnobTable(VirtualList):
    """One row a knob under the names of the groups; left and right turn it."""

    BINDINGS = bindings("knobs")
    BINDING_GROUP_TITLE = "Knobs"
    DEFAULT_CSS = "KnobTable { scrollbar-gutter: auto; }"

    class Turned(Message):
        """A knob has a new value."""

        def __init__(self, name: str, value: KnobValue) -> None:
            super().__init__()
            self.name = name
            self.value = value

    class EditWanted(Message):
        """The user wants to type a value."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class ResetWanted(Message):
        """The user wants values of the settings back."""

        def __init__(self, name: str = "") -> None:
            super().__init__()
            self.name = name
            """Of one knob; empty for all."""

    class ScopeWanted(Message):
        """The user wants to turn the knobs of one column, or of all again."""

    def __init__(self) -> None:
        super().__init__(id="knob-table")
        self.request = SearchRequest("")
        """Whose values are shown."""
        self.reference = SearchRequest("")
        """What they are marked against."""
        self.n_rows = len(LINES)
        self.set_reactive(VirtualList.cursor, 1)

    @property
    def name_at_cursor(self) -> str:
        """The knob under the cursor."""
        return LINES[self.cursor]

    def validate_cursor(self, cursor: int) -> int:
        """On a knob always: the names of groups are passed over."""
        row = super().validate_cursor(cursor)
        if LINES[row] in SPECS:
            return row
        # No two names of groups stand together, and the last line is a knob.
        return row - 1 if 0 < row < self.cursor else row + 1

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Name, value between arrows (in brackets: without effect), and what it is set to."""
        name = LINES[row]
        if name not in SPECS:
            yield fmt.clip(f"── {name} ".ljust(width, "─"), width), "virtual-list--dim"
            return
        now, before = knob(self.request, name), knob(self.reference, name)
        is_idle = bool(values.idle_reason(self.request, name))
        text = fmt.one_line(values.shown(name, now))
        value = f"( {text} )" if is_idle else f"‹ {text} ›"
        mark = ""
        if now != before:
            mark = f" {CHANGED}{fmt.one_line(values.shown(name, before))}"
            if NAME_WIDTH + 1 + len(value) + len(mark) > width:
                mark = f" {CHANGED}"
        name_width = max(0, min(NAME_WIDTH, width - len(value) - len(mark) - 1))
        name_width = max(name_width, min(8, width))
        yield fmt.fit(SPECS[name].field, name_width) + " ", "virtual-list--dim" if is_idle else ""
        room = max(0, width - name_width - 1 - len(mark))
        yield fmt.clip(value, room), "virtual-list--dim" if is_idle else "virtual-list--strong"
        yield mark, "virtual-list--warning"

    def action_step(self, direction: int) -> None:
        """Turn the knob under the cursor."""
        name = self.name_at_cursor
        if values.is_typed_only(name):
            self.post_message(self.EditWanted(name))
            return
        value = values.turned(self.request, name, direction)
        if value != knob(self.request, name):
            self.post_message(self.Turned(name, value))

    def action_edit(self) -> None:
        """Type a value for the knob under the cursor."""
        self.post_message(self.EditWanted(self.name_at_cursor))

    def action_reset(self) -> None:
        """Ask for the values of the settings."""
        self.post_message(self.ResetWanted())

    def action_reset_one(self) -> None:
        """Ask for the value that the settings give to the knob under the cursor."""
        self.post_message(self.ResetWanted(self.name_at_cursor))

    def action_scope(self) -> None:
        """Ask for the knobs of the active column, or for those of all columns."""
        self.post_message(self.ScopeWanted())

    def _scroll_to_row(self, row: int) -> None:
        # The name of a group comes into view with its first knob.
        if row > 0 and LINES[row - 1] not in SPECS:
            super()._scroll_to_row(row - 1)
        super()._scroll_to_row(row)
