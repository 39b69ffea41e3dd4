"""Lexical search: the chunks that hold a word of the query, ranked by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_tui.engine.analysis import WORDS, Analyzer
from rag_tui.engine.retrievers.base import check_depth, check_same_chunks, make_hits
from rag_tui.engine.retrievers.postings import BM25Postings, TermPart, check_bm25_params
from rag_tui.engine.topk import top_k
from rag_tui.engine.types import BM25Params, Ranking, ScoreKind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["BM25Postings", "TermPart", "bm25_score_kind", "check_bm25_params", "retrieve_bm25"]


def retrieve_bm25(
    query: str,
    postings: BM25Postings,
    chunk_ids: Sequence[str],
    params: BM25Params,
    *,
    depth: int,
    analyzer: Analyzer = WORDS,
    candidates: npt.NDArray[np.bool_] | None = None,
) -> Ranking:
    """The chunks that hold a word of the query, by score, ties by position.

    ``candidates``, bool ``(n_chunks,)``, leaves only some chunks to rank; scores stay what they
    are without it, because document frequencies and mean length are those of the whole corpus.

    The ranking's params hold ``variant``, ``k1``, ``b``, ``terms`` (the query's words in order)
    and ``unknown`` (those that no chunk holds).

    Raises:
        UsageError: When depth or parameters are out of range.
        BadIndexError: When postings, candidates and chunk ids differ in number.
    """
    started = perf_counter()
    check_depth(depth)
    check_same_chunks(postings.n_chunks, len(chunk_ids), "keyword postings")
    if candidates is not None:
        check_same_chunks(len(candidates), len(chunk_ids), "a filter")
    terms = tuple(analyzer.tokens(query))
    scores, is_match = postings.scores(terms, params)
    allowed = is_match if candidates is None else is_match & candidates
    best = top_k(scores, depth, candidates=allowed)
    unknown = tuple(term for term in dict.fromkeys(terms) if term not in postings.vocabulary)
    note = ""
    if not terms:
        note = "the question holds no word to search for"
    elif not best.size and is_match.any():
        note = "no chunk that the filter allows holds a word of the question"
    elif not best.size:
        note = "no chunk holds a word of the question"
    return Ranking(
        method="bm25",
        hits=make_hits(best, scores[best], chunk_ids),
        depth=depth,
        score_kind=bm25_score_kind(params),
        elapsed_s=perf_counter() - started,
        params=MappingProxyType(
            {
                "variant": params.variant,
                "k1": params.k1,
                "b": params.b,
                "terms": terms,
                "unknown": unknown,
            }
        ),
        note=note,
    )


def bm25_score_kind(params: BM25Params) -> ScoreKind:
    """What the scores of a variant mean."""
    note = "higher is better; comparable only within one query"
    if params.variant == "lucene":
        return ScoreKind("BM25 lucene", "above 0, no upper end", note)
    return ScoreKind("BM25 okapi", "no fixed ends; a match can score 0 or below", note)
