"""Another way of cutting the open document, beside the present one, before anything is indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast, get_args

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Input, Label, Select, Static

from rag_tui.engine.chunkers.base import ChunkingSettings, SizeUnit, Strategy
from rag_tui.engine.errors import Cancelled, RagTuiError, UsageError
from rag_tui.engine.index import Index
from rag_tui.tui import format as fmt
from rag_tui.tui.chunk_jobs import Cost, Cut, cost_of, recut
from rag_tui.tui.jobs import in_thread, log, start
from rag_tui.tui.widgets.document_map import DocumentMap

if TYPE_CHECKING:
    from rag_tui.tui.backend import Session

PAUSE_S = 0.25
"""Pause in typing after which the document is cut: half a number must cost nothing."""

Overrides = Mapping[str, object]


class RecutScreen(Screen[Overrides]):
    """Gives the settings back that the folder is to be indexed with, escape nothing.

    Args:
        index: The index the document is from.
        cut: The document as the index has it.
        session: Settings and models.
        chosen: Index of the chunk to begin at, -1 for none.
    """

    TITLE = "Re-cut"
    HELP = (
        "Re-cut answers what another strategy, size or overlap would make of the open document. "
        "Left: the chunks of the index. Right: the preview. Nothing is written until the folder "
        "is indexed again with these settings; texts that were embedded before cost nothing."
    )
    AUTO_FOCUS = "#size"
    # Textual declares this as an instance variable, so mypy refuses ClassVar here.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-wide")]  # noqa: RUF012

    DEFAULT_CSS = """
    RecutScreen {
        & #knobs { height: auto; padding: 0 1; }
        & #knobs Label { width: auto; min-width: 2; color: $text-muted; margin: 0 1 0 0; }
        & #strategy { width: 17; margin: 0 1 0 0; }
        & #unit { width: 17; }
        & #size, & #overlap { width: 8; margin: 0 1 0 0; background: $surface; }
        & #message { height: auto; max-height: 4; padding: 0 1; color: $text-warning; }
        & #cuts { height: 1fr; }
        & .recut--side {
            width: 1fr;
            min-width: 8;
            height: 1fr;
            border: round $panel;
            border-title-color: $text-muted;
            padding: 0 1;
        }
        & .recut--side:focus-within { border: round $primary; }
        & .recut--side Static { height: auto; max-height: 3; color: $text-muted; }
        &.-narrow #cuts { layout: vertical; }
        &.-narrow #knobs { layout: grid; grid-size: 4; grid-columns: auto 1fr; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+enter,ctrl+j,r", "reindex", "Re-index with this", key_display="ctrl+enter r",
            tooltip="Twice: first say what it costs", id="recut.reindex",
        ),
        Binding("escape", "close", "Back", id="recut.close"),
    ]  # fmt: skip
    BINDING_GROUP_TITLE = "Re-cut"

    def __init__(self, index: Index, cut: Cut, session: Session, chosen: int) -> None:
        super().__init__()
        self._index = index
        self._present = cut
        self._session = session
        self._chosen = chosen
        self._settings = session.settings.engine.chunking
        self._confirmed: ChunkingSettings | None = None
        self._cut_for: ChunkingSettings | None = None
        self._timer: Timer | None = None
        self.preview: Cut | None = None

    def compose(self) -> ComposeResult:
        """Knobs, message, two documents."""
        now = self._settings
        with Horizontal(id="knobs"):
            yield Label("Strategy")
            yield _choice(get_args(Strategy), now.strategy, "strategy")
            yield Label("Size")
            yield Input(str(now.size), type="integer", id="size", compact=True)
            yield Label("Overlap")
            yield Input(str(now.overlap), type="integer", id="overlap", compact=True)
            yield Label("Unit")
            yield _choice(get_args(SizeUnit), now.unit, "unit")
        yield Static(id="message", markup=False)
        with Horizontal(id="cuts"):
            for side in ("present", "preview"):
                with Vertical(id=f"{side}-side", classes="recut--side"):
                    yield Static(id=f"{side}-facts", markup=False)
                    yield DocumentMap(id=side)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Show the present cut and make the first preview."""
        path = self._present.document.doc_id
        self.query_one("#present-side").border_title = fmt.content(f"In the index: {path}")
        self.query_one("#preview-side").border_title = "Preview"
        self.query_one("#present-facts", Static).update(fmt.content(self._present.summary))
        self.query_one("#present", DocumentMap).show(self._present.layout, chosen=self._chosen)
        self._cut_now()

    @on(Input.Changed)
    @on(Select.Changed)
    def _cut_soon(self) -> None:
        # The widgets tell their first values too, some time after they were made.
        if self._is_cut():
            return
        self._confirmed = None
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE_S, self._cut_now)

    @on(Input.Submitted)
    def _cut_at_once(self) -> None:
        self._cut_now()

    @on(DocumentMap.Chosen)
    def _follow(self, event: DocumentMap.Chosen) -> None:
        if self.preview is None:
            return
        here, there, other = self._present, self.preview, "#preview"
        if event.control.id == "preview":
            here, there, other = there, here, "#present"
        place = here.chunks[event.piece].start
        self.query_one(other, DocumentMap).choose(there.at(place))

    def action_close(self) -> None:
        """Back without a change."""
        self.dismiss()

    def action_reindex(self) -> None:
        """Say what indexing would cost; done again, ask for it."""
        try:
            wanted = self.wanted()
        except UsageError as error:
            self._tell(f"{error.message} {error.hint}")
            return
        if self._confirmed == wanted:
            self.dismiss(
                {
                    "chunking.strategy": wanted.strategy,
                    "chunking.size": wanted.size,
                    "chunking.overlap": wanted.overlap,
                    "chunking.unit": wanted.unit,
                }
            )
            return
        self._tell("Counting the chunks of all documents …")
        start(self, partial(self._count, wanted), "counting")

    def wanted(self) -> ChunkingSettings:
        """The settings of the knobs.

        Raises:
            UsageError: When they make no sense.
        """
        return replace(
            self._settings,
            strategy=cast(Strategy, self.query_one("#strategy", Select).value),
            unit=cast(SizeUnit, self.query_one("#unit", Select).value),
            size=self._number("size"),
            overlap=self._number("overlap"),
        )

    def _number(self, name: str) -> int:
        text = self.query_one(f"#{name}", Input).value.strip()
        try:
            return int(text)
        except ValueError:
            raise UsageError(
                f"{name} must be a whole number (got {text!r})", "Type digits only."
            ) from None

    def _is_cut(self) -> bool:
        """Whether the preview is, or is about to be, that of the knobs."""
        try:
            return self.wanted() == self._cut_for
        except UsageError:
            return False

    def _cut_now(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        try:
            wanted = self.wanted()
        except UsageError as error:
            self._refuse(f"{error.message} {error.hint}")
            return
        if self._is_cut():
            return
        self._cut_for = wanted
        self._tell("")
        self.query_one("#preview-facts", Static).update("cutting …")
        start(self, partial(self._cut, wanted), "re-cut")

    async def _cut(self, wanted: ChunkingSettings) -> None:
        document, models = self._present.document, self._session.models
        cache_dir = self._session.settings.engine.cache_dir
        try:
            cut = await in_thread(
                lambda cancel: recut(document, wanted, models, cache_dir, cancel), "re-cut"
            )
        except Cancelled:
            return
        except RagTuiError as error:
            self._refuse(f"{error.message} {error.hint}")
            return
        except Exception as error:
            log.exception("cutting %r failed", document.doc_id)
            self._refuse(f"{type(error).__name__}: {error}")
            return
        self.preview = cut
        self.query_one("#preview-facts", Static).update(fmt.content(cut.summary))
        chosen = self.query_one("#present", DocumentMap).chosen
        place = self._present.chunks[chosen].start if chosen >= 0 else 0
        note = "" if cut.chunks else "No chunks."
        self.query_one("#preview", DocumentMap).show(cut.layout, chosen=cut.at(place), note=note)

    async def _count(self, wanted: ChunkingSettings) -> None:
        index, session = self._index, self._session
        cache_dir = session.settings.engine.cache_dir
        try:
            cost = await in_thread(
                lambda cancel: cost_of(index, wanted, session.models, cache_dir, cancel),
                "counting",
            )
        except Cancelled:
            return
        except RagTuiError as error:
            self._tell(f"{error.message} {error.hint}")
            return
        self._confirmed = wanted
        self._tell(_question(cost))

    def _refuse(self, message: str) -> None:
        self.preview = self._cut_for = None
        self._tell(message)
        self.query_one("#preview-facts", Static).update("")
        self.query_one("#preview", DocumentMap).show(None, note="No preview.")

    def _tell(self, message: str) -> None:
        self.query_one("#message", Static).update(fmt.content(message))


def _question(cost: Cost) -> str:
    new = (
        f"{fmt.count(cost.n_new, 'text')} must be embedded anew"
        if cost.n_new
        else "all are in the embedding cache"
    )
    return (
        f"Re-index the folder: {fmt.count(cost.n_chunks, 'chunk')}, {new}. "
        "The same key again: go on. esc: leave it."
    )


def _choice(names: tuple[str, ...], value: str, name: str) -> Select[str]:
    return Select(
        [(option, option) for option in names],
        value=value,
        allow_blank=False,
        compact=True,
        id=name,
    )
