"""Palette entries for labelling: judging blind, drafting, and every labelled question by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import Hit, Hits

from rag_tui.tui import format as fmt
from rag_tui.tui.commands import Command, Commands, highlighted
from rag_tui.tui.screens.search_labels import SearchLabels

if TYPE_CHECKING:
    from rag_tui.tui.app import RagTuiApp


class LabelCommands(Commands):
    """What has no key, and the questions of the label file."""

    def commands(self) -> Iterator[Command]:
        """The entries that are always offered."""
        from rag_tui.tui.screens.drafts import open_drafts
        from rag_tui.tui.screens.pooled import open_pooled

        app = cast("RagTuiApp", self.app)
        yield Command(
            "Judge blind: this question",
            "The best rows of all columns in random order, without telling whose they are",
            partial(open_pooled, app),
        )
        yield Command(
            "Judge blind: all questions without a judgement",
            "The same for every question of the file that nothing was judged for",
            partial(open_pooled, app, all_unjudged=True),
        )
        yield Command(
            "Draft questions",
            "Questions proposed for passages of the documents: accept, edit or reject each",
            partial(open_drafts, app),
        )

    async def search(self, query: str) -> Hits:
        """Also the labelled questions, by their words."""
        async for hit in super().search(query):
            yield hit
        screen = self.screen
        if not isinstance(screen, SearchLabels) or cast("RagTuiApp", self.app).index is None:
            return
        matcher = self.matcher(query)
        for question in (await screen.desk.read()).questions:
            shown = fmt.one_line(question.text)
            score = matcher.match(shown)
            if score > 0:
                ask = partial(screen.ask_question, question.text)
                title = highlighted(matcher, shown)
                yield Hit(score, title, ask, help="Ask this labelled question")
