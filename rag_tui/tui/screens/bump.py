"""How rows move from list to list, over the Search screen; it follows that screen's selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.bump_chart import BumpChart, BumpColumn
from rag_tui.tui.widgets.bump_view import BumpView
from rag_tui.tui.widgets.result_list import ColumnHead

if TYPE_CHECKING:
    from rag_tui.tui.results import Results

MIN_ROWS, FIRST_ROWS, MAX_ROWS = 3, 10, 50
Pick = Callable[[str], None]


def chart_of(results: Results, n_rows: int) -> BumpChart:
    """The first rows of each list that there is, from left to right."""
    columns = []
    labels: dict[str, str] = {}
    for column in results.request.columns:
        ranking = results.rankings.get(column.name)
        if ranking is None:
            continue
        shown = ranking.hits[:n_rows]
        for hit in shown:
            labels.setdefault(hit.chunk_id, results.index.chunks[hit.position].label)
        columns.append(
            BumpColumn(
                column.name,
                fmt.one_line(ColumnHead(column.name, column.method).title),
                tuple(hit.chunk_id for hit in shown),
                {hit.chunk_id: hit.rank for hit in ranking.hits},
            )
        )
    return BumpChart(tuple(columns), labels)


class BumpScreen(ModalScreen[str]):
    """Picking a chunk here selects it in the lists; enter closes and gives back its id to read.

    Args:
        results: The lists.
        picked: The chunk that is selected.
        active: The list that the cursor walks through first.
        select: Told the chunk that was moved to.
    """

    DEFAULT_CSS = """
    BumpScreen {
        background: $background;
        & > #bump-title { height: 1; min-width: 4; padding: 0 1; text-style: bold; }
        & > BumpView { margin: 0 1; }
        & > #bump-picked {
            height: auto; max-height: 4; min-width: 4; padding: 0 1; border-top: solid $panel;
        }
        & > Footer { min-width: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "rows(1)", "More rows", id="bump.more"),
        Binding("minus", "rows(-1)", "Fewer rows", id="bump.fewer"),
        Binding("escape,q,v", "close", "Close", id="bump.close"),
    ]
    BINDING_GROUP_TITLE = "Bump chart"
    HELP = """\
One line a chunk: how its rank changes from list to list. The heavy line is the selected chunk, the
same as in the lists; up and down walk through the list in brackets, left and right change it.

×     the chunk is not among the next list's rows here; with a rank: it stands there further down
+     it was not among the rows here of the list before"""
    AUTO_FOCUS = "BumpView"

    def __init__(self, results: Results, *, picked: str | None, active: str, select: Pick) -> None:
        super().__init__()
        self.results = results
        self._select = select
        self._first = (picked, active)
        top_k = max(results.request_of(c.name).top_k for c in results.request.columns)
        self.n_rows = min(max(FIRST_ROWS, top_k), MAX_ROWS)
        self.view = BumpView()
        self._picked = Static("", id="bump-picked", markup=False)

    def compose(self) -> ComposeResult:
        """Question, chart, the picked chunk in words, keys."""
        question = fmt.clip(fmt.one_line(self.results.request.query), 400)
        yield Static(fmt.content(question), id="bump-title", markup=False)
        yield self.view
        yield self._picked
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Show what there is."""
        picked, active = self._first
        self.view.show(chart_of(self.results, self.n_rows), picked=picked, active=active)
        self._describe()

    def show(self, results: Results) -> None:
        """More lists, or sharper ones, or those of another search."""
        self.results = results
        view = self.view
        view.show(chart_of(results, self.n_rows), picked=view.picked, active=view.active)
        self._describe()

    @on(BumpView.Picked)
    def _take(self, event: BumpView.Picked) -> None:
        event.stop()
        self._select(event.chunk_id)
        self._describe()
        if event.is_opened and self.is_current:
            self.dismiss(event.chunk_id)

    def action_rows(self, step: int) -> None:
        """Draw more rows, or fewer."""
        self.n_rows = min(max(self.n_rows + step, MIN_ROWS), MAX_ROWS)
        self.show(self.results)

    def action_close(self) -> None:
        """Back to the lists."""
        if self.is_current:
            self.dismiss()

    @property
    def picked_text(self) -> str:
        """What is said below the chart."""
        return str(self._picked.content)

    def _describe(self) -> None:
        results, picked = self.results, self.view.picked
        lines: list[Content] = []
        if (chunk := results.chunk(picked)) is not None:
            lines.append(
                Content.assemble(
                    fmt.content(f"● {fmt.clip(fmt.one_line(chunk.label), 80)}", "bold"),
                    fmt.content(f"  {fmt.clip(chunk.location, 120)}"),
                )
            )
            places = [
                f"{column.title} {column.ranks.get(chunk.chunk_id, '–')}"
                for column in self.view.chart.columns
            ]
            lines.append(fmt.content(" → ".join(places)))
        else:
            lines.append(Content("↓ picks the first row."))
        for name, error in results.errors.items():
            if name not in results.rankings:
                lines.append(fmt.content(fmt.clip(f"✗ {name}: {error.message}", 300)))
        if len(self.view.chart.columns) == 1:
            lines.append(Content("There is one list only: esc, then m adds lists to compare."))
        self._picked.update(Content("\n").join(lines))
