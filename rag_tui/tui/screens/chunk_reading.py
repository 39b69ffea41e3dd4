"""The reading half of the Chunks screen: one chunk, or its whole document with all borders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var
from textual.screen import Screen
from textual.widgets import Static

from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.index import Index
from rag_tui.engine.types import Chunk
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_jobs import Cut, unread_of
from rag_tui.tui.chunk_notes import NO_NOTES, ChunkNotes
from rag_tui.tui.editor import open_in_editor, source_of
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.widgets.chunk_view import ChunkView, header
from rag_tui.tui.widgets.document_map import DocumentMap

if TYPE_CHECKING:
    from rag_tui.engine.chunkers.reach import Unread
    from rag_tui.tui.backend import Session


KEEP_TOAST_S = 12.0
"""Long enough to copy some lines from."""


class ReadingScreen(Screen[None]):
    """What both views of the chunk under the cursor need."""

    shows_document: var[bool] = var(False, init=False)

    def __init__(self) -> None:
        super().__init__()
        self._index: Index | None = None
        self._notes: ChunkNotes = NO_NOTES
        self._query_terms: frozenset[str] = frozenset()
        self._position: int | None = None
        self._drawn: Cut | None = None
        self._unread: dict[str, Unread] = {}
        self._asked: set[str] = set()

    def compose_reading(self) -> ComposeResult:
        """The chunk's text, and in its place the document."""
        yield ChunkView(id="view")
        with Vertical(id="document"):
            yield Static(id="document-header", markup=False)
            yield DocumentMap(id="map")

    @property
    def session(self) -> Session | None:
        """Settings and models, once there are any."""
        session: Session | None = getattr(self.app, "session", None)
        return session

    @property
    def chunk(self) -> Chunk | None:
        """The chunk that is read."""
        if self._index is None or self._position is None:
            return None
        return self._index.chunks[self._position]

    def watch_shows_document(self, shows_document: bool) -> None:
        """Put one view in the place of the other."""
        self.set_class(shows_document, "-document")
        self._draw_document()

    def read(self, position: int) -> None:
        """Show a chunk in both views."""
        index = self._index
        if index is None:
            return
        self._position = position
        chunk = index.chunks[position]
        n_tokens, limit = int(index.n_tokens[position]), index.manifest.max_tokens or None
        document = index.document_of.get(chunk.doc_id)
        remarks = self._remarks(position)
        view = self.query_one(ChunkView)
        view.show(
            chunk,
            document,
            query_terms=self._query_terms,
            n_tokens=n_tokens,
            limit=limit,
            remarks=remarks,
        )
        view.show_unread(chunk, self._unread.get(chunk.chunk_id))
        above = header(chunk, document, n_tokens=n_tokens, limit=limit, remarks=remarks)
        self.query_one("#document-header", Static).update(above)
        self._draw_document()
        if not self.shows_document:
            self._look_for_unread([position])

    def close_reading(self, message: str = "") -> None:
        """Show no chunk, and why."""
        self._position = self._drawn = None
        self.query_one(ChunkView).clear(message)
        self.query_one("#document-header", Static).update("")
        self.query_one(DocumentMap).show(None, note=message)

    def new_index(self, index: Index | None) -> None:
        """Forget what was known of the index before."""
        self._index = index
        self._notes = NO_NOTES
        self._position = self._drawn = None
        self._unread, self._asked = {}, set()

    def copy_chunk(self) -> None:
        """Copy the exact stored text of the chunk."""
        chunk = self.chunk
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

    def edit_source(self) -> None:
        """Open the chunk's source in the user's editor, at its first line."""
        chunk = self.chunk
        if chunk is None or self._index is None:
            self.notify("There is no chunk to open.", severity="warning", markup=False)
            return
        open_in_editor(self.app, *source_of(self._index, chunk))

    def present_cut(self) -> Cut | None:
        """The open document as it is cut in the index."""
        index, position = self._index, self._position
        if index is None or position is None:
            return None
        document = index.document_of.get(index.chunks[position].doc_id)
        if document is None:
            return None
        first, after = _of_document(index.chunks, position)
        return Cut(
            document,
            index.chunks[first:after],
            tuple(index.n_tokens[first:after].tolist()),
            index.manifest.max_tokens or None,
            dict(self._unread),
            first_number=first + 1,
        )

    def action_recut(self) -> None:
        """Preview another way of cutting the open document."""
        from rag_tui.tui.screens.recut import RecutScreen

        cut, session = self.present_cut(), self.session
        if cut is None or session is None or self._index is None:
            self.notify("There is no document to cut.", severity="warning", markup=False)
            return
        chosen = -1 if self._position is None else self._position + 1 - cut.first_number
        self.app.push_screen(RecutScreen(self._index, cut, session, chosen), self._reindex)

    def _reindex(self, overrides: Mapping[str, object] | None) -> None:
        reindex = getattr(self.app, "reindex_with", None)
        if overrides is None or reindex is None:
            return
        try:
            reindex(overrides)
            lines = "\n".join(_toml_line(name, value) for name, value in overrides.items())
            self.notify(
                fmt.display(
                    f"For this session. To keep it, in rag-tui.toml:\n{lines}", newlines=True
                ),
                timeout=KEEP_TOAST_S,
                markup=False,
            )
        except RagTuiError as error:
            text = f"{error.message}\n{error.hint}".strip()
            self.notify(fmt.display(text, newlines=True), severity="error", markup=False)

    def _draw_document(self) -> None:
        position, drawn = self._position, self._drawn
        if not self.shows_document or self._index is None or position is None:
            return
        document_map = self.query_one(DocumentMap)
        doc_id = self._index.chunks[position].doc_id
        if drawn is None or drawn.document.doc_id != doc_id:
            drawn = self._drawn = self.present_cut()
            if drawn is None:
                document_map.show(None, note="The document is not in the index.")
                return
            chosen = position + 1 - drawn.first_number
            document_map.show(drawn.layout, chosen=chosen)
            name = fmt.content(f"{drawn.document.doc_id} · {drawn.summary}")
            self.query_one("#document").border_subtitle = name
            first = drawn.first_number - 1
            self._look_for_unread(range(first, first + len(drawn.chunks)))
        else:
            document_map.choose(position + 1 - drawn.first_number)

    def _look_for_unread(self, positions: Sequence[int]) -> None:
        """Ask the tokenizer where the model stops reading, where it does stop."""
        index, session = self._index, self.session
        if index is None or session is None or not index.manifest.max_tokens:
            return
        limit = index.manifest.max_tokens
        chunks = [
            index.chunks[position]
            for position in positions
            if index.n_tokens[position] > limit
            and index.chunks[position].chunk_id not in self._asked
        ]
        if chunks:
            start(self, partial(self._find_unread, index, session, chunks), "tokens not read")

    async def _find_unread(self, index: Index, session: Session, chunks: Sequence[Chunk]) -> None:
        found = await in_thread(
            lambda cancel: unread_of(session.models, chunks, cancel), "tokens not read"
        )
        if index is not self._index:
            return
        self._unread.update(found)
        self._asked.update(chunk.chunk_id for chunk in chunks)
        if (chunk := self.chunk) is not None:
            self.query_one(ChunkView).show_unread(chunk, self._unread.get(chunk.chunk_id))
        drawn = self._drawn
        if drawn is not None and any(chunk.doc_id == drawn.document.doc_id for chunk in chunks):
            self._drawn = None
            self._draw_document()

    def _remarks(self, position: int) -> list[str]:
        # The header says how many tokens are over the limit by itself.
        notes = [note for note in self._notes.of(position) if note.kind != "over-limit"]
        remarks = [f"⚠ {note.kind}: {note.detail}" for note in notes]
        if self._notes.health is not None and self._index is not None:
            health = self._notes.health.chunk(position)
            if health.n_occurrences is not None:
                others = fmt.count(health.n_occurrences, "other chunk")
                remarks.append(f"among the nearest of {others}")
            if health.nearest is not None and health.cosine is not None:
                location = self._index.chunks[health.nearest].location
                remarks.append(
                    f"nearest to chunk {health.nearest + 1} ({location}), "
                    f"cosine {health.cosine:.3f}"
                )
        return remarks


def _of_document(chunks: Sequence[Chunk], position: int) -> tuple[int, int]:
    """The positions of all chunks of one chunk's document: first, and one after the last."""
    doc_id = chunks[position].doc_id
    first = after = position
    while first > 0 and chunks[first - 1].doc_id == doc_id:
        first -= 1
    while after < len(chunks) and chunks[after].doc_id == doc_id:
        after += 1
    return first, after


def _toml_line(name: str, value: object) -> str:
    """``chunking.size = 128`` as TOML writes it; dotted names need no table."""
    return f"{name} = {json.dumps(value)}"
