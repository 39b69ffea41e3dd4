"""The values that cross module borders: frozen, slotted, and without numpy.

Everything here is plain data. A ranking is never changed after it was made: fusion and
reranking make new ones. Vectors are passed as numpy arrays and documented where they appear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Method = Literal["vector", "bm25", "hybrid", "reranked"]
"""The name of one ranked list."""

METHODS: tuple[Method, ...] = ("vector", "bm25", "hybrid", "reranked")
"""All methods in the order in which they stand on screen."""

EMPTY: Mapping[str, Any] = MappingProxyType({})

KnobValue = float | int | bool | str | None
"""What a knob can be set to."""

FileState = Literal["indexed", "partly", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading of a document's outline."""

    level: int
    """1 for the document title down to 6."""
    title: str
    """The heading's text without its markup."""
    start: int
    """Character offset of the heading's first line in ``Document.text``."""
    body_start: int
    """Character offset just after the heading's last line."""


BlockKind = Literal["paragraph", "list", "table", "code", "html", "quote"]


@dataclass(frozen=True, slots=True)
class Block:
    """One structural piece of a document's body that is better kept whole."""

    kind: BlockKind
    start: int
    end: int
    """Character offsets into ``Document.text``, end-exclusive, whole lines."""
    header_end: int = 0
    """For tables: where the rows begin, after column names and rule; for code: after the opening
    fence line. 0 when there is no header."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page (or slide, sheet, notebook cell, record) of a document."""

    number: int
    """1-based."""
    start: int
    end: int
    """Character offsets into ``Document.text``, end-exclusive; pages do not overlap."""
    label: str = ""
    """How people call it where that is not its number: a sheet's name, ``cell 3``."""


