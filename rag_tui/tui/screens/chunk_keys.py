"""All keys of the Chunks screen, its panes and its dialogs, for settings and documentation."""

from __future__ import annotations

from textual.binding import BindingType

from rag_tui.tui.screens.chunks import ChunksScreen
from rag_tui.tui.screens.corpus_facts import CorpusFactsScreen
from rag_tui.tui.screens.files import FilesScreen
from rag_tui.tui.screens.recut import RecutScreen
from rag_tui.tui.screens.warnings import WarningsScreen
from rag_tui.tui.widgets.chunk_view import ChunkView
from rag_tui.tui.widgets.document_map import DocumentMap
from rag_tui.tui.widgets.document_tree import DocumentTree


def chunk_keys() -> list[BindingType]:
    """The bindings by screen and pane; those of lists are in the registry `rag_tui.tui.keys`."""
    parts = (
        ChunksScreen, DocumentTree, ChunkView, DocumentMap, RecutScreen, WarningsScreen,
        FilesScreen, CorpusFactsScreen,
    )  # fmt: skip
    return [binding for part in parts for binding in part.BINDINGS]
