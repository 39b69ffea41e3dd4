"""What strategies share that do not cut at headings: room, heading paths, checks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from rag_tui.engine.chunkers.pieces import Piece, as_chunks
from rag_tui.engine.chunkers.ruler import Ruler
from rag_tui.engine.chunkers.sections import Section, sections
from rag_tui.engine.chunkers.splitting import Stretch, fitted, prefix_at
from rag_tui.engine.types import Chunk, Document


class Layout:
    """A document's sections, and the room that they leave for a body.

    A chunk that may span sections has the headings that all of it stands below; the others are
    in its text. So that every chunk of a document has the same size, room is kept for the
    longest of its heading paths.
    """

    def __init__(self, document: Document, ruler: Ruler) -> None:
        self.document = document
        self.ruler = ruler
        self.sections: list[Section] = list(sections(document))
        self._starts = [section.start for section in self.sections]
        self._most_context = 0
        self.budget = ruler.size
        if ruler.is_tokens and self.sections:
            paths = {section.heading_path for section in self.sections if section.heading_path}
            lines = [" > ".join(path) + "\n\n" for path in sorted(paths)]
            longest = max(ruler.counter.count(lines), default=0)
            self._most_context = min(longest, ruler.most_context)
            room = ruler.size - ruler.n_special - self._most_context
            self.budget = max(ruler.floor, room)

    @property
    def span(self) -> tuple[int, int]:
        """From where the text begins to the end of the last section that holds text."""
        if not self.sections:
            return 0, 0
        return self.sections[0].start, self.sections[-1].end

    def chunks(
        self, stretches: Iterable[Stretch], *, repeats_headers: bool = False, may_recut: bool = True
    ) -> tuple[Chunk, ...]:
        """Chunks of these stretches; blank ones are left out.

        Args:
            stretches: By ascending start.
            repeats_headers: Whether a stretch that begins inside a table or code block gets that
                block's header as its prefix.
            may_recut: Whether stretches that hold too many tokens are cut again.
        """
        text = self.document.text
        paths: dict[tuple[str, ...], tuple[str, ...]] = {}
        pieces: list[Piece] = []
        for stretch in stretches:
            if not text[stretch.start : stretch.end].strip():
                continue
            prefix = stretch.prefix
            if repeats_headers and not prefix:
                prefix = prefix_at(self.document, stretch.start, self.ruler, self.budget)
            path, body_start = self._heading_of(stretch)
            if path not in paths:
                paths[path] = self._shortened(path)
            pieces.append(Piece(stretch.start, stretch.end, body_start, paths[path], prefix))
        made = fitted(self.document, pieces, self.ruler) if may_recut else pieces
        return as_chunks(self.document, made)

    def _heading_of(self, stretch: Stretch) -> tuple[tuple[str, ...], int]:
        first = max(bisect_right(self._starts, stretch.start) - 1, 0)
        last = max(bisect_right(self._starts, stretch.end - 1) - 1, first)
        path = self.sections[first].heading_path
        for section in self.sections[first + 1 : last + 1]:
            path = _common(path, section.heading_path)
        body_start = self.sections[first].body_start
        is_said = first == last and stretch.start < body_start
        if is_said and self.document.text[body_start : stretch.end].strip():
            return path, body_start
        return path, stretch.start

    def _shortened(self, path: tuple[str, ...]) -> tuple[str, ...]:
        return self.ruler.shortened(path, self._most_context) if self.ruler.is_tokens else path


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    n_same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        n_same += 1
    return tuple(one[:n_same])