@dataclass(frozen=True, slots=True)
class Document:
    """One loaded file. Offsets everywhere are character offsets into ``text``."""

    doc_id: str
    """Path relative to the corpus folder, with ``/``; undecodable name bytes stay surrogates."""
    title: str
    """First level-1 heading, else the front matter's title, else the file name. Converted files:
    their own title, else their only level-1 heading, else the file name."""
    text: str
    """The decoded file without its byte-order mark and with ``\\n`` line ends. Nothing else is
    removed, so line numbers are those of the file on disk."""
    sha256: str
    """Hash of the file's bytes: decides whether the file has changed."""
    headings: tuple[Heading, ...] = ()
    body_start: int = 0
    """Where the text proper begins: after front matter, if there is any."""
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Front matter, keys and values as text."""
    warnings: tuple[str, ...] = ()
    """What was noticed while loading, e.g. front matter that is never closed."""
    format: str = "text"
    """``markdown``, ``text``, ``html``, ``pdf``, ``docx`` …: which loader made it."""
    blocks: tuple[Block, ...] = ()
    """Ascending, not overlapping; text between them is plain paragraphs."""
    pages: tuple[Page, ...] = ()
    """Ascending; empty where the format has none."""
    modified: float = 0.0
    """Modification time of the file, seconds since the epoch; 0 when unknown. Not part of what
    decides whether a file has changed."""
    is_partial: bool = False
    """Whether something of the file is missing or in doubt: its report says ``partly``."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One contiguous piece of a document: ``document.text[start:end] == text``, always."""

    chunk_id: str
    """Content-addressed: stable while this chunk's own text and document stay the same."""
    doc_id: str
    ordinal: int
    """0-based position within its document."""
    start: int
    end: int
    """Character offsets into the document's text, end-exclusive."""
    text: str
    heading_path: tuple[str, ...] = ()
    """Document title and the headings above this chunk, outermost first."""
    body_offset: int = 0
    """Characters at the start of ``text`` that are heading lines ``heading_path`` already says."""
    line_start: int = 1
    line_end: int = 1
    """1-based line numbers in the document's text, both inclusive, trailing blank lines not
    counted."""
    prefix: str = ""
    """What is repeated before the body because a cut took it away: the column names of a table,
    the language of a code block. Not part of ``text``."""
    situation: str = ""
    """A model-written sentence that places this chunk in its document (contextual retrieval);
    empty unless that pass was run. Not part of ``text``."""
    page: int | None = None
    """Number of the page or slide the chunk begins on, where the format has such."""
    place: str = ""
    """Where the chunk begins in the file, where lines of the converted text would say nothing:
    ``page 3``, ``row 5``, ``cell 2``, a sheet's name."""

    @property
    def context(self) -> str:
        """``Title > Heading > Subheading``; empty when there is none."""
        return " > ".join(self.heading_path)

    @property
    def body(self) -> str:
        """The text without its own heading lines and surrounding blank space."""
        return self.text[self.body_offset :].strip()

    @property
    def embedded_text(self) -> str:
        """What embedder, BM25 and reranker read: context, situation, then prefix and body."""
        body = f"{self.prefix}\n{self.body}" if self.prefix else self.body
        return "\n\n".join(part for part in (self.context, self.situation, body) if part)

    @property
    def label(self) -> str:
        """A short name for lists: the innermost heading, else the document's id."""
        return self.heading_path[-1] if self.heading_path else self.doc_id

    @property
    def location(self) -> str:
        """``path:first-last`` with line numbers, or the path and the place in it."""
        if self.place:
            return f"{self.doc_id}, {self.place}"
        return f"{self.doc_id}:{self.line_start}-{self.line_end}"


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file: every file that was looked at has exactly one of these."""

    path: str
    state: FileState
    reason: str = ""
    """Why it is not simply indexed; empty for ``indexed`` without remarks."""
    n_chunks: int = 0


@dataclass(frozen=True, slots=True)
class ScoreKind:
    """What the numbers of one ranking mean. Scores of different kinds are never compared."""

    name: str
    """Short, for a column header: ``cosine``, ``BM25 lucene``, ``RRF k=60``, ``logit``."""
    range: str
    """In words: ``-1 to 1``, ``0 and up, no upper end``."""
    note: str = ""
    """Direction and caveats: ``higher is better; not a probability``."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of a ranking."""

    chunk_id: str
    position: int
    """Index of the chunk in the corpus order (``Index.chunks[position]``)."""
    score: float
    """Higher is better, in every ranking."""
    rank: int
    """1-based."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one method says for one query. Immutable."""

    method: Method
    hits: tuple[Hit, ...]
    """By rank; at most ``depth``. A chunk that does not match at all is absent."""
    depth: int
    """Candidates asked for; independent of how many rows are shown."""
    score_kind: ScoreKind
    elapsed_s: float = 0.0
    params: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    note: str = ""
    """Shown with the list, e.g. ``keyword only: the model is missing``."""
    column: str = ""
    """The column it was made for; empty outside a search."""
    steps: tuple[Step, ...] = ()
    """What the steps after ranking did, in order; empty when all are off."""
    folded: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: EMPTY)
    """Chunk id of a row to the ids of the rows folded into it."""
    n_waiting: int = 0
    """Candidates whose score is still to come; 0 once the list is final."""

    def rank_of(self, chunk_id: str) -> int | None:
        """The 1-based rank of a chunk, or None when the list does not hold it."""
        return next((hit.rank for hit in self.hits if hit.chunk_id == chunk_id), None)

    def hit_of(self, chunk_id: str) -> Hit | None:
        """The row of a chunk, or None when the list does not hold it."""
        return next((hit for hit in self.hits if hit.chunk_id == chunk_id), None)


BM25Variant = Literal["lucene", "okapi", "robertson", "atire", "bm25l", "bm25plus"]
BM25Backend = Literal["own", "rank_bm25"]
FusionKind = Literal["rrf", "minmax", "zscore"]
RerankScale = Literal["logit", "sigmoid"]


@dataclass(frozen=True, slots=True)
class BM25Params:
    """Knobs of the lexical scorer; all but the analyzer may change without re-tokenising."""

    variant: BM25Variant = "lucene"
    k1: float = 1.5
    b: float = 0.75
    epsilon: float = 0.25
    """Only ``okapi``: rank_bm25's floor for negative idf, as a share of the mean idf."""
    delta: float | None = None
    """Only ``bm25l`` and ``bm25plus``; None: the papers' values, 0.5 and 1."""
    analyzer: str = "words"
    """Name of an analyzer (`rag_tui.engine.analysis`); one that the index was not made with costs
    tokenising all chunks once."""
    backend: BM25Backend = "own"
    """``rank_bm25`` runs that library itself (okapi, bm25l and bm25plus only)."""


