"""The lines of an explanation: what each method saw in a chunk, and its arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from rag_tui.engine.types import Chunk, Method, Ranking, SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui.widgets.result_list import TITLES
from rag_tui.tui.widgets.sentence_lines import INDENT, QUOTED, sentence_lines

if TYPE_CHECKING:
    from rag_tui.engine.explain import (
        BM25Explanation,
        Explanation,
        Histogram,
        HybridExplanation,
        QueryWord,
        RerankExplanation,
        StepsExplanation,
        VectorExplanation,
    )
    from rag_tui.tui.close_reading import Reading, SentenceTable

BLOCKS = "▁▂▃▄▅▆▇█"
BAR_FROM = 84
"""From this width on the words' shares are drawn as bars."""
NAMES: Mapping[Method, str] = {"vector": "vectors", "bm25": "BM25"}


@dataclass(frozen=True, slots=True)
class Explained:
    """Everything that is known about one chunk in one column's pipeline."""

    chunk: Chunk
    column: str
    explanation: Explanation
    rankings: Mapping[Method, Ranking]
    """The lists of the pipeline before the steps after ranking."""
    request: SearchRequest
    """With the column's knobs."""
    chunks: Mapping[str, Chunk]
    """Chunks that the explanation names, by id."""
    reading: Reading | None = None
    """None until it is there."""
    table: SentenceTable | None = None
    """Only when it was asked for."""
    is_told: str = ""
    """What is under way or went wrong with the sentences."""


def lines_of(of: Explained, width: int) -> Iterator[Content]:
    """All lines; those with columns fit ``width`` cells where that is possible."""
    name = fmt.content(fmt.one_line(of.chunk.context or of.chunk.label), "bold")
    yield name + fmt.content(f"  {of.chunk.location}", "dim")
    yield fmt.content(f"column {fmt.one_line(of.column)}", "dim")
    if of.is_told:
        yield fmt.content(of.is_told, "$text-warning", newlines=True)
    if of.table is not None:
        yield from sentence_lines(of.table)
    found = of.explanation
    parts: dict[Method, Iterator[str] | None] = {
        "vector": _vector(found.vector, of) if found.vector else None,
        "bm25": _bm25(found.bm25, of, width) if found.bm25 else None,
        "hybrid": _hybrid(found.hybrid, of) if found.hybrid else None,
        "reranked": _reranked(found.reranked, of) if found.reranked else _not_read(of),
    }
    for method, part in parts.items():
        ranking = of.rankings.get(method)
        if ranking is None and part is None:
            continue
        yield Content("")
        yield _head(method, ranking)
        for line in part if part is not None else ("there is nothing to say of this chunk",):
            yield fmt.content(INDENT + line)
    if found.steps is not None:
        yield Content("")
        yield Content.styled("AFTER RANKING", "bold")
        for line in _steps(found.steps, of):
            yield fmt.content(INDENT + line)
    absent = [TITLES[m] for m in parts if m not in of.rankings]
    yield Content("")
    if absent:
        yield fmt.content(f"There is no list here of: {', '.join(absent)}.", "dim")
    yield Content.styled("S scores each sentence   w where is my passage?", "dim")


def _head(method: Method, ranking: Ranking | None) -> Content:
    """Name, range, direction and time of one method's scores."""
    name = Content.styled(TITLES[method], "bold")
    if ranking is None:
        return name + Content.styled("  there is no list", "dim")
    kind = ranking.score_kind
    told = " · ".join(
        part for part in (kind.name, kind.range, kind.note, fmt.duration(ranking.elapsed_s)) if part
    )
    return name + fmt.content(f"  {told}", "dim")


# -- vectors ---------------------------------------------------------------------------------


