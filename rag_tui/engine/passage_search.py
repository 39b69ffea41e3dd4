"""Where a pasted text stands in the documents, however it was wrapped, written or remembered.

It is looked for in three steps, each only when the one before found nothing: with any white
space where the passage has some, then without regard to capitals, then as the most similar words
(Ratcliff and Obershelp's ratio, as `difflib` has it; at least `LEAST_SIMILARITY`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from rag_tui.engine.passage_places import MAX_PLACES, PassagePlace, PassageTarget, place_of
from rag_tui.engine.types import BM25Params, Document

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

LEAST_SIMILARITY = 0.8
"""A passage that is less similar than this was not found."""

_LEAST_FUZZY_WORDS = 3
_N_NEAR_CHUNKS = 20
_N_WINDOWS = 6
_LETTERS_UP_TO = 60
"""Passages of more words are compared word by word: letters would take seconds."""
_BREAK = r"\s+(?:>[ \t]?)*\s*"
"""White space, and the marks of a quotation that a line break brings."""
_SIGNS = re.compile(r"\W+")


def find_text(passage: str, index: Index) -> PassageTarget:
    """The places of a text in the documents of an index; none when nothing is similar enough."""
    for ignore_case in (False, True):
        pattern = passage_pattern(passage, ignore_case=ignore_case)
        spans = [
            (document, match.start(), match.end())
            for document in index.documents
            for match in pattern.finditer(document.text)
        ]
        if not spans:
            continue
        is_same = all(document.text[a:b] == passage.strip() for document, a, b in spans)
        return PassageTarget(
            passage,
            "text",
            "capitals" if ignore_case else "exact" if is_same else "white space",
            tuple(place_of(index, *span) for span in spans[:MAX_PLACES]),
            is_scanned=len(spans) > MAX_PLACES,
        )
    found = _most_similar(passage, index)
    if found is None:
        return PassageTarget(passage, "text", "", (), 0.0)
    similarity, places = found
    if similarity < LEAST_SIMILARITY:
        return PassageTarget(passage, "text", "", (), similarity, nearest=places[0])
    return PassageTarget(passage, "text", "fuzzy", places, similarity)


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a stretch of a document, in a form that ignores signs and capitals."""

    document: Document
    words: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, document: Document, start: int, end: int) -> _Words:
        found = [
            (plain, match.start(), match.end())
            for match in re.compile(r"\S+").finditer(document.text, start, end)
            if (plain := _SIGNS.sub("", match[0]).casefold())
        ]
        return cls(
            document,
            tuple(word for word, _, _ in found),
            tuple(start for _, start, _ in found),
            tuple(end for _, _, end in found),
        )


def _most_similar(passage: str, index: Index) -> tuple[float, tuple[PassagePlace, ...]] | None:
    """The stretches of text that are most like the passage, and how much; None without any."""
    words = tuple(w for w in (_SIGNS.sub("", w).casefold() for w in passage.split()) if w)
    if len(words) < _LEAST_FUZZY_WORDS:
        return None
    stretches = list(_stretches(passage, index))
    windows = sorted(
        (-shared, number, at)
        for number, stretch in enumerate(stretches)
        for at, shared in _shared_words(words, stretch.words)
    )[:_N_WINDOWS]
    best: dict[tuple[str, int, int], float] = {}
    for _, number, at in windows:
        stretch = stretches[number]
        ratio, first, last = _best_window(words, stretch.words, at)
        if ratio:
            span = (stretch.document.doc_id, stretch.starts[first], stretch.ends[last - 1])
            best[span] = ratio
    if not best:
        return None
    top = max(best.values())
    return top, tuple(
        place_of(index, index.document_of[doc_id], start, end)
        for (doc_id, start, end), ratio in sorted(best.items())
        if ratio == top
    )


def _stretches(passage: str, index: Index) -> Iterator[_Words]:
    """Text around the chunks that share the rarest words with the passage."""
    from rag_tui.engine.analysis import WORDS
    from rag_tui.engine.lexical import postings_for
    from rag_tui.engine.topk import top_k

    postings = postings_for(index, WORDS.name)
    scores, is_match = postings.scores(WORDS.tokens(passage), BM25Params())
    reach = 2 * len(passage)
    seen: dict[str, list[tuple[int, int]]] = {}
    for position in top_k(scores, _N_NEAR_CHUNKS, candidates=is_match).tolist():
        chunk = index.chunks[position]
        start, end = max(0, chunk.start - reach), chunk.end + reach
        spans = seen.setdefault(chunk.doc_id, [])
        # Neighbouring chunks lead to the same text: looked at once.
        if not any(a <= chunk.start and chunk.end <= b for a, b in spans):
            spans.append((start, end))
            yield _Words.of(index.document_of[chunk.doc_id], start, end)


def _shared_words(wanted: Sequence[str], text: Sequence[str]) -> Iterator[tuple[int, int]]:
    """For each window as long as the passage: where it begins, how many words they share."""
    counts = Counter(wanted)
    size = min(len(wanted), len(text))
    held: Counter[str] = Counter()
    shared = 0
    for i, word in enumerate(text):
        held[word] += 1
        shared += held[word] <= counts[word]
        if i >= size:
            gone = text[i - size]
            shared -= held[gone] <= counts[gone]
            held[gone] -= 1
        if i >= size - 1 and shared:
            yield i - size + 1, shared


def _best_window(wanted: Sequence[str], text: Sequence[str], at: int) -> tuple[float, int, int]:
    """The best ratio of windows that begin near a word, and their words' first and end."""
    slack = max(1, len(wanted) // 10)
    best = (0.0, 0, 0)
    for first in range(max(0, at - slack), min(at + slack, len(text)) + 1):
        for size in range(max(1, len(wanted) - slack), len(wanted) + slack + 1):
            last = min(first + size, len(text))
            ratio = _ratio(wanted, text[first:last])
            if ratio > best[0]:
                best = (ratio, first, last)
    return best


def _ratio(wanted: Sequence[str], text: Sequence[str]) -> float:
    if len(wanted) > _LETTERS_UP_TO:
        return SequenceMatcher(None, wanted, text, autojunk=False).ratio()
    matcher = SequenceMatcher(None, " ".join(wanted), " ".join(text), autojunk=False)
    if matcher.real_quick_ratio() < LEAST_SIMILARITY / 2:
        return 0.0
    return matcher.ratio()


def passage_pattern(passage: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Finds a passage whatever white space stands between its words, composed or decomposed."""
    spelled = {
        _BREAK.join(re.escape(word) for word in form.split())
        for form in (passage, *(unicodedata.normalize(f, passage) for f in ("NFC", "NFD")))
    }
    return re.compile("|".join(sorted(spelled)), re.IGNORECASE if ignore_case else 0)
