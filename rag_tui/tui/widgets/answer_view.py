"""The answer as it grows, its state, and its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from rag_tui.engine.citations import unknown_of
from rag_tui.engine.types import Answer, Citation, Prompt
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

GOOD_STATES = frozenset({"streaming", "complete", "not found"})


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
        text = f"[{source.number}] {mark:<5} {source.heading or source.path} · {source.path}"
        yield fmt.clip(fmt.one_line(text), width), "" if n_cited else "virtual-list--dim"

    def source_chunk(self, row: int) -> str | None:
        """Chunk id of a row."""
        if self.prompt is None or not 0 <= row < len(self.prompt.sources):
            return None
        return self.prompt.sources[row].chunk_id


class AnswerView(Vertical):
    """Drawn in linear time: only the last paragraph changes while the answer grows."""

    DEFAULT_CSS = """
    AnswerView {
        min-width: 4;
        & > #answer-state { height: auto; max-height: 4; color: $text-muted; }
        & > #answer-text {
            height: 1fr; min-height: 1; min-width: 4;
            & > Static { width: 1fr; min-width: 4; height: auto; }
        }
        & > SourceList { height: 1; max-height: 40%; border-top: solid $foreground 40%; }
    }
    """

    class SourceChosen(Message):
        """The user follows a citation."""

        def __init__(self, chunk_id: str) -> None:
            super().__init__()
            self.chunk_id = chunk_id

    def __init__(self) -> None:
        super().__init__(id="answer-view")
        self._state = Static("", id="answer-state", markup=False)
        self._scroll = VerticalScroll(id="answer-text")
        self.sources = SourceList()
        self.answer: Answer | None = None
        self._lines: list[str] = []
        self._paragraphs: list[Static] = []

    def compose(self) -> ComposeResult:
        """State, text, sources."""
        yield self._state
        yield self._scroll
        yield self.sources

    @property
    def text(self) -> str:
        """What has been drawn so far, citations marked as on screen."""
        return "\n".join(str(paragraph.content) for paragraph in self._paragraphs)

    @property
    def state_text(self) -> str:
        """The line above the answer."""
        return str(self._state.content)

    def clear(self, message: str, prompt: Prompt | None = None) -> None:
        """Show no answer, and why."""
        self.answer = None
        self._redraw([])
        self._state.update(fmt.content(message, newlines=True))
        self.sources.show(prompt)

    def show(self, answer: Answer) -> None:
        """Show more of an answer, or the finished one."""
        drawn = self.answer.text if self.answer is not None else ""
        self.answer = answer
        if answer.text.startswith(drawn):
            self._append(answer.text[len(drawn) :])
        else:
            self._redraw(answer.text.split("\n"))
        n_sources = len(self.sources.prompt.sources) if self.sources.prompt else 0
        self._state.update(fmt.content(state_line(answer, n_sources), newlines=True))
        if answer.state != "streaming":
            self._link(answer)
            self.sources.show(self.sources.prompt, answer.citations)

    def action_follow(self, number: int) -> None:
        """Select the source with this number."""
        chunk_id = self.sources.source_chunk(number - 1)
        if chunk_id is not None:
            self.post_message(self.SourceChosen(chunk_id))

    def on_virtual_list_row_chosen(self, event: VirtualList.RowChosen) -> None:
        """Enter on a source selects it everywhere."""
        event.stop()
        self.action_follow(event.row + 1)

    def on_virtual_list_cursor_moved(self, event: VirtualList.CursorMoved) -> None:
        """Moving among the sources is nobody else's business."""
        event.stop()

    def _append(self, piece: str) -> None:
        if not piece:
            return
        first, *rest = piece.split("\n")
        if not self._paragraphs:
            self._redraw([""])
        is_at_end = self._scroll.scroll_y >= self._scroll.max_scroll_y - 1
        self._lines[-1] += first
        self._paragraphs[-1].update(fmt.content(self._lines[-1]))
        added = [Static(fmt.content(line), markup=False) for line in rest]
        self._lines += rest
        self._paragraphs += added
        if added:
            self._scroll.mount_all(added)
        if is_at_end:  # whoever has scrolled up to read stays there
            self._scroll.scroll_end(animate=False)

    def _redraw(self, lines: list[str]) -> None:
        self._scroll.remove_children()
        self._lines = list(lines)
        self._paragraphs = [Static(fmt.content(line), markup=False) for line in lines]
        self._scroll.mount_all(self._paragraphs)

    def _link(self, answer: Answer) -> None:
        start = 0
        for line, paragraph in zip(self._lines, self._paragraphs, strict=True):
            end = start + len(line)
            inside = [c for c in answer.citations if start <= c.start and c.end <= end]
            if inside:
                paragraph.update(linked(line, start, inside))
            start = end + 1


def linked(line: str, start: int, citations: Iterable[Citation]) -> Content:
    """A line of an answer in which numbers that exist can be clicked and others carry a ``?``.

    Args:
        line: Raw text of the line.
        start: Its character offset in the answer.
        citations: Those that lie in it; their spans are offsets into the answer.
    """
    return Content("").join(_pieces(line, start, sorted(citations, key=lambda c: c.start)))


def _pieces(line: str, start: int, citations: list[Citation]) -> Iterator[Content]:
    place = 0
    for citation in citations:
        yield fmt.content(line[place : citation.start - start])
        marker = line[citation.start - start : citation.end - start]
        cuts = [0, *(edge for m in re.finditer(r"\d+", marker) for edge in m.span()), len(marker)]
        for left, right in pairwise(cuts):
            piece = marker[left:right]
            is_known = piece.isdecimal() and int(piece) in set(citation.numbers) - set(
                citation.unknown
            )
            yield fmt.content(piece).stylize(_link_style(int(piece)) if is_known else "bold")
        if citation.unknown:
            yield Content.styled("?", "bold reverse")
        place = citation.end - start
    yield fmt.content(line[place:])


def _link_style(number: int) -> Style:
    return Style(bold=True, underline=True) + Style.from_meta(
        {"@click": f"screen.follow({number})"}
    )


def state_line(answer: Answer, n_sources: int) -> str:
    """Who answered, how it ended, what it cost, and what is wrong with it."""
    mark = "" if answer.state in GOOD_STATES else "✗ "
    parts = [f"{mark}{answer.state}", f"by {answer.answerer}"]
    if answer.state != "streaming":
        parts.append(fmt.duration(answer.elapsed_s))
    if answer.input_tokens is not None and answer.output_tokens is not None:
        parts.append(f"{answer.input_tokens:,} tokens in, {answer.output_tokens:,} out")
    if unknown := unknown_of(answer, n_sources):
        numbers = ", ".join(f"[{label}]" for label in unknown)
        parts.append(f"✗ cites {numbers}, which no source has")
    if answer.state == "complete" and not answer.citations:
        parts.append("✗ cites no source")
    text = " · ".join(parts)
    return f"{text}\n{answer.detail}" if answer.detail else text
