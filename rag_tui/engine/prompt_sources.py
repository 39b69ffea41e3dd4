"""A chunk, and what stands around it in its document, as one source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_tui.engine.types import AddedPart, Chunk, Source

Extra = tuple[Sequence[Chunk], Sequence[Chunk]]
"""The chunks before and after one, both in document order."""


def source_of(chunk: Chunk, number: int, extra: Extra, taken: set[str]) -> Source:
    """The source of a chunk with its neighbours.

    Text that neighbours share with each other (overlap) comes once. Between parts that do not
    touch in the document stands a blank line.

    Args:
        chunk: The chunk itself; with nothing before it, its own heading lines are left out.
        number: The number of the source.
        extra: The chunks before and after it.
        taken: Ids of chunks that stand in a source already; those added here are put in.
    """
    before, after = extra
    ahead = _free(chunk, reversed(before), taken)[::-1]
    behind = _free(chunk, after, taken)
    if not ahead and not behind:
        text = chunk.body or chunk.text.strip()
        added: tuple[AddedPart, ...] = ()
    else:
        text, added = _joined(ahead, chunk, behind)
    return Source(
        number=number,
        chunk_id=chunk.chunk_id,
        path=chunk.doc_id,
        heading=chunk.context,
        text=text,
        added=added,
    )


def _free(chunk: Chunk, nearest_first: Iterable[Chunk], taken: set[str]) -> list[Chunk]:
    found: list[Chunk] = []
    for one in nearest_first:
        if one.doc_id != chunk.doc_id or one.chunk_id in taken:
            break
        taken.add(one.chunk_id)
        if one.text.strip():
            found.append(one)
    return found


def _joined(
    ahead: Sequence[Chunk], chunk: Chunk, behind: Sequence[Chunk]
) -> tuple[str, tuple[AddedPart, ...]]:
    text = ""
    end = 0
    spans: list[tuple[str, int, int]] = []
    for part in (*ahead, chunk, *behind):
        # What the chunk itself holds is the chunk's, whoever holds it too.
        stop = min(part.end, chunk.start) if part in ahead else part.end
        start = max(part.start, end)
        own = part.text[start - part.start : max(stop - part.start, 0)]
        if not text:
            skipped = part.body_offset if part is chunk else 0
            own = own[skipped:].lstrip()
        elif start > end and own.strip():
            text = f"{text.rstrip()}\n\n"
            own = own.lstrip()
        if own:
            spans.append((part.chunk_id, len(text), len(text) + len(own)))
            text += own
        end = max(end, stop)
    kept = text.rstrip()
    added = tuple(
        AddedPart(chunk_id, start, min(stop, len(kept)))
        for chunk_id, start, stop in spans
        if chunk_id != chunk.chunk_id and start < len(kept)
    )
    return kept, added
