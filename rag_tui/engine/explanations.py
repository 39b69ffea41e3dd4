"""What can be said about one chunk and one question, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_tui.engine.fusion import FusedPart
from rag_tui.engine.types import BM25Params, FusionKind, Method

FusionPart = FusedPart
"""What one list gives to a fused score."""

OperatorKind = Literal["phrase", "must", "must not"]


@dataclass(frozen=True, slots=True)
class TermShare:
    """What one query word gives to a chunk's BM25 score."""

    term: str
    tf: int
    """Times it stands in the chunk, its headings included."""
    df: int
    """Chunks of the corpus that hold it."""
    idf: float
    length_factor: float
    """``1 - b + b * length / mean length``: above 1 weakens the word in long chunks."""
    contribution: float
    """Its part of the score; the parts sum to the score."""
    share: float
    """``contribution / score``; 0 when the score is 0."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """What the analyzer made of one word of the question."""

    text: str
    """As typed."""
    start: int
    end: int
    """Character offsets into the question without its operators."""
    tokens: tuple[str, ...]
    """Empty for a word that the analyzer leaves out, such as a stop word."""


@dataclass(frozen=True, slots=True)
class MatchedWord:
    """One word of the question where it stands in the chunk."""

    start: int
    end: int
    """Character offsets into ``Chunk.text``."""
    token: str


@dataclass(frozen=True, slots=True)
class OperatorCheck:
    """One operator of the question, and whether the chunk satisfies it."""

    kind: OperatorKind
    tokens: tuple[str, ...]
    holds: bool


@dataclass(frozen=True, slots=True)
class BM25Explanation:
    """The lexical score of a chunk. A score of 0 without terms means that nothing matched."""

    score: float
    terms: tuple[TermShare, ...]
    """Query words that add to the score, by contribution descending, then in query order. They
    are those the chunk holds; ``bm25l`` and ``bm25plus`` also give something to absent words of
    a chunk that holds another."""
    unmatched: tuple[tuple[str, int], ...]
    """Query words that it lacks and how many chunks hold each (0: a word the corpus lacks)."""
    chunk_length: int
    """Words of the chunk, its headings included."""
    mean_length: float
    params: BM25Params
    query_words: tuple[QueryWord, ...] = ()
    """The question word by word, in order."""
    spans: tuple[MatchedWord, ...] = ()
    """Where the question's words stand in the chunk's text, ascending."""
    operators: tuple[OperatorCheck, ...] = ()
    """A chunk for which one does not hold is not in the list, whatever its score."""
    rank: int | None = None
    """None when the list does not hold it, or there is no list."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How all scores of a corpus spread, in bins of equal width."""

    low: float
    high: float
    counts: tuple[int, ...]
    """`N_BINS` counts from ``low`` to ``high``."""
    bin: int
    """The 0-based bin of the chunk that is explained."""


N_BINS = 20


@dataclass(frozen=True, slots=True)
class VectorExplanation:
    """How similar a chunk is to the question."""

    similarity: float
    """Cosine, -1 to 1, or what else the model compares by."""
    rank: int | None
    """None when the list does not hold it, or there is no list."""
    n_ranked: int
    """Rows of the list."""
    gap_to_next: float | None
    """Similarity minus that of the row below; None for the last row and outside the list."""
    corpus_rank: int | None = None
    """1-based among all chunks that the filter allows; None for one that it does not, and
    without vectors."""
    n_corpus: int = 0
    """Chunks that are ranked at all."""
    gap_above: float | None = None
    """Similarity of the next better chunk of the corpus minus this one's; None for the first."""
    gap_below: float | None = None
    """This one's similarity minus that of the next worse chunk; None for the last."""
    histogram: Histogram | None = None
    unread_from: int | None = None
    """Character offset in ``Chunk.text`` from which on the model reads nothing; None when it
    reads the whole chunk. May be 0."""


@dataclass(frozen=True, slots=True)
class HybridExplanation:
    """The fused score of a chunk, the sum of its parts' addends."""

    score: float
    k: float
    """The constant of reciprocal rank fusion; 0 for the sums of normalised scores."""
    parts: tuple[FusedPart, ...]
    fusion: FusionKind = "rrf"
    rank: int | None = None
    """None when the list does not hold it, or there is no list."""
    rank_without: tuple[tuple[Method, int | None], ...] = ()
    """Its rank if the named list were left out; None when it would not be listed at all."""


@dataclass(frozen=True, slots=True)
class RerankExplanation:
    """What reading question and chunk together changed."""

    score: float
    """The reranker's own: a logit for cross-encoders, whatever scale is shown."""
    sigmoid: float
    """``1 / (1 + exp(-score))``: another scale for the same order, not a probability of use."""
    rank_before: int | None
    """In the list the candidates came from."""
    rank_after: int
    rank_from: Method = "hybrid"
    """The list the candidates came from."""
    n_read: int = 0
    """Candidates that were read."""
    unread_from: int | None = None
    """Character offset in ``Chunk.text`` from which on the reranker reads nothing; None when it
    reads the whole chunk, or that is not known."""


@dataclass(frozen=True, slots=True)
class StepsExplanation:
    """What the steps after ranking did with a chunk."""

    rank_before: int | None
    """In the finished list, before any step."""
    rank_after: int | None
    """In the list that is shown; None when a step took it out."""
    removed_by: str = ""
    """The step's name; empty when none took it out."""
    note: str = ""
    """What that step did, in its words."""
    folded_into: str = ""
    """Chunk id of the row it was folded into."""
    folded: tuple[str, ...] = ()
    """Chunk ids of the rows that were folded into this one."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One chunk in each list; None where there is nothing to say."""

    chunk_id: str
    bm25: BM25Explanation | None
    vector: VectorExplanation | None
    hybrid: HybridExplanation | None
    reranked: RerankExplanation | None
    steps: StepsExplanation | None = None
    """None without a shown list, or when no step is on."""
    column: str = ""
    """The column whose pipeline is explained; empty outside one."""


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """One sentence of a chunk, scored on its own."""

    start: int
    end: int
    """Character offsets into ``Chunk.text``."""
    text: str
    score: float
    """Similarity or reranker score of the bare sentence: without the headings and neighbours
    that the chunk's own score knows."""
    is_read: bool
    """Whether the model reads this far when it reads the chunk."""
