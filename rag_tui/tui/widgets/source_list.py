"""The sources of an answer, and the candidates of a prompt."""

from __future__ import annotations

from collections.abc import Iterable

from rag_tui.engine.types import Citation, Prompt
from rag_tui.tui import format as fmt
from rag_tui.tui.prompt_facts import SourceRow
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList


class SourceList(VirtualList):
    """The prompt's numbered sources, those that the answer cites marked."""

    BINDING_GROUP_TITLE = "Sources"

    def __init__(self) -> None:
        super().__init__(id="sources")
        self.prompt: Prompt | None = None
        self._counts: dict[int, int] = {}

    def show(self, prompt: Prompt | None, citations: Iterable[Citation] = ()) -> None:
        """Show a prompt's sources and how often each is cited."""
        counts: dict[int, int] = {}
        for citation in citations:
            for number in set(citation.numbers) - set(citation.unknown):
                counts[number] = counts.get(number, 0) + 1
        self.prompt, self._counts = prompt, counts
        n_rows = len(prompt.sources) if prompt else 0
        self.n_rows = n_rows
        if self.cursor >= n_rows or self.cursor < 0:
            self.set_reactive(VirtualList.cursor, 0 if n_rows else -1)
        self.styles.height = max(1, n_rows) + 1  # the line above
        self.refresh()

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """``[1] ● cited 2× check-in.md Arrival times``."""
        if self.prompt is None:
            return
        source = self.prompt.sources[row]
        n_cited = self._counts.get(source.number, 0)
        mark = f"● {n_cited}×" if n_cited else "–"
        edited = "✎ edited · " if source.is_edited else ""
        heading = f"{edited}{source.heading or source.path}"
        text = f"[{source.number}] {mark:<5} {heading} · {source.path}"
        yield fmt.clip(fmt.one_line(text), width), "" if n_cited else "virtual-list--dim"

    def source_chunk(self, row: int) -> str | None:
        """Chunk id of a row."""
        if self.prompt is None or not 0 <= row < len(self.prompt.sources):
            return None
        return self.prompt.sources[row].chunk_id


class CandidateList(VirtualList):
    """What is, or could be, in the prompt: number, tokens, signs, name."""

    BINDING_GROUP_TITLE = "Sources of the prompt"
    empty_note = "no sources"

    def __init__(self) -> None:
        super().__init__(id="candidates")
        self.rows: tuple[SourceRow, ...] = ()

    def show(self, rows: tuple[SourceRow, ...]) -> None:
        """Show these; the cursor stays on its chunk where that is still there."""
        kept = self.row.chunk_id if self.row is not None else ""
        ids = [row.chunk_id for row in rows]
        self.rows = rows
        self.set_n_rows(len(rows), cursor=ids.index(kept) if kept in ids else 0)

    @property
    def row(self) -> SourceRow | None:
        """The one under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """``[1]   61 ⚠✎⚑ Arrival times``; ``off`` and ``–`` for those that are not in it."""
        one = self.rows[row]
        number = f"[{one.source.number}]" if one.source is not None else "–"
        number = "off" if one.is_off else number
        tokens = f"{one.n_tokens:,}" if one.n_tokens is not None else ""
        has_warning = one.source is not None and bool(one.source.warning)
        signs = (
            f"{'⚠' if has_warning else ''}{'✎' if one.has_edit else ''}"
            f"{'⚑' if one.is_pinned else ''}{f'+{one.n_added}' if one.n_added else ''}"
        )
        style = "" if one.source is not None else "virtual-list--dim"
        yield fmt.fit(f"{number:<4} {tokens:>5} ", min(11, width)), style
        left = max(0, width - 11)
        if signs:
            shown = fmt.clip(f"{signs} ", left)
            yield shown, "virtual-list--warning"
            left -= len(shown)
        yield (
            fmt.clip(f"{fmt.one_line(one.label)} · {fmt.one_line(one.place)}", max(0, left)),
            style,
        )