@dataclass(frozen=True, slots=True)
class PostSteps:
    """What is done to a finished list, in this order; each is off by default and leaves a trace.

    Thresholds are in the scores of their own method, which are never comparable.
    """

    min_vector: float | None = None
    min_bm25: float | None = None
    min_hybrid: float | None = None
    min_reranked: float | None = None
    """Rows that score less are dropped."""
    fold: bool = False
    """Rows with (nearly) the same text stand as one row, ``same text in 3 places``."""
    max_per_document: int = 0
    """So many rows of one document at most; 0: no limit."""
    mmr: float | None = None
    """Maximal marginal relevance (Carbonell and Goldstein 1998): 1 is relevance alone, 0 is
    difference alone; None: off."""
    neighbours: int = 0
    """So many chunks before and after each source are added to the prompt; lists stay."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step after ranking did to a list."""

    name: str
    """``threshold``, ``fold``, ``max per document``, ``mmr``."""
    note: str
    """In words, with numbers: ``dropped 3 rows below 0.25``."""
    removed: tuple[str, ...] = ()
    """Chunk ids that left the list here, by their former rank."""


@dataclass(frozen=True, slots=True)
class Column:
    """A named pipeline: one of the four methods, with knobs that differ from the request's."""

    name: str
    """Unique; what the column is called on screen, in runs and in settings."""
    method: Method
    """Which list of the pipeline is shown."""
    knobs: tuple[tuple[str, KnobValue], ...] = ()
    """Dotted knob names and values (`rag_tui.engine.knobs`), in the order given."""


DEFAULT_COLUMNS: tuple[Column, ...] = tuple(Column(method, method) for method in METHODS)
"""The first set: one column for each method, named like it."""

MAX_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Everything that decides the columns for one question."""

    query: str
    top_k: int = 5
    """Rows shown; never changes which candidates are fetched."""
    depth: int = 50
    """Candidates fetched per retriever."""
    rrf_k: float = 60.0
    rerank: bool = True
    rerank_depth: int = 20
    """How many rows of the list named by ``rerank_from`` the reranker reads."""
    bm25: BM25Params = BM25Params()
    where: str = ""
    """A filter over paths, headings and metadata (`rag_tui.engine.filters`), applied before
    anything is ranked, in every list alike."""
    methods: tuple[Method, ...] = METHODS
    """Only columns of these methods; what a wanted column needs is computed too."""
    columns: tuple[Column, ...] = DEFAULT_COLUMNS
    """The pipelines that are shown, left to right; 1 to `MAX_COLUMNS`, names unique."""
    fusion: FusionKind = "rrf"
    """``rrf``: by ranks; ``minmax`` and ``zscore``: weighted sum of normalised scores."""
    weight_vector: float = 1.0
    weight_bm25: float = 1.0
    rerank_from: Method = "hybrid"
    """Where the reranker's candidates come from: ``hybrid``, ``vector`` or ``bm25``."""
    reranker: str = ""
    """A cross-encoder by name or path, ``late_interaction`` or ``voyage``; empty: the setting."""
    rerank_scale: RerankScale = "logit"
    """``sigmoid`` shows 1 / (1 + e^-logit): the same order, other numbers."""
    embedder: str = ""
    """Another embedding model for the vector list, by name or path; empty: the index's own."""
    post: PostSteps = PostSteps()


PromptOrder = Literal["best first", "best last", "document order"]
"""Where the best source stands in a prompt."""

PROMPT_ORDERS: tuple[PromptOrder, ...] = ("best first", "best last", "document order")


@dataclass(frozen=True, slots=True)
class AddedPart:
    """A neighbouring chunk's text inside a source."""

    chunk_id: str
    start: int
    end: int
    """Character span in ``Source.text``, end-exclusive."""


