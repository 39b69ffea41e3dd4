"""Palette entries for what a corpus holds: documents, saved questions, lists, presets, exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from textual.command import Hit, Hits
from textual.screen import ModalScreen

from rag_tui.tui import format as fmt
from rag_tui.tui.commands import Command, Commands, as_help, highlighted
from rag_tui.tui.screens.search import SearchScreen

if TYPE_CHECKING:
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import Document
    from rag_tui.tui.app import RagTuiApp

MAX_HITS = 50
"""Documents that are offered at most; as many questions."""
WEAK = 0.05
"""Score of what was found in another way than the palette's own matching."""


def find_documents(
    documents: Sequence[Document], typed: str, *, limit: int = MAX_HITS
) -> tuple[Document, ...]:
    """The documents that fit best to what was typed; none for blanks.

    In this order: the file's name begins with it; all its words are in the name; in the path; in
    path and title; its characters come in this order in the path. Shorter paths first.
    """
    words = typed.casefold().split()
    if not words:
        return ()
    joined = " ".join(words)
    letters = "".join(words)
    found: list[tuple[int, int, str, Document]] = []
    for document in documents:
        path = document.doc_id.casefold()
        name = path.rpartition("/")[2]
        if name.startswith(joined):
            tier = 0
        elif all(word in name for word in words):
            tier = 1
        elif all(word in path for word in words):
            tier = 2
        elif all(word in f"{path} {document.title}".casefold() for word in words):
            tier = 3
        elif _are_scattered(letters, path):
            tier = 4
        else:
            continue
        found.append((tier, len(path), path, document))
    found.sort(key=lambda one: one[:3])
    return tuple(document for *_, document in found[:limit])


def _are_scattered(letters: str, text: str) -> bool:
    """Whether the letters stand in a text in this order, whatever is between them."""
    place = -1
    return all((place := text.find(letter, place + 1)) >= 0 for letter in letters)


class CorpusCommands(Commands):
    """Go to a document, ask a saved question, go to a list, apply a preset, export.

    Documents and questions are looked for only when something is typed. Over a dialog there is
    nothing: its keys come first.
    """

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def _search_screen(self) -> SearchScreen | None:
        screen = self.workbench.search_screen
        is_free = not isinstance(self.screen, ModalScreen)
        return screen if is_free and isinstance(screen, SearchScreen) else None

    def commands(self) -> Iterator[Command]:
        """The entries that are always offered."""
        screen, session = self._search_screen, self.workbench.session
        if screen is None or session is None:
            return
        for place, result_list in enumerate(screen.lists.values()):
            title = fmt.clip(fmt.one_line(result_list.head.title), 60)
            yield Command(
                f"Go to list: {title}",
                "A column of the Search screen",
                partial(self._in_search, partial(screen.action_show_list, place)),
            )
        for name in screen.presets:
            yield Command(
                f"Preset: {fmt.clip(fmt.one_line(name), 60)}",
                "Apply a saved set of knobs",
                partial(self._in_search, partial(screen.apply_preset, name)),
            )
        yield Command(
            "Columns as in the settings",
            "Show the lists that the settings name",
            partial(self._in_search, screen.reset_columns),
        )
        yield Command(
            "Export this search",
            "The lists of the present question to a file",
            partial(self._in_search, screen.export_search),
        )

    async def search(self, query: str) -> Hits:
        """Also documents and saved questions."""
        async for hit in super().search(query):
            yield hit
        index = self.workbench.index
        if index is None or self._search_screen is None or not query.strip():
            return
        from rag_tui.tui.jobs import in_thread

        matcher = self.matcher(query)
        found = await in_thread(lambda _: _documents_with_chunks(index, query), "palette")
        titles = [fmt.clip(fmt.one_line(document.doc_id), 200) for document, _ in found]
        # The palette sorts by score: none may be below that of a document which fits less.
        scores = [matcher.match(title) or WEAK for title in titles]
        kept = list(accumulate(reversed(scores), max))[::-1]
        for (document, chunk_id), title, score in zip(found, titles, kept, strict=True):
            yield Hit(
                score,
                highlighted(matcher, title),
                partial(self.workbench.show_in_chunks, chunk_id, frozenset()),
                help=as_help(f"Document · {fmt.clip(fmt.one_line(document.title), 100)}"),
            )
        if self.screen is self._search_screen:
            return  # there the labelled questions are offered already
        async for hit in self._questions(query):
            yield hit

    async def _questions(self, query: str) -> Hits:
        from rag_tui.tui.labels import desk_of

        screen = self._search_screen
        if screen is None:
            return
        matcher = self.matcher(query)
        words = query.casefold().split()
        n_found = 0
        for question in (await desk_of(self.workbench).read()).questions:
            if not all(word in question.text.casefold() for word in words):
                continue
            shown = fmt.clip(fmt.one_line(question.text), 200)
            ask = partial(screen.ask_question, question.text)
            yield Hit(
                matcher.match(shown) or WEAK,
                highlighted(matcher, shown),
                partial(self._in_search, ask),
                help="Ask this saved question",
            )
            n_found += 1
            if n_found == MAX_HITS:
                return

    async def _in_search(self, run: Callable[[], object]) -> None:
        await self.workbench.action_show_mode("search")
        # The mode's screen has to be in front before anything in it can have the focus.
        self.workbench.call_later(run)


def _documents_with_chunks(index: Index, query: str) -> list[tuple[Document, str]]:
    """Documents with the id of their first chunk; those without chunks cannot be shown."""
    found = find_documents(index.documents, query)
    firsts = ((document, index.positions_in.get(document.doc_id)) for document in found)
    return [(document, index.chunks[at[0]].chunk_id) for document, at in firsts if at]
