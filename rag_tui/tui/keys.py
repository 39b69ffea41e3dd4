"""The one registry of keys: bindings, palette entries and settings are all made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType

Scope = Literal["app", "search", "query", "list", "results", "knobs", "prompt", "answer"]
"""Where a key acts: everywhere, on the Search screen, or while one kind of pane has the focus."""

PROTECTED = frozenset({"ctrl+c", "ctrl+q"})
"""Keys that cannot be taken away from leaving the program."""

_PARTS = {
    "search": frozenset({"query", "list", "results", "knobs", "view", "prompt", "answer"}),
    "chunks": frozenset({"list", "view", "tree", "map"}),
    "recut": frozenset({"map"}),
    "evaluate": frozenset({"list"}),
    "knobs": frozenset({"list"}),
    "prompt": frozenset({"list", "view"}),
    "answer": frozenset({"list", "view"}),
    "results": frozenset({"list"}),
}
"""Scopes that are active inside another one: the panes of a screen."""

_DIALOGS = frozenset(
    {"help", "warnings", "facts", "files", "grade", "pooled", "drafts"}
    | {"compare", "copying", "editing"}
    | {"history", "changed", "bump"}
    | {"passage"}
    | {"columns", "add_column", "presets", "copy_settings"}
    | {"asking", "sure", "groups", "thresholds", "remarks", "runs", "run_change"}
    | {"sweep"}
)
"""Scopes that shut out all others while they are open."""


@dataclass(frozen=True, slots=True)
class Key:
    """One action with its keys."""

    id: str
    """Name in the settings: ``scope.action``."""
    keys: str
    """Default keys, comma-separated."""
    action: str
    label: str
    """For footer, palette and help."""
    tooltip: str
    scope: Scope
    show: bool = False
    """Whether the footer names it."""

    @property
    def binding(self) -> Binding:
        """The Textual binding, remappable by its id."""
        return Binding(
            self.keys, self.action, self.label, show=self.show, tooltip=self.tooltip, id=self.id
        )


def _key(
    scope: Scope, name: str, keys: str, action: str, label: str, tooltip: str, show: bool = False
) -> Key:
    return Key(f"{scope}.{name}", keys, action, label, tooltip, scope, show)


KEYS: tuple[Key, ...] = (
    _key("app", "search", "1", "show_mode('search')", "Search", "The four ranked lists"),
    _key("app", "chunks", "2", "show_mode('chunks')", "Chunks", "What the index holds"),
    _key("app", "evaluate", "3", "show_mode('evaluate')", "Evaluate", "What works best"),
    _key("app", "reindex", "ctrl+r", "reindex", "Refresh index", "Index what has changed"),
    _key("app", "rebuild", "ctrl+shift+r,f9", "rebuild", "Rebuild index", "Index from scratch"),
    _key("app", "help", "question_mark,f1", "help", "Help", "All keys of this screen", True),
    _key("app", "leave", "q", "leave", "Leave", "Pressed twice: leave (ctrl+q: at once)"),
    _key("search", "query", "slash", "focus_query", "Query", "Type a question", True),
    _key("search", "explain", "e", "tab('explain')", "Explain", "Why this chunk, here", True),
    _key("search", "prompt", "p", "tab('prompt')", "Prompt", "The exact request text", True),
    _key("search", "answer", "a", "answer", "Answer", "Answer from the top chunks", True),
    _key("search", "chunk", "c", "tab('chunk')", "Chunk", "The selected chunk's text"),
    _key("search", "tune", "t", "tune", "Tune", "Show or hide the knobs", True),
    _key("search", "copy", "y", "copy", "Copy", "Copy the chunk, prompt or answer"),
    _key("search", "open", "o", "open_source", "Open file", "Open the source in your editor"),
    _key("search", "browse", "b", "browse", "Browse", "Show this chunk among all chunks"),
    _key("search", "previous_list", "left_square_bracket", "list(-1)", "List ←", "List before"),
    _key("search", "next_list", "right_square_bracket", "list(1)", "List →", "Next list"),
    _key(
        "search", "cancel", "escape", "cancel", "Back", "Leave the input, stop running work", True
    ),
    _key("search", "relevant", "r", "relevant", "Relevant", "This chunk answers: label it"),
    _key("search", "not_relevant", "x", "not_relevant", "Not relevant", "Twice: no judgement"),
    _key("search", "unanswerable", "u", "unanswerable", "Unanswerable", "Nothing answers this"),
    _key("search", "undo_label", "U", "undo_label", "Undo label", "Take back the last label"),
    _key("search", "next_question", "n", "next_question(1)", "Next question", "Labelled one"),
    _key("search", "last_question", "N", "next_question(-1)", "Previous question", "Labelled one"),
    _key("search", "compare", "A", "compare_answers", "Compare answers", "Two answers, two ways"),
    _key("search", "columns", "m", "columns", "Columns", "Add, change and remove columns", True),
    _key("search", "undo", "z", "undo", "Undo", "Take back the last change of knobs or columns"),
    _key("search", "redo", "Z", "redo", "Redo", "Make that change again"),
    _key("search", "presets", "P", "presets", "Presets", "Apply and save sets of knobs"),
    _key("search", "copy_settings", "Y", "copy_settings", "Copy settings", "As TOML or Python"),
    _key("search", "bump", "v", "bump", "Bump chart", "How rows move from list to list"),
    _key("search", "history", "H", "history", "History", "Earlier searches: ask again, compare"),
    _key("search", "where", "w", "where", "Where?", "Where is my passage, and why there", True),
    _key("search", "pin", "full_stop", "pin", "Pin", "Keep this chunk marked ◆ in all lists"),
    _key("search", "sentences", "S", "sentences", "Sentences", "Score each sentence alone"),
    _key("query", "ask", "enter", "submit", "Ask", "Search for this question", True),
    _key("query", "older", "up", "history(-1)", "Older", "An earlier question", True),
    _key("query", "newer", "down", "history(1)", "Newer", "A later question"),
    _key("list", "up", "up,k", "move(-1)", "Row up", "Select the row above"),
    _key("list", "down", "down,j", "move(1)", "Row down", "Select the row below"),
    _key("list", "page_up", "pageup,ctrl+u", "page(-1)", "Page up", "One page up"),
    _key("list", "page_down", "pagedown,ctrl+d", "page(1)", "Page down", "One page down"),
    _key("list", "first", "home,g", "first", "First row", "Select the first row"),
    _key("list", "last", "end,G", "last", "Last row", "Select the last row"),
    _key("results", "left", "left,h", "screen.list(-1)", "List left", "The list before this one"),
    _key("results", "right", "right,l", "screen.list(1)", "List right", "The list after this one"),
    _key("list", "open", "enter", "open", "Open", "Go to the text of this chunk"),
    _key("knobs", "less", "left,h,minus", "step(-1)", "Less", "Turn the knob down", True),
    _key("knobs", "more", "right,l,plus", "step(1)", "More", "Turn the knob up", True),
    _key("knobs", "edit", "space", "edit", "Type", "Type a value", True),
    _key("knobs", "reset", "backspace", "reset", "Reset", "All knobs as in the settings"),
    _key("knobs", "reset_one", "delete,0", "reset_one", "Reset one", "This knob as it was set"),
    _key("knobs", "scope", "s", "scope", "One/all", "Knobs of one column or of all", True),
    _key("prompt", "toggle", "space", "change('toggle')", "Off/on", "Leave a source out", True),
    _key("prompt", "up", "K,shift+up", "change('up')", "Move up", "A source one place up", True),
    _key("prompt", "down", "J,shift+down", "change('down')", "Move down", "One place down"),
    _key("prompt", "pin", "f", "change('pin')", "Pin", "In the prompt whatever its rank", True),
    _key("prompt", "edit", "i", "change('edit')", "Edit", "Another text, for a what-if", True),
    _key("prompt", "more", "plus", "change('more')", "More", "One source more", True),
    _key("prompt", "fewer", "minus", "change('fewer')", "Fewer", "One source fewer", True),
    _key("prompt", "order", "s", "change('order')", "Order", "Where the best source stands", True),
    _key("prompt", "template", "T", "change('template')", "Template", "Another prompt template"),
    _key("prompt", "column", "C", "change('column')", "List", "Sources from another list"),
    _key("prompt", "reset", "equals_sign", "change('reset')", "As set", "Take all changes back"),
    _key("answer", "thinking", "T", "thinking", "Thinking", "Unfold or fold the thinking"),
    _key("answer", "correct", "plus", "label('correct')", "Correct", "Call the answer correct"),
    _key("answer", "partly", "equals_sign", "label('partly')", "Partly", "Call it partly correct"),
    _key("answer", "wrong", "minus", "label('wrong')", "Wrong", "Call the answer wrong"),
)


def bindings(scope: Scope) -> list[BindingType]:
    """The Textual bindings of one scope, in the order of the registry."""
    return [key.binding for key in KEYS if key.scope == scope]


def checked_keymap(
    wanted: Mapping[str, str], others: Mapping[str, str] | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """What can be used of a user's keys, and what is wrong with the rest.

    Args:
        wanted: Binding id to comma-separated keys.
        others: Ids and default keys of bindings that are not in this registry.

    Returns:
        The keymap for `App.set_keymap`, and one sentence for each entry that was left out.
    """
    defaults = {key.id: key.keys for key in KEYS} | dict(others or {})
    keymap: dict[str, str] = {}
    problems: list[str] = []
    for binding_id, text in wanted.items():
        keys = [part.strip() for part in text.split(",") if part.strip()]
        if binding_id not in defaults:
            problems.append(f"Unknown key name {binding_id!r} in ui.keys{_nearest(binding_id)}.")
        elif not keys:
            problems.append(f"ui.keys {binding_id!r} names no key; the default stays.")
        elif taken := PROTECTED.intersection(keys):
            problems.append(f"ui.keys {binding_id!r}: {min(taken)} always leaves the program.")
        else:
            keymap[binding_id] = ",".join(_named(keys))
    for binding_id, problem in _clashes(defaults | keymap, keymap).items():
        problems.append(problem)
        del keymap[binding_id]
    return keymap, tuple(problems)


def _clashes(effective: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """One sentence for each changed binding whose key does something else in the same place."""
    found: dict[str, str] = {}
    for binding_id in changed:
        mine = set(effective[binding_id].split(","))
        for other_id, other_keys in effective.items():
            if other_id == binding_id or not _meet(binding_id, other_id):
                continue
            shared = mine.intersection(_named(other_keys.split(",")))
            if shared:
                found[binding_id] = (
                    f"ui.keys {binding_id!r}: {min(shared)} is already the key of {other_id!r}; "
                    "the default stays."
                )
                break
    return found


def _meet(binding_id: str, other_id: str) -> bool:
    """Whether two bindings can be active together.

    A pane's keys, those of its screen and those of the app are; those of two panes are not.
    """
    scope, other = binding_id.partition(".")[0], other_id.partition(".")[0]
    if _DIALOGS.intersection((scope, other)) or scope == other:
        return scope == other
    return (
        "app" in (scope, other) or other in _PARTS.get(scope, ()) or scope in _PARTS.get(other, ())
    )


def _nearest(binding_id: str) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(binding_id, [key.id for key in KEYS], n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _named(keys: Iterable[str]) -> list[str]:
    """Textual's names of keys, some of which may be written as characters."""
    return [binding.key for binding in Binding.make_bindings([Binding(",".join(keys), "")])]


def defaults_of(declared: Iterable[BindingType]) -> dict[str, str]:
    """Ids and keys of bindings that other screens declare themselves."""
    return {b.id: b.key for b in declared if isinstance(b, Binding) and b.id is not None}
