"""The columns of the Search screen: which there are, in which order, called what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rag_tui.engine.types import DEFAULT_COLUMNS, MAX_COLUMNS, Column, Method, SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui.knob_values import column_knobs, copy_name, free_name, telling_name
from rag_tui.tui.screens.grade import action_line
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

Apply = Callable[[tuple[Column, ...], str], None]
"""Takes the columns and the name of the active one."""

METHOD_KEYS: dict[Method, str] = {"vector": "v", "bm25": "b", "hybrid": "h", "reranked": "r"}
MAX_NAME = 60


class AddColumn(ModalScreen[str]):
    """Gives back the method of a new column; escape gives back nothing."""

    DEFAULT_CSS = """
    AddColumn {
        align: left bottom; background: transparent;
        & > Static {
            width: 100%; min-width: 4; height: auto;
            background: $panel; color: $text; padding: 0 1;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,a", "close", "Close", id="add_column.close"),
        *(
            Binding(key, f"choose('{method}')", f"Add a {method} column", id=f"add_column.{method}")
            for method, key in METHOD_KEYS.items()
        ),
    ]
    HELP = "Which list the new column shows."

    def compose(self) -> ComposeResult:
        """The line."""
        entries = [(key, name, f"screen.choose('{name}')") for name, key in METHOD_KEYS.items()]
        line = action_line([*entries, ("esc", "none", "screen.close")])
        yield Static(Content.assemble(("A new column of: ", "bold"), line), markup=False)

    def on_click(self, event: events.Click) -> None:
        """A click beside the line closes it."""
        if event.widget is self:
            self.action_close()

    def action_choose(self, method: str) -> None:
        """Take a method."""
        if self.is_current:
            self.dismiss(method)

    def action_close(self) -> None:
        """Add nothing."""
        if self.is_current:
            self.dismiss()


class ColumnList(VirtualList):
    """Place, name, method, and the knobs in which a column differs."""

    BINDING_GROUP_TITLE = "Columns"

    def __init__(self) -> None:
        super().__init__(id="column-list")
        self.columns: tuple[Column, ...] = ()

    def show(self, columns: tuple[Column, ...], cursor: int) -> None:
        """Show other columns."""
        self.columns = columns
        self.set_n_rows(len(columns), cursor=cursor)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One column."""
        column = self.columns[row]
        yield f"{row + 1} ", "virtual-list--dim"
        left = max(0, width - 2)
        name_room = min(30, max(8, left // 2))
        yield fmt.fit(fmt.one_line(column.name), min(name_room, left)) + " ", "virtual-list--strong"
        left = max(0, left - name_room - 1)
        yield fmt.fit(column.method, min(9, left)), ""
        knobs = column_knobs(column)
        told = f" own: {fmt.one_line(knobs)}" if knobs else " knobs as all"
        yield fmt.clip(told, max(0, left - 9)), "" if knobs else "virtual-list--dim"


class ColumnsScreen(ModalScreen[str]):
    """Every change is applied at once; enter gives the name of a column to go to back."""

    DEFAULT_CSS = """
    ColumnsScreen {
        align: center middle;
        & > Vertical {
            width: 90%; max-width: 110; height: auto; max-height: 90%; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & #column-list { height: 6; }
        & Static { height: auto; min-width: 4; }
        & #column-keys { color: $text-muted; border-top: solid $panel; }
        & #column-note { color: $text-warning; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add", tooltip="A new column", id="columns.add"),
        Binding("d", "duplicate", "Duplicate", tooltip="For A and B", id="columns.duplicate"),
        Binding("r", "rename", "Rename", id="columns.rename"),
        Binding("x,delete", "remove", "Remove", id="columns.remove"),
        Binding("left,h", "move(-1)", "Move left", id="columns.left"),
        Binding("right,l", "move(1)", "Move right", id="columns.right"),
        Binding("f", "first_four", "The four methods again", id="columns.first_four"),
        Binding("escape,q,m", "close", "Close", id="columns.close"),
    ]
    HELP = """\
A column is one of the four lists with knobs of its own. To compare two settings, duplicate a
column, close this, and turn a knob for that column alone: among the knobs (t), s switches from
the knobs of all columns to those of the active one. Its name follows the difference."""

    def __init__(self, request: SearchRequest, active: str, apply: Apply) -> None:
        """Make the screen.

        Args:
            request: Whose columns they are.
            active: Where the cursor stands first.
            apply: Called with every change.
        """
        super().__init__()
        self.columns = request.columns
        self._apply = apply
        names = [column.name for column in self.columns]
        self._cursor = names.index(active) if active in names else 0
        self.list = ColumnList()
        self._note = Static("", id="column-note", markup=False)

    def compose(self) -> ComposeResult:
        """The list, what the keys do, and room for a name and a reason."""
        with Vertical() as frame:
            frame.border_title = "Columns"
            frame.border_subtitle = "enter: go to it   esc: close"
            yield self.list
            yield Static(self._keys(), id="column-keys", markup=False)
            yield self._note

    def on_mount(self) -> None:
        """Show the columns."""
        self.list.show(self.columns, self._cursor)
        self._say("")

    @on(VirtualList.CursorMoved)
    def _take_cursor(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        self._cursor = event.row

    @on(VirtualList.RowChosen)
    def _take_chosen(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        if self.is_current:
            self.dismiss(self.columns[event.row].name)

    @property
    def column(self) -> Column:
        """The column under the cursor."""
        return self.columns[self._cursor]

    def action_add(self) -> None:
        """Ask for the method of a new column."""
        if self._has_room():
            self.app.push_screen(AddColumn(), self._add)

    def _add(self, method: str | None) -> None:
        known = next((one for one in METHOD_KEYS if one == method), None)
        if known is not None:
            name = free_name(known, [column.name for column in self.columns])
            self._insert(Column(name, known))

    def action_duplicate(self) -> None:
        """A second column like this one, to be turned by itself."""
        if not self._has_room():
            return
        column = self.column
        taken = [one.name for one in self.columns]
        self._insert(replace(column, name=copy_name(column.name[:MAX_NAME], taken)))
        self._say("Turn its knobs alone: close this, t, then s.")

    def action_rename(self) -> None:
        """Type a name."""
        if self.query(Input):
            return
        value = Input(
            fmt.one_line(self.column.name),
            placeholder="empty: named after its knobs",
            id="column-name",
            compact=True,
            select_on_focus=True,
            max_length=MAX_NAME,
        )
        self.query_one(Vertical).mount(value, after=self.list)
        value.focus()

    def action_remove(self) -> None:
        """Take the column away."""
        if len(self.columns) == 1:
            self._say("The last column stays: a search has 1 to 6 columns.")
            return
        rest = [column for column in self.columns if column != self.column]
        self._change(rest, min(self._cursor, len(rest) - 1))

    def action_move(self, step: int) -> None:
        """Move the column to the left or right."""
        there = self._cursor + step
        if not 0 <= there < len(self.columns):
            return
        moved = list(self.columns)
        moved.insert(there, moved.pop(self._cursor))
        self._change(moved, there)

    def action_first_four(self) -> None:
        """One column for each method again, without knobs of their own."""
        self._change(DEFAULT_COLUMNS, 0)

    def action_close(self) -> None:
        """Close; what was changed stays."""
        if self._stop_typing():
            return
        if self.is_current:
            self.dismiss()

    @on(Input.Submitted)
    def _take_name(self, event: Input.Submitted) -> None:
        event.stop()
        column = self.column
        others = [one.name for one in self.columns if one is not column]
        name = event.value.strip()
        if not name:
            name = free_name(telling_name(column.method, dict(column.knobs)), others)
        if name in others:
            self._say(f"Another column is called {name}: type another name.")
            return
        self._stop_typing()
        columns = [replace(one, name=name) if one is column else one for one in self.columns]
        self._change(columns, self._cursor)

    def _stop_typing(self) -> bool:
        inputs = self.query(Input)
        if not inputs:
            return False
        inputs.remove()
        self.list.focus()
        return True

    def _has_room(self) -> bool:
        if len(self.columns) < MAX_COLUMNS:
            return True
        self._say(f"There are {MAX_COLUMNS} columns, the most there can be: remove one first (x).")
        return False

    def _insert(self, column: Column) -> None:
        there = self._cursor + 1
        self._change([*self.columns[:there], column, *self.columns[there:]], there)

    def _change(self, columns: Sequence[Column], cursor: int) -> None:
        self._say("")
        if tuple(columns) == self.columns:
            return
        self.columns = tuple(columns)
        self._cursor = cursor
        self.list.show(self.columns, cursor)
        self._apply(self.columns, self.column.name)

    def _say(self, text: str) -> None:
        self._note.update(fmt.content(text))
        self._note.display = bool(text)

    def _keys(self) -> Content:
        return action_line(
            [
                ("a", "add", "screen.add"),
                ("d", "duplicate", "screen.duplicate"),
                ("r", "rename", "screen.rename"),
                ("x", "remove", "screen.remove"),
                ("←", "left", "screen.move(-1)"),
                ("→", "right", "screen.move(1)"),
                ("f", "the four methods", "screen.first_four"),
            ]
        )
