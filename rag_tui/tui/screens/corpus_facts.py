"""How large the corpus is, and whether retrieval is needed at all."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from rag_tui.engine.corpus_facts import ANSWER_TOKENS, CorpusFacts, Prices
from rag_tui.tui import format as fmt

BAR_WIDTH = 30
_LABEL = 12


class CorpusFactsScreen(ModalScreen[None]):
    """The facts in words and as a histogram."""

    DEFAULT_CSS = """
    CorpusFactsScreen {
        align: center middle;
        & > VerticalScroll {
            width: 90%;
            max-width: 84;
            min-width: 10;
            height: auto;
            max-height: 90%;
            border: round $primary;
            background: $surface;
            padding: 0 1;
        }
        & Static { width: 1fr; min-width: 4; height: auto; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i", "close", "Close", id="facts.close"),
    ]

    def __init__(self, facts: CorpusFacts, prices: Prices) -> None:
        super().__init__()
        self._facts = facts
        self._prices = prices

    def compose(self) -> ComposeResult:
        """The text in a frame."""
        with VerticalScroll() as frame:
            frame.border_title = "Do you need retrieval at all?"
            frame.border_subtitle = "esc: close"
            yield Static(facts_text(self._facts, self._prices), markup=False)

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        """Back to the screen beneath."""
        if self.is_current:
            self.dismiss()


def facts_text(facts: CorpusFacts, prices: Prices) -> Content:
    """Verdict, costs of a question, lengths."""
    pasting, currency = facts.pasting, fmt.display(prices.currency)

    def money(amount: float) -> str:
        return f"{amount:,.4f} {currency}" if amount < 1 else f"{amount:,.2f} {currency}"

    pays = (
        "never"
        if pasting.caching_pays_from is None
        else f"from {fmt.count(pasting.caching_pays_from, 'question')} on"
    )
    plain = [
        "",
        f"{fmt.count(facts.n_documents, 'document')}, {fmt.count(facts.n_chunks, 'chunk')}, "
        f"{fmt.count(facts.n_characters, 'character')}; as chunks "
        f"{fmt.count(facts.n_chunk_tokens, 'token')} with context and overlap.",
        "",
        f"One question with an answer of {ANSWER_TOKENS} tokens, at {prices.input:g} read, "
        f"{prices.cache_write:g} written to and {prices.cache_read:g} read from the prompt cache, "
        f"{prices.output:g} answered ({currency} per million tokens; examples, look yours up):",
        f"  the whole corpus, no cache       {money(pasting.uncached)}",
        f"  the whole corpus, first, cached  {money(pasting.first_cached)}",
        f"  the whole corpus, then, cached   {money(pasting.next_cached)}",
        f"  only the retrieved chunks        {money(pasting.retrieved)}",
        f"  caching pays {pays}",
        "",
        f"Chunks by tokens: shortest {facts.shortest:,}, median {facts.median:,.0f}, "
        f"longest {facts.longest:,}"
        + (f"; the model reads {facts.max_tokens:,}" if facts.max_tokens else ""),
    ]
    lines = [Content.styled(facts.verdict, "bold"), *map(Content, plain)]
    most = max((one.n_chunks for one in facts.histogram), default=0)
    for one in facts.histogram:
        label = f"{one.low:,}–{one.high:,}" if one.high is not None else f"{one.low:,} and more"
        bar = fmt.bar(one.n_chunks / most if most else 0, BAR_WIDTH)
        mark = "⚠" if one.is_over and one.n_chunks else " "
        line = f"{label:>{_LABEL}} {mark} {bar} {one.n_chunks:,}"
        lines.append(Content.styled(line, "$text-warning" if mark == "⚠" else ""))
    if facts.n_over_limit:
        lines.append(
            Content.styled(
                f"⚠ {facts.share_over_limit:.0%} of the chunks ({facts.n_over_limit:,}) are over "
                f"the limit: {fmt.count(facts.n_lost_tokens, 'token')} not read",
                "bold $text-warning",
            )
        )
    return Content("\n").join(lines)
