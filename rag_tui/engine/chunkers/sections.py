"""Sections of a document: from one heading to the next, tiling the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from rag_tui.engine.types import Document, Heading


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text under one heading. Offsets are into the document's text."""

    start: int
    """At the first heading line that belongs to it, or where the text begins."""
    body_start: int
    """Just after its own heading."""
    end: int
    heading_path: tuple[str, ...]
    """Document title and headings above, outermost first; no empty ones."""


def sections(document: Document) -> Iterator[Section]:
    """The sections that hold text, in order; each starts where the one before ends.

    Any heading starts a section. One without text of its own (blank, or nothing but rules) is
    joined to the front of the next, so that the lines of ``# Title`` and ``## First`` stand
    together; at the very end of a document it belongs to none.
    """
    start = document.body_start
    for body_start, end, path in _stretches(document):
        if not _is_blank(document.text, body_start, end):
            yield Section(start, body_start, end, path)
            start = end


def _stretches(document: Document) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    headings = document.headings
    ends = [*(heading.start for heading in headings), len(document.text)]
    # A file's name is no text of it: as context it would be a word that every file has.
    # A file's name or a record's id stands in for a missing title, and is no context.
    names = (PurePosixPath(document.doc_id).name, document.doc_id.rpartition("#")[2])
    title = document.title if document.title not in names else ""
    yield document.body_start, ends[0], (title,) if title else ()
    above: list[Heading] = []
    for heading, end in zip(headings, ends[1:], strict=True):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        yield heading.body_start, end, _path(title, above)


def _path(title: str, above: list[Heading]) -> tuple[str, ...]:
    titles = [heading.title for heading in above]
    if above[0].level == 1 and titles[0] == title:
        del titles[0]
    return tuple(part for part in (title, *titles) if part)


def _is_blank(text: str, start: int, end: int) -> bool:
    return not text[start:end].strip().strip("-*_ \t\n")
