"""Explanations and traces as text that fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from rag_tui.cli.output import write_text
from rag_tui.display import bar, clip, count, display, fit, one_line
from rag_tui.engine.explain import (
    BM25Explanation,
    Explanation,
    HeatMap,
    HybridExplanation,
    RerankExplanation,
    SentenceScore,
    StepsExplanation,
    VectorExplanation,
)
from rag_tui.engine.index import Index
from rag_tui.engine.passage_trace import ColumnTrace, PassageTrace, Remedy
from rag_tui.engine.types import Column, KnobValue, SearchRequest

WIDTH = 80
LABEL = 10
_TERM = 20
_SPARKS = "▁▂▃▄▅▆▇█"
N_WORDS = 12
"""Nearest words that are shown; all are in the JSON."""


def write_explanation(found: Explanation, column: Column, own: SearchRequest, index: Index) -> None:
    """One column's explanation, a paragraph for each list."""
    chunk = index.chunk(found.chunk_id)
    write_text(_cut(f"{chunk.location}  {chunk.context}"))
    write_text(_cut(f"column {column.name} ({column.method}) · {own.query}"))
    paragraphs: list[tuple[str, Iterator[str]]] = []
    if found.vector is not None:
        paragraphs.append(("vector", _vector(found.vector)))
    if found.bm25 is not None:
        paragraphs.append(("bm25", _bm25(found.bm25)))
    if found.hybrid is not None:
        paragraphs.append(("hybrid", _hybrid(found.hybrid)))
    if found.reranked is not None:
        paragraphs.append(("reranked", _reranked(found.reranked)))
    if found.steps is not None:
        paragraphs.append(("steps", _steps(found.steps, index)))
    for name, lines in paragraphs:
        write_text("")
        _labelled(name, lines)


def write_sentences(name: str, scores: Sequence[SentenceScore], text: str) -> None:
    """Each sentence with its score, the best one marked."""
    write_text("")
    best = max((one.score for one in scores), default=0.0)
    lines = [
        f"{'▶' if one.score == best else ' '} {one.score:8.4f}  "
        f"{'' if one.is_read else '(not read) '}{one_line(text[one.start : one.end])}"
        for one in scores
    ]
    _labelled(name.partition(" ")[0], iter(lines or ["no sentences"]))


def write_words(heat: HeatMap) -> None:
    """The words of the chunk that are nearest to a word of the question."""
    nearest = sorted(heat.spans, key=lambda span: -span.similarity)[:N_WORDS]
    lines = [
        f"{span.similarity:7.3f}  {fit(heat.text[span.start : span.end], _TERM)} "
        f"like {one_line(span.query_word)}"
        for span in nearest
    ]
    if heat.n_cut:
        lines.append(f"the last {count(heat.n_cut, 'token')} are not read")
    write_text("")
    _labelled("words", iter(lines or ["no words"]))


def write_trace(trace: PassageTrace, index: Index) -> None:
    """The verdict, then what became of the passage in each column."""
    mark = "✓" if trace.verdict.is_present else "✗"
    for line in _wrapped(f"{mark} {trace.verdict.step}: {trace.verdict.detail}", WIDTH):
        write_text(line)
    for place in trace.target.places[:5]:
        lines = f"{place.line_start}-{place.line_end}"
        write_text(f"  passage at {clip(f'{place.doc_id}:{lines}', WIDTH - 13)}")
    for remark in trace.notes:
        for line in _wrapped(remark, WIDTH - 2):
            write_text(f"  {line}")
    for column in trace.columns:
        write_text("")
        _labelled(column.column, _column(column, index))
    if trace.remedies:
        write_text("")
        _labelled("cutting", (f"{_knobs(r)}: {r.note}" for r in trace.remedies))


def _column(column: ColumnTrace, index: Index) -> Iterator[str]:
    mark = "✓" if column.verdict.is_present else "✗"
    yield f"{mark} {column.verdict.step}: {column.verdict.detail}"
    for place in column.places:
        score = f"{place.score:.4f}" if place.score is not None else "–"
        rank = f"rank {place.rank}" if place.rank is not None else "not in the list"
        whole = "–"
        if place.corpus_rank is not None:
            whole = f"{place.corpus_rank:,} of {place.n_ranked:,}"
        yield f"{place.method:<8} {rank:<15} whole corpus {whole:<16} score {score}"
    if column.above:
        yield "above it:"
        for hit in column.above:
            chunk = index.chunks[hit.position]
            yield f"  {hit.rank:>3}  {hit.score:9.4f}  {chunk.location}  {chunk.label}"
    if column.remedies:
        yield "brings it in:"
        for remedy in column.remedies:
            yield f"  {_knobs(remedy)}  → rank {remedy.rank}"


def _knobs(remedy: Remedy) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in remedy.knobs)