@dataclass(frozen=True, slots=True)
class Source:
    """One numbered source of a prompt."""

    number: int
    """1-based, frozen for this prompt: ``[number]`` means this chunk for good."""
    chunk_id: str
    path: str
    heading: str
    text: str
    """As it stands in the document; escaping happens when the prompt text is made."""
    is_edited: bool = False
    """Whether the text was changed by hand for a what-if: it is not what the document says."""
    warning: str = ""
    """Why the text may be speaking to the model; empty when nothing was noticed."""
    added: tuple[AddedPart, ...] = ()
    """What came from neighbouring chunks, in the order of the text."""
    blocks: tuple[str, ...] = ()
    """The text as it is sent, in pieces that can be cited each by itself; only for templates that
    send search results."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The exact request text, and what it was made from."""

    question: str
    system: str
    user: str
    sources: tuple[Source, ...]
    omitted: tuple[str, ...] = ()
    """Chunk ids that were candidates and did not fit."""
    template: str = "numbered"
    """Name of the template, or the path of its file."""
    kind: Literal["text", "search_results"] = "text"
    """``text``: ``user`` is sent as it is. ``search_results``: each source is sent as a search
    result with citations switched on, then ``closing``; ``user`` shows these as JSON."""
    not_found: str = "I could not find this in the documents."
    """The sentence by which this template's answers say that the sources do not answer."""
    is_closed_book: bool = False
    """Whether it is meant to have no sources: the answerer is asked all the same."""
    closing: str = ""
    """For ``search_results``: the text behind the sources."""
    order: PromptOrder = "best first"
    switched_off: tuple[str, ...] = ()
    """Chunk ids that were left out by hand."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """``(number, start, end)``: where each source stands in ``user``, tags included."""
    sources_end: int = 0
    """Offset in ``user`` behind the sources, where the part that changes with the question
    begins; 0 when the question stands before them."""


NOT_FOUND = "I could not find this in the documents."
"""The one sentence that means: the sources do not answer the question. Compared exactly."""

AnswerState = Literal[
    "streaming",
    "complete",
    "not found",
    "cut at the token limit",
    "cut: context window full",
    "refused by the model",
    "ended early",
    "empty answer",
    "failed",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation marker found in an answer."""

    start: int
    end: int
    """Character span of the whole marker (``[1, 3]``) in the answer's text."""
    numbers: tuple[int, ...]
    """In the order written."""
    unknown: tuple[int, ...] = ()
    """Those of ``numbers`` that no source of the prompt has."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage of a source that a model names as the ground of a stretch of its answer."""

    number: int
    """Of the source; one beyond the sources when it names none."""
    chunk_id: str
    """Empty when no source has this number."""
    quoted: str
    """As the service returned it."""
    start: int
    end: int
    """Character span in the answer's text that rests on it, end-exclusive, without its marker."""
    is_in_source: bool = True
    """Whether the source that was sent really holds the passage (white space apart)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, finished or not."""

    text: str
    state: AnswerState
    answerer: str
    """Who wrote it: a model's name, or ``extractive``."""
    citations: tuple[Citation, ...] = ()
    detail: str = ""
    """For failed and cut answers: the reason and the fix."""
    elapsed_s: float = 0.0
    input_tokens: int | None = None
    """Read without a cache; what was written to or read from one is counted below."""
    output_tokens: int | None = None
    """Thinking included."""
    cache_write_tokens: int | None = None
    cache_read_tokens: int | None = None
    thinking: str = ""
    """What the model showed of its thinking; never part of ``text``."""
    quotes: tuple[Quote, ...] = ()
    """By their place in the text; only from templates with native citations."""
    knows_citations: bool = False
    """Whether ``citations`` are known from how the answer was made: nothing else in its text is
    one, whatever it looks like."""
    attempts: int = 1
    """Requests that were sent. Above 1 while streaming with no text yet: it is being retried."""
    opened_s: float | None = None
    """Seconds from asking to the first sign of a reply."""
    first_token_s: float | None = None
    """Seconds from asking to the first text of the answer."""
    cost: float | None = None
    """In the currency of the prices, by the service's own count of tokens; None: unknown."""
    can_resend: bool = False
    """Whether asking again may well give a whole answer: it broke off through no fault of the
    request."""

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens written a second, counted from the first sign of a reply; None: unknown."""
        if self.output_tokens is None or self.opened_s is None or self.elapsed_s <= self.opened_s:
            return None
        return self.output_tokens / (self.elapsed_s - self.opened_s)

    @property
    def cited(self) -> tuple[int, ...]:
        """Existing source numbers that are cited, each once, ascending."""
        return tuple(sorted({n for c in self.citations for n in c.numbers if n not in c.unknown}))

    @property
    def unknown(self) -> tuple[int, ...]:
        """Cited numbers that no source has, each once, ascending."""
        return tuple(sorted({n for c in self.citations for n in c.unknown}))
