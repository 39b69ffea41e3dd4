"""What the operators of a question leave of its matches: required, excluded, in this order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_tui.engine.analysis import Analyzer
from rag_tui.engine.events import CancelToken
from rag_tui.engine.lexical_query import LexicalQuery, Phrase
from rag_tui.engine.retrievers.postings import BM25Postings
from rag_tui.engine.topk import top_k

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Restricted:
    """The best chunks that the operators allow, and what they did."""

    positions: npt.NDArray[np.int64]
    """int64 ``(m,)``, best first, at most the depth."""
    notes: tuple[str, ...]
    """``12 chunks lack the phrase "deep sleep"``."""


def best_restricted(
    asked: LexicalQuery,
    scores: npt.NDArray[np.float64],
    matches: Mask,
    postings: BM25Postings,
    *,
    depth: int,
    analyzer: Analyzer,
    text_of: Callable[[int], str] | None,
    cancel: CancelToken,
) -> Restricted:
    """The first ``depth`` matches by score, then position, that the operators allow.

    Single words are looked up in the postings. Whether words follow each other is read in the
    texts of chunks that hold all of them, best first, until the list is full.

    Raises:
        ValueError: When there is a phrase and ``text_of`` is missing.
        Cancelled: Soon after the token was set.
    """
    wanted: dict[Phrase, str] = {}
    for phrase in asked.must:
        wanted[phrase] = "required word" if len(phrase) == 1 else "required words"
    wanted |= dict.fromkeys(asked.phrases, "phrase")
    pool = matches.copy()
    n_lacking: Counter[Phrase] = Counter()
    n_excluded: Counter[Phrase] = Counter()
    for phrase in wanted:
        holders = _holders(phrase, postings)
        n_lacking[phrase] = int((pool & ~holders).sum())
        pool &= holders
    for phrase in asked.must_not:
        if len(phrase) == 1:
            holders = _holders(phrase, postings)
            n_excluded[phrase] = int((pool & holders).sum())
            pool &= ~holders

    ordered = tuple(one for one in wanted if len(one) > 1)
    banned = tuple(one for one in asked.must_not if len(one) > 1)
    if not (ordered or banned):
        positions = top_k(scores, depth, candidates=pool)
        return Restricted(positions, tuple(_notes(wanted, n_lacking, n_excluded, postings)))
    if text_of is None:
        raise ValueError("phrases need the texts of the chunks: pass text_of")
    kept: list[int] = []
    n_read = 0
    for position in _best_first(scores, pool, depth):
        if len(kept) == depth:
            break
        cancel.check()
        n_read += 1
        tokens = analyzer.phrase_tokens(text_of(position))
        lacking = next((one for one in ordered if not _holds(tokens, one)), None)
        held = next((one for one in banned if _holds(tokens, one)), None)
        if lacking is not None:
            n_lacking[lacking] += 1
        elif held is not None:
            n_excluded[held] += 1
        else:
            kept.append(position)
    notes = _notes(wanted, n_lacking, n_excluded, postings)
    n_pool = int(pool.sum())
    if n_read < n_pool:
        notes.append(f"the order of words was read in the best {n_read:,} of {n_pool:,} chunks")
    return Restricted(np.array(kept, dtype=np.int64), tuple(notes))


def _best_first(scores: npt.NDArray[np.float64], pool: Mask, depth: int) -> Iterator[int]:
    """All positions of the pool by score, sorted only as far as they are asked for."""
    n_pool = int(pool.sum())
    n_given, k = 0, depth
    while n_given < n_pool:
        best = top_k(scores, k, candidates=pool).tolist()
        yield from best[n_given:]
        n_given, k = len(best), 4 * k


def _notes(
    wanted: Mapping[Phrase, str],
    n_lacking: Mapping[Phrase, int],
    n_excluded: Mapping[Phrase, int],
    postings: BM25Postings,
) -> list[str]:
    notes = []
    for phrase, kind in wanted.items():
        n = n_lacking[phrase]
        if not _holders(phrase, postings).any():
            notes.append(f"no chunk holds the {kind} {_quoted(phrase)}")
        elif n:
            lack = "chunk lacks" if n == 1 else "chunks lack"
            notes.append(f"{n:,} {lack} the {kind} {_quoted(phrase)}")
    for phrase, n in n_excluded.items():
        if n:
            hold = "chunk that holds" if n == 1 else "chunks that hold"
            notes.append(f"{n:,} {hold} {_quoted(phrase)} left out")
    return notes


def _holders(phrase: Phrase, postings: BM25Postings) -> Mask:
    """Which chunks hold all words of a phrase, in whatever order."""
    mask = np.ones(postings.n_chunks, dtype=np.bool_)
    for term in dict.fromkeys(phrase):
        mask &= postings.holders(term)
    return mask


def _holds(tokens: Sequence[str], phrase: Phrase) -> bool:
    """Whether the words of a phrase follow each other somewhere."""
    at = -1
    for _ in range(tokens.count(phrase[0])):
        at = tokens.index(phrase[0], at + 1)
        if tuple(tokens[at : at + len(phrase)]) == phrase:
            return True
    return False


def _quoted(phrase: Phrase) -> str:
    return f'"{" ".join(phrase)}"'
