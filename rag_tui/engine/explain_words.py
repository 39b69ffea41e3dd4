"""Which words of a chunk are near which words of a question, as the embedding model sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.explain_vector import body_places
from rag_tui.engine.lexical_query import plain_question
from rag_tui.engine.types import SearchRequest

if TYPE_CHECKING:
    from rag_tui.engine.embedders.tokens import TokenVectors
    from rag_tui.engine.index import Index
    from rag_tui.engine.loading import Models

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HeatSpan:
    """One word of the text and the question's word that it is most like."""

    start: int
    end: int
    """Character offsets into ``HeatMap.text``."""
    similarity: float
    """Cosine of the two words' vectors in their contexts, -1 to 1; of a word that the model cuts
    into pieces, that of its best piece."""
    query_word: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """How near each word of a chunk is to a word of the question."""

    text: str
    """What the model was given: headings, situation, prefix and body (`Chunk.embedded_text`)."""
    spans: tuple[HeatSpan, ...]
    """The words that the model read, ascending."""
    query_words: tuple[str, ...]
    """In the question's order."""
    read_to: int
    """Character offset in ``text`` where reading stops; its length when all of it is read."""
    body_start: int
    """Where the chunk's own body begins in ``text``; its length when there is none."""
    body_offset: int
    """Where that body begins in ``Chunk.text``."""
    n_cut: int
    """Tokens beyond the model's limit."""
    model: str

    def in_chunk(self, offset: int) -> int | None:
        """An offset of ``text`` as one of ``Chunk.text``; None in front of the body."""
        return offset - self.body_start + self.body_offset if offset >= self.body_start else None


def heat_map(chunk_id: str, request: SearchRequest, index: Index, models: Models) -> HeatMap:
    """How near each word of a chunk is to a word of the question, by the model's own words.

    The vectors are the last hidden states in context, as late interaction uses them (Khattab and
    Zaharia 2020, "ColBERT"); a model that was not trained for it gives a hint, not a reason.

    Raises:
        ModelError: When the embedder cannot be had, or gives no vectors of single words.
    """
    chunk = index.chunks[index.position_of[chunk_id]]
    question = plain_question(request.query)
    asked = models.token_vectors([question], "query", request.embedder)[0]
    read = models.token_vectors([chunk.embedded_text], "document", request.embedder)[0]
    body_start, body_offset = body_places(chunk)
    text = chunk.embedded_text
    end = read.spans[-1][1] if read.spans else 0
    return HeatMap(
        text=text,
        spans=tuple(_heat(question, asked, text, read)),
        query_words=tuple(m[0] for m in _WORD.finditer(question)),
        read_to=end if read.n_cut else len(text),
        body_start=body_start,
        body_offset=body_offset,
        n_cut=read.n_cut,
        model=models.embedder(request.embedder).info.name,
    )


def _heat(question: str, asked: TokenVectors, text: str, read: TokenVectors) -> Iterator[HeatSpan]:
    query_word = _word_at(question)
    text_word = _word_at(text)
    columns = [(i, w) for i, span in enumerate(asked.spans) if (w := query_word(span)) is not None]
    if not columns:
        return
    near = read.vectors @ asked.vectors[[i for i, _ in columns]].T
    best = near.argmax(axis=1)
    current: tuple[tuple[int, int], float, int] | None = None
    for row, span in enumerate(read.spans):
        word = text_word(span)
        if word is None:
            continue
        column = int(best[row])
        value = float(np.clip(near[row, column], -1.0, 1.0))
        if current is not None and current[0] != word:
            yield _heat_span(current, columns, question)
            current = None
        if current is None or value > current[1]:
            current = (word, value, column)
    if current is not None:
        yield _heat_span(current, columns, question)


def _heat_span(
    found: tuple[tuple[int, int], float, int],
    columns: Sequence[tuple[int, tuple[int, int]]],
    question: str,
) -> HeatSpan:
    (start, end), value, column = found
    first, last = columns[column][1]
    return HeatSpan(start, end, value, question[first:last])


def _word_at(text: str) -> Callable[[tuple[int, int]], tuple[int, int] | None]:
    """From a token's span to that of the word it is in; None for signs."""
    spans = [match.span() for match in _WORD.finditer(text)]
    starts = np.array([start for start, _ in spans], dtype=np.int64)

    def word(span: tuple[int, int]) -> tuple[int, int] | None:
        # The last word that begins before the token ends; a token may begin with a space.
        at = int(np.searchsorted(starts, span[1], side="left")) - 1
        return spans[at] if at >= 0 and spans[at][1] > span[0] else None

    return word
