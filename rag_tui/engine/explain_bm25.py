"""Why a chunk has its lexical score, word by word, and what the question became."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_tui.engine.analysis import Analyzer, make_analyzer
from rag_tui.engine.explanations import (
    BM25Explanation,
    MatchedWord,
    OperatorCheck,
    OperatorKind,
    QueryWord,
    TermShare,
)
from rag_tui.engine.lexical import postings_for
from rag_tui.engine.lexical_query import LexicalQuery, Phrase, parse_lexical
from rag_tui.engine.types import Ranking, SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

_WORD = re.compile(r"\S+")


def explain_bm25(
    position: int, request: SearchRequest, index: Index, ranking: Ranking | None
) -> BM25Explanation:
    """The parts of a chunk's score, whether the list holds the chunk or not.

    A chunk that holds no word of the question scores 0 and is in no list, also where a variant's
    formula would give it something.
    """
    analyzer = make_analyzer(request.bm25.analyzer)
    query = parse_lexical(request.query, analyzer)
    postings = postings_for(index, request.bm25.analyzer)
    parts = postings.term_parts(query.terms, position, request.bm25)
    is_match = any(part.tf for part in parts)
    score = math.fsum(part.contribution for part in parts) if is_match else 0.0
    shares = [
        TermShare(
            term=part.term,
            tf=part.tf,
            df=part.df,
            idf=part.idf,
            length_factor=part.length_factor,
            contribution=part.contribution,
            share=part.contribution / score if score else 0.0,
        )
        for part in parts
        if part.tf or (is_match and part.contribution)
    ]
    chunk = index.chunks[position]
    hit = ranking.hit_of(chunk.chunk_id) if ranking else None
    return BM25Explanation(
        score=score,
        terms=tuple(sorted(shares, key=lambda share: -share.contribution)),
        unmatched=tuple((part.term, part.df) for part in parts if not part.tf),
        chunk_length=int(postings.lengths[position]),
        mean_length=postings.mean_length,
        params=request.bm25,
        query_words=query_words(query.text, analyzer),
        spans=token_spans(chunk.text, frozenset(query.terms), analyzer),
        operators=check_operators(query, chunk.embedded_text, analyzer),
        rank=hit.rank if hit else None,
    )


def query_words(text: str, analyzer: Analyzer) -> tuple[QueryWord, ...]:
    """What each blank-separated word of a text became; signs alone are no words."""
    spans = analyzer.token_spans(text)
    found: list[QueryWord] = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        if any(char.isalnum() for char in match[0]):
            tokens = tuple(token for token, a, b in spans if a < end and start < b)
            found.append(QueryWord(match[0], start, end, tokens))
    return tuple(found)


def token_spans(text: str, terms: frozenset[str], analyzer: Analyzer) -> tuple[MatchedWord, ...]:
    """Where the analyzer finds the terms in a text, ascending."""
    return tuple(
        MatchedWord(start, end, token)
        for token, start, end in analyzer.token_spans(text)
        if token in terms
    )


def check_operators(
    query: LexicalQuery, text: str, analyzer: Analyzer
) -> tuple[OperatorCheck, ...]:
    """Whether a text satisfies each operator of a question: phrases, then musts, then nots."""
    if not query.has_operators:
        return ()
    words = frozenset(analyzer.tokens(text))
    in_order = analyzer.phrase_tokens(text)
    kinds: tuple[tuple[OperatorKind, tuple[Phrase, ...]], ...] = (
        ("phrase", query.phrases),
        ("must", query.must),
        ("must not", query.must_not),
    )
    return tuple(
        OperatorCheck(kind, phrase, _holds(phrase, words, in_order) != (kind == "must not"))
        for kind, phrases in kinds
        for phrase in phrases
    )


def _holds(phrase: Phrase, words: frozenset[str], in_order: Sequence[str]) -> bool:
    if len(phrase) == 1:
        return phrase[0] in words
    size = len(phrase)
    return any(
        token == phrase[0] and tuple(in_order[i : i + size]) == phrase
        for i, token in enumerate(in_order)
    )
