"""The chunk browser: what does the index really hold?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, cast

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Input, Sparkline, Static
from textual.worker import Worker, WorkerState, get_current_worker

from rag_tui.engine.index import Index
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_selection import SORTS, Selection, facts, length_histogram, select
from rag_tui.tui.editor import open_in_editor
from rag_tui.tui.screens.files import FilesScreen
from rag_tui.tui.widgets.chunk_list import ChunkList, ChunkRow
from rag_tui.tui.widgets.chunk_view import ChunkView
from rag_tui.tui.widgets.document_tree import DocumentTree, TreeTarget

Pane = Literal["tree", "list", "view"]
PANES: tuple[Pane, ...] = ("tree", "list", "view")

NO_INDEX = "No index yet. The chunks appear here as soon as the documents are read."


class HasIndex(Protocol):
    """What this screen needs of the app: a reactive ``index``."""

    index: Index | None


class ChunksScreen(Screen[None]):
    """Tree of documents, list of chunks, text of one chunk."""

    TITLE = "Chunks"
    CSS_PATH = "chunks.tcss"
    HELP = (
        "Chunks answers what the index really holds: every chunk of every document, how long each "
        "is, what the model cannot read of it, and which files were left out and why. Choosing a "
        "folder, document or heading in the tree narrows the list to it."
    )
    AUTO_FOCUS = "#list"
    # Textual declares these as instance variables, so mypy refuses ClassVar here.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (90, "-medium"), (130, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (12, "-tall")]  # noqa: RUF012

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", id="chunks.filter"),
        Binding("s", "sort", "Sort", id="chunks.sort"),
        Binding("f", "files", "Files", id="chunks.files"),
        Binding("y", "copy", "Copy", id="chunks.copy"),
        Binding("o", "open", "Editor", id="chunks.open"),
        Binding("tab", "pane(1)", "Next pane", id="chunks.next_pane"),
        Binding("shift+tab", "pane(-1)", "Previous pane", show=False, id="chunks.previous_pane"),
        Binding("escape", "back", "Back", show=False, id="chunks.back"),
    ]
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
        self._index: Index | None = None
        self._wanted: str | None = None
        self._query_terms: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        """Facts and histogram, filter, three panes."""
        with Horizontal(id="summary"):
            yield Static(id="facts", markup=False)
            yield Sparkline(id="lengths", summary_function=max)
        yield Input(placeholder="text, path or heading", id="filter")
        with Horizontal(id="panes"):
            yield DocumentTree(id="tree")
            yield ChunkList(id="list")
            yield ChunkView(id="view")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Name the panes and follow the app's index."""
        titles = {"tree": "Documents", "list": "Chunks", "view": "Text"}
        for pane in PANES:
            self._pane_widget(pane).border_title = titles[pane]
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
            return (
                self.has_class("-filtering")
                or self.pane != "list"
                or self.selection.scope is not None
            )
        return super().check_action(action, parameters)

    @on(events.DescendantFocus)
    def _follow_focus(self, event: events.DescendantFocus) -> None:
        pane = next((pane for pane in PANES if event.widget is self._pane_widget(pane)), None)
        if pane is not None:
            self.pane = pane

    @on(ChunkList.Highlighted)
    def _show_text(self, event: ChunkList.Highlighted) -> None:
        index = self._index
        if index is None or event.position != self.query_one(ChunkList).position:
            return
        row = self._row(event.position)
        self.query_one(ChunkView).show(
            row.chunk,
            index.document_of.get(row.chunk.doc_id),
            query_terms=self._query_terms,
            n_tokens=row.n_tokens,
            limit=row.limit,
        )

    @on(ChunkList.Selected)
    def _enter_text(self) -> None:
        self._go_to("view")

    @on(DocumentTree.Chosen)
    def _choose_scope(self, event: DocumentTree.Chosen) -> None:
        is_all = event.target == TreeTarget("folder")
        self.selection = replace(self.selection, scope=None if is_all else event.target)
        self._go_to("list")

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
        chunk_list.border_subtitle = fmt.content(_describe(event.selection))
        if not event.positions:
            self.query_one(ChunkView).clear(note)

    @on(Worker.StateChanged)
    def _show_failure(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            reason = fmt.display(str(event.worker.error))
            self.notify(f"The filter failed: {reason}", severity="error", markup=False)

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
        chunk = self.query_one(ChunkView).chunk
        if chunk is None:
            self.notify("There is no chunk to copy.", severity="warning", markup=False)
            return
        # Lone surrogates stand for bytes that are no text; a clipboard cannot hold them.
        text = chunk.text.encode("utf-8", "replace").decode("utf-8")
        self.app.copy_to_clipboard(text)
        kept = "exactly as stored" if text == chunk.text else "undecodable bytes replaced by ?"
        self.notify(
            f"{fmt.count(len(text), 'character')} of {fmt.display(chunk.location)}, {kept}, "
            "sent to the clipboard through the terminal (OSC 52)",
            title="Copied",
            markup=False,
        )

    def action_open(self) -> None:
        """Open the chunk's source in the user's editor, at its first line."""
        chunk = self.query_one(ChunkView).chunk
        if chunk is None or self._index is None:
            self.notify("There is no chunk to open.", severity="warning", markup=False)
            return
        open_in_editor(self.app, self._index.folder / chunk.doc_id, chunk.line_start)

    def action_pane(self, step: int) -> None:
        """Go to the next or previous pane."""
        self._go_to(PANES[(PANES.index(self.pane) + step) % len(PANES)])

    def action_back(self) -> None:
        """Leave the filter, else the pane, else the scope."""
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            self.query_one("#filter", Input).value = ""
        elif self.pane == "list":
            self.selection = replace(self.selection, scope=None)
        self._go_to("list")

    def show_chunk(self, chunk_id: str, *, query_terms: frozenset[str] = frozenset()) -> None:
        """Put the cursor on a chunk, from another screen; leaves filter and scope if they hide it.

        Args:
            chunk_id: The chunk; shown later if the index is not there yet, ignored if unknown.
            query_terms: Analysed terms of a question, to mark in the text from now on.
        """
        self._query_terms = query_terms
        self._wanted = chunk_id
        if self.is_mounted:
            self._show_wanted()

    def _show_wanted(self) -> None:
        if self._index is None or self._wanted is None:
            return
        position = self._index.position_of.get(self._wanted)
        self._wanted = None
        if position is None:
            return
        self.remove_class("-filtering")
        with self.prevent(Input.Changed):
            self.query_one("#filter", Input).value = ""
        self.set_reactive(ChunksScreen.selection, Selection(sort=self.selection.sort))
        self._find(keep=position)
        self._go_to("list")

    def _show_index(self, index: Index | None) -> None:
        before = self.query_one(ChunkView).chunk
        self._index = index
        if index is None:
            self.query_one("#facts", Static).update(NO_INDEX)
            self.query_one(ChunkList).show((), self._row, empty_note="No index yet.")
            self.query_one(ChunkView).clear(NO_INDEX)
            return
        self.query_one("#facts", Static).update(fmt.content(facts(index)))
        self.query_one(Sparkline).data = length_histogram(index)
        self.query_one(DocumentTree).show(index.folder.name, index.documents, index.chunks)
        self._find(keep=index.position_of.get(before.chunk_id) if before is not None else None)
        self._show_wanted()

    def _find(self, *, keep: int | None) -> None:
        index, selection = self._index, self.selection
        if index is None:
            return
        if selection.needle:
            self._find_in_thread(index, selection, keep)
        else:
            self._show_selected(self.Selected(index, selection, select(index, selection), keep))

    # Without a description Textual makes one from the arguments: over a second for a large index.
    @work(
        thread=True,
        exclusive=True,
        group="chunk-filter",
        exit_on_error=False,
        description="filter chunks",
    )
    def _find_in_thread(self, index: Index, selection: Selection, keep: int | None) -> None:
        cancelled = get_current_worker().cancelled_event
        positions = select(index, selection, is_cancelled=cancelled.is_set)
        if not cancelled.is_set():
            self.post_message(self.Selected(index, selection, positions, keep))

    def _row(self, position: int) -> ChunkRow:
        index = cast(Index, self._index)
        return ChunkRow(
            index.chunks[position],
            n_tokens=int(index.n_tokens[position]),
            limit=index.manifest.max_tokens or None,
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
        return self.query_one(f"#{pane}")


def _describe(selection: Selection) -> str:
    """Scope, filter and order of a list in words."""
    parts = []
    if selection.scope is not None:
        parts.append(f"in {selection.scope.path}")
    if selection.needle:
        parts.append(f"with “{selection.needle}”")
    parts.append({"order": "in order"}.get(selection.sort, f"{selection.sort} first"))
    return " · ".join(parts)
