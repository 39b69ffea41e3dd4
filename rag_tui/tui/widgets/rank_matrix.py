"""Questions by columns: the rank at which each list holds the first evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType

from rag_tui.engine.evaluation.score_table import QuestionScores, ScoreTable
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.metrics_table import ACTIVE, CellList
from rag_tui.tui.widgets.virtual_list import CURSOR, Cell

MatrixSort = Literal["disagreement", "loss", "file", "tag"]
SORTS: tuple[MatrixSort, ...] = ("disagreement", "loss", "file", "tag")
SORT_NAMES: Mapping[MatrixSort, str] = {
    "disagreement": "disagreements first",
    "loss": "most lost by {column} first",
    "file": "in the order of the file",
    "tag": "by tag",
}

MISSING, NO_LIST = "–", "✗"
LEAST_CELL, MOST_CELL = 5, 14
READ = 2_000
"""So many characters of a question are looked at for one drawn line."""


@dataclass(frozen=True, slots=True)
class Picked:
    """One cell: a question in a column."""

    question: QuestionScores
    column: int
    rank: int | None
    has_list: bool


class RankMatrix(CellList):
    """One row a judged question. Rows in view are drawn, no others."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open", id="list.open"),
    ]
    BINDING_GROUP_TITLE = "Questions by columns"
    HELP = "Ranks of the first evidence; ← → choose a column, enter opens the question in it."

    def __init__(self) -> None:
        super().__init__("matrix")
        self.table: ScoreTable | None = None
        self.sort: MatrixSort = "disagreement"
        self.needle = ""
        self.rows: tuple[QuestionScores, ...] = ()
        self._files: Mapping[str, Sequence[str]] = {}

    def show(self, table: ScoreTable, files: Mapping[str, Sequence[str]]) -> None:
        """Show a scored run.

        Args:
            table: Its judged questions are the rows.
            files: Question id to the documents of its evidence, for the filter.
        """
        self.table = table
        self._files = files
        self.n_cells = len(table.columns)
        self.active = min(self.active, self.n_cells - 1)
        self.reorder()

    def reorder(self) -> None:
        """Filter and sort anew; the cursor stays on its question if that is still there."""
        if self.table is None:
            return
        here = self.picked.question.qid if self.picked is not None else ""
        kept = [one for one in self.table.questions if self._matches(one)]
        self.rows = sorted_rows(kept, self.sort, self.active)
        self.empty_note = (
            "No question matches the filter (esc removes it)."
            if self.needle.strip()
            else "No question has a label that was found in the documents."
        )
        row = next((i for i, one in enumerate(self.rows) if one.qid == here), 0)
        self.set_n_rows(len(self.rows), cursor=row)
        self.head.refresh()

    def watch_active(self) -> None:
        """What a column lost depends on the column."""
        super().watch_active()
        if self.sort == "loss":
            self.reorder()

    @property
    def picked(self) -> Picked | None:
        """The cell under the cursor."""
        if not 0 <= self.cursor < len(self.rows) or not self.n_cells:
            return None
        question = self.rows[self.cursor]
        place = self.active
        return Picked(question, place, question.ranks[place], question.has_list[place])

    @property
    def column_name(self) -> str:
        """Name of the active column."""
        columns = self.table.columns if self.table is not None else ()
        return columns[self.active].name if self.active < len(columns) else ""

    def head_text(self, width: int) -> str:
        """Names of the columns above their cells."""
        if self.table is None:
            return ""
        text, cell = self._widths(width)
        parts = [fmt.fit("rank of the first evidence", text)]
        for place, column in enumerate(self.table.columns):
            sign = ACTIVE if place == self.active else " "
            name = sign + fmt.clip(fmt.one_line(column.name[:200]), cell - 2)
            parts.append(" " + fmt.fit(name, cell - 1))
        return "".join(parts)

    def draw_row(self, row: int, width: int) -> Iterable[Cell]:
        """Id and question, then a rank in each column."""
        question = self.rows[row]
        text, cell = self._widths(width)
        qid = fmt.clip(fmt.one_line(question.qid[:200]), 12)
        yield fmt.clip(f"{qid}  ", text), "virtual-list--dim"
        room = max(0, text - len(qid) - 2)
        shown = fmt.one_line(question.text[:READ])
        if self.sort == "tag" and question.tags:
            shown = f"[{fmt.one_line(', '.join(question.tags)[:200])}] {shown}"
        yield fmt.fit(shown, room), ""
        for place in range(self.n_cells):
            yield self._cell(question, place, cell, is_at_cursor=row == self.cursor)

    def _cell(
        self, question: QuestionScores, place: int, width: int, *, is_at_cursor: bool
    ) -> Cell:
        rank = question.ranks[place]
        text = rank_text(rank, has_list=question.has_list[place])
        if is_at_cursor and place == self.active:
            text = f"[{text}]"
        style = "virtual-list--strong" if rank == 1 else ""
        if rank is None:
            style = "virtual-list--warning"
        return f"{text:^{width}}", style

    async def on_click(self, event: events.Click) -> None:
        """A click on a cell makes its column the active one."""
        width = self.scrollable_content_region.width - len(CURSOR)
        text, cell = self._widths(width)
        place = (event.x - len(CURSOR) - text) // cell
        if 0 <= place < self.n_cells:
            self.active = place
        await super().on_click(event)

    def _widths(self, width: int) -> tuple[int, int]:
        """Cells of the question, and of each column."""
        n = max(1, self.n_cells)
        cell = max(LEAST_CELL, min(MOST_CELL, width // 2 // n))
        return max(0, width - n * cell), cell

    def _matches(self, question: QuestionScores) -> bool:
        return matches(question, self.needle, self._files.get(question.qid, ()))


def rank_text(rank: int | None, *, has_list: bool) -> str:
    """``3``, ``–`` for evidence that is in no row, ``✗`` where there is no list."""
    if rank is not None:
        return str(rank)
    return MISSING if has_list else NO_LIST


def matches(question: QuestionScores, needle: str, files: Sequence[str]) -> bool:
    """Whether all words of a filter hold: in id, text or tags; ``tag:x`` and ``file:x`` there only.

    Case does not count, nor do blanks in tags and file names.
    """
    everything = " ".join((question.qid, question.text, *question.tags)).casefold()
    for word in needle.casefold().split():
        kind, colon, rest = word.partition(":")
        if colon and kind == "tag":
            is_met = any(rest in _squashed(tag) for tag in question.tags)
        elif colon and kind == "file":
            is_met = any(rest in _squashed(file) for file in files)
        else:
            is_met = word in everything
        if not is_met:
            return False
    return True


def _squashed(text: str) -> str:
    return "".join(text.split()).casefold()


def filter_word(kind: str, name: str) -> str:
    """The filter for one tag or file: ``tag:exact-word``."""
    return f"{kind}:{_squashed(name)}"


def sorted_rows(
    questions: Sequence[QuestionScores], sort: MatrixSort, column: int
) -> tuple[QuestionScores, ...]:
    """The questions in an order; ties in the order of the set.

    Args:
        questions: In the order of the set.
        sort: ``loss``: by how much better the best other column's reciprocal rank is.
        column: The active one.
    """
    match sort:
        case "disagreement":
            return tuple(sorted(questions, key=lambda one: -one.disagreement))
        case "loss":
            return tuple(sorted(questions, key=lambda one: -loss(one, column)))
        case "tag":
            return tuple(sorted(questions, key=lambda one: (not one.tags, one.tags)))
        case _:
            return tuple(questions)


def loss(question: QuestionScores, column: int) -> float:
    """Best reciprocal rank of the other lists less that of this one; 0 with nothing to compare."""
    if not question.has_list[column]:
        return 0.0
    found = [
        0.0 if rank is None else 1 / rank
        for place, rank in enumerate(question.ranks)
        if question.has_list[place] and place != column
    ]
    rank = question.ranks[column]
    return max(found) - (0.0 if rank is None else 1 / rank) if found else 0.0
