"""Where is my passage? The dialog: what became of it in each column, and what brings it in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from rag_tui.engine.knobs import column_request
from rag_tui.tui import format as fmt
from rag_tui.tui.passage_text import (
    RemedyRow,
    about,
    above_lines,
    drawn,
    passage_name,
    pipeline,
    remedies_told,
    remedy_rows,
    verdict_line,
)
from rag_tui.tui.screens.passage_work import FollowingScreen, PassageChoice
from rag_tui.tui.widgets.passage_rows import (
    ColumnRows,
    PassageInput,
    RemedyRows,
    column_titles,
)
from rag_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.passage_trace import ColumnTrace, PassageTrace
    from rag_tui.engine.types import Answer, SearchRequest, Source
    from rag_tui.tui.backend import Backend, Session

HINT = "A sentence, path:line, path#heading, a path or a chunk's id; enter looks for it"
KEYS = "/: another passage   .: pin   esc: close"
ENTER = {
    "passage-input": "enter: look for it",
    "passage-columns": "enter: to the knobs",
    "passage-remedies": "enter: apply this knob",
}
"""What enter does, by the part that has the focus."""


class PassageScreen(FollowingScreen):
    """Follows one passage through every column of a search, in a thread that escape stops."""

    CSS_PATH = Path(__file__).with_name("passage.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Stop or close", id="passage.close"),
        Binding("full_stop", "pin", "Pin this chunk", id="passage.pin"),
        Binding("slash", "focus_input", "Another passage", id="passage.input"),
    ]
    HELP = """\
One passage and one question: its rank in every list over the whole corpus, the step that lost it,
and the knobs that bring it in. Each knob was tried before it is told.

