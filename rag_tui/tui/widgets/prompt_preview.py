"""The exact request, what it costs, and its sources, which can be changed for a what-if."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from rag_tui.tui import format as fmt
from rag_tui.tui.keys import bindings
from rag_tui.tui.prompt_facts import PromptFacts, SourceRow
from rag_tui.tui.widgets.growing_text import SCROLLING
from rag_tui.tui.widgets.source_list import CandidateList
from rag_tui.tui.widgets.virtual_list import VirtualList

STACKED_BELOW = 84
"""Columns from which the list stands beside the text, not above it."""
DISPLAYED = 20_000
"""Characters drawn of one part: wrapping more in one piece would hold up the keyboard."""


class PromptText(VerticalScroll, can_focus=True):
    """The request part by part; only parts that changed are drawn anew."""

    BINDINGS = SCROLLING
    BINDING_GROUP_TITLE = "Request text"
    DEFAULT_CSS = """
    PromptText {
        width: 1fr; height: 1fr; min-width: 4;
        & > Static { width: 1fr; min-width: 4; height: auto; }
        & > .-title { color: $text-muted; text-style: bold; }
        & > .-selected { background: $panel; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="prompt-text")
        self._parts: list[tuple[str, str]] = []

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Name and text of each part, as of `PromptFacts.sections`."""
        return tuple(self._parts)

    def show(self, parts: list[tuple[str, str]]) -> None:
        """Show the request."""
        names = [name for name, _ in parts]
        if names != [name for name, _ in self._parts]:
            self.remove_children()
            self.mount_all(
                Static(_titled(*part), markup=False, classes=_class(part)) for part in parts
            )
        else:
            for widget, part, old in zip(self.query(Static), parts, self._parts, strict=False):
                if part != old:
                    widget.update(_titled(*part))
        self._parts = list(parts)

    def select(self, number: int | None, *, scroll: bool) -> None:
        """Mark a source's part, and bring it into view."""
        wanted = str(number) if number is not None else ""
        for widget, (name, _) in zip(self.query(Static), self._parts, strict=False):
            widget.set_class(name == wanted, "-selected")
            if name == wanted and scroll:
                self.scroll_to_widget(widget, animate=False, top=True)


class PromptPreview(Vertical):
    """Header, list of candidates, and the text of the request."""

    DEFAULT_CSS = """
    PromptPreview {
        min-width: 4;
        & > #prompt-header { height: auto; max-height: 4; color: $text-muted; }
        & > #prompt-body {
            height: 1fr;
            & > #prompt-side { width: 42%; max-width: 70; min-width: 4; padding-right: 1; }
            & #candidate-remarks {
                height: auto; max-height: 4; min-width: 4; color: $text-warning;
            }
        }
        &.-stacked > #prompt-body {
            layout: vertical;
            & > #prompt-side { width: 1fr; max-width: 100%; height: 45%; padding-right: 0; }
        }
    }
    """
    BINDINGS = bindings("prompt")
    BINDING_GROUP_TITLE = "Prompt"

    class Changed(Message):
        """The prompt is wanted otherwise.

        Args:
            change: ``toggle``, ``pin``, ``edit``, ``up``, ``down``, ``more``, ``fewer``,
                ``order``, ``template``, ``column`` or ``reset``.
            row: The source it is about; None where it is about the prompt, or there is none.
        """

        def __init__(self, change: str, row: SourceRow | None) -> None:
            super().__init__()
            self.change = change
            self.row = row

    _OF_ROW: ClassVar[frozenset[str]] = frozenset({"toggle", "pin", "edit", "up", "down"})

    def __init__(self) -> None:
        super().__init__(id="prompt-preview")
        self._header = Static("", id="prompt-header", markup=False)
        self._remarks = Static("", id="candidate-remarks", markup=False)
        self.candidates = CandidateList()
        self.text = PromptText()
        self.facts: PromptFacts | None = None

    def compose(self) -> ComposeResult:
        """Header; list and text."""
        yield self._header
        with Horizontal(id="prompt-body"):
            with Vertical(id="prompt-side"):
                yield self.candidates
                yield self._remarks
            yield self.text

    def on_mount(self) -> None:
        """Nothing to look at yet."""
        self.query_one("#prompt-body").display = self.facts is not None

    def on_resize(self, event: events.Resize) -> None:
        """One above the other where there is no room beside."""
        self.set_class(event.size.width < STACKED_BELOW, "-stacked")

    @property
    def header_text(self) -> str:
        """The lines above."""
        return str(self._header.content)

    def clear(self, message: str) -> None:
        """Show no prompt, and why."""
        self.facts = None
        self._header.update(fmt.content(message, newlines=True))
        for body in self.query("#prompt-body"):
            body.display = False

    def show(self, facts: PromptFacts) -> None:
        """Show a prompt."""
        self.facts = facts
        self._header.update(fmt.content(facts.header, newlines=True))
        self.query_one("#prompt-body").display = True
        self.text.show(list(facts.sections()))
        self.candidates.show(facts.rows)
        self._follow()

    def on_virtual_list_cursor_moved(self, event: VirtualList.CursorMoved) -> None:
        """The source under the cursor is marked in the text."""
        event.stop()
        self._follow()

    def on_virtual_list_row_chosen(self, event: VirtualList.RowChosen) -> None:
        """Enter switches a source off and on, as space does."""
        event.stop()
        self.action_change("toggle")

    def action_change(self, change: str) -> None:
        """Ask for another prompt."""
        row = self.candidates.row
        if self.facts is not None and (row is not None or change not in self._OF_ROW):
            self.post_message(self.Changed(change, row))

    def _follow(self) -> None:
        row = self.candidates.row
        number = row.source.number if row is not None and row.source is not None else None
        self.text.select(number, scroll=self.candidates.has_focus)
        remarks = row.remarks if row is not None else ()
        self._remarks.update(fmt.content("\n".join(remarks), newlines=True))


def _titled(name: str, text: str) -> Content:
    hidden = len(text) - DISPLAYED
    parts = [] if name.isdecimal() else [Content.styled(f"── {name} ──\n", "dim")]
    parts.append(fmt.content(text[:DISPLAYED], newlines=True))
    if hidden > 0:
        more = f"\n… {fmt.count(hidden, 'more character')}; copying gives all of them"
        parts.append(Content.styled(more, "bold $text-warning"))
    return Content("").join(parts)


def _class(part: tuple[str, str]) -> str:
    return "-source" if part[0].isdecimal() else "-rest"
