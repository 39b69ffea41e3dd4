"""What a loader makes of one file, before it becomes a `Document`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rag_tui.engine.errors import CorpusError
from rag_tui.engine.types import EMPTY, FileState, Heading, Page

INSTALL_FORMATS = 'pip install "rag-tui-explorer[formats]"'


class UnusableFileError(CorpusError):
    """One file that is not indexed; the others are not affected."""

    def __init__(self, reason: str, *, state: FileState, hint: str = "") -> None:
        super().__init__(reason, hint)
        self.state: FileState = state


@dataclass(frozen=True, slots=True)
class Loaded:
    """The text of one file and what its format says about it."""

    text: str
    format: str
    is_markdown: bool = False
    """Whether outline and blocks are to be read from the text."""
    title: str = ""
    """Empty: the only level-1 heading of a Markdown text (in a Markdown file the first), else
    the file's name."""
    headings: tuple[Heading, ...] = ()
    """Only where the text is not Markdown."""
    pages: tuple[Page, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    notes: tuple[str, ...] = ()
    is_partial: bool = False
    """Whether something of the file is missing; a note says what."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the pipe to another process."""
        row = {name: getattr(self, name) for name in self.__slots__}
        row["metadata"] = dict(self.metadata)
        row["headings"] = [asdict(heading) for heading in self.headings]
        row["pages"] = [asdict(page) for page in self.pages]
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Loaded:
        """The inverse of `to_json`."""
        return cls(
            **{
                **row,
                "headings": tuple(Heading(**heading) for heading in row["headings"]),
                "pages": tuple(Page(**page) for page in row["pages"]),
                "notes": tuple(row["notes"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text that becomes one page."""

    text: str
    label: str = ""


def join_parts(parts: Iterable[Part], *, gap: str = "\n\n") -> tuple[str, tuple[Page, ...]]:
    """One text of all parts, and a page for each; a part without text keeps its number.

    Surrounding blank lines of a part are dropped; ``gap`` stands between parts and belongs to no
    page.
    """
    texts: list[str] = []
    pages: list[Page] = []
    at = 0
    for number, part in enumerate(parts, start=1):
        text = part.text.strip("\n")
        if not text.strip():
            continue
        if texts:
            texts.append(gap)
            at += len(gap)
        pages.append(Page(number, at, at + len(text), part.label))
        texts.append(text)
        at += len(text)
    return "".join(texts), tuple(pages)


def one_line(text: str) -> str:
    """A title on one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