✓ ✗ –     passed, lost here, not reached or not known
⇒         the passage's rank with that change; enter applies it and searches again"""
    AUTO_FOCUS = ""

    def __init__(
        self,
        backend: Backend,
        session: Session,
        index: Index,
        request: SearchRequest,
        *,
        first: str,
        sources: tuple[Source, ...] | None,
        answer: Answer | None,
    ) -> None:
        """Make the dialog.

        Args:
            backend: The engine's functions.
            session: Whose models make the lists.
            index: What was searched.
            request: The question, the columns and the knobs.
            first: Id of the chunk that is followed first; empty: none until something is typed.
            sources: Those of the prompt on show; None when there is none.
            answer: What was answered from them.
        """
        super().__init__(backend, session, index, request, sources=sources, answer=answer)
        self._first = first
        self._confirmed: RemedyRow | None = None
        self._input = PassageInput(placeholder=HINT, id="passage-input", compact=True)
        self._about = Static(id="passage-about", markup=False)
        self._verdict = Static(id="passage-verdict", markup=False)
        self._detail = Static(id="passage-detail", markup=False)
        self._told = Static(id="passage-told", markup=False)
        self._above = Static(id="passage-above", markup=False)
        self._head = Static(id="passage-head", markup=False)
        self._columns = ColumnRows()
        self._remedies = RemedyRows()

    def compose(self) -> ComposeResult:
        """One frame that scrolls as a whole where the terminal is low."""
        with VerticalScroll(id="passage-frame", can_focus=False) as frame:
            frame.border_title = "Where is my passage?"
            frame.border_subtitle = KEYS
            yield self._input
            yield self._about
            yield self._verdict
            yield self._head
            yield self._columns
            yield self._detail
            yield self._told
            yield self._remedies
            yield self._above

    def on_resize(self) -> None:
        """The titles stand over their columns."""
        self._head.update(Content.styled(column_titles(self._columns.size.width), "dim"))

    def on_mount(self) -> None:
        """Follow the chunk that came with the key, or ask for a passage."""
        self._show_parts(is_traced=False)
        if self._first:
            self._look_for(self._first)
        else:
            self._about.update(fmt.content("No chunk is selected: say which passage you mean."))
            self._input.focus()

    def on_descendant_focus(self) -> None:
        """Enter does another thing in each part."""
        self._tell_keys()

    def _tell_keys(self) -> None:
        """The keys of the part that has the focus, on the frame."""
        part = self.focused.id if self.focused is not None else None
        enter = ENTER.get(part or "", "")
        if part == "passage-columns" and not self._remedies.display:
            enter = ""
        told = "   ".join(one for one in (enter, KEYS) if one)
        self.query_one("#passage-frame").border_subtitle = told

    # -- the work ----------------------------------------------------------------------------

    @on(Input.Submitted)
    def _take_input(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self._look_for(event.value)

    @on(Input.Changed)
    def _keep_to_itself(self, event: Input.Changed) -> None:
        event.stop()

    def _look_for(self, wanted: str) -> None:
        self._begin(wanted)
        self._confirmed = None
        self._show_parts(is_traced=False)
        self._about.update(passage_name(wanted, self._index))
        self._verdict.update("")
        self._say("looking for it, then making every list over the whole corpus… (esc stops it)")

    def _refuse(self, text: str) -> None:
        self._told.update(fmt.content(fmt.one_line(text), "$text-error"))
        self._input.focus()

    # -- what is shown -----------------------------------------------------------------------

    def _show(self, trace: PassageTrace, *, is_final: bool) -> None:
        is_first = self.trace is None
        self.trace = trace
        self._show_parts(is_traced=True)
        self._about.update(about(trace, self._index))
        self._verdict.update(verdict_line(trace.verdict))
        self._columns.show(trace.columns)
        self.call_after_refresh(self.on_resize)
        self._show_detail()
        if is_final:
            rows = remedy_rows(trace, self._request)
            self._remedies.show(rows, "")
            self._remedies.display = bool(rows)
            self._say(remedies_told(trace, rows))
        else:
            self._remedies.display = False
        if is_first and self._columns.display:
            self._columns.focus(scroll_visible=False)
        self._tell_keys()

    def _show_detail(self) -> None:
        trace, column = self.trace, self._column
        if trace is None:
            return
        own = self._request
        lines: list[Content] = []
        if column is not None:
            of = next(one for one in own.columns if one.name == column.column)
            own = column_request(own, of)
            name = fmt.content(f"{fmt.one_line(column.column)}  ", "bold")
            lines.append(name + verdict_line(column.verdict))
        lines.append(drawn(pipeline(trace, column, own, has_prompt=self._sources is not None)))
        self._detail.update(Content("\n").join(lines))
        above = list(above_lines(column, self._index)) if column is not None else []
        self._above.update(Content("\n").join(above))
        self._above.display = bool(above)

    @property
    def _column(self) -> ColumnTrace | None:
        place = self._columns.cursor
        return self._columns.columns[place] if 0 <= place < len(self._columns.columns) else None

    def _show_parts(self, *, is_traced: bool) -> None:
        has_columns = self.trace is not None and bool(self.trace.columns)
        self._head.display = self._columns.display = is_traced and has_columns
        self._verdict.display = self._detail.display = is_traced
        self._remedies.display = self._above.display = False

    def _say(self, text: str) -> None:
        self._told.update(fmt.content(fmt.one_line(text), "dim"))

    # -- what the user does ------------------------------------------------------------------

    @on(VirtualList.CursorMoved)
    def _take_cursor(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        if event.list is self._columns:
            self._show_detail()
        else:
            self._confirmed = None

    @on(VirtualList.RowChosen)
    def _take_row(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        if event.list is self._columns:
            if self._remedies.display:
                self._remedies.focus()
            return
        row = self._remedies.remedies[event.row]
        if not row.needs_index:
            self._end(PassageChoice(row.column, row.knobs, pin=self._chunk_of(row.column)))
        elif self._confirmed is row:
            self._end(PassageChoice(reindex=row.knobs))
        else:
            self._confirmed = row
            self._say(f"Enter again: index the folder with {row.change} until you leave.")

    def action_pin(self) -> None:
        """Keep the chunk of the column under the cursor marked in all lists."""
        column = self._column
        if column is None or not column.chunk_id:
            self._say("There is no chunk to pin yet.")
        else:
            self._end(PassageChoice(pin=column.chunk_id))

    def action_focus_input(self) -> None:
        """Name another passage."""
        self._input.focus()

    def action_close(self) -> None:
        """Stop what is running, else close."""
        if self._stop():
            if self.trace is None:
                self._say("Stopped. / names a passage, esc closes.")
                self._input.focus()
            else:
                self._say("Stopped before all knobs were tried. esc closes.")
            return
        if self.is_current:
            self.dismiss()

    def _chunk_of(self, name: str) -> str:
        columns = self.trace.columns if self.trace is not None else ()
        return next((one.chunk_id for one in columns if one.column == name), "")

    def _end(self, choice: PassageChoice) -> None:
        if self.is_current:  # a second key may come while the screen is closing
            self.dismiss(choice)


def passage_keys() -> list[BindingType]:
    """The keys of this dialog and of a chunk beside a question, for settings and documentation."""
    from rag_tui.tui.widgets.asked_chunk_view import AskedChunkView

    return [*PassageScreen.BINDINGS, *AskedChunkView.BINDINGS]
