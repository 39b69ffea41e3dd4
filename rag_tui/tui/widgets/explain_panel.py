"""Why the selected chunk stands where it stands, with the arithmetic of each method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from rag_tui.engine.types import Method, Ranking
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.result_list import TITLES

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
    parts: dict[Method, Iterator[str] | None] = {
        "vector": _vector(explanation.vector) if explanation.vector else None,
        "bm25": _bm25(explanation.bm25) if explanation.bm25 else None,
        "hybrid": _hybrid(explanation.hybrid) if explanation.hybrid else None,
        "reranked": _reranked(explanation.reranked) if explanation.reranked else None,
    }
    for method, part in parts.items():
        ranking = rankings.get(method)
        absent = "there is no list" if ranking is None else "not in this list"
        yield Content("")
        for i, line in enumerate(part if part is not None else (absent,)):
            yield _labelled(TITLES[method] if i == 0 else "", line)
        if ranking is not None:
            kind = ranking.score_kind
            yield _labelled("", f"{kind.name}: {kind.range}; {kind.note}".rstrip("; "), "dim")


def _vector(part: VectorExplanation) -> Iterator[str]:
    where = f"rank {part.rank}" if part.rank else f"not in the first {part.n_ranked}"
    gap = f" · {part.gap_to_next:.4f} above the next" if part.gap_to_next is not None else ""
    yield f"cosine {part.similarity:.4f} · {where}{gap}"


def _bm25(part: BM25Explanation) -> Iterator[str]:
    params = part.params
    score = f"score {part.score:.4f}" if part.terms else "– no word of the question"
    yield (
        f"{score} · {fmt.count(part.chunk_length, 'word')} "
        f"(mean {part.mean_length:.1f}) · {params.variant}, k1 {params.k1:g}, b {params.b:g}"
    )
    if part.terms:
        names = [fmt.one_line(share.term) for share in part.terms]
        width = min(20, max(cell_len(name) for name in [*names, "word"]))
        yield f"{'word':<{width}}  tf    df     idf  length    adds  share"
        for name, share in zip(names, part.terms, strict=True):
            yield (
                f"{fmt.fit(name, width)} {share.tf:>3} {share.df:>5} {share.idf:>7.3f} "
                f"{share.length_factor:>7.3f} {share.contribution:>7.4f} {share.share:>5.0%}  "
                f"{fmt.bar(share.share, 10)}"
            ).rstrip()
    if part.unmatched:
        words = ", ".join(f"{term} ({_chunks(df)})" for term, df in part.unmatched)
        yield f"not in this chunk: {words}"


def _chunks(df: int) -> str:
    return f"in {fmt.count(df, 'chunk')}" if df else "in no chunk"


def _hybrid(part: HybridExplanation) -> Iterator[str]:
    addends = [
        f"{'' if p.weight == 1 else f'{p.weight:g}×'}1/({part.k:g}+{p.rank})"
        for p in part.parts
        if p.rank is not None
    ]
    yield f"{' + '.join(addends) or '0'} = {part.score:.4f}"
    yield "   ".join(
        f"{p.method} rank {p.rank} adds {p.addend:.5f}"
        if p.rank is not None
        else f"{p.method}: not in its list, adds 0"
        for p in part.parts
    )


def _reranked(part: RerankExplanation) -> Iterator[str]:
    yield f"score {part.score:.3f} · sigmoid {part.sigmoid:.4f} (not a probability)"
    if part.rank_before is not None:
        moved = part.rank_before - part.rank_after
        how = f"▲{moved}" if moved > 0 else f"▼{-moved}" if moved < 0 else "═"
        yield f"hybrid rank {part.rank_before} → rank {part.rank_after}  {how}"


def _labelled(label: str, text: str, style: str = "") -> Content:
    return fmt.content(f"{label:<{LABEL_WIDTH}}", "bold") + fmt.content(text, style)
