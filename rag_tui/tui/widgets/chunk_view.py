"""One chunk as it is stored, with what the model does not read and the question's words marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.content import Span as ContentSpan
from textual.widgets import Static

from rag_tui.engine.chunkers.reach import Unread
from rag_tui.engine.types import Chunk, Document
from rag_tui.tui import format as fmt

DISPLAYED = 20_000
"""Characters drawn at most: wrapping more in one piece would hold up the keyboard."""

HEADING_STYLE = "$text-muted"
MATCH_STYLE = "bold underline $text-accent"
WARNING_STYLE = "bold $text-warning"
UNREAD_STYLE = "dim $text-disabled"
_METADATA_SHOWN = 300
"""Characters of front matter in the header."""

Span = tuple[int, int]


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
        self._chunk: Chunk | None = None
        self._query_terms: frozenset[str] = frozenset()

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
        self._query_terms = query_terms
        self._header.update(
            header(chunk, document, n_tokens=n_tokens, limit=limit, remarks=remarks)
        )
        self._body.update(body(chunk, query_terms=query_terms))
        if not is_same:
            self.scroll_home(animate=False)

    def show_unread(self, chunk: Chunk, unread: Unread | None) -> None:
        """Dim what the model does not read, if this chunk is still on show."""
        if self._chunk is chunk and unread is not None:
            self._body.update(body(chunk, query_terms=self._query_terms, unread=unread))

    def clear(self, message: str = "") -> None:
        """Show no chunk, and why."""
        self._chunk = None
        self._header.update(fmt.content(message, HEADING_STYLE, newlines=True))
        self._body.update("")


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


def body(
    chunk: Chunk, *, query_terms: frozenset[str] = frozenset(), unread: Unread | None = None
) -> Content:
    """The chunk's text: heading lines and what is not read dim, the question's words underlined."""
    text = chunk.text[:DISPLAYED]
    heading_end = min(chunk.body_offset, len(text))
    read_end = min(unread.start, len(text)) if unread is not None else len(text)
    pieces: list[tuple[str, str]] = []
    at, is_told = 0, False
    for start, end in [*_matches(text, query_terms), (len(text), len(text))]:
        head = min(max(heading_end, at), start)
        tail = min(max(read_end, head), start)
        pieces.append((text[at:head], HEADING_STYLE))
        pieces.append((text[head:tail], ""))
        if unread is not None and not is_told and read_end <= start:
            is_told = True
            note = f"\n… {fmt.count(unread.n_tokens, 'token')} not read:\n"
            pieces.append((note, WARNING_STYLE))
        pieces.append((text[tail:start], UNREAD_STYLE))
        pieces.append((text[start:end], MATCH_STYLE))
        at = end
    hidden = len(chunk.text) - len(text)
    if hidden > 0:
        note = f"\n… {fmt.count(hidden, 'more character')}; copying gives all of them"
        pieces.append((note, WARNING_STYLE))
    return _assemble(pieces)


def _assemble(pieces: Sequence[tuple[str, str]]) -> Content:
    """Foreign strings and their styles as one piece of content; time grows with their length."""
    shown: list[str] = []
    spans: list[ContentSpan] = []
    at = 0
    for text, style in pieces:
        shown.append(fmt.display(text, newlines=True))
        end = at + len(shown[-1])
        if style and end > at:
            spans.append(ContentSpan(at, end, style))
        at = end
    return Content("".join(shown), spans=spans)


def _matches(text: str, query_terms: frozenset[str]) -> Iterator[Span]:
    """Where the question's words stand, in order and without overlap."""
    if not query_terms:
        return
    from rag_tui.engine.analysis import Analyzer

    at = 0
    for token, start, end in Analyzer().token_spans(text):
        # The character pairs of a Chinese or Japanese word overlap: each adds what it has new.
        if token in query_terms and end > at:
            yield max(start, at), end
            at = end
