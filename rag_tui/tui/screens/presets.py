"""Sets of knobs under a name: to apply, to save, to copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rag_tui.engine.types import KnobValue
from rag_tui.tui import format as fmt
from rag_tui.tui.knob_values import OFF, shown
from rag_tui.tui.screens.grade import action_line
from rag_tui.tui.widgets.virtual_list import Cell, VirtualList

Save = Callable[[str, Mapping[str, KnobValue]], Awaitable[str]]
"""Writes knobs under a name; gives the reason back when that cannot be done."""

FORMS = {"toml": "t", "python": "p"}
MAX_NAME = 60
SERVICE = "voyage"


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """What was chosen: a preset to apply, or a form to copy the present knobs in."""

    name: str = ""
    copy_as: str = ""


class CopySettings(ModalScreen[str]):
    """Gives back ``toml`` or ``python``; escape gives back nothing."""

    DEFAULT_CSS = """
    CopySettings {
        align: left bottom; background: transparent;
        & > Static {
            width: 100%; min-width: 4; height: auto;
            background: $panel; color: $text; padding: 0 1;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,Y", "close", "Close", id="copy_settings.close"),
        *(
            Binding(key, f"choose('{form}')", f"As {form}", id=f"copy_settings.{form}")
            for form, key in FORMS.items()
        ),
    ]
    HELP = "In which form the knobs and columns are copied."

    def compose(self) -> ComposeResult:
        """The line."""
        line = action_line(
            [
                ("t", "TOML, for a settings file", "screen.choose('toml')"),
                ("p", "Python, a script that searches", "screen.choose('python')"),
                ("esc", "not at all", "screen.close"),
            ]
        )
        yield Static(Content.assemble(("Copy the knobs as: ", "bold"), line), markup=False)

    def on_click(self, event: events.Click) -> None:
        """A click beside the line closes it."""
        if event.widget is self:
            self.action_close()

    def action_choose(self, form: str) -> None:
        """Copy in this form."""
        if self.is_current:
            self.dismiss(form)

    def action_close(self) -> None:
        """Copy nothing."""
        if self.is_current:
            self.dismiss()


class PresetList(VirtualList):
    """Name and knobs of each preset."""

    BINDING_GROUP_TITLE = "Presets"

    def __init__(self) -> None:
        super().__init__(id="preset-list")
        self.presets: tuple[tuple[str, str], ...] = ()
        self.empty_note = "There is no preset yet: turn some knobs (t), then save them here (s)."

    def show(self, presets: Mapping[str, Mapping[str, object]], chosen: str = "") -> None:
        """Show these presets, in the order of their names."""
        self.presets = tuple((name, told_knobs(presets[name])) for name in sorted(presets))
        names = [name for name, _ in self.presets]
        self.set_n_rows(len(names), cursor=names.index(chosen) if chosen in names else 0)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """One preset."""
        name, knobs = self.presets[row]
        room = min(24, max(8, width // 3))
        yield fmt.fit(fmt.one_line(name), room) + " ", "virtual-list--strong"
        yield fmt.clip(fmt.one_line(knobs), max(0, width - room - 1)), ""


class PresetsScreen(ModalScreen[PresetChoice]):
    """Enter gives a preset back, t and p a form to copy in, escape nothing."""

    DEFAULT_CSS = """
    PresetsScreen {
        align: center middle;
        & > Vertical {
            width: 90%; max-width: 110; height: auto; max-height: 90%; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & #preset-list { height: 8; }
        & Static { height: auto; min-width: 4; }
        & #preset-now { max-height: 4; border-top: solid $panel; }
        & #preset-keys { color: $text-muted; }
        & #preset-note { color: $text-warning; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "save", "Save", tooltip="The present knobs under a name", id="presets.save"),
        Binding("t", "copy('toml')", "Copy as TOML", id="presets.toml"),
        Binding("p", "copy('python')", "Copy as Python", id="presets.python"),
        Binding("escape,q,P", "close", "Close", id="presets.close"),
    ]
    HELP = """\
A preset is a set of knobs under a name. Applying one sets all other knobs as in the settings,
like --preset on the command line; columns stay, and z takes it back. Saving writes the knobs
that differ from the settings into the rag-tui.toml of the folder; nothing else in it changes."""

    def __init__(
        self,
        presets: Mapping[str, Mapping[str, object]],
        differing: Mapping[str, KnobValue],
        path: Path,
        save: Save,
    ) -> None:
        """Make the screen.

        Args:
            presets: Those there are.
            differing: The present knobs that are set otherwise than in the settings.
            path: The file in which presets are saved.
            save: Called to save one.
        """
        super().__init__()
        self.presets = dict(presets)
        self._differing = dict(differing)
        self._path = path
        self._save = save
        self.list = PresetList()
        self._note = Static("", id="preset-note", markup=False)

    def compose(self) -> ComposeResult:
        """The list, the present knobs, what the keys do, and room for a name and a reason."""
        now = told_knobs(self._differing)
        told = f"now: {now}" if now else "now: all knobs as in the settings"
        with Vertical() as frame:
            frame.border_title = "Presets"
            frame.border_subtitle = "enter: apply   esc: close"
            yield self.list
            yield Static(fmt.content(fmt.one_line(told)), id="preset-now", markup=False)
            yield Static(self._keys(), id="preset-keys", markup=False)
            yield self._note

    def on_mount(self) -> None:
        """Show the presets."""
        self.list.show(self.presets)
        self._say("")

    @on(VirtualList.CursorMoved)
    def _take_cursor(self, event: VirtualList.CursorMoved) -> None:
        event.stop()

    @on(VirtualList.RowChosen)
    def _take_chosen(self, event: VirtualList.RowChosen) -> None:
        event.stop()
        self._end(PresetChoice(name=self.list.presets[event.row][0]))

    def action_copy(self, form: str) -> None:
        """Copy the present knobs and columns."""
        self._end(PresetChoice(copy_as=form))

    def action_save(self) -> None:
        """Type a name for the present knobs."""
        if not self._differing:
            self._say("There is nothing to save: all knobs stand as in the settings.")
        elif service := self._service():
            self._say(
                f"{service} sends texts to a service, which {self._path.name} of a folder may not "
                "decide. Copy it as TOML (t) into your own settings file."
            )
        elif not self.query(Input):
            value = Input(
                placeholder="name, then enter", id="preset-name", compact=True, max_length=MAX_NAME
            )
            self.query_one(Vertical).mount(value, after=self.list)
            value.focus()

    def action_close(self) -> None:
        """Close without a choice."""
        if not self._stop_typing():
            self._end(None)

    @on(Input.Submitted)
    async def _take_name(self, event: Input.Submitted) -> None:
        event.stop()
        name = event.value.strip()
        if not name:
            self._say("A preset needs a name: type one, or press escape.")
            return
        self._stop_typing()
        problem = await self._save(name, self._differing)
        if problem:
            self._say(f"✗ not saved: {problem}\nt copies the knobs as TOML instead.")
            return
        self.presets[name] = self._differing
        self.list.show(self.presets, name)
        self._say(f"✓ saved {name} in {self._path}")

    def _service(self) -> str:
        """A knob whose value names a service, as ``name value``; empty without any."""
        for name, value in self._differing.items():
            if isinstance(value, str) and value.partition("/")[0] == SERVICE:
                return f"{name} {value}"
        return ""

    def _stop_typing(self) -> bool:
        inputs = self.query(Input)
        if not inputs:
            return False
        inputs.remove()
        self.list.focus()
        return True

    def _say(self, text: str) -> None:
        self._note.update(fmt.content(text, newlines=True))
        self._note.display = bool(text)

    def _end(self, choice: PresetChoice | None) -> None:
        if self.is_current:  # a second key may come while the screen is closing
            self.dismiss(choice)

    def _keys(self) -> Content:
        return action_line(
            [
                ("s", "save these knobs", "screen.save"),
                ("t", "copy as TOML", "screen.copy('toml')"),
                ("p", "copy as Python", "screen.copy('python')"),
            ]
        )


def told_knobs(knobs: Mapping[str, object]) -> str:
    """``search.depth 200, bm25.k1 0.9``; foreign text."""
    return ", ".join(f"{name} {_shown(name, value)}" for name, value in knobs.items())


def _shown(name: str, value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        return shown(name, value)
    return OFF
