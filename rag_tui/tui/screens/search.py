"""The Search screen: what did each method return, and why?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from rag_tui.tui import format as fmt
from rag_tui.tui.keys import Scope, bindings
from rag_tui.tui.messages import SearchFailed, SearchFinished, StageFinished
from rag_tui.tui.screens.search_history import SearchHistory
from rag_tui.tui.screens.search_passage import SearchPassage
from rag_tui.tui.widgets.query_bar import QueryBar
from rag_tui.tui.widgets.result_list import IN_ONE_ROW, ColumnHead, ListGrid, ResultList
from rag_tui.tui.widgets.status_line import CorpusStatus, StatusLine

if TYPE_CHECKING:
    from rag_tui.engine.events import Progress
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import Ranking, SearchRequest
    from rag_tui.tui.backend import Session
    from rag_tui.tui.widgets.knobs_panel import KnobsPanel

WIDE = 140
FEW_ROWS = 8
"""More rows than these get more of the screen."""


READ_TABS = frozenset({"prompt", "answer"})
"""Tabs that do not change from row to row: showing them goes there, so that keys scroll them."""


class SearchScreen(SearchHistory, SearchPassage):
    """Four ranked lists for one question, and everything about the selected chunk.

    Rows always belong to the question that was asked last, or are marked as old: every message
    of a search carries its generation number, and those of older generations are dropped.
    """

    CSS_PATH = Path(__file__).with_name("search.tcss")
    BINDINGS = bindings("search")
    BINDING_GROUP_TITLE = "Search"
    HELP = """\
Four methods rank the same chunks for one question; the chunk you select is marked in all lists.

●         the selected chunk; below each list, where it stands there
◆         a pinned chunk: marked in all lists until it is unpinned (.)
v3 b1     ranks in the vector and BM25 lists that the hybrid row was made of; – not in that list
▲4 ▼1 ═   how far the reranker moved a row of the hybrid list: up, down, not at all
↑2 +new   what the last turn of a knob moved, against the same list before it
✂         the model reads only the beginning of this chunk
×3        rows with the same text that stand as one
words     BM25 finds whole words as written, in any case: plurals, parts of identifiers and
          letters without their accents are other words
