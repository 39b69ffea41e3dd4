"""Lexical search: the chunks that hold a word of the query, ranked by BM25."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.analysis import WORDS, Analyzer
from rag_tui.engine.events import CancelToken
from rag_tui.engine.lexical_query import LexicalQuery, parse_lexical
from rag_tui.engine.retrievers.base import check_depth, check_same_chunks, make_hits
from rag_tui.engine.retrievers.bm25_formulas import check_bm25_params, delta_of
from rag_tui.engine.retrievers.library_bm25 import library_note, library_scores
from rag_tui.engine.retrievers.postings import BM25Postings, TermPart
from rag_tui.engine.retrievers.restricting import best_restricted
from rag_tui.engine.types import BM25Params, Ranking, ScoreKind

if TYPE_CHECKING:
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
    text_of: Callable[[int], str] | None = None,
    cancel: CancelToken | None = None,
) -> Ranking:
    """The chunks that hold a word of the query, by score, ties by position.

    Operators in the query (`lexical_query`) leave only some of them, and the note says what they
    did. A chunk without any word of the query is in no list, whatever the variant gives it. Scores
    do not depend on operators or candidates: document frequencies and mean length are those of the
    whole corpus.

    The ranking's params hold ``variant``, ``k1``, ``b`` (``epsilon`` or ``delta`` where the
    variant reads it), ``backend``, ``analyzer``, ``terms`` (the query's words in order),
    ``unknown`` (those that no chunk holds), ``phrases``, ``must`` and ``must_not``.

    Args:
        query: As it was typed, operators and all.
        postings: Made with the same analyzer.
        chunk_ids: By position.
        params: Variant, knobs and backend; its analyzer's name is not read.
        depth: Rows at most.
        analyzer: Cuts the query.
        candidates: Bool ``(n_chunks,)``, which chunks may be ranked; None: all.
        text_of: The text of the chunk at a position, as it was analyzed. Read for phrases only.
        cancel: Polled between the texts that are read.

    Raises:
        UsageError: When depth or parameters are out of range.
        BadIndexError: When postings, candidates and chunk ids differ in number.
        ValueError: When the query holds a phrase of several words and ``text_of`` is missing.
    """
    started = perf_counter()
    check_depth(depth)
    check_bm25_params(params)
    check_same_chunks(postings.n_chunks, len(chunk_ids), "keyword postings")
    if candidates is not None:
        check_same_chunks(len(candidates), len(chunk_ids), "a filter")
    asked = parse_lexical(query, analyzer)
    notes: tuple[str, ...] = ()
    if params.backend == "own" and not asked.has_operators:
        best, best_scores = postings.rough.best(asked.terms, params, depth, candidates)
    else:
        scores, matches = _all_scores(asked.terms, postings, params)
        restricted = best_restricted(
            asked,
            scores,
            matches if candidates is None else matches & candidates,
            postings,
            depth=depth,
            analyzer=analyzer,
            text_of=text_of,
            cancel=cancel if cancel is not None else CancelToken(),
        )
        best, best_scores, notes = (
            restricted.positions,
            scores[restricted.positions],
            restricted.notes,
        )
    unknown = tuple(term for term in dict.fromkeys(asked.terms) if term not in postings.vocabulary)
    if not best.size and not notes:
        notes = (_why_empty(asked, unknown),)
    if params.backend == "rank_bm25":
        notes = (library_note(params), *notes)
    return Ranking(
        method="bm25",
        hits=make_hits(best, best_scores, chunk_ids),
        depth=depth,
        score_kind=bm25_score_kind(params),
        elapsed_s=perf_counter() - started,
        params=MappingProxyType(
            {
                **_knobs(params),
                "analyzer": analyzer.name,
                "terms": asked.terms,
                "unknown": unknown,
                "phrases": asked.phrases,
                "must": asked.must,
                "must_not": asked.must_not,
            }
        ),
        note="; ".join(notes),
    )


def bm25_score_kind(params: BM25Params) -> ScoreKind:
    """What the scores of a variant mean."""
    note = "higher is better; comparable only within one query"
    by = f" ({params.backend})" if params.backend != "own" else ""
    ends = {
        "okapi": "no fixed ends; a match can score 0 or below",
        "robertson": "0 and up, no upper end; a match can score 0",
        "atire": "0 and up, no upper end; a match can score 0",
    }
    return ScoreKind(
        f"BM25 {params.variant}{by}", ends.get(params.variant, "above 0, no upper end"), note
    )


def _all_scores(
    terms: Sequence[str], postings: BM25Postings, params: BM25Params
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    if params.backend == "own":
        return postings.scores(terms, params)
    matches = np.zeros(postings.n_chunks, dtype=np.bool_)
    for term in set(terms):
        matches |= postings.holders(term)
    return library_scores(postings, terms, params), matches


def _why_empty(asked: LexicalQuery, unknown: tuple[str, ...]) -> str:
    if not asked.terms:
        return "the question holds no word to search for"
    if len(unknown) < len(set(asked.terms)):
        return "no chunk that the filter allows holds a word of the question"
    return "no chunk holds a word of the question"


def _knobs(params: BM25Params) -> dict[str, object]:
    knobs: dict[str, object] = {
        "variant": params.variant,
        "k1": params.k1,
        "b": params.b,
        "backend": params.backend,
    }
    if params.variant == "okapi":
        knobs["epsilon"] = params.epsilon
    if params.variant in ("bm25l", "bm25plus"):
        knobs["delta"] = delta_of(params)
    return knobs
