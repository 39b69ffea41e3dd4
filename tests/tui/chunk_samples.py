"""A small index made by hand, and an app that holds nothing but an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from textual.app import App
from textual.reactive import var
from textual.screen import Screen

from rag_tui.engine.index import Index, Manifest
from rag_tui.engine.retrievers.bm25 import BM25Postings
from rag_tui.engine.types import Chunk, Document, FileReport, Heading


def make_document(doc_id: str, sections: Sequence[tuple[str, str]], *, title: str) -> Document:
    """A document with a level-1 title and a level-2 heading before each section's text."""
    text = f"# {title}\n\n"
    headings = [Heading(1, title, 0, len(text) - 1)]
    for name, body in sections:
        start = len(text)
        text += f"## {name}\n\n"
        headings.append(Heading(2, name, start, len(text) - 1))
        text += f"{body}\n\n"
    return Document(doc_id, title, text, sha256="0" * 64, headings=tuple(headings))


def chunks_of(document: Document) -> list[Chunk]:
    """One chunk for each level-2 section."""
    sections = document.headings[1:]
    ends = [heading.start for heading in sections[1:]] + [len(document.text)]
    return [
        Chunk(
            chunk_id=f"{document.doc_id}#{ordinal}",
            doc_id=document.doc_id,
            ordinal=ordinal,
            start=heading.start,
            end=end,
            text=document.text[heading.start : end],
            heading_path=(document.title, heading.title),
            body_offset=heading.body_start - heading.start,
            line_start=document.text.count("\n", 0, heading.start) + 1,
            line_end=document.text[:end].rstrip().count("\n") + 1,
        )
        for ordinal, (heading, end) in enumerate(zip(sections, ends, strict=True))
    ]


def make_index(
    documents: Sequence[Document],
    *,
    n_tokens: Sequence[int] | None = None,
    limit: int = 256,
    reports: Sequence[FileReport] = (),
    folder: Path = Path("/nowhere/guesthouse"),
) -> Index:
    """An index without postings and vectors."""
    chunks = tuple(chunk for document in documents for chunk in chunks_of(document))
    manifest = Manifest(
        folder=str(folder),
        created="2026-01-01T00:00:00Z",
        chunking={},
        chunker_fingerprint="c",
        analyzer_fingerprint="a",
        embedder_name="none",
        embedder_fingerprint="",
        dimensions=0,
        max_tokens=limit,
        versions={},
    )
    lengths = n_tokens if n_tokens is not None else [len(chunk.text) for chunk in chunks]
    return Index(
        folder=folder,
        manifest=manifest,
        documents=tuple(documents),
        chunks=chunks,
        bm25=cast(BM25Postings, None),
        vectors=None,
        n_tokens=np.array(lengths, dtype=np.int32),
        reports=tuple(reports),
    )


def guesthouse(folder: Path = Path("/nowhere/guesthouse")) -> Index:
    """Two documents, five chunks of 40, 300, 20, 20 and 90 tokens; the limit is 256."""
    check_in = make_document(
        "check-in.md",
        [
            ("Arrival", "Come between 15:00 and 21:00."),
            ("Lockbox", "The lockbox beside the door holds a key."),
            ("Luggage", "Leave bags in the hall."),
        ],
        title="Check-in",
    )
    rules = make_document(
        "rules/house.md",
        [("Pets", "Dogs sleep in the kitchen."), ("Quiet", "Please be quiet after 22:00.")],
        title="House rules",
    )
    return make_index(
        [check_in, rules],
        n_tokens=[40, 300, 20, 20, 90],
        folder=folder,
        reports=[
            FileReport("check-in.md", "indexed", n_chunks=3),
            FileReport("photo.jpg", "skipped", "not a text format"),
            FileReport("rules/house.md", "partly", "a table was cut", n_chunks=2),
            FileReport("secret.md", "failed", "permission denied"),
        ],
    )


class IndexApp(App[None]):
    """The least app a screen with an index needs."""

    index: var[Index | None] = var[Index | None](None)

    def __init__(self, screen: Screen[None], index: Index | None) -> None:
        super().__init__()
        self.set_reactive(IndexApp.index, index)
        self._first = screen

    def on_mount(self) -> None:
        """Show the screen under test."""
        self.push_screen(self._first)


def rows_on_screen(app: App[None]) -> list[str]:
    """The characters of every line of the terminal."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip) for strip in strips]


def screen_text(app: App[None]) -> str:
    """All that can be read on the terminal."""
    return "\n".join(rows_on_screen(app))
