"""A chunk beside a question: its nearest sentence, the words that are near, what is not read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.style import Style

from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.chunk_text import (
    HEADING_STYLE,
    HEAT_STYLES,
    NEAREST_MARKS,
    NEAREST_STYLE,
    WARNING_STYLE,
)
from rag_tui.tui.widgets.chunk_view import ChunkView

if TYPE_CHECKING:
    from rag_tui.tui.close_reading import Heat, Reading

LEVELS = ("far", "nearer", "near", "nearest")
"""Words for the levels of `HEAT_STYLES`."""


class AskedChunkView(ChunkView):
    """Shades the sentence nearest to the question, or each word by its level of heat."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "h",
            "screen.heat",
            "Heat map",
            tooltip="Shade each word by its likeness to the question's words",
            id="view.heat",
        ),
    ]

    _told = ""
    _reading: Reading | None = None
    _heat: Heat | None = None

    def show_reading(self, reading: Reading) -> None:
        """Mark the nearest sentence and what is not read, if this chunk is still on show."""
        if self.chunk is None or self.chunk.chunk_id != reading.chunk_id:
            return
        self._reading = reading
        nearest = reading.nearest
        self._layers = replace(
            self._layers,
            unread=reading.unread,
            reranker_end=reading.reranker_end,
            nearest=(nearest.start, nearest.end) if nearest is not None else None,
        )
        self._draw()
        self._show_header()

    def show_heat(self, heat: Heat) -> None:
        """Shade the words, if this chunk is still on show."""
        if self.chunk is None or self.chunk.chunk_id != heat.chunk_id:
            return
        self._heat = heat
        self._layers = replace(self._layers, heat=heat.words)
        self.say("")
        self._draw()

    def forget_heat(self) -> None:
        """Show the text without the heat map again."""
        self._heat = None
        self._layers = replace(self._layers, heat=())
        self.say("")
        self._draw()

    def say(self, text: str) -> None:
        """Say above the text what is under way or went wrong."""
        self._told = text
        self._show_header()

    def _show_header(self) -> None:
        if self.chunk is None:
            return
        nearest, heat = self._nearest_line, self._heat_line
        if self._heat is None and nearest.plain and heat.plain:
            nearest, heat = Content("   ").join((nearest, heat)), Content("")
        lines = [self._judgement_line, self._known, nearest, heat]
        self._header.update(Content("\n").join(line for line in lines if line.plain))

    @property
    def _judgement_line(self) -> Content:
        return fmt.content(self._judgement, "bold")

    @property
    def _nearest_line(self) -> Content:
        reading = self._reading
        if reading is None or self.chunk is None or reading.chunk_id != self.chunk.chunk_id:
            return Content("")
        nearest = reading.nearest
        parts = []
        if nearest is not None:
            marks = " ".join(NEAREST_MARKS)
            parts.append(Content.styled(f"{marks}", NEAREST_STYLE))
            parts.append(
                Content.styled(f" the nearest sentence, {nearest.score:.3f}", HEADING_STYLE)
            )
            if not nearest.is_read:
                parts.append(Content.styled(" ⚠ the model does not read it here", WARNING_STYLE))
        if reading.reranker_end is not None:
            n_left = len(self.chunk.text) - reading.reranker_end
            unread = f"⚠ {fmt.count(n_left, 'character')} not read by the reranker"
            parts.append(Content.styled(f"{'  ' if parts else ''}{unread}", WARNING_STYLE))
        return Content.assemble(*parts)

    @property
    def _heat_line(self) -> Content:
        """The key of the heat map, as a link, or what the levels mean."""
        link = Style.from_meta({"@click": "screen.heat"})
        if self._told:
            return fmt.content(fmt.one_line(self._told), WARNING_STYLE)
        heat = self._heat
        if heat is None or self.chunk is None or heat.chunk_id != self.chunk.chunk_id:
            if self._reading is None or not self._reading.sentences:
                return Content("")
            return Content.styled("h here: heat map of the words", HEADING_STYLE).stylize(link)
        parts: list[Content] = [Content("heat: ").stylize(link)]
        for level, (name, span) in enumerate(zip(LEVELS, heat.ranges, strict=True)):
            if span is not None:
                parts.append(Content.styled(name, HEAT_STYLES[level]))
                parts.append(Content.styled(f" {span[0]:.2f}–{span[1]:.2f}  ", HEADING_STYLE))
        told = ", ".join(f"{word} ~ {asked} {value:.2f}" for word, asked, value in heat.best)
        parts.append(fmt.content(fmt.one_line(told), HEADING_STYLE))
        if heat.n_cut:
            unread = f"  ⚠ {fmt.count(heat.n_cut, 'token')} not read"
            parts.append(Content.styled(unread, WARNING_STYLE))
        return Content.assemble(*parts)
