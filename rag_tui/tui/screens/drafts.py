"""Drafted questions, one at a time: a person accepts, edits or rejects each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.worker import Worker

from rag_tui.display import without_hidden
from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.evaluation.drafts import HEADING_NOTE, Draft, DraftFailure
from rag_tui.engine.events import CancelToken
from rag_tui.tui import format as fmt
from rag_tui.tui.jobs import in_thread, start
from rag_tui.tui.labels import desk_of
from rag_tui.tui.screens.grade import action_line
from rag_tui.tui.widgets.chunk_view import ChunkView

if TYPE_CHECKING:
    from rag_tui.engine.evaluation.drafts import DraftPlan
    from rag_tui.engine.index import Index
    from rag_tui.tui.app import RagTuiApp
    from rag_tui.tui.backend import Session
    from rag_tui.tui.labels import Bench

N_DRAFTS = 10
"""Passages of one round."""

State = Literal["planning", "offering", "reviewing", "failed"]


class DraftMade(Message):
    """One more draft, or a passage that gave none; ``item`` None: that was the last."""

    def __init__(self, item: Draft | DraftFailure | None) -> None:
        super().__init__()
        self.item = item


class DraftsScreen(ModalScreen[None]):
    """Drafts come while the first is being read; accepted ones are in the file at once.

    Args:
        index: Where the passages are from.
        session: Settings and models.
    """

    DEFAULT_CSS = """
    DraftsScreen {
        align: center middle;
        & > Vertical {
            width: 100%; height: 100%; max-width: 130; max-height: 44; min-width: 10;
            border: round $primary; background: $surface; padding: 0 1;
        }
        & Static { height: auto; max-height: 5; min-width: 4; }
        & ChunkView Static { max-height: 100000; }
        & #draft-state { color: $text-muted; }
        & #draft-question { text-style: bold; margin-top: 1; }
        & #draft-input { display: none; min-width: 4; margin-top: 1; }
        &.-editing #draft-input { display: block; }
        &.-editing #draft-question { display: none; }
        & #draft-evidence { color: $text-muted; border-bottom: solid $panel; }
        & #draft-keys { border-top: solid $panel; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "accept", "Accept, or begin", id="drafts.accept"),
        Binding("e", "edit", "Edit the question", id="drafts.edit"),
        Binding("n,x", "reject", "Reject", id="drafts.reject"),
        Binding("u,U", "undo", "Back to the last draft, undone", id="drafts.undo"),
        Binding("h", "headings", "Draft from headings, without a model", id="drafts.headings"),
        Binding("m", "more", "Drafts for other passages", id="drafts.more"),
        Binding("escape", "close", "Leave the input, or close", id="drafts.close"),
    ]
    BINDING_GROUP_TITLE = "Drafted questions"
    HELP = """\
A language model proposes one question for each of some passages, chosen at random from as many
documents as possible; without a key, questions are made from headings by template. Nothing is kept
before you accept it. Accepted questions get the passage as evidence and "synthetic": true."""

    def __init__(self, index: Index, session: Session) -> None:
        super().__init__()
        self.index = index
        self.session = session
        self.state: State = "planning"
        self.plan: DraftPlan | None = None
        self.drafts: list[Draft] = []
        self.failures: list[DraftFailure] = []
        self._texts: dict[int, str] = {}
        self._accepted: dict[int, bool] = {}
        self._changes: dict[int, list[int]] = {}
        """By draft: how many changes of the file accepting it made."""
        self._at = 0
        self._is_drafting = False
        self._seed = 0
        self._from_headings = False
        self._view = ChunkView(id="draft-chunk")

    @property
    def workbench(self) -> RagTuiApp:
        """The app, as what it is."""
        return cast("RagTuiApp", self.app)

    @property
    def draft(self) -> Draft | None:
        """The draft to decide on."""
        return self.drafts[self._at] if self._at < len(self.drafts) else None

    def compose(self) -> ComposeResult:
        """Who drafts, the question, its evidence, the passage, the keys."""
        with Vertical() as frame:
            frame.border_title = "Drafted questions"
            yield Static(id="draft-state", markup=False)
            yield Static(id="draft-question", markup=False)
            yield Input(id="draft-input", compact=True)
            yield Static(id="draft-evidence", markup=False)
            yield self._view
            yield Static(id="draft-keys", markup=False)

    def on_mount(self) -> None:
        """Find out who can draft, and for how much."""
        self._view.focus()
        self._begin()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """No worker of the screen dies unseen."""
        self.workbench.report_worker(event)

    # -- drafting ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self.state = "planning"
        self._show()
        start(self, self._make_plan, "planning drafts")

    async def _make_plan(self) -> None:
        workbench, index, session = self.workbench, self.index, self.session
        desk = desk_of(workbench)
        book = await desk.read()
        resolver = desk.resolver(index)

        def plan(_: CancelToken) -> DraftPlan:
            judged = {
                position
                for question in book.questions
                for place in resolver.resolve(question).places
                for position in place.positions
            }
            return workbench.backend.plan_drafts(
                index,
                N_DRAFTS,
                session,
                seed=self._seed,
                judged=judged,
                excluded={draft.position for draft in self.drafts},
                from_headings=self._from_headings,
            )

        try:
            self.plan = await in_thread(plan, "planning drafts")
        except RagTuiError as error:
            self.state = "failed"
            self._show(f"✗ {error.message}\n→ {error.hint}")
            return
        self.state = "offering"
        if self.plan.is_free:
            self._start()
        else:
            self._show()

    def _start(self) -> None:
        if (plan := self.plan) is None:
            return
        self.state, self._is_drafting = "reviewing", True
        backend, session = self.workbench.backend, self.session
        resolver = desk_of(self.workbench).resolver(self.index)

        def work(cancel: CancelToken) -> None:
            try:
                for item in backend.draft_questions(plan, resolver, session, cancel=cancel):
                    self.post_message(DraftMade(item))
            finally:
                self.post_message(DraftMade(None))

        async def draft() -> None:
            await in_thread(work, "drafting")

        start(self, draft, "drafting")
        self._show()

    @on(DraftMade)
    def _take_draft(self, event: DraftMade) -> None:
        if event.item is None:
            self._is_drafting = False
        elif isinstance(event.item, Draft):
            self.drafts.append(event.item)
        else:
            self.failures.append(event.item)
        if self.state == "reviewing" and not self.has_class("-editing"):
            self._show()

    # -- deciding ----------------------------------------------------------------------------

    def action_accept(self) -> None:
        """Keep the draft on show; before there are any, begin; after the last, close."""
        if self.state == "offering":
            self._start()
            return
        if (draft := self.draft) is None:
            if self.state == "reviewing" and not self._is_drafting:
                self.action_close()
            return
        at, text = self._at, self._text
        self._accepted[at] = True

        changes = self._changes.setdefault(at, [])

        def accept(bench: Bench) -> str:
            changes.append(bench.accept(text, draft.position))
            return ""

        def then(is_saved: bool) -> None:
            if not is_saved and self.is_attached:
                self._accepted.pop(at, None)
                self._at = at
                self._show()

        desk_of(self.workbench).change(self.index, accept, then)
        self._at += 1
        self._show()

    def action_reject(self) -> None:
        """Throw the draft on show away."""
        if self.draft is not None:
            self._accepted[self._at] = False
            self._at += 1
            self._show()

    def action_undo(self) -> None:
        """Back to the last draft; if it was accepted, it is taken out of the file again."""
        if self.state != "reviewing" or self._at == 0:
            self.workbench.tell("There is nothing to undo here.")
            return
        self._at -= 1
        if self._accepted.pop(self._at, False):
            changes = self._changes.get(self._at, [])

            def undo(bench: Bench) -> str:
                for _ in range(changes.pop() if changes else 0):
                    bench.file.undo()
                return ""

            desk_of(self.workbench).change(self.index, undo)
        self._show()

    def action_edit(self) -> None:
        """Change the words of the question."""
        if self.draft is not None:
            box = self.query_one("#draft-input", Input)
            box.value = self._text
            self.add_class("-editing")
            box.focus()
            self._show_keys()

    @on(Input.Submitted)
    def _take_edit(self, event: Input.Submitted) -> None:
        event.stop()
        if text := " ".join(without_hidden(event.value).split()):
            self._texts[self._at] = text
        self._stop_editing()

    def action_headings(self) -> None:
        """Ask no model."""
        if self.state == "offering":
            self._from_headings = True
            self._begin()

    def action_more(self) -> None:
        """Another round, with other passages."""
        if self.state == "reviewing" and self.draft is None and not self._is_drafting:
            self._seed += 1
            self._begin()

    def action_close(self) -> None:
        """Leave the input; else close and stop drafting."""
        if self.has_class("-editing"):
            self._stop_editing()
        elif self.is_current:
            self.dismiss()

    # -- showing -----------------------------------------------------------------------------

    @property
    def _text(self) -> str:
        """The words of the draft on show, as they were edited."""
        draft = self.draft
        text = without_hidden(draft.text) if draft is not None else ""
        return self._texts.get(self._at, " ".join(text.split()))

    def _stop_editing(self) -> None:
        self.remove_class("-editing")
        self._view.focus()
        self._show()

    def _show(self, message: str = "") -> None:
        draft = self.draft if self.state == "reviewing" else None
        self.query_one("#draft-state", Static).update(
            fmt.content(self._state_text(), newlines=True)
        )
        self.query_one("#draft-question", Static).update(
            fmt.content(self._text if draft is not None else "")
        )
        quote = fmt.one_line(draft.evidence.quote) if draft is not None else ""
        self.query_one("#draft-evidence", Static).update(
            fmt.content(f"evidence: “{fmt.clip(quote, 300)}”" if quote else "")
        )
        if draft is None:
            self._view.clear(message or self._message())
        else:
            chunk = self.index.chunks[draft.position]
            self._view.show(
                chunk,
                self.index.document_of.get(chunk.doc_id),
                query_terms=self.workbench.backend.query_terms(self._text),
            )
        self._show_keys()

    def _state_text(self) -> str:
        plan = self.plan
        if plan is None or self.state == "planning":
            return ""
        who = f"by {plan.by}" if not plan.is_free else "from headings by template, without a model"
        if self.state == "offering":
            return f"{fmt.count(len(plan.positions), 'question')} {who}"
        parts = []
        if self.draft is not None:
            more = "…" if self._is_drafting else ""
            parts.append(f"draft {self._at + 1} of {len(self.drafts)}{more}")
        n_accepted = sum(self._accepted.values())
        parts += [who, f"✓ {n_accepted} accepted  ✗ {len(self._accepted) - n_accepted} rejected"]
        if self.failures:
            last = fmt.one_line(self.failures[-1].reason)
            parts.append(f"⚠ {fmt.count(len(self.failures), 'passage')} without a draft: {last}")
        note = f"\n{HEADING_NOTE}" if plan.is_free else ""
        return " · ".join(parts) + note

    def _message(self) -> str:
        plan = self.plan
        if self.state == "planning" or plan is None:
            return "Choosing passages and looking for a key…"
        if self.state == "offering":
            n = len(plan.positions)
            return (
                f"{plan.by} would be sent {fmt.count(n, 'passage')} of your documents, one at a "
                f"time, and write a question for each.\nEstimated: {plan.n_input_tokens:,} tokens "
                f"in; at most {plan.most_cost:.2f} {plan.currency} in all.\n\n"
                "enter: begin    h: from headings instead, free    esc: not now"
            )
        if self._is_drafting:
            return "Waiting for the next draft… esc stops."
        n_accepted = sum(self._accepted.values())
        where = desk_of(self.workbench).book
        saved = f"\nSaved in {where.path}" if n_accepted and where is not None else ""
        return (
            f"That was all: {fmt.count(n_accepted, 'question')} accepted.{saved}\n\n"
            "m: drafts for other passages    enter: close"
        )

    def _show_keys(self) -> None:
        if self.has_class("-editing"):
            entries = [("enter", "take the new words", ""), ("esc", "leave them", "screen.close")]
        elif self.state == "offering":
            entries = [
                ("enter", "begin", "screen.accept"),
                ("h", "from headings", "screen.headings"),
            ]
        elif self.draft is not None:
            entries = [
                ("y", "accept", "screen.accept"),
                ("e", "edit", "screen.edit"),
                ("n", "reject", "screen.reject"),
                ("u", "undo", "screen.undo"),
            ]
        elif self.state == "reviewing" and not self._is_drafting:
            entries = [("m", "more", "screen.more"), ("u", "undo", "screen.undo")]
        else:
            entries = []
        if not self.has_class("-editing"):
            entries.append(("esc", "close", "screen.close"))
        self.query_one("#draft-keys", Static).update(action_line(entries))


def open_drafts(app: RagTuiApp) -> None:
    """Propose questions for passages of the index; says in a toast if there is none yet."""
    if app.session is None or app.index is None:
        app.warn("There is no index yet.\nQuestions can be drafted when it is there.")
        return
    app.push_screen(DraftsScreen(app.index, app.session))
