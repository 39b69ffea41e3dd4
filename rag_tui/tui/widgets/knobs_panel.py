"""The knobs of a search: each turn of one runs the search again."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import SPECS, column_request, knob
from rag_tui.engine.types import Column, KnobValue, SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui import knob_values as values
from rag_tui.tui.widgets.knob_table import CHANGED, LINES, KnobTable
from rag_tui.tui.widgets.virtual_list import VirtualList

NOTE_HEIGHT = 12
"""Below this height of the panel the knobs get the lines of the note."""


class KnobsPanel(Vertical):
    """The knobs, what the one under the cursor does, and a line to type a value in.

    They are those of all columns or, in the other mode, those of the active column alone.
    """

    DEFAULT_CSS = """
    KnobsPanel {
        width: 34; min-width: 12; border: round $foreground 40%;
        border-title-align: left; border-subtitle-align: left; border-subtitle-color: $text-muted;
        &:focus-within { border: heavy $accent; }
        & > KnobTable { height: 1fr; min-height: 1; scrollbar-size-vertical: 1; }
        & > Input { width: 1fr; min-width: 4; }
        & > #knob-note {
            height: auto; max-height: 4; min-width: 4; color: $text-muted;
            border-top: solid $panel;
        }
    }
    """

    class Changed(Message):
        """The search should run with these knobs."""

        def __init__(self, request: SearchRequest, active: str) -> None:
            super().__init__()
            self.request = request
            self.active = active
            """The active column's name now; a turned knob may change it."""

    def __init__(self) -> None:
        super().__init__(id="knobs")
        self.table = KnobTable()
        self.request = SearchRequest("")
        """The knobs of all columns."""
        self.is_for_column = False
        self.active = ""
        self._defaults = SearchRequest("")
        self._note = Static("", id="knob-note", markup=False)

    def compose(self) -> ComposeResult:
        """The table and the note; the input comes when it is wanted."""
        yield self.table
        yield self._note

    def on_mount(self) -> None:
        """Say whose knobs they are."""
        self._show()

    def on_resize(self) -> None:
        """In a low panel every line is a knob's."""
        self._note.display = self.size.height >= NOTE_HEIGHT
        self._tell()

    @property
    def column(self) -> Column | None:
        """The column whose knobs are turned; None: those of all columns."""
        if not self.is_for_column:
            return None
        return next((c for c in self.request.columns if c.name == self.active), None)

    def set_request(
        self, request: SearchRequest, *, active: str = "", are_defaults: bool = False
    ) -> None:
        """Show these values; as defaults they are also what reset goes back to.

        Args:
            request: The knobs and columns.
            active: The column that has the focus; empty: the same as before.
            are_defaults: Whether they are the settings'.
        """
        if are_defaults:
            self._defaults = request
        self.request = request
        self.active = active or self.active
        self._show()

    def follow(self, active: str) -> None:
        """Another column is the active one."""
        self.active = active
        self._show()

    @on(VirtualList.CursorMoved)
    def _take_cursor(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        self._tell()

    @on(VirtualList.RowChosen)
    def _take_chosen(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        if LINES[event.row] in SPECS:
            self.table.action_edit()

    @on(KnobTable.Turned)
    def _take_turned(self, event: KnobTable.Turned) -> None:
        event.stop()
        self._set(event.name, event.value)

    @on(KnobTable.ScopeWanted)
    def _take_scope(self, event: KnobTable.ScopeWanted) -> None:
        event.stop()
        self.is_for_column = not self.is_for_column
        self._show()

    @on(KnobTable.EditWanted)
    async def _take_edit(self, event: KnobTable.EditWanted) -> None:
        event.stop()
        await self.query(Input).remove()
        now = knob(self.table.request, event.name)
        value = Input(
            "" if now == "" else values.shown(event.name, now),
            id="knob-value",
            compact=True,
            select_on_focus=True,
            tooltip=SPECS[event.name].note,
        )
        self.border_title = f"{SPECS[event.name].field}: type, then enter"
        await self.mount(value)
        value.focus()

    @on(KnobTable.ResetWanted)
    def _take_reset(self, event: KnobTable.ResetWanted) -> None:
        event.stop()
        column, name = self.column, event.name
        if name:
            back = self._defaults if column is None else self.request
            self._set(name, knob(back, name))
        elif column is None:
            # The columns are no knobs: they stay, with their own knobs.
            columns = self.request.columns
            changed = values.with_columns(self._defaults, columns)
            self._change(changed, self.active)
        else:
            names = [one.name for one in self.request.columns]
            plain = values.renamed(column, {}, names)
            columns = tuple(plain if c == column else c for c in self.request.columns)
            self._change(values.with_columns(self.request, columns), plain.name)

    @on(Input.Submitted)
    def _take_typed(self, event: Input.Submitted) -> None:
        event.stop()
        name = self.table.name_at_cursor
        try:
            value = values.typed(name, event.value)
        except UsageError as error:
            text = fmt.display(str(error), newlines=True)
            self.notify(text, severity="error", markup=False)
            return
        self.stop_editing()
        self._set(name, value)

    @on(Input.Changed)
    def _ignore_letters(self, event: Input.Changed) -> None:
        event.stop()

    def stop_editing(self) -> bool:
        """Close the input; returns whether it was open."""
        inputs = self.query(Input)
        if not inputs:
            return False
        inputs.remove()
        self.table.focus()
        self._show()
        return True

    def _set(self, name: str, value: KnobValue) -> None:
        column = self.column
        if column is None:
            self._change(values.with_value(self.request, name, value), self.active)
        else:
            self._change(*values.with_column_value(self.request, column, name, value))

    def _change(self, request: SearchRequest, active: str) -> None:
        if request == self.request:
            return
        self.set_request(request, active=active)
        self.post_message(self.Changed(request, active))

    def _show(self) -> None:
        column = self.column
        self.table.request = (
            self.request if column is None else column_request(self.request, column)
        )
        self.table.reference = self._defaults if column is None else self.request
        whose = "all columns" if column is None else f"column {fmt.one_line(column.name)}"
        self.border_title = fmt.content(f"Knobs · {whose}")
        self.table.refresh()
        self._tell()

    def _tell(self) -> None:
        """What the knob under the cursor does, and where it stands otherwise."""
        name = self.table.name_at_cursor
        now, before = knob(self.table.request, name), knob(self.table.reference, name)
        lines = [f"{name}: {SPECS[name].note}"]
        if idle := values.idle_reason(self.table.request, name):
            lines.append(idle)
        if now != before:
            whose = "settings" if self.column is None else "all columns"
            lines.append(f"{CHANGED} changed; {whose}: {values.shown(name, before)} (0: back)")
        if self.column is None and (own := values.own_elsewhere(self.request, name)):
            lines.append(f"stays in: {', '.join(own)}")
        self._note.update(fmt.content("\n".join(lines), newlines=True))
        other = "one column" if self.column is None else "all columns"
        hint = f"s: {other}" if self._note.display else lines[min(1, len(lines) - 1)]
        self.border_subtitle = fmt.content(fmt.one_line(hint))
