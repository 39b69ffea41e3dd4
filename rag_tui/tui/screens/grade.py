"""How relevant is it? One line at the bottom, over the lists, after a passage was marked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.style import Style
from textual.widgets import Static

GRADES = {1: "relevant", 2: "good", 3: "perfect"}
"""What the grades of relevant passages mean."""


@dataclass(frozen=True, slots=True)
class GradeChoice:
    """What was chosen."""

    grade: int | None = None
    """None: as it is."""
    step: int = 0
    """Rows to go on."""


class GradeScreen(ModalScreen[GradeChoice]):
    """Takes 1, 2 or 3; enter and escape keep what is there, the arrows go on to another row."""

    DEFAULT_CSS = """
    GradeScreen {
        align: left bottom; background: transparent;
        & > Static {
            width: 100%; min-width: 4; height: 1;
            background: $panel; color: $text; padding: 0 1;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(grade), f"grade({grade})", f"Grade {grade}: {word}", id=f"grade.{grade}")
            for grade, word in GRADES.items()
        ),
        Binding("escape,enter,r", "keep", "Keep the grade", id="grade.keep"),
        Binding("down,j", "go_on(1)", "Keep it, row down", id="grade.down"),
        Binding("up,k", "go_on(-1)", "Keep it, row up", id="grade.up"),
    ]
    HELP = "How relevant the passage is to the question; it is saved already."

    def __init__(self, grade: int) -> None:
        super().__init__()
        self._grade = grade

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static(self._text(), markup=False)

    def on_click(self, event: events.Click) -> None:
        """A click beside the line keeps the grade."""
        if event.widget is self:
            self.action_keep()

    def action_grade(self, grade: int) -> None:
        """Take another grade."""
        self._end(GradeChoice(grade))

    def action_keep(self) -> None:
        """Leave it as it is."""
        self._end(GradeChoice())

    def action_go_on(self, step: int) -> None:
        """Leave it and go to another row."""
        self._end(GradeChoice(step=step))

    def _end(self, choice: GradeChoice) -> None:
        if self.is_current:  # a second key may come while the screen is closing
            self.dismiss(choice)

    def _text(self) -> Content:
        entries = [
            (
                str(grade),
                word + (" (now)" if grade == self._grade else ""),
                f"screen.grade({grade})",
            )
            for grade, word in GRADES.items()
        ]
        line = action_line([*entries, ("enter", "keep", "screen.keep")])
        return Content.assemble(("✓ saved: ", "bold"), line)


def action_line(entries: Iterable[tuple[str, str, str]]) -> Content:
    """Keys with what they do, to be read and to be clicked.

    Args:
        entries: Key, our own words for what it does, and the action.
    """
    parts: list[Content | str] = []
    for key, word, action in entries:
        link = Style.from_meta({"@click": action})
        entry = Content.assemble((key, "bold $text-accent"), f" {word}")
        parts += ["  " if parts else "", entry.stylize(link)]
    return Content.assemble(*parts)
