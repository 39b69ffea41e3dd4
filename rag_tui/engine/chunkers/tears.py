"""Whether a chunk begins or ends in the middle of a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_tui.engine.chunkers.repeats import blocks_in
from rag_tui.engine.types import Chunk, Document

_STOPS = ".!?…:;。！？｡：；،؟।"
"""What ends a sentence, or brings a list or a quotation: nothing is torn behind it."""
_CLOSING = "\"')]}”’»*_`」』）】"
_NEW_ITEM = re.compile(r"[-*+•·–—#>|`~=<\[]|\d{1,4}[.)]|[A-Za-z][.)]\s")
"""How a line begins that goes on with nothing: lists, headings, quotations, tables, fences."""
_NO_STOPS = re.compile("[\u0e00-\u0eff\u1780-\u17ff]")
"""Thai, Lao, Khmer: sentences end with a space, as clauses do, so a space tears nothing."""
_REACH = 200
_LONGEST_SENTENCE = 2000
_SENTENCE_BREAK = re.compile(
    r"(?<=[.!?…])[\"')\]}”’»*_`]*\s+|(?<=[。！？｡।])"  # a mark, and what closes behind it
    r"|\n[ \t]*\n\s*|\n(?=[ \t]*(?:[-*+#>|]|\d{1,4}[.)])\s)"  # a paragraph, a list item
)


@dataclass(frozen=True, slots=True)
class Tears:
    """Where a chunk tears a sentence."""

    begins: bool = False
    """Its first sentence began before it; never so below a heading of its own."""
    ends: bool = False
    """Its last sentence goes on behind it."""
    is_fractured: bool = False
    """One of these sentences is whole in neither neighbour: no overlap mends it."""


def find_tears(
    chunk: Chunk,
    document: Document,
    *,
    previous: Chunk | None = None,
    following: Chunk | None = None,
) -> Tears:
    """Whether a chunk begins or ends within a sentence.

    Args:
        chunk: One of the document's.
        document: Where it comes from.
        previous: The chunk before it in the same document.
        following: The chunk behind it in the same document.
    """
    begins = chunk.body_offset == 0 and _is_torn(document, chunk.start)
    ends = _is_torn(document, chunk.end)
    lost = (begins and not _holds_sentence(previous, document, chunk.start)) or (
        ends and not _holds_sentence(following, document, chunk.end)
    )
    return Tears(begins, ends, lost)


def _holds_sentence(chunk: Chunk | None, document: Document, at: int) -> bool:
    """Whether a chunk holds the whole sentence that runs across a place."""
    if chunk is None:
        return False
    low = max(0, at - _LONGEST_SENTENCE)
    start = max((m.end() for m in _SENTENCE_BREAK.finditer(document.text, low, at)), default=low)
    found = _SENTENCE_BREAK.search(document.text, at, at + _LONGEST_SENTENCE)
    end = found.start() if found else min(at + _LONGEST_SENTENCE, len(document.text))
    return chunk.start <= start and end <= chunk.end


def _is_torn(document: Document, at: int) -> bool:
    """Whether a sentence runs across a place.

    It does when no paragraph or page ends there, the text before ends with no sentence mark, and,
    where a line ends there, the next one begins with a small letter or a script without capitals.
    Places in code and tables tear no sentence.
    """
    if not document.body_start < at < len(document.text):
        return False
    before = document.text[max(document.body_start, at - _REACH) : at]
    after = document.text[at : at + _REACH]
    head, tail = before.rstrip(), after.lstrip()
    if not head or not tail:
        return False
    gap = before[len(head) :] + after[: len(after) - len(tail)]
    if gap.count("\n") > 1 or "\f" in gap or _ends_sentence(head):
        return False
    if any(block.kind in ("code", "table") for block in blocks_in(document, at - 1, at + 1)):
        return False
    if any(heading.start <= at < heading.body_start for heading in document.headings):
        return False
    if gap and _NO_STOPS.match(head[-1]):
        return False
    if "\n" not in gap:
        return True
    return not _NEW_ITEM.match(tail) and _goes_on(tail[0])


def _ends_sentence(head: str) -> bool:
    bare = head.rstrip(_CLOSING)
    return not bare or bare[-1] in _STOPS


def _goes_on(character: str) -> bool:
    return character.isalpha() and not character.isupper() and not character.istitle()
