"""Two answers to one question side by side, made in two ways."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widgets import Footer, Static
from textual.worker import Worker

from rag_tui.engine.events import StageError
from rag_tui.tui import format as fmt
from rag_tui.tui.messages import AnswerGrew
from rag_tui.tui.widgets.answer_side import NO_RETRIEVAL, SIDES, AnswerSide, Side, Way

if TYPE_CHECKING:
    from rag_tui.engine.answer_diff import AnswerDiff, DiffPart
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.backend import Session
    from rag_tui.tui.results import Results

STACKED_BELOW = 100


class CompareAnswersScreen(ModalScreen[None]):
    """Asks for two answers at once from one search; nothing beneath it changes.

    Args:
        results: The lists that sources can be taken from.
        session: Settings and models.
        column: The list that the prompt's sources come from.
    """

    DEFAULT_CSS = """
    CompareAnswersScreen {
        background: $background;
        & > #question { height: auto; max-height: 2; padding: 0 1; text-style: bold; }
        & > #sides { layout: horizontal; height: 1fr; }
        & > #difference { height: auto; max-height: 6; padding: 0 1; color: $text-muted; }
        &.-stacked > #sides { layout: vertical; }
        &.-stacked > #difference { max-height: 3; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "ask", "Ask both", id="compare.ask"),
        Binding("c", "turn('column')", "Sources from", id="compare.column"),
        Binding("plus", "turn('more')", "More", id="compare.more"),
        Binding("minus", "turn('fewer')", "Fewer", id="compare.fewer"),
        Binding("t", "turn('template')", "Template", id="compare.template"),
        Binding("escape", "close", "Stop, close", id="compare.close"),
    ]
    BINDING_GROUP_TITLE = "Compare answers"
    HELP = """\
Two answers to the same question. Tab goes to the other side; c, + -, and t change how the side with
the focus is made. Words that only one of the two has are bold and underlined."""

    def __init__(self, results: Results, session: Session, *, column: str) -> None:
        super().__init__()
        self.results = results
        self._session = session
        self._run = 0
        answer = session.settings.engine.answer
        first = results.source_column(column)
        others = [name for name in self._columns() if name not in (first, NO_RETRIEVAL)]
        ways = (
            Way(first or NO_RETRIEVAL, answer.n_sources, answer.template),
            Way(others[-1] if others else NO_RETRIEVAL, answer.n_sources, answer.template),
        )
        self.sides = {side: AnswerSide(side, way) for side, way in zip(SIDES, ways, strict=True)}
        self._difference = Static("", id="difference", markup=False)
        self.difference: AnswerDiff | None = None

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def difference_text(self) -> str:
        """What is said below both answers."""
        return str(self._difference.content)

    def compose(self) -> ComposeResult:
        """Question, both sides, what differs."""
        yield Static(
            fmt.content(fmt.clip(fmt.one_line(self.results.request.query), 400)),
            id="question",
            markup=False,
        )
        with Container(id="sides"):
            yield from self.sides.values()
        yield self._difference
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """The left side has the focus."""
        self.sides["left"].body.focus()
        self._say("tab: other side · c, + -, t: how it is made · enter asks both")

    def on_resize(self, event: events.Resize) -> None:
        """One above the other where there is no room beside."""
        self.set_class(event.size.width < STACKED_BELOW, "-stacked")

    # -- how ---------------------------------------------------------------------------------

    def action_turn(self, what: str) -> None:
        """Change how the side with the focus is made."""
        focused = self.focused
        right = self.sides["right"]
        is_right = focused is not None and right in focused.ancestors
        self.action_choose("right" if is_right else "left", what)

    def action_choose(self, side: str, what: str) -> None:
        """Change how a side is made; asked for by enter."""
        from rag_tui.engine.prompt_templates import TEMPLATES

        one = self.sides[cast("Side", side)]
        way = one.way
        if what == "column":
            columns = self._columns()
            at = columns.index(way.column) if way.column in columns else -1
            way = replace(way, column=columns[(at + 1) % len(columns)])
        elif what == "template":
            known = tuple(dict.fromkeys((*TEMPLATES, way.template)))
            way = replace(way, template=known[(known.index(way.template) + 1) % len(known)])
        else:
            way = replace(way, n_sources=max(1, way.n_sources + (1 if what == "more" else -1)))
        one.set_way(way)
        if one.answer is not None:
            self._say("changed: enter asks both again")

    def _columns(self) -> list[str]:
        rankings = self.results.rankings
        return [*(name for name, ranking in rankings.items() if ranking.hits), NO_RETRIEVAL]

    # -- asking ------------------------------------------------------------------------------

    def action_ask(self) -> None:
        """Ask both at once."""
        from rag_tui.tui.jobs import start

        self._stop()
        self._say("")
        self.difference = None
        for side in SIDES:
            start(self, partial(self._ask, side, self._run), f"answer {side}")

    async def _ask(self, side: Side, run: int) -> None:
        from rag_tui.tui.answer_jobs import run_answer, side_prompt
        from rag_tui.tui.jobs import in_thread

        one, backend = self.sides[side], self.workbench.backend
        one.begin(None, "asking…")
        way, session, results = one.way, self._session, self.results
        found = await in_thread(lambda _: side_prompt(backend, session, results, way), "prompt")
        if run != self._run:
            return
        if isinstance(found, StageError):
            one.begin(None, f"✗ {found.message} {found.hint}")
            return
        one.begin(found, "asking…")
        post = self.post_message
        await in_thread(
            lambda cancel: run_answer(
                backend,
                session,
                found,
                generation=2 * run + SIDES.index(side),
                post=post,
                cancel=cancel,
            ),
            f"answer {side}",
        )

    @on(AnswerGrew)
    def _take_answer(self, event: AnswerGrew) -> None:
        event.stop()
        run, place = divmod(event.generation, 2)
        if run != self._run:
            return
        self.sides[SIDES[place]].show(event.answer, self._session.settings.token_prices.currency)
        if all(one.is_finished for one in self.sides.values()):
            from rag_tui.tui.jobs import start

            start(self, partial(self._compare, run), "comparing")

    async def _compare(self, run: int) -> None:
        from rag_tui.tui.answer_jobs import compare_both
        from rag_tui.tui.jobs import in_thread

        pairs = [(one.answer, one.prompt) for one in self.sides.values()]
        backend, session = self.workbench.backend, self._session
        self._say("comparing…")
        found = await in_thread(
            lambda cancel: compare_both(backend, session, pairs, cancel), "compare"
        )
        if run != self._run or found is None:
            return
        self.difference = found
        self.sides["left"].mark(_spans(found.parts, "only second"))
        self.sides["right"].mark(_spans(found.parts, "only first"))
        self._say("\n".join(self._lines(found)))

    def _lines(self, found: AnswerDiff) -> list[str]:
        same = "the same word for word" if found.is_same_text else f"{found.similarity:.0%} alike"
        n_shared = len(found.sources_of_both)
        support = ", ".join(
            f"{side} {share:.0%}"
            for side, share in zip(SIDES, found.support, strict=True)
            if share is not None
        )
        told = f"{same} · {fmt.count(n_shared, 'source')} in common"
        if support:
            told += f" · supported: {support} (an aid, not a verdict)"
        cited = (
            ("cited by both", found.cited_by_both),
            ("only left", found.cited_by_first),
            ("only right", found.cited_by_second),
        )
        names = " · ".join(f"{what}: {self._names(ids)}" for what, ids in cited)
        return [told, names]

    def _names(self, chunk_ids: tuple[str, ...]) -> str:
        chunks = [self.results.chunk(chunk_id) for chunk_id in chunk_ids]
        return ", ".join(fmt.one_line(chunk.label) for chunk in chunks if chunk) or "none"

    # -- leaving -----------------------------------------------------------------------------

    def action_close(self) -> None:
        """Stop what is running, else close."""
        if not self._stop() and self.is_current:
            self.dismiss()

    def _stop(self) -> bool:
        """Cancel both answers; what came is kept. Returns whether one was running."""
        was_running = False
        self._run += 1
        for side, one in self.sides.items():
            group = f"answer {side}"
            is_busy = any(w.group == group and not w.is_finished for w in self.workers)
            self.workers.cancel_group(self, group)
            if not is_busy or one.is_finished:
                continue
            was_running = True
            if one.answer is not None and one.prompt is not None:
                from rag_tui.engine.answering import cancelled

                one.show(
                    cancelled(one.answer, one.prompt), self._session.settings.token_prices.currency
                )
            else:
                one.begin(one.prompt, "cancelled · enter asks again")
        self.workers.cancel_group(self, "comparing")
        return was_running

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    def _say(self, text: str) -> None:
        self._difference.update(fmt.content(text, newlines=True))


def _spans(parts: tuple[DiffPart, ...], other: str) -> list[tuple[int, int]]:
    """Where a text has what the other has not, in its own offsets; blank stretches left out."""
    spans = []
    at = 0
    for part in parts:
        if part.kind == other:
            continue
        end = at + len(part.text)
        if part.kind != "same" and part.text.strip():
            spans.append((at, end))
        at = end
    return spans
