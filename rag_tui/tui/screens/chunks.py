"""The chunk browser: what does the index really hold?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Protocol, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Footer, Input, Sparkline, Static
from textual.worker import Worker, WorkerState

from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.types import Chunk
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_selection import (
    SORTS,
    Selection,
    describe,
    facts,
    length_histogram,
    select,
)
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.screens.chunk_judging import NO_INDEX, JudgingScreen
from rag_tui.tui.screens.files import FilesScreen
from rag_tui.tui.widgets.chunk_list import ChunkList, ChunkRow
from rag_tui.tui.widgets.document_map import DocumentMap
from rag_tui.tui.widgets.document_tree import DocumentTree, TreeTarget

Pane = Literal["tree", "list", "view"]
PANES: tuple[Pane, ...] = ("tree", "list", "view")
_FILTER_JOB = "the filter"


class HasIndex(Protocol):
    """What this screen needs of the app: a reactive ``index``."""

    index: Index | None


def _warning_commands() -> type[Provider]:
    from rag_tui.tui.warning_commands import WarningCommands

    return WarningCommands


class ChunksScreen(JudgingScreen):
    """Tree of documents, list of chunks, text of one chunk."""

    TITLE = "Chunks"
    CSS_PATH = "chunks.tcss"
    HELP = (
        "Chunks answers what the index really holds: every chunk of every document, how long each "
        "is, what the model cannot read of it, what is wrong with it, and which files were left "
        "out and why. Choosing a folder, document or heading in the tree narrows the list to it. "
        "The filter takes plain text, a /pattern/, path:x, heading:x, warning:x and, at the end, "
        "where: and an expression over metadata; all that is given must hold."
    )
    AUTO_FOCUS = "#list"
    # Textual declares these as instance variables, so mypy refuses ClassVar here.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (90, "-medium"), (130, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (12, "-tall")]  # noqa: RUF012

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "slash",
            "filter",
            "Filter",
            key_display="/",
            tooltip="Text, /pattern/, path: heading: warning: where:",
            id="chunks.filter",
        ),
        Binding("s", "sort", "Sort", id="chunks.sort"),
        Binding(
            "d",
            "document",
            "Document",
            tooltip="The chunk, or its document with all borders",
            id="chunks.document",
        ),
        Binding("v", "warnings", "Warnings", tooltip="Show only one kind", id="chunks.warnings"),
        Binding("w", "sample", "Read ten", tooltip="Ten chunks at random", id="chunks.sample"),
        Binding(
            "x", "recut", "Re-cut", tooltip="Cut the document in another way", id="chunks.recut"
        ),
        Binding(
            "H",
            "health",
            "Health",
            tooltip="Hubs, orphans, copies, from the vectors",
            show=False,
            id="chunks.health",
        ),
        Binding(
            "i",
            "facts",
            "Facts",
            tooltip="Do you need retrieval at all?",
            show=False,
            id="chunks.facts",
        ),
        Binding("f", "files", "Files", tooltip="What became of each", id="chunks.files"),
        Binding("y", "copy", "Copy", tooltip="Copy the chunk as stored", id="chunks.copy"),
        Binding(
            "o",
            "open",
            "Editor",
            tooltip="Open the source at its line",
            id="chunks.open",
            show=False,
        ),
        Binding("tab", "pane(1)", "Next pane", show=False, id="chunks.next_pane"),
        Binding("shift+tab", "pane(-1)", "Previous pane", show=False, id="chunks.previous_pane"),
        Binding("escape", "back", "Back", show=False, id="chunks.back"),
    ]
    COMMANDS: ClassVar = {_warning_commands}
    BINDING_GROUP_TITLE = "Chunks"

    pane: var[Pane] = var[Pane]("list")
    selection: var[Selection] = var(Selection(), init=False)

    @dataclass
    class Selected(Message):
        """The chunks of a selection were found."""

        index: Index
        selection: Selection
        positions: Sequence[int]
        keep: int | None

    def __init__(self) -> None:
        super().__init__()
        self._wanted: str | None = None
        self._wanted_where = ""
        self._n_draws = 0

    def compose(self) -> ComposeResult:
        """Facts and histogram, filter, three panes."""
        with Horizontal(id="summary"):
            yield Static(id="facts", markup=False)
            yield Sparkline(id="lengths", summary_function=max)
        yield Static(id="warnings", markup=False)
        yield Input(
            placeholder="text or /pattern/  path:…  heading:…  warning:…  where: …", id="filter"
        )
        with Horizontal(id="panes"):
            yield DocumentTree(id="tree")
            yield ChunkList(id="list")
            yield from self.compose_reading()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Name the panes and follow the app's index."""
        titles = {"tree": "Documents", "list": "Chunks", "view": "Text"}
        for pane in PANES:
            self.query_one(f"#{pane}").border_title = titles[pane]
        self.query_one("#document").border_title = "Document"
        self.query_one("#lengths").tooltip = "Chunks by length in tokens"
        self.watch(self.app, "index", self._show_index)

    def watch_pane(self, old: Pane, new: Pane) -> None:
        """Let the style sheet know which pane is in use."""
        self.remove_class(f"-pane-{old}")
        self.add_class(f"-pane-{new}")

    def watch_selection(self) -> None:
        """Find the chunks, keeping the one under the cursor if it is among them."""
        self._find(keep=self.query_one(ChunkList).position)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave escape to the app when there is nothing here to go back from."""
        if action == "back":
            chosen = self.selection
            narrowed = chosen.scope is not None or chosen.warning or chosen.sample
            return self.has_class("-filtering") or self.pane != "list" or bool(narrowed)
        return super().check_action(action, parameters)

    @on(events.DescendantFocus)
    def _follow_focus(self, event: events.DescendantFocus) -> None:
        pane = next((pane for pane in PANES if event.widget is self._pane_widget(pane)), None)
        if pane is not None:
            self.pane = pane

    @on(ChunkList.Highlighted)
    def _show_text(self, event: ChunkList.Highlighted) -> None:
        if event.position != self.query_one(ChunkList).position:
            return
        self.read(event.position)

    @on(ChunkList.Selected)
    def _enter_text(self) -> None:
        self._go_to("view")

    @on(DocumentTree.Chosen)
    def _choose_scope(self, event: DocumentTree.Chosen) -> None:
        is_all = event.target == TreeTarget("folder")
        self.selection = replace(self.selection, scope=None if is_all else event.target)
        self._go_to("list")

    @on(DocumentMap.Chosen)
    def _choose_on_map(self, event: DocumentMap.Chosen) -> None:
        drawn = self._drawn
        if drawn is None:
            return
        position = drawn.first_number - 1 + event.piece
        if not self.query_one(ChunkList).move_to(position):
            self.read(position)

    @on(Input.Changed, "#filter")
    def _choose_needle(self, event: Input.Changed) -> None:
        self.selection = replace(self.selection, needle=event.value)

    @on(Input.Submitted, "#filter")
    def _leave_filter(self) -> None:
        self._go_to("list")

    @on(Selected)
    def _show_selected(self, event: Selected) -> None:
        # A late answer: the index or the wish has changed since.
        if event.index is not self._index or event.selection != self.selection:
            return
        chunk_list = self.query_one(ChunkList)
        n_all = len(event.index.chunks)
        note = "No chunk matches." if n_all else "The index holds no chunks."
        chunk_list.show(event.positions, self._row, position=event.keep, empty_note=note)
        chunk_list.border_title = fmt.content(
            f"Chunks {len(event.positions):,}"
            + (f" of {n_all:,}" if len(event.positions) != n_all else "")
        )
        chunk_list.border_subtitle = fmt.content(describe(event.selection))
        self._tell_about_filter("")
        if not event.positions:
            self.close_reading(note)

    @on(Worker.StateChanged)
    def _show_failure(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.node is self:
            if event.worker.name == _FILTER_JOB:
                self._tell_about_filter("")
            error = event.worker.error
            text = f"{event.worker.name} failed: {error}"
            if isinstance(error, RagTuiError):
                text = f"{error.message}\n{error.hint}".strip()
            self.notify(fmt.display(text, newlines=True), severity="error", markup=False)

    def action_filter(self) -> None:
        """Open the filter line."""
        self.add_class("-filtering")
        box = self.query_one("#filter", Input)
        self.call_after_refresh(box.focus)

    def action_sort(self) -> None:
        """Order the list by the next of: corpus order, longest first, shortest first."""
        at = SORTS.index(self.selection.sort)
        self.selection = replace(self.selection, sort=SORTS[(at + 1) % len(SORTS)])

    def action_files(self) -> None:
        """Show what became of every file."""
        if self._index is None:
            self.notify(NO_INDEX, severity="warning", markup=False)
            return
        self.app.push_screen(FilesScreen(self._index.reports), self._show_file)

    def action_copy(self) -> None:
        """Copy the exact stored text of the chunk."""
        self.copy_chunk()

    def action_open(self) -> None:
        """Open the chunk's source in the user's editor, at its first line."""
        self.edit_source()

    def action_document(self) -> None:
        """Show the whole document with all borders, or the chunk alone."""
        self.shows_document = not self.shows_document
        if self.pane == "view" or self.has_class("-narrow"):
            self._go_to("view")

    def action_sample(self) -> None:
        """Put ten chunks at random into the list; the next time ten others."""
        self._n_draws += 1
        self.selection = replace(self.selection, sample=self._n_draws)

    def action_pane(self, step: int) -> None:
        """Go to the next or previous pane."""
        self._go_to(PANES[(PANES.index(self.pane) + step) % len(PANES)])

    def action_back(self) -> None:
        """Leave the filter, else the pane, else the sample, the warning, the scope."""
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            self.query_one("#filter", Input).value = ""
        elif self.pane == "list":
            chosen = self.selection
            if chosen.sample:
                self.selection = replace(chosen, sample=0)
            elif chosen.warning:
                self.selection = replace(chosen, warning="")
            else:
                self.selection = replace(chosen, scope=None)
        self._go_to("list")

    @property
    def chosen_warning(self) -> str:
        """The kind of warning that narrows the list, if any."""
        return self.selection.warning

    def show_warning(self, kind: str | None) -> None:
        """Show only chunks with a kind of warning; all for an empty kind, no change for None."""
        if kind is not None:
            self.selection = replace(self.selection, warning=kind)

    def show_chunk(
        self, chunk_id: str, *, query_terms: frozenset[str] = frozenset(), where: str = ""
    ) -> None:
        """Put the cursor on a chunk, from another screen; leaves filter and scope if they hide it.

        Args:
            chunk_id: The chunk; shown later if the index is not there yet, ignored if unknown.
            query_terms: Analysed terms of a question, to mark in the text from now on.
            where: A filter that the search had: the list shows no more than the search could.
        """
        self._query_terms = query_terms
        self._wanted = chunk_id
        self._wanted_where = where
        if self.is_mounted:
            self._show_wanted()

    def _show_wanted(self) -> None:
        if self._index is None or self._wanted is None:
            return
        position = self._index.position_of.get(self._wanted)
        self._wanted = None
        if position is None:
            return
        where = f"where: {self._wanted_where}" if self._wanted_where else ""
        self.set_class(bool(where), "-filtering")
        with self.prevent(Input.Changed):
            self.query_one("#filter", Input).value = where
        chosen = Selection(sort=self.selection.sort, needle=where)
        self.set_reactive(ChunksScreen.selection, chosen)
        self._find(keep=position)
        self._go_to("list")

    def _show_index(self, index: Index | None) -> None:
        before = self.chunk
        self.new_index(index)
        self.query_one("#warnings", Static).update("")
        self.query_one(ChunkList).has_symbols = False
        if index is None:
            self.query_one("#facts", Static).update(NO_INDEX)
            self.query_one(ChunkList).show((), self._row, empty_note="No index yet.")
            self.close_reading(NO_INDEX)
            return
        self.query_one("#facts", Static).update(fmt.content(facts(index)))
        self.query_one(Sparkline).data = length_histogram(index)
        self.query_one(DocumentTree).show(index.folder.name, index.documents, index.chunks)
        self._find(keep=_same_place(before, index) if before is not None else None)
        self._show_wanted()
        self.look_for_warnings(index)

    def notes_changed(self) -> None:
        """Mark the rows, and find the chunks again where warnings decide which they are."""
        chunk_list = self.query_one(ChunkList)
        chunk_list.has_symbols = bool(self._notes.by_position)
        chunk_list.refresh()
        if self.selection.needs_notes:
            self._find(keep=chunk_list.position)
        elif self._position is not None:
            self.read(self._position)

    def _find(self, *, keep: int | None) -> None:
        index, selection = self._index, self.selection
        if index is None:
            return
        if selection.is_quick:
            # What is still being filtered is not wanted any more, nor what may be wrong with it.
            self.workers.cancel_group(self, _FILTER_JOB)
            positions = select(index, selection, notes=self._notes)
            self._show_selected(self.Selected(index, selection, positions, keep))
        else:
            self._tell_about_filter("filtering…", is_problem=False)
            start(self, partial(self._find_in_thread, index, selection, keep), _FILTER_JOB)

    async def _find_in_thread(self, index: Index, selection: Selection, keep: int | None) -> None:
        notes = self._notes

        def work(cancel: CancelToken) -> Sequence[int]:
            found = select(index, selection, notes=notes, is_cancelled=lambda: cancel.is_cancelled)
            cancel.check()
            return found

        try:
            positions = await in_thread(work, "filter")
        except Cancelled:
            return
        except RagTuiError as error:
            # While a filter is being typed most of them are not finished: no toast, no change.
            self._tell_about_filter(f"{error.message} {error.hint}")
            return
        self._show_selected(self.Selected(index, selection, positions, keep))

    def _tell_about_filter(self, status: str, *, is_problem: bool = True) -> None:
        box = self.query_one("#filter", Input)
        box.set_class(bool(status) and is_problem, "-bad")
        box.border_subtitle = fmt.content(status)

    def _row(self, position: int) -> ChunkRow:
        index = cast(Index, self._index)
        return ChunkRow(
            index.chunks[position],
            n_tokens=int(index.n_tokens[position]),
            limit=index.manifest.max_tokens or None,
            symbols=self._notes.symbols(position),
            numbers=self._notes.numbers(position),
        )

    def _show_file(self, path: str | None) -> None:
        if path is not None and self._index is not None:
            if path in self._index.document_of:
                self.selection = replace(self.selection, scope=TreeTarget("document", path))
            else:
                self.notify("That file has no chunks.", severity="warning", markup=False)

    def _go_to(self, pane: Pane) -> None:
        self.pane = pane
        # A pane that was hidden can take the focus only once the style sheet has shown it.
        self.call_after_refresh(self._pane_widget(pane).focus)

    def _pane_widget(self, pane: Pane) -> Widget:
        is_map = pane == "view" and self.shows_document
        return self.query_one("#map" if is_map else f"#{pane}")


def _same_place(before: Chunk, index: Index) -> int | None:
    """The chunk itself, else the first of its document that reaches behind where it began."""
    position = index.position_of.get(before.chunk_id)
    if position is not None:
        return position
    return next(
        (
            i
            for i, chunk in enumerate(index.chunks)
            if chunk.doc_id == before.doc_id and chunk.end > before.start
        ),
        None,
    )
