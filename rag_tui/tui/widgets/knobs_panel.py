"""The knobs of a search: each turn of one runs the search again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui.keys import bindings
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

Value = float | bool | str


@dataclass(frozen=True, slots=True)
class Knob:
    """One number, switch or choice of a `SearchRequest`."""

    name: str
    get: Callable[[SearchRequest], Value]
    put: Callable[[SearchRequest, Value], SearchRequest]
    step: float = 1
    least: float = 0
    most: float = 1_000
    is_whole: bool = True
    choices: tuple[Value, ...] = ()
    note: str = ""
    """What it does, for the line below the knobs."""

    def show(self, request: SearchRequest) -> str:
        """The value as text."""
        value = self.get(request)
        if isinstance(value, bool):
            return "on" if value else "off"
        return f"{value:g}" if isinstance(value, int | float) else value

    def turned(self, request: SearchRequest, direction: int) -> SearchRequest:
        """The request with this knob one step further; it stops at its ends."""
        value = self.get(request)
        if self.choices:
            place = self.choices.index(value) + direction
            return self.put(request, self.choices[place % len(self.choices)])
        moved = round(float(value) + direction * self.step, 6)
        return self._checked(request, min(max(moved, self.least), self.most))

    def typed(self, request: SearchRequest, text: str) -> SearchRequest:
        """The request with a value that was typed.

        Raises:
            UsageError: When it is no value for this knob.
        """
        text = text.strip()
        if self.choices:
            for choice in self.choices:
                if text.casefold() == self.show(self.put(request, choice)).casefold():
                    return self.put(request, choice)
            names = ", ".join(self.show(self.put(request, choice)) for choice in self.choices)
            raise UsageError(f"{self.name} must be one of {names} (got {text!r})")
        try:
            value = float(text)
        except ValueError:
            raise UsageError(f"{self.name} must be a number (got {text!r})") from None
        if not math.isfinite(value):
            raise UsageError(f"{self.name} must be a finite number (got {text})")
        if self.is_whole and value != int(value):
            raise UsageError(f"{self.name} must be a whole number (got {text})")
        if not self.least <= value <= self.most:
            raise UsageError(
                f"{self.name} must be between {self.least:g} and {self.most:g} (got {text})"
            )
        return self._checked(request, value)

    def _checked(self, request: SearchRequest, value: float) -> SearchRequest:
        changed = self.put(request, int(value) if self.is_whole else value)
        if self.name == "top_k" and changed.top_k > changed.depth:
            return replace(changed, depth=changed.top_k)
        if self.name == "depth" and changed.depth < changed.top_k:
            return replace(changed, top_k=changed.depth)
        return changed


def _field(name: str, **limits: float | bool | str | tuple[Value, ...]) -> Knob:
    def put(request: SearchRequest, value: Value) -> SearchRequest:
        return replace(request, **{name: value})  # type: ignore[arg-type]

    return Knob(name, lambda request: getattr(request, name), put, **limits)  # type: ignore[arg-type]


def _bm25(name: str, **limits: float | bool | str | tuple[Value, ...]) -> Knob:
    def put(request: SearchRequest, value: Value) -> SearchRequest:
        return replace(request, bm25=replace(request.bm25, **{name: value}))  # type: ignore[arg-type]

    return Knob(f"bm25 {name}", lambda request: getattr(request.bm25, name), put, **limits)  # type: ignore[arg-type]


KNOBS: tuple[Knob, ...] = (
    _field("top_k", least=1, note="rows shown; changes no ranking"),
    _field("depth", least=1, step=10, note="candidates fetched per retriever"),
    _field("rrf_k", step=10, is_whole=False, note="smaller: first places weigh more"),
    _field("rerank", choices=(True, False), note="read the best rows with the cross-encoder"),
    _field("rerank_depth", least=1, step=5, note="rows of the hybrid list that are read"),
    _bm25("variant", choices=("lucene", "okapi"), note="okapi: rank_bm25's formula"),
    _bm25("k1", step=0.1, most=100, is_whole=False, note="0: repeats of a word count nothing"),
    _bm25("b", step=0.05, most=1, is_whole=False, note="0: length counts nothing; 1: fully"),
)


class KnobTable(VirtualList):
    """One row a knob; left and right turn it."""

    BINDINGS = bindings("knobs")
    BINDING_GROUP_TITLE = "Knobs"

    class Turned(Message):
        """A knob has a new value."""

        def __init__(self, request: SearchRequest) -> None:
            super().__init__()
            self.request = request

    class EditWanted(Message):
        """The user wants to type a value."""

        def __init__(self, knob: Knob) -> None:
            super().__init__()
            self.knob = knob

    class ResetWanted(Message):
        """The user wants the values of the settings back."""

    def __init__(self) -> None:
        super().__init__(id="knob-table")
        self.request = SearchRequest("")
        self.n_rows = len(KNOBS)
        self.set_reactive(VirtualList.cursor, 0)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Name, value, and arrows that say it can be turned."""
        value = f"‹ {KNOBS[row].show(self.request)} ›"
        name_width = max(0, min(14, width - len(value) - 1))
        yield fmt.fit(KNOBS[row].name, name_width) + " ", ""
        yield fmt.clip(value, max(0, width - name_width - 1)), "virtual-list--strong"

    def action_step(self, direction: int) -> None:
        """Turn the knob under the cursor."""
        changed = KNOBS[self.cursor].turned(self.request, direction)
        if changed != self.request:
            self.post_message(self.Turned(changed))

    def action_edit(self) -> None:
        """Type a value for the knob under the cursor."""
        self.post_message(self.EditWanted(KNOBS[self.cursor]))

    def action_reset(self) -> None:
        """Ask for the values of the settings."""
        self.post_message(self.ResetWanted())


