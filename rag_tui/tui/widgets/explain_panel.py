"""Why the selected chunk stands where it stands, with the arithmetic of each method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from rag_tui.engine.types import Method, Ranking
from rag_tui.tui import format as fmt
from rag_tui.tui.results import TITLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_tui.engine.explain import (
        BM25Explanation,
        Explanation,
        HybridExplanation,
        RerankExplanation,
        VectorExplanation,
    )

LABEL_WIDTH = 10


class ExplainPanel(VerticalScroll, can_focus=True):
    """One paragraph a method."""

    BINDING_GROUP_TITLE = "Explanation"
    DEFAULT_CSS = """
    ExplainPanel { min-width: 4; & > Static { width: 1fr; min-width: 4; height: auto; } }
    """

    def __init__(self) -> None:
        super().__init__(id="explain-panel")
        self._body = Static("", markup=False)

    def compose(self) -> ComposeResult:
        """The text."""
        yield self._body

    @property
    def text(self) -> str:
        """What is shown."""
        return str(self._body.content)

    def clear(self, message: str) -> None:
        """Show no explanation, and why."""
        self._body.update(fmt.content(message, newlines=True))

    def show(
        self, title: str, explanation: Explanation, rankings: Mapping[Method, Ranking]
    ) -> None:
        """Show an explanation under the chunk's name."""
        lines = [fmt.content(fmt.one_line(title), "bold"), *_lines(explanation, rankings)]
        self._body.update(Content("\n").join(lines))
        self.scroll_home(animate=False)


def _lines(explanation: Explanation, rankings: Mapping[Method, Ranking]) -> Iterator[Content]:
    for method, part in (
        ("vector", _vector(explanation.vector) if explanation.vector else None),
        ("bm25", _bm25(explanation.bm25) if explanation.bm25 else None),
        ("hybrid", _hybrid(explanation.hybrid) if explanation.hybrid else None),
        ("reranked", _reranked(explanation.reranked) if explanation.reranked else None),
    ):
        yield Content("")
        title = TITLES[method]  # type: ignore[index]
        if part is None:
            ranking = rankings.get(method)  # type: ignore[call-overload]
            absent = "not in this list" if ranking is not None else "no list"
            yield _labelled(title, absent)
            continue
        for i, line in enumerate(part):
            yield _labelled(title if i == 0 else "", line)
        ranking = rankings.get(method)  # type: ignore[call-overload]
        if ranking is not None:
            kind = ranking.score_kind
            yield _labelled("", f"{kind.name}: {kind.range}; {kind.note}".rstrip("; "))


def _vector(part: VectorExplanation) -> Iterator[str]:
    where = f"rank {part.rank}" if part.rank else f"not in the first {part.n_ranked}"
    gap = f", {part.gap_to_next:.4f} above the next" if part.gap_to_next is not None else ""
    similarity = f"{part.similarity:.4f}" if part.similarity is not None else "unknown"
    yield f"cosine {similarity} · {where}{gap}"


def _bm25(part: BM25Explanation) -> Iterator[str]:
    yield (
        f"score {part.score:.4f} · {part.chunk_length} words, mean {part.mean_length:.1f} · "
        f"k1 {part.params.k1:g}, b {part.params.b:g}, {part.params.variant}"
    )
    if part.terms:
        width = min(20, max(len("term"), *(len(fmt.display(t.term)) for t in part.terms)))
        yield f"{'term':<{width}}  tf    df     idf  length    adds  share"
        for term in sorted(part.terms, key=lambda t: -t.contribution):
            yield (
                f"{fmt.fit(term.term, width)} {term.tf:>3} {term.df:>5} {term.idf:>7.3f} "
                f"{term.length_factor:>7.3f} {term.contribution:>7.4f} {term.share:>5.0%} "
                f"{fmt.bar(term.share, 10)}"
            ).rstrip()
    if part.unmatched:
        words = ", ".join(f"{t.term} (df {t.df})" for t in part.unmatched)
        yield f"not in this chunk: {words}"


def _hybrid(part: HybridExplanation) -> Iterator[str]:
    terms = [
        f"{'' if p.weight == 1 else f'{p.weight:g}×'}1/({part.k:g}+{p.rank})"
        for p in part.parts
        if p.rank is not None
    ]
    yield f"{' + '.join(terms) or '0'} = {part.score:.4f}"
    yield "   ".join(
        f"{p.method}: rank {p.rank} adds {p.addend:.5f}"
        if p.rank is not None
        else f"{p.method}: not listed, adds 0"
        for p in part.parts
    )


def _reranked(part: RerankExplanation) -> Iterator[str]:
    if part.score is None:
        yield "not among the rows the reranker read"
        return
    yield f"score {part.score:.3f} · sigmoid {part.sigmoid:.4f}"
    if part.rank_before is not None and part.rank_after is not None:
        moved = part.rank_before - part.rank_after
        how = f"▲{moved} up" if moved > 0 else f"▼{-moved} down" if moved else "═ same place"
        yield f"hybrid rank {part.rank_before} → rank {part.rank_after}  {how}"


def _labelled(label: str, text: str) -> Content:
    return fmt.content(f"{label:<{LABEL_WIDTH}}", "bold") + fmt.content(text)