def _vector(part: VectorExplanation, of: Explained) -> Iterator[str]:
    ranking = of.rankings.get("vector")
    where = f"rank {part.rank}" if part.rank else f"not in the first {part.n_ranked}"
    line = f"similarity {part.similarity:.4f} · {where}"
    if part.corpus_rank is not None:
        line += f" · {part.corpus_rank:,} of all {fmt.count(part.n_corpus, 'chunk')}"
    elif part.n_corpus:
        line += " · the filter leaves it out"
    yield line
    gaps = []
    if part.gap_above is not None:
        gaps.append(f"{part.gap_above:.4f} below the next better chunk")
    below = part.gap_below if part.gap_below is not None else part.gap_to_next
    if below is not None:
        gaps.append(f"{below:.4f} above the next")
    if gaps:
        yield ", ".join(gaps)
    if part.rank is None and ranking is not None and ranking.hits:
        last = ranking.hits[-1]
        yield (
            f"cut off: the list ends at rank {last.rank} with {last.score:.4f}, "
            f"{last.score - part.similarity:.4f} above this chunk"
        )
    if part.histogram is not None:
        yield f"all chunks: {histogram_line(part.histogram)}"
    if of.reading is not None and (nearest := of.reading.nearest) is not None:
        unread = "" if nearest.is_read else " (not read by the model!)"
        quoted = fmt.clip(" ".join(nearest.text.split()), QUOTED)
        yield f"carried by {nearest.score:.4f}{unread}: “{quoted}”"
    if part.unread_from is not None:
        n_left = len(of.chunk.text) - part.unread_from
        yield f"⚠ the model does not read the last {fmt.count(n_left, 'character')} of the chunk"