def value_text(value: KnobValue) -> str:
    """A knob's value as it can be typed."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _vector(part: VectorExplanation) -> Iterator[str]:
    yield f"similarity {part.similarity:.4f} · {_rank(part.rank, part.n_ranked)}"
    if part.corpus_rank is not None:
        above = f" · {part.gap_above:.4f} below the one before" if part.gap_above else ""
        below = f" · {part.gap_below:.4f} above the next" if part.gap_below is not None else ""
        yield f"{part.corpus_rank:,} of {count(part.n_corpus, 'chunk')}{above}{below}"
    if part.histogram is not None:
        spread = part.histogram
        most = max(spread.counts)
        bars = "".join(
            "·" if not n else _SPARKS[min(len(_SPARKS) - 1, n * len(_SPARKS) // (most + 1))]
            for n in spread.counts
        )
        yield f"{spread.low:.3f} {bars} {spread.high:.3f}"
        yield f"{'':{len(f'{spread.low:.3f}') + 1 + spread.bin}}↑ this chunk"
    if part.unread_from is not None:
        yield f"the model reads nothing from character {part.unread_from:,} of the chunk on"


def _bm25(part: BM25Explanation) -> Iterator[str]:
    params = part.params
    score = f"score {part.score:.4f}" if part.terms else "no word of the question"
    rank = f" · rank {part.rank}" if part.rank is not None else ""
    yield f"{score}{rank} · {count(part.chunk_length, 'word')} (mean {part.mean_length:.1f})"
    yield f"{params.variant}, k1 {params.k1:g}, b {params.b:g}, analyzer {params.analyzer}"
    if part.terms:
        width = min(_TERM, max(4, *(len(share.term) for share in part.terms)))
        yield f"{'word':<{width}}  tf    df     idf  length    adds  share"
        for share in part.terms:
            yield (
                f"{fit(share.term, width)} {share.tf:>3} {share.df:>5} {share.idf:>7.3f} "
                f"{share.length_factor:>7.3f} {share.contribution:>7.4f} {share.share:>5.0%}  "
                f"{bar(share.share, 8)}"
            ).rstrip()
    if part.unmatched:
        words = (f"{term} ({f'in {df:,}' if df else 'in none'})" for term, df in part.unmatched)
        yield f"not in this chunk: {', '.join(words)}"
    changed = [w for w in part.query_words if w.tokens != (w.text.casefold(),)]
    if changed:
        became = (f"{w.text} → {' '.join(w.tokens) or 'left out'}" for w in changed)
        yield f"words as searched: {', '.join(became)}"
    for check in part.operators:
        yield (
            f"{check.kind} {' '.join(check.tokens)!r}: "
            f"{'holds' if check.holds else 'does not hold, so it is not in the list'}"
        )


def _hybrid(part: HybridExplanation) -> Iterator[str]:
    rank = f"rank {part.rank}" if part.rank is not None else "not in the list"
    yield f"score {part.score:.5f} · {rank} · {part.fusion}"
    for one in part.parts:
        weight = f"{one.weight:g} × " if one.weight != 1 else ""
        where = f"rank {one.rank}" if one.rank is not None else "not in its list"
        if part.fusion == "rrf":
            sum_ = f"{weight}1/({part.k:g} + {one.rank})" if one.rank is not None else "0"
        else:
            scale = one.normalised if one.normalised is not None else 0.0
            raw = f"{one.score:.4f} → " if one.score is not None else "absent → "
            sum_ = f"{weight}({raw}{scale:.4f})"
        yield f"{one.method:<7} {where:<15} {sum_} = {one.addend:.5f}"
    for method, without in part.rank_without:
        then = f"rank {without}" if without is not None else "not in the list"
        yield f"without {method}: {then}"


def _reranked(part: RerankExplanation) -> Iterator[str]:
    yield f"score {part.score:.3f} · sigmoid {part.sigmoid:.4f} (not a probability)"
    if part.rank_before is not None:
        moved = part.rank_before - part.rank_after
        how = f"▲{moved}" if moved > 0 else f"▼{-moved}" if moved < 0 else "═"
        yield (
            f"{part.rank_from} rank {part.rank_before} → rank {part.rank_after} of "
            f"{part.n_read} read  {how}"
        )
    if part.unread_from is not None:
        yield f"the reranker reads nothing from character {part.unread_from:,} of the chunk on"


def _steps(part: StepsExplanation, index: Index) -> Iterator[str]:
    before = f"rank {part.rank_before}" if part.rank_before is not None else "not in the list"
    after = f"rank {part.rank_after}" if part.rank_after is not None else "not shown"
    yield f"{before} → {after}"
    if part.removed_by:
        yield f"removed by {part.removed_by}: {part.note}"
    if part.folded_into:
        yield f"folded into {index.chunk(part.folded_into).location}"
    for chunk_id in part.folded:
        yield f"stands for {index.chunk(chunk_id).location} too"


def _rank(rank: int | None, n_ranked: int) -> str:
    return f"rank {rank}" if rank is not None else f"not in the first {n_ranked:,}"


def _labelled(label: str, lines: Iterator[str]) -> None:
    name = clip(label, LABEL - 1)
    for line in lines:
        for piece in _wrapped(line, WIDTH - LABEL):
            write_text(f"{fit(name, LABEL)}{piece}".rstrip())
            name = ""


def _cut(text: str) -> str:
    return clip(one_line(text), WIDTH)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` cells, broken at spaces where there are any; later ones indented.

    Spaces at the beginning and between columns stay as they are.
    """
    rest = display(text)
    indent = " " * (len(rest) - len(rest.lstrip()) + 2)
    while cell_len(rest) > width:
        reach = 0
        cells = 0
        while reach < len(rest) and cells + cell_len(rest[reach]) <= width:
            cells += cell_len(rest[reach])
            reach += 1
        at = rest.rfind(" ", len(indent), reach + 1)
        at = at if at > len(indent) else reach
        yield rest[:at].rstrip()
        rest = indent + rest[at:].lstrip()
    yield rest