bars      compare rows of one list only; scores of different lists are never comparable"""
    AUTO_FOCUS = ""  # only the first focus is the query's: later ones are where the user was
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (96, "-medium"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-short"), (34, "-tall")]  # noqa: RUF012

    active: reactive[str] = reactive("hybrid")
    """The column whose list has or last had the focus; the only one shown in a narrow terminal."""

    knobs: SearchRequest
    """What a search is made with, but for the question; from the session on."""
    knobs_panel: KnobsPanel

    def __init__(self) -> None:
        super().__init__()
        self.generation = 0
        self.question = ""
        self.grid = ListGrid()
        self.query_bar = QueryBar()
        self._strip = Static("", id="list-strip", markup=False)
        self._waiting: frozenset[str] = frozenset()
        self._follows_top = True
        self._wants_knobs = True

    def compose(self) -> ComposeResult:
        """The whole layout, before there is anything to show in it."""
        # Classes that are set while there are no children cost no second pass over their styles.
        width, height = self.app.size
        self.add_class(_class_at(width, self.HORIZONTAL_BREAKPOINTS))
        self.add_class(_class_at(height, self.VERTICAL_BREAKPOINTS))
        self.set_class(width >= WIDE, "-tuning")
        yield StatusLine()
        yield self.query_bar
        yield self.grid
        with Horizontal(id="detail"):
            yield self.tabs

    def on_mount(self) -> None:
        """Follow the app's state; what it has already is taken at once."""
        app = self.workbench
        if app.session is not None:
            self.take_session(app.session)
        self.question = self.query_bar.question = app.question.strip()
        self.watch(app, "status", self._take_status)
        self.watch(app, "index", self._take_index)

    def on_screen_resume(self) -> None:
        """Whoever had the focus may be hidden at this size: the lists are never far wrong."""
        if self.focused is None and self.results is not None:
            self._focus_list()

    async def complete(self) -> None:
        """Also knobs, progress and footer can wait until the first frame is there."""
        from textual.widgets import Footer

        from rag_tui.tui.widgets.job_bar import JobBar
        from rag_tui.tui.widgets.knobs_panel import KnobsPanel

        self.knobs_panel = KnobsPanel()
        self._job_bar = JobBar()
        await self.mount(self._strip, before="#lists")
        await self.query_bar.complete()
        await self.mount(self._job_bar, Footer(compact=True, show_command_palette=False))
        self.watch(self.workbench, "progress", self._take_progress)
        await self.query_one("#detail").mount(self.knobs_panel)
        await super().complete()
        if self.focused is None:
            self.query_bar.focus_input()

    def on_resize(self, event: events.Resize) -> None:
        """Only a wide terminal has room for knobs that nobody is turning."""
        is_used = self.focused is not None and self._is_knob(self.focused)
        has_room = event.size.width >= WIDE
        self.set_class(is_used or (has_room and self._wants_knobs), "-tuning")

    @property
    def lists(self) -> dict[str, ResultList]:
        """The lists by column, from left to right."""
        return self.grid.lists

    @property
    def explained_column(self) -> str:
        """The column whose pipeline the explanation is about: the active one."""
        return self.active

    # -- the app's state ---------------------------------------------------------------------

    def take_session(self, session: Session) -> None:
        """Settings are there: the knobs stand where they say."""
        self.query_bar.offer(session.samples)
        self.knobs = session.settings.request("")
        self.call_later(self.show_columns)
        self.knobs_panel.set_request(self.knobs, are_defaults=True)
        self.query_bar.searches_as_you_type = session.settings.ui.search_as_you_type

    def _take_status(self, status: CorpusStatus) -> None:
        self.query_one(StatusLine).status = status
        if self.results is None:
            self._show_idle(status)

    def _take_progress(self, progress: Progress | None) -> None:
        self._job_bar.progress = progress

    def _take_index(self, index: Index | None) -> None:
        if index is not None and self.question:
            self.search(self.question)
        elif index is not None and self.results is None:
            self._show_idle(self.workbench.status)

    def _show_idle(self, status: CorpusStatus) -> None:
        index = self.workbench.index
        for result_list in self.lists.values():
            if index is None and status.message:
                result_list.show_message(
                    status.message, status.hint, is_error=status.phase == "failed"
                )
            elif index is None:
                wait = f"Your question is asked as soon as {status.folder} is open."
                result_list.show_message(f"opening {status.folder}…", wait if self.question else "")
            else:
                ready = "Keyword search is ready. " if index.vectors is None else ""
                result_list.show_message(
                    f"{ready}Type a question and press enter.",
                    "↑ brings sample questions." if self.query_bar.has_samples else "",
                )

    # -- asking ------------------------------------------------------------------------------

    @on(QueryBar.Asked)
    def _ask(self, event: QueryBar.Asked) -> None:
        if not event.question:
            self.workbench.warn("The question is empty.\nType some words to search for.")
            return
        if event.is_final:
            self._focus_list()
        self.search(event.question, with_reranker=event.is_final)

    def search(self, question: str, *, with_reranker: bool = True) -> None:
        """Make the four lists; older ones stay, dimmed, until theirs is there."""
        from rag_tui.engine.filter_language import split_query
        from rag_tui.tui.jobs import in_thread, run_search, start
        from rag_tui.tui.results import Results

        self.question, self.is_draft = question, not with_reranker
        session, index = self.workbench.session, self.workbench.index
        if session is None or index is None:
            self._show_idle(self.workbench.status)
            return
        query, where = split_query(question)
        rerank = self.knobs.rerank and with_reranker
        request = replace(self.knobs, query=query, where=where, rerank=rerank)
        before = self.results.request if self.results is not None else None
        if before is None or (before.query, before.where) != (query, where):
            self._follows_top = True
            self.forget_answer()
            self.prompt_preview.clear("The prompt is made when the lists are there.")
        self.set_class(request.top_k > FEW_ROWS, "-many")
        self.generation += 1
        self.results = Results(request, index, self.generation)
        self.is_searching = True
        self._waiting = frozenset(self.lists)
        self.query_bar.say("searching…")
        for result_list in self.lists.values():
            if result_list.rows:
                result_list.is_stale = True
                result_list.describe(result_list.head.title, "searching…", "")
            else:
                result_list.show_message("searching…")
        work = partial(
            run_search,
            self.workbench.backend,
            session,
            index,
            request,
            generation=self.generation,
            post=self.post_message,
        )
        start(self, lambda: in_thread(lambda cancel: work(cancel=cancel), "search"), "search")

    @on(StageFinished)
    def _take_stage(self, event: StageFinished) -> None:
        if event.generation != self.generation or self.results is None:
            return
        is_first = self._waiting == frozenset(self.lists)
        self.results = self.results.with_stage(event.result)
        if event.result.stage not in self.lists:
            return  # the columns have changed since
        self._waiting -= {event.result.stage}
        if is_first:
            self.terms = self.workbench.backend.query_terms(self.results.request.query)
        with self.app.batch_update():
            self._fill(event.result.stage)
            if self._follows_top and (best := self._best_in_sight) is not None:
                self.selected = best.hits[0].chunk_id
            if is_first:
                self.show_selected()
            else:
                self.explain()
            self._describe_lists()

    @property
    def _best_in_sight(self) -> Ranking | None:
        """The best list there is; where one is shown at a time, that one.

        What is read, explained and labelled below a list must be a row of it.
        """
        results = self.results
        if results is None:
            return None
        shown = results.rankings.get(self.active) if self.has_class("-narrow") else None
        return shown if shown is not None and shown.hits else results.best

    @on(SearchFinished)
    def _finish(self, event: SearchFinished) -> None:
        if event.generation != self.generation or self.results is None:
            return
        request = self.results.request
        why = (
            ("Reranking is off.", "Switch it on among the knobs (t).")
            if not self.knobs.rerank
            else ("Not reranked while you type.", "Press enter to rerank.")
        )
        self._end_search(*why)
        took = f"top {request.top_k} · depth {request.depth} · {fmt.duration(event.elapsed_s)}"
        self.query_bar.say(f"{took} · only {request.where}" if request.where else took)
        self.show_prompt()

    @on(SearchFailed)
    def _fail(self, event: SearchFailed) -> None:
        if event.generation != self.generation:
            return
        self._end_search(event.error.message, event.error.hint, is_error=True)
        self.query_bar.say("✗ no search")
        self.stop_answer()
        self.prompt_preview.clear(f"✗ {event.error.message}")
        self.chunk_view.clear("No chunk is selected.")

    def _end_search(self, message: str, hint: str, *, is_error: bool = False) -> None:
        """Lists that did not come say why; rows of an older search must not stay in them."""
        self.is_searching = False
        for column in self._waiting:
            self.lists[column].show_message(message, hint, is_error=is_error)
        self._waiting = frozenset()
        self._describe_lists()
        if not self.workbench.status.is_busy:
            self.workbench.progress = None

    def show_question(self, question: str, *, column: str, chunk_id: str | None) -> None:
        """Ask a question for another screen: with a column active and a chunk selected."""
        self.ask_question(question)
        if column in self.lists:
            self.active = column
        if chunk_id is not None:
            self._follows_top = False
            self.selected = chunk_id
        self._focus_list()

    def _cancel_search(self) -> bool:
        if not self.is_searching:
            return False
        self.generation += 1
        self.workers.cancel_group(self, "search")
        if self.results is not None:
            self.results = replace(self.results, generation=self.generation)
        self._end_search("cancelled", "Press enter in the question to search again.")
        self.query_bar.say("cancelled")
        self.prompt_preview.clear("The search was cancelled.")
        return True

    def _fill(self, column: str) -> None:
        from rag_tui.tui.results import note_below, result_rows

        results = self.results
        if results is None:
            return
        error = results.errors.get(column)
        is_vector = self.lists[column].head.method == "vector"
        if is_vector and results.index.vectors is None and self.workbench.status.is_busy:
            self.lists[column].show_message(
                "The vectors are being made.", "This list fills in when they are there."
            )
        elif error is not None:
            self.lists[column].show_message(error.message, error.hint, is_error=True)
        elif (ranking := results.rankings.get(column)) is not None:
            self.lists[column].show_rows(
                result_rows(column, results, self.arrows(column)), note_below(ranking)
            )

    def _describe_lists(self) -> None:
        """Score name, time, and where the selected chunk stands, on each list's border."""
        from rag_tui.tui.results import model_of, short_model_name, standing

        for column, result_list in self.lists.items():
            title = fmt.one_line(result_list.head.title)
            ranking = self.results.rankings.get(column) if self.results else None
            if self.results is None or ranking is None:
                if column not in self._waiting:
                    result_list.describe(title, "", "")
                continue
            kind = ranking.score_kind
            where = standing(column, self.results, self.selected)
            took = fmt.duration(ranking.elapsed_s)
            named = kind.name if kind.name.startswith(title) else f"{title} {kind.name}"
            model = model_of(column, self.results)
            result_list.describe(
                f"{named} · {short_model_name(model)}" if model else named,
                self.border_text(column, where, took),
                "\n".join(
                    part
                    for part in (
                        f"{kind.name}: {kind.range}",
                        kind.note,
                        model,
                        *self.tooltip_lines(column),
                    )
                    if part
                ),
            )

    # -- selecting ---------------------------------------------------------------------------

    @on(ResultList.Highlighted)
    def _take_highlight(self, event: ResultList.Highlighted) -> None:
        self._follows_top = False
        self.selected = event.chunk_id

    @on(ResultList.Opened)
    def _take_opened(self, event: ResultList.Opened) -> None:
        self.selected = event.chunk_id
        self.action_tab("chunk")
        self.call_after_refresh(self.chunk_view.focus)

    def watch_selected(self, selected: str | None) -> None:
        """The same chunk is marked in all lists and shown below."""
        for result_list in self.lists.values():
            result_list.selected = selected
        if self.results is not None:
            self._describe_lists()
            self.show_selected()

    def watch_active(self, active: str) -> None:
        """In a narrow terminal only the active list is shown."""
        for column, result_list in self.lists.items():
            result_list.set_class(column == active, "-active")
        room = max(6, (self.app.size.width - 4) // len(self.lists) - 2)
        names = []
        for place, (column, result_list) in enumerate(self.lists.items()):
            title = f" {fmt.clip(fmt.one_line(result_list.head.title), room)} "
            link = Style.from_meta({"@click": f"screen.show_list({place})"})
            is_active = column == active
            names.append(
                fmt.content(title, "reverse bold")
                if is_active
                else fmt.content(title).stylize(link)
            )
        self._strip.update(Content.assemble("[ ", *names, " ]"))

    async def show_columns(self, active: str = "") -> bool:
        """Show the columns that the knobs name; a search that has been made is made again.

        Args:
            active: The column that is active then; empty: the same as before, if it is still there.
        """
        heads = tuple(ColumnHead(column.name, column.method) for column in self.knobs.columns)
        wanted = (active, self.active, "hybrid")
        if not await self.grid.set_columns(heads):
            return False
        self.set_class(len(heads) > IN_ONE_ROW, "-many-lists")
        self.set_reactive(SearchScreen.active, "")
        names = [head.name for head in heads]
        self.active = next((name for name in wanted if name in names), names[0])
        for result_list in self.lists.values():
            result_list.selected = self.selected
        if self.question and self.workbench.index is not None:
            self.search(self.question)
        elif self.results is None:
            self._show_idle(self.workbench.status)
        return True

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The list that has the focus is the active one."""
        if isinstance(event.widget, ResultList):
            self.active = event.widget.head.name
        is_below = self.tabs in event.widget.ancestors or self._is_knob(event.widget)
        self.set_class(is_below, "-reading")

    # -- actions -----------------------------------------------------------------------------

    def action_focus_query(self) -> None:
        """Go to the input."""
        self.query_bar.focus_input()

    def action_list(self, step: int) -> None:
        """Go to a neighbouring list."""
        self.action_show_list((list(self.lists).index(self.active) + step) % len(self.lists))

    def action_show_list(self, place: int) -> None:
        """Go to a list by its place, from 0."""
        self.active = list(self.lists)[place]
        self._focus_list()

    def action_tab(self, name: str) -> None:
        """Show a tab; where only one half fits, that half."""
        if self.has_class("-narrow") and self.has_class("-tuning"):
            self.remove_class("-tuning")
            self._focus_list()  # the knob that had the focus is hidden now
        self.add_class("-reading")
        super().action_tab(name)
        if name in READ_TABS:
            self.call_after_refresh(self.tabs.focus_pane)

    def action_answer(self) -> None:
        """Show the answer, made anew."""
        self.action_tab("answer")
        super().action_answer()

    def action_tune(self) -> None:
        """Go to the knobs, shown if need be; from them: hide them."""
        is_used = self.focused is not None and self._is_knob(self.focused)
        is_shown = self._wants_knobs = not (is_used and self.has_class("-tuning"))
        self.set_class(is_shown, "-tuning")
        if is_shown:
            self.add_class("-reading")
            self.call_after_refresh(self.knobs_panel.table.focus)
        else:
            self._focus_list()

    def action_cancel(self) -> None:
        """Leave what has the focus, or stop what is running; one thing at a time."""
        if self.knobs_panel.stop_editing():
            return
        if self.query_bar.is_typing:
            if self.results is not None:
                # the lists below must belong to the question above them
                self.query_bar.put_back(self.question)
            self._focus_list()
        elif (
            self.stop_sentences()
            or self.stop_answer()
            or self._cancel_search()
            or self.workbench.cancel_index()
        ):
            return
        else:
            self._focus_list()

    def command_target(self, scope: Scope) -> DOMNode:
        """The node on which the palette runs an action of a scope."""
        targets: dict[Scope, DOMNode] = {
            "list": self.lists[self.active],
            "results": self.lists[self.active],
            "query": self.query_bar.query_one("#query"),
            "knobs": self.knobs_panel.table,
            "prompt": self.prompt_preview,
            "answer": self.answer_view,
        }
        return targets.get(scope, self)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    def _is_knob(self, widget: Widget) -> bool:
        return any(node.id == "knobs" for node in widget.ancestors)

    def _focus_list(self) -> None:
        self.remove_class("-reading")
        self.call_after_refresh(self.lists[self.active].focus)


def _class_at(length: int, breakpoints: list[tuple[int, str]]) -> str:
    return max((least, name) for least, name in breakpoints if least <= length)[1]