class KnobsPanel(Vertical):
    """The knobs, and a line to type a value in."""

    DEFAULT_CSS = """
    KnobsPanel {
        width: 30; min-width: 12; border: round $foreground 40%;
        &:focus-within { border: heavy $accent; }
        & > KnobTable { height: 1fr; min-height: 1; scrollbar-size-vertical: 1; }
        & > Input { width: 1fr; min-width: 4; }
    }
    """

    class Changed(Message):
        """The search should run with these knobs."""

        def __init__(self, request: SearchRequest) -> None:
            super().__init__()
            self.request = request

    def __init__(self) -> None:
        super().__init__(id="knobs")
        self.table = KnobTable()
        self._defaults = SearchRequest("")
        self.border_title = "Knobs"

    def compose(self) -> ComposeResult:
        """The table; the input comes when it is wanted."""
        yield self.table

    def set_request(self, request: SearchRequest, *, are_defaults: bool = False) -> None:
        """Show these values; as defaults they are also what reset goes back to."""
        if are_defaults:
            self._defaults = request
        self.table.request = request
        self.table.refresh()

    def on_virtual_list_cursor_moved(self, event: VirtualList.CursorMoved) -> None:
        """Say what the knob does."""
        event.stop()
        self.border_subtitle = KNOBS[event.row].note

    def on_virtual_list_row_chosen(self, event: VirtualList.RowChosen) -> None:
        """Enter or a double click types a value."""
        event.stop()
        self.table.action_edit()

    def on_knob_table_turned(self, event: KnobTable.Turned) -> None:
        """Run the search with it."""
        event.stop()
        self._change(event.request)

    async def on_knob_table_edit_wanted(self, event: KnobTable.EditWanted) -> None:
        """Open the input."""
        event.stop()
        await self.query(Input).remove()
        value = Input(
            event.knob.show(self.table.request),
            id="knob-value",
            compact=True,
            select_on_focus=True,
            tooltip=event.knob.note,
        )
        self.border_title = f"{event.knob.name}: type, then enter"
        await self.mount(value)
        value.focus()

    def on_knob_table_reset_wanted(self, event: KnobTable.ResetWanted) -> None:
        """Back to the settings."""
        event.stop()
        self._change(self._defaults)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the typed value, or say what is wrong with it."""
        event.stop()
        try:
            changed = KNOBS[self.table.cursor].typed(self.table.request, event.value)
        except UsageError as error:
            self.notify(fmt.display(str(error)), severity="error", markup=False)
            return
        self.stop_editing()
        self._change(changed)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Nobody above needs to know of single letters."""
        event.stop()

    def stop_editing(self) -> bool:
        """Close the input; returns whether it was open."""
        inputs = self.query(Input)
        if not inputs:
            return False
        inputs.remove()
        self.table.focus()
        return True

    def _change(self, request: SearchRequest) -> None:
        self.set_request(request)
        self.post_message(self.Changed(request))