def histogram_line(spread: Histogram) -> str:
    """Bars from the lowest to the highest score, this chunk's bin in brackets: ``▁▂[▅]▃``.

    The tallest bar stands for the fullest bin; ``·`` is an empty one.
    """
    most = max(spread.counts)
    shown = []
    for place, n in enumerate(spread.counts):
        step = min(len(BLOCKS) - 1, n * len(BLOCKS) // (most + 1)) if most else 0
        bar = BLOCKS[step] if n else "·"
        shown.append(f"[{bar}]" if place == spread.bin else bar)
    return f"{spread.low:.3f} {''.join(shown)} {spread.high:.3f}"


# -- words -----------------------------------------------------------------------------------


def _bm25(part: BM25Explanation, of: Explained, width: int) -> Iterator[str]:
    params = part.params
    if part.rank is not None:
        where = f" · rank {part.rank}"
    else:
        where = " · not in the list" if "bm25" in of.rankings else ""
    score = f"score {part.score:.4f}" if part.terms else "– no word of the question"
    yield (
        f"{score}{where} · {fmt.count(part.chunk_length, 'word')} "
        f"(mean {part.mean_length:.1f}) · {params.variant}, k1 {params.k1:g}, b {params.b:g}"
    )
    if part.query_words:
        became = " ".join(_as_read(word) for word in part.query_words)
        yield f"the {fmt.one_line(params.analyzer)} analyzer reads: {fmt.one_line(became)}"
    if part.terms:
        names = [fmt.one_line(share.term) for share in part.terms]
        room = min(20, max(cell_len(name) for name in [*names, "word"]))
        has_bars = width >= BAR_FROM
        yield f"{'word':<{room}}  tf    df     idf  length    adds  share"
        for name, share in zip(names, part.terms, strict=True):
            bar = f"  {fmt.bar(share.share, 10)}" if has_bars else ""
            yield (
                f"{fmt.fit(name, room)} {share.tf:>3} {share.df:>5} {share.idf:>7.3f} "
                f"{share.length_factor:>7.3f} {share.contribution:>7.4f} {share.share:>5.0%}{bar}"
            ).rstrip()
    if part.unmatched:
        words = ", ".join(f"{fmt.one_line(term)} ({_chunks(df)})" for term, df in part.unmatched)
        yield f"not in this chunk: {words}"
    for check in part.operators:
        mark = "✓" if check.holds else "✗"
        end = "" if check.holds else ": that alone keeps it out of the list"
        yield f'{mark} {check.kind} "{fmt.one_line(" ".join(check.tokens))}"{end}'


def _as_read(word: QueryWord) -> str:
    """One word of the question and what became of it: ``dogs→dog``, ``the (dropped)``."""
    if not word.tokens:
        return f"{word.text} (dropped)"
    if word.tokens == (word.text.casefold().strip(".,;:!?\"'()[]"),):
        return word.text
    return f"{word.text}→{'+'.join(word.tokens)}"


def _chunks(df: int) -> str:
    return f"in {fmt.count(df, 'chunk')}" if df else "in no chunk"


# -- fusion, reranker, steps -----------------------------------------------------------------


def _hybrid(part: HybridExplanation, of: Explained) -> Iterator[str]:
    where = f" · rank {part.rank}" if part.rank is not None else ""
    if not where and "hybrid" in of.rankings:
        where = f" · not in the first {of.rankings['hybrid'].depth}"
    if part.fusion == "rrf":
        addends = [f"{p.weight:g}/({part.k:g}+{p.rank})" for p in part.parts if p.rank is not None]
    else:
        addends = [f"{_times(p.weight)}{p.normalised or 0:.4f}" for p in part.parts]
    yield f"{' + '.join(addends) or '0'} = {part.score:.4f}{where}"
    for one in part.parts:
        ranked = f"rank {one.rank}" if one.rank is not None else "not in its list"
        scale = ""
        if part.fusion != "rrf" and one.normalised is not None:
            raw = f"{one.score:.4f}" if one.score is not None else "absent"
            scale = f", {raw} → {one.normalised:.4f} ({part.fusion})"
        weight = f", weight {one.weight:g}" if one.weight != 1 else ""
        yield f"{NAMES.get(one.method, one.method)}: {ranked}{scale}{weight}, adds {one.addend:.5f}"
    if part.rank_without:
        listed_first = sorted(part.rank_without, key=lambda one: one[1] is None)
        told = ", ".join(
            f"{f'rank {rank}' if rank is not None else 'not listed'} without "
            f"{NAMES.get(method, method)}"
            for method, rank in listed_first
        )
        yield f"it would be {told}"


def _times(weight: float) -> str:
    return "" if weight == 1 else f"{weight:g}×"


def _reranked(part: RerankExplanation, of: Explained) -> Iterator[str]:
    yield f"score {part.score:.3f} · sigmoid {part.sigmoid:.4f} (not a probability)"
    if part.rank_before is not None:
        moved = part.rank_before - part.rank_after
        how = f"▲{moved}" if moved > 0 else f"▼{-moved}" if moved < 0 else "═"
        yield (
            f"{part.rank_from} rank {part.rank_before} → rank {part.rank_after}  {how}  "
            f"of {part.n_read} read"
        )
    if part.unread_from is not None:
        n_left = len(of.chunk.text) - part.unread_from
        yield f"⚠ the reranker does not read the last {fmt.count(n_left, 'character')}"
    else:
        yield "the reranker reads all of the chunk"


def _not_read(of: Explained) -> Iterator[str] | None:
    """Why the reranker has nothing to say; None when there is no reranked list."""
    ranking = of.rankings.get("reranked")
    if ranking is None:
        return None
    source = of.rankings.get(of.request.rerank_from)
    rank = source.rank_of(of.chunk.chunk_id) if source is not None else None
    where = f"rank {rank}" if rank is not None else "not"
    return iter(
        (
            f"not read: it is {where} in the {of.request.rerank_from} list, of which the reranker "
            f"reads {of.request.rerank_depth}",
        )
    )


def _steps(part: StepsExplanation, of: Explained) -> Iterator[str]:
    before = f"rank {part.rank_before}" if part.rank_before is not None else "not in the list"
    after = f"rank {part.rank_after}" if part.rank_after is not None else "not shown"
    yield f"{before} → {after}"
    if part.removed_by:
        yield f"✗ taken out by {part.removed_by}: {part.note}"
    if part.folded_into:
        yield f"its text stands for {_place(part.folded_into, of)} too, which is shown instead"
    if part.folded:
        yield f"stands also for {', '.join(_place(one, of) for one in part.folded)}"


def _place(chunk_id: str, of: Explained) -> str:
    chunk = of.chunks.get(chunk_id)
    return chunk.location if chunk is not None else chunk_id
