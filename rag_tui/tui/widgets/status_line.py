"""The top line: which folder, how much of it is indexed, with which model, how fresh."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from textual.reactive import reactive
from textual.widget import Widget

from rag_tui.tui import format as fmt

if TYPE_CHECKING:
    from textual.content import Content

    from rag_tui.engine.index import Index

Phase = Literal[
    "opening", "indexing", "embedding", "fresh", "keyword only", "not refreshed", "failed"
]


@dataclass(frozen=True, slots=True)
class CorpusStatus:
    """What the app knows of the folder it shows."""

    folder: str
    phase: Phase = "opening"
    message: str = ""
    hint: str = ""
    n_documents: int | None = None
    n_chunks: int | None = None
    model: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether an indexing job is running."""
        return self.phase in ("opening", "indexing", "embedding")

    def parts(self) -> list[str]:
        """The status in pieces, most important first."""
        found = [self.folder]
        if self.n_documents is not None and self.n_chunks is not None:
            found += [fmt.count(self.n_documents, "doc"), fmt.count(self.n_chunks, "chunk")]
        if self.model:
            found.append(self.model.rpartition("/")[2])
        found.append(f"{self.phase}…" if self.is_busy else self.phase)
        return found


def status_of(index: Index | None, folder: str, phase: Phase) -> CorpusStatus:
    """The status that goes with an index."""
    if index is None:
        return CorpusStatus(folder, phase)
    return CorpusStatus(
        folder,
        phase,
        n_documents=len(index.documents),
        n_chunks=len(index.chunks),
        model=index.manifest.embedder_name if index.vectors is not None else "",
    )


class StatusLine(Widget):
    """One line of text, cut to the width; modes stand at the right when there is room."""

    DEFAULT_CSS = """
    StatusLine { height: 1; min-width: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    MODES = ("1 Search  2 Chunks  3 Evaluate", "1 Search  2 Chunks")
    """As said at the right; the second where the first has no room."""

    status: reactive[CorpusStatus] = reactive(CorpusStatus(""))

    def render(self) -> Content:
        """The line for the present width."""
        width = self.size.width
        left = " · ".join(fmt.one_line(part) for part in self.status.parts())
        if width >= 100:
            left = f"rag-tui  {left}"
        if width - len(self.MODES[0]) - 2 < cell_len(left) and self.status.model:
            # How to get to the other screen is worth more than the model's name, which the
            # vector list says too.
            shorter = replace(self.status, model="")
            left = " · ".join(fmt.one_line(part) for part in shorter.parts())
        for modes in self.MODES:
            spare = width - len(modes) - 2
            if spare >= cell_len(left):
                return fmt.content(fmt.fit(left, spare + 2) + modes)
        return fmt.content(fmt.clip(left, max(0, width)))
