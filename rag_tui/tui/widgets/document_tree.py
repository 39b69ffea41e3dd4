"""Folders, documents and headings of an index, with the number of chunks under each."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from rag_tui.engine.types import Chunk, Document, Heading
from rag_tui.tui import format as fmt

MAX_CHILDREN = 2_000
"""Entries of one folder that are drawn: a tree line costs 40 µs, and nobody scrolls further."""


@dataclass(frozen=True, slots=True)
class TreeTarget:
    """What a line of the tree stands for."""

    kind: Literal["folder", "document", "heading", "note"]
    path: str = ""
    """Folder path ending in ``/`` (empty for the root), or a document id."""
    start: int = 0
    """Character offsets of a heading's section in its document, end-exclusive."""
    end: int = 0

    def holds(self, chunk: Chunk) -> bool:
        """Whether the chunk lies in this folder, document or section, at least in part."""
        match self.kind:
            case "folder":
                return chunk.doc_id.startswith(self.path)
            case "document":
                return chunk.doc_id == self.path
            case "heading":
                overlaps = chunk.start < self.end and chunk.end > self.start
                return chunk.doc_id == self.path and overlaps
            case _:
                return False


class DocumentTree(Tree[TreeTarget]):
    """A tree that makes the lines of a folder or document when it is first opened."""

    DEFAULT_CSS = """
    DocumentTree { min-width: 4; height: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Next line", show=False, id="tree.down"),
        Binding("k", "cursor_up", "Previous line", show=False, id="tree.up"),
        Binding("right,l", "open_node", "Open", show=False, id="tree.open"),
        Binding("left,h", "close_node", "Close or go to the parent", show=False, id="tree.close"),
        Binding("g", "scroll_home", "First line", show=False, id="tree.first"),
        Binding("G", "scroll_end", "Last line", show=False, id="tree.last"),
    ]
    BINDING_GROUP_TITLE = "Document tree"

    @dataclass
    class Chosen(Message):
        """A folder, document or heading was chosen with enter or a click."""

        tree: DocumentTree
        target: TreeTarget

        @property
        def control(self) -> DocumentTree:
            """The tree itself."""
            return self.tree

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the name every Textual widget uses
        classes: str | None = None,
    ) -> None:
        super().__init__(_label("", 0), TreeTarget("folder"), id=id, classes=classes)
        # Enter chooses; opening and closing have keys and the arrow of their own.
        self.auto_expand = False
        self._documents: dict[str, Document] = {}
        self._chunks: dict[str, list[Chunk]] = {}

    def show(self, name: str, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        """Show these documents and open the first level.

        Args:
            name: What to call the root, usually the folder's name.
            documents: By path.
            chunks: By document, then start.
        """
        self._documents = {document.doc_id: document for document in documents}
        self._chunks = {}
        for chunk in chunks:
            self._chunks.setdefault(chunk.doc_id, []).append(chunk)
        self.clear()
        self.root.data = TreeTarget("folder")
        self.root.set_label(_label(name, len(chunks)))
        self._fill(self.root)
        self.root.expand()

    @on(Tree.NodeExpanded)
    def _fill_on_opening(self, event: Tree.NodeExpanded[TreeTarget]) -> None:
        event.stop()
        if not event.node.children:
            self._fill(event.node)

    @on(Tree.NodeSelected)
    def _choose(self, event: Tree.NodeSelected[TreeTarget]) -> None:
        event.stop()
        target = event.node.data
        if target is not None and target.kind != "note":
            self.post_message(self.Chosen(self, target))

    def action_open_node(self) -> None:
        """Open the line of the cursor, or go to its first child."""
        node = self.cursor_node
        if node is not None and node.allow_expand:
            if node.is_expanded:
                self.action_cursor_down()
            else:
                node.expand()

    def action_close_node(self) -> None:
        """Close the line of the cursor, or go to its parent."""
        node = self.cursor_node
        if node is None:
            return
        if node.allow_expand and node.is_expanded:
            node.collapse()
        elif node.parent is not None:
            self.move_cursor(node.parent)

    def _fill(self, node: TreeNode[TreeTarget]) -> None:
        target = node.data
        if target is None:
            return
        if target.kind == "folder":
            self._fill_folder(node, target.path)
        elif target.kind == "document":
            self._fill_document(node, target.path)

    def _fill_folder(self, node: TreeNode[TreeTarget], folder: str) -> None:
        counts: Counter[str] = Counter()
        for doc_id in self._documents:
            if doc_id.startswith(folder):
                name, slash, _ = doc_id[len(folder) :].partition("/")
                counts[name + slash] += len(self._chunks.get(doc_id, ()))
        # Folders first, as file managers do.
        names = sorted(counts, key=lambda name: (not name.endswith("/"), name))
        for name in names[:MAX_CHILDREN]:
            if name.endswith("/"):
                node.add(_label(name, counts[name]), TreeTarget("folder", folder + name))
            else:
                document = self._documents[folder + name]
                node.add(
                    _label(name, counts[name]),
                    TreeTarget("document", document.doc_id),
                    allow_expand=bool(document.headings),
                )
        if len(names) > MAX_CHILDREN:
            note = f"… {len(names) - MAX_CHILDREN:,} more; filter the list to reach them"
            node.add_leaf(fmt.plain(note, "dim"), TreeTarget("note"))

    def _fill_document(self, node: TreeNode[TreeTarget], doc_id: str) -> None:
        document = self._documents[doc_id]
        chunks = self._chunks.get(doc_id, [])
        starts = [chunk.start for chunk in chunks]
        ends = [chunk.end for chunk in chunks]
        above: list[tuple[int, TreeNode[TreeTarget]]] = [(0, node)]
        sections = zip(document.headings, _section_ends(document), strict=True)
        for heading, end in itertools.islice(sections, MAX_CHILDREN):
            while above[-1][0] >= heading.level:
                above.pop()
            parent = above[-1][1]
            parent.allow_expand = True
            n_chunks = bisect_left(starts, end) - bisect_right(ends, heading.start)
            target = TreeTarget("heading", doc_id, heading.start, end)
            label = _label(heading.title, max(n_chunks, 0))
            line = parent.add(label, target, expand=True, allow_expand=False)
            above.append((heading.level, line))


def _section_ends(document: Document) -> list[int]:
    """Where each heading's section ends: at the next heading of its level or above."""
    ends: list[int] = []
    later: list[Heading] = []
    for heading in reversed(document.headings):
        while later and later[-1].level > heading.level:
            later.pop()
        ends.append(later[-1].start if later else len(document.text))
        later.append(heading)
    return ends[::-1]


def _label(name: str, n_chunks: int) -> Text:
    """The name, then the number of chunks, dim."""
    return Text.assemble(fmt.plain(name or "(no name)"), (f"  {n_chunks:,}", "dim"))
