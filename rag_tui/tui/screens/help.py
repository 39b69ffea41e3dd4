"""All keys that work where the user is, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from rag_tui import __version__
from rag_tui.tui import format as fmt

ABOUT = (
    "rag-tui shows which stage of retrieval is to blame for a bad answer: what each method ranks "
    "and why, what the index really holds, the exact prompt, and the answer with its sources."
)

KEY_WIDTH = 18

Row = tuple[str, str]
"""Keys as displayed, and what they do."""


class HelpScreen(ModalScreen[None]):
    """The keys of the screen beneath: of the focused pane, the other panes, the screen, the app."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > VerticalScroll {
            width: 90%;
            max-width: 92;
            min-width: 10;
            height: 90%;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        & Static { width: 1fr; min-width: 4; height: auto; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "close", "Close", id="help.close"),
        Binding("j", "scroll(1)", "Down", show=False, id="help.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="help.up"),
    ]

    def __init__(self, keymap: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make the screen.

        Args:
            keymap: Binding ids to comma-separated keys, as given to ``App.set_keymap``. The keys
                of focus, screen and app are known to Textual; this is for the other panes.
        """
        super().__init__()
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """The text in a scrolling frame."""
        with VerticalScroll() as frame:
            frame.border_title = fmt.content(f"rag-tui {__version__}")
            frame.border_subtitle = "esc: close"
            yield Static(self._text(), markup=False)

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        """Back to the screen beneath."""
        if self.is_current:
            self.dismiss()

    def action_scroll(self, lines: int) -> None:
        """Scroll by some lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _text(self) -> Content:
        beneath = self._beneath()
        about = (beneath.HELP if beneath is not None else None) or ABOUT
        parts = [fmt.content(about.strip(), newlines=True)]
        groups = {} if beneath is None else key_groups(beneath, keymap=self._keymap)
        for title, rows in groups.items():
            parts.append(Content.styled(f"\n\n{fmt.display(title)}", "bold $text-primary"))
            for keys, description in rows:
                parts.append(Content.styled("\n" + fmt.fit(keys, KEY_WIDTH) + " ", "bold"))
                parts.append(fmt.content(description))
        return Content("").join(parts)

    def _beneath(self) -> Screen[object] | None:
        stack = self.app.screen_stack
        place = stack.index(self) if self in stack else len(stack)
        return stack[place - 1] if place else None


def key_groups(
    screen: Screen[object], *, keymap: Mapping[str, str] = MappingProxyType({})
) -> dict[str, list[Row]]:
    """The keys of a screen by where they act, each action once with all its keys.

    Order: the screen; the focused pane and what is around it, from the inside; the other panes of
    the screen; the app. Titles are the nodes' ``BINDING_GROUP_TITLE``, else their class names.

    Args:
        screen: The screen, which need not be the topmost.
        keymap: See `HelpScreen`.
    """
    app = screen.app
    active: dict[DOMNode, list[Binding]] = {}
    for key, found in screen.active_bindings.items():
        if not found.binding.system:
            active.setdefault(found.node, []).append(_with_key(found.binding, key))
    groups: dict[str, list[Row]] = {}
    outer = (screen, app)

    def add(node: DOMNode) -> None:
        bindings = active.get(node, [])
        actions = {binding.action for binding in bindings}
        # What can do nothing at this moment is not active, but has its key all the same.
        idle = [b for b in _declared(node, keymap) if b.action not in actions]
        if rows := _rows(app, [*bindings, *idle]):
            groups.setdefault(_title(node), []).extend(rows)

    add(screen)
    for node, bindings in active.items():
        if node not in outer:
            groups.setdefault(_title(node), []).extend(_rows(app, bindings))
    for node, bindings in _unfocused(screen, keymap):
        if rows := _rows(app, bindings):
            groups.setdefault(_title(node), rows)
    add(app)
    return groups


def _unfocused(
    screen: Screen[object], keymap: Mapping[str, str]
) -> Iterator[tuple[DOMNode, list[Binding]]]:
    """The own bindings of this package's panes that do not have the focus."""
    for node in screen.query("*").results():
        if node.can_focus and node is not screen.focused:
            yield node, _declared(node, keymap)


def _declared(node: DOMNode, keymap: Mapping[str, str]) -> list[Binding]:
    """The bindings that this package's classes give a node, remapped."""
    declared = [
        binding
        for kind in type(node).__mro__
        if kind.__module__.startswith("rag_tui.")
        for binding in Binding.make_bindings(vars(kind).get("BINDINGS", ()))
    ]
    # A binding of several keys became one for each; remapping replaces them all at once.
    remapped = {
        binding.id: binding.with_key(keymap[binding.id])
        for binding in declared
        if binding.id is not None and binding.id in keymap
    }
    kept = [binding for binding in declared if binding.id not in remapped]
    return [*kept, *Binding.make_bindings(remapped.values())]


def _with_key(binding: Binding, keys: str) -> Binding:
    return binding if binding.key == keys else binding.with_key(keys)


def _rows(app: App[object], bindings: Iterable[Binding]) -> list[Row]:
    """One row for each action: its keys, then label and explanation."""
    keys: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for binding in bindings:
        shown = app.get_key_display(binding)
        if binding.description and shown not in keys.setdefault(binding.action, []):
            keys[binding.action].append(shown)
            tooltip = binding.tooltip
            text = f"{binding.description}: {tooltip}" if tooltip else binding.description
            texts.setdefault(binding.action, text)
    return [(" ".join(keys[action]), text) for action, text in texts.items()]


def _title(node: DOMNode) -> str:
    if isinstance(node, App):
        return "Everywhere"
    return node.BINDING_GROUP_TITLE or type(node).__name__
