"""One chunk as it is stored, with what the model does not read and the question's words marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from rag_tui.engine.chunkers.reach import Unread
from rag_tui.engine.types import Chunk, Document
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.chunk_text import (
    DISPLAYED,
    HEADING_STYLE,
    MATCH_STYLE,
    PASSAGE_STYLE,
    UNREAD_STYLE,
    WARNING_STYLE,
    Layers,
    body,
)

__all__ = [
    "DISPLAYED",
    "HEADING_STYLE",
    "MATCH_STYLE",
    "PASSAGE_STYLE",
    "UNREAD_STYLE",
    "WARNING_STYLE",
    "ChunkView",
    "body",
    "header",
]

JUDGED_STYLE = "bold"
_METADATA_SHOWN = 300
"""Characters of front matter in the header."""


class ChunkView(VerticalScroll, can_focus=True):
    """Header, then the exact text of the chunk; scrolls."""

    DEFAULT_CSS = """
    ChunkView {
        height: 1fr;
        min-width: 4;
        & > Static { width: 1fr; min-width: 4; height: auto; }
        & > .chunk-view--header { margin-bottom: 1; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Scroll down", show=False, id="view.down"),
        Binding("k", "scroll_up", "Scroll up", show=False, id="view.up"),
        Binding("g", "scroll_home", "To the start", show=False, id="view.first"),
        Binding("G", "scroll_end", "To the end", show=False, id="view.last"),
    ]
    BINDING_GROUP_TITLE = "Chunk text"

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the name every Textual widget uses
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._header = Static(classes="chunk-view--header", markup=False)
        self._body = Static(classes="chunk-view--body", markup=False)
        self._known = Content("")
        self._judgement = ""
        self._chunk: Chunk | None = None
        self._layers = Layers()

    @property
    def chunk(self) -> Chunk | None:
        """The chunk on show; its ``text`` is what copying gives."""
        return self._chunk

    def compose(self) -> ComposeResult:
        """The header and the text."""
        yield self._header
        yield self._body

    def show(
        self,
        chunk: Chunk,
        document: Document | None,
        *,
        query_terms: frozenset[str] = frozenset(),
        n_tokens: int | None = None,
        limit: int | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        """Show a chunk from its start.

        Args:
            chunk: What to show.
            document: Where it comes from; its loading warnings are shown.
            query_terms: Analysed terms to mark in the text.
            n_tokens: Tokens of what is embedded, None while unknown.
            limit: Tokens the model reads, None when unknown.
            remarks: What else is known of this chunk, a line each; foreign text.
        """
        is_same = self._chunk is not None and self._chunk.chunk_id == chunk.chunk_id
        self._chunk = chunk
        self._layers = Layers(query_terms)
        self._known = header(chunk, document, n_tokens=n_tokens, limit=limit, remarks=remarks)
        self._show_header()
        self._draw()
        if not is_same:
            self.scroll_home(animate=False)

    def show_unread(self, chunk: Chunk, unread: Unread | None) -> None:
        """Dim what the model does not read, if this chunk is still on show."""
        if self._chunk is chunk and unread is not None:
            self._layers = replace(self._layers, unread=unread)
            self._draw()

    def mark(self, passage: str) -> bool:
        """Mark a passage of the chunk on show, white space apart; whether it is there."""
        if self._chunk is None or not passage.strip():
            return False
        words = map(re.escape, passage.split())
        found = re.search(r"\s+".join(words), self._chunk.text[:DISPLAYED])
        if found is None:
            return False
        self._layers = replace(self._layers, passage=found.span())
        shown = self._draw()
        start = next(span.start for span in shown.spans if PASSAGE_STYLE in str(span.style))
        above = shown[:start].wrap(max(self._body.size.width, 1))
        self.call_after_refresh(
            self.scroll_to, y=self._body.region.y - self.region.y + len(above) - 2, animate=False
        )
        return True

    def say_judgement(self, text: str) -> None:
        """Say in front of the header how the chunk on show is judged; empty: not at all."""
        if text != self._judgement:
            self._judgement = text
            if self._chunk is not None:
                self._show_header()

    def clear(self, message: str = "") -> None:
        """Show no chunk, and why."""
        self._chunk = None
        self._header.update(fmt.content(message, HEADING_STYLE, newlines=True))
        self._body.update("")

    def _draw(self) -> Content:
        """Draw the text with its layers; returns what is drawn."""
        if self._chunk is None:
            return Content("")
        shown = body(self._chunk, layers=self._layers)
        self._body.update(shown)
        return shown

    def _show_header(self) -> None:
        judged = fmt.content(self._judgement, JUDGED_STYLE)
        parts = [judged, self._known] if self._judgement else [self._known]
        self._header.update(Content("\n").join(parts))


def header(
    chunk: Chunk,
    document: Document | None,
    *,
    n_tokens: int | None,
    limit: int | None,
    remarks: Sequence[str] = (),
) -> Content:
    """Location, what is put in front of the text, length against the limit, and warnings.

    A line each, but for a situation or prefix of several lines.
    """
    lines = [fmt.content(chunk.location, "bold")]
    if chunk.context:
        lines.append(fmt.content(" › ".join(chunk.heading_path), HEADING_STYLE))
    if chunk.situation:
        lines.append(fmt.content(f"put in front: {chunk.situation}", HEADING_STYLE, newlines=True))
    if chunk.prefix:
        lines.append(fmt.content(f"repeated: {chunk.prefix}", HEADING_STYLE, newlines=True))
    if document is not None and document.metadata:
        pairs = " · ".join(f"{key}: {value}" for key, value in document.metadata.items())
        lines.append(fmt.content(fmt.clip(pairs, _METADATA_SHOWN), HEADING_STYLE))
    if n_tokens is not None:
        of = f" of {limit:,}" if limit is not None else ""
        lines.append(Content.styled(f"{n_tokens:,}{of} tokens", HEADING_STYLE))
        if limit is not None and n_tokens > limit:
            beyond = n_tokens - limit
            verb = "is" if beyond == 1 else "are"
            lines.append(
                Content.styled(
                    f"⚠ {fmt.count(beyond, 'token')} beyond the limit {verb} not read",
                    WARNING_STYLE,
                )
            )
    warnings = document.warnings if document is not None else ()
    lines.extend(fmt.content(f"⚠ {warning}", WARNING_STYLE) for warning in warnings)
    lines.extend(fmt.content(remark, WARNING_STYLE) for remark in remarks)
    return Content("\n").join(lines)
