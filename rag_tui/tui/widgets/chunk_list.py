"""The list of chunks, in the order and selection its screen decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import on
from textual.message import Message

from rag_tui.engine.types import Chunk
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

OVER_LIMIT = "⚠"
_SYMBOLS = 3
"""Cells for the symbols of warnings."""
_WORDS_READ = 400
"""Characters of a chunk looked at for its first words."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """What one row shows."""

    chunk: Chunk
    n_tokens: int | None = None
    """None while nothing has counted them."""
    limit: int | None = None
    """Tokens the model reads; None when unknown."""
    symbols: str = ""
    """One cell for each kind of warning, the most important first."""
    numbers: str = ""
    """What corpus health says, in a few characters."""

    @property
    def is_over(self) -> bool:
        """Whether the model does not read all of the chunk."""
        return self.n_tokens is not None and self.limit is not None and self.n_tokens > self.limit


class ChunkList(VirtualList):
    """A virtual list over *positions* (indices into ``Index.chunks``)."""

    BINDING_GROUP_TITLE = "Chunk list"

    @dataclass
    class Highlighted(Message):
        """The cursor stands on another chunk."""

        chunk_list: ChunkList
        position: int

        @property
        def control(self) -> ChunkList:
            """The list itself."""
            return self.chunk_list

    @dataclass
    class Selected(Message):
        """A chunk was opened with enter or a double click."""

        chunk_list: ChunkList
        position: int

        @property
        def control(self) -> ChunkList:
            """The list itself."""
            return self.chunk_list

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the name every Textual widget uses
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._positions: Sequence[int] = ()
        self._row: Callable[[int], ChunkRow] | None = None
        self._digits = 1
        self.has_symbols = False
        """Whether the rows have a column for warnings."""

    @property
    def positions(self) -> Sequence[int]:
        """The chunks of the list, by row."""
        return self._positions

    @property
    def position(self) -> int | None:
        """The position of the chunk under the cursor."""
        return int(self._positions[self.cursor]) if self.cursor >= 0 else None

    @on(VirtualList.CursorMoved)
    def _tell_highlighted(self, event: VirtualList.CursorMoved) -> None:
        event.stop()
        # Rows may have been replaced since the message was sent.
        if event.row == self.cursor and self.position is not None:
            self.post_message(self.Highlighted(self, self.position))

    @on(VirtualList.RowChosen)
    def _tell_selected(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        if event.row == self.cursor and self.position is not None:
            self.post_message(self.Selected(self, self.position))

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Number, tokens, location, then heading path and first words, as far as they fit."""
        if self._row is None:
            return
        position = int(self._positions[row])
        shown = self._row(position)
        number = f"{position + 1:>{self._digits}} "
        yield fmt.clip(number, width), "virtual-list--dim"
        left = width - len(number)
        if left <= 0:
            return
        tokens = "–" if shown.n_tokens is None else str(shown.n_tokens)
        mark = OVER_LIMIT if shown.is_over else " "
        cell = fmt.clip(f"{mark}{tokens:>4} ", left)
        yield cell, "virtual-list--warning" if shown.is_over else "virtual-list--dim"
        left -= len(cell)
        if self.has_symbols and left >= 24:
            yield fmt.fit(shown.symbols, _SYMBOLS) + " ", "virtual-list--warning"
            left -= _SYMBOLS + 1
        if shown.numbers and left >= 24:
            yield f"{shown.numbers} ", "virtual-list--dim"
            left -= cell_len(shown.numbers) + 1
        if left >= 36:
            room = min(34, left * 2 // 5)
            yield fmt.fit(shown.chunk.location, room, keep_end=True) + " ", ""
            left -= room + 1
        heading = fmt.clip(fmt.one_line(_below_title(shown.chunk)), left)
        yield heading, "virtual-list--strong"
        left -= cell_len(heading)
        if left > 3:
            yield "  ", ""
            words = fmt.one_line(shown.chunk.body[:_WORDS_READ])
            yield fmt.clip(words, left - 2), "virtual-list--dim"

    def show(
        self,
        positions: Sequence[int],
        row: Callable[[int], ChunkRow],
        *,
        position: int | None = None,
        empty_note: str = "",
    ) -> None:
        """Show these chunks; nothing is copied, ``row`` is asked for the lines in view only.

        Args:
            positions: Indices into ``Index.chunks`` in the order wanted.
            row: What to show of one position.
            position: Where the cursor should stand; the first row if it is not in the list.
            empty_note: Shown while the list is empty.
        """
        self._positions = positions
        self._row = row
        self._digits = len(str(max(positions, default=0) + 1))
        self.empty_note = empty_note
        self.set_n_rows(len(positions), cursor=self._row_of(position))

    def move_to(self, position: int) -> bool:
        """Put the cursor on a chunk; False when the list does not hold it."""
        if position not in self._positions:
            return False
        self.cursor = self._row_of(position)
        return True

    def _row_of(self, position: int | None) -> int:
        if position is None or position not in self._positions:
            return 0
        return self._positions.index(position)


def _below_title(chunk: Chunk) -> str:
    """The heading path without the document's title, which the location stands for."""
    return " › ".join(chunk.heading_path[1:] or chunk.heading_path) or "(no heading)"
