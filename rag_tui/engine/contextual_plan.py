"""What a contextual-retrieval pass would send and cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rag_tui.engine.contextual_prompt import Part, messages_of, parts_of, system_blocks
from rag_tui.engine.ids import text_hash
from rag_tui.engine.index import Index
from rag_tui.engine.prompting import estimate_tokens
from rag_tui.engine.situations import SITUATION_TOKENS, Situations, SituationStore, chunk_hash
from rag_tui.engine.types import Chunk

DEFAULT_MODEL = "claude-haiku-4-5"
"""A small model is enough for a few sentences about a text it has before it."""


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_write: float = 1.25
    """As a multiple of ``input``: what Anthropic asks for five minutes of caching."""
    cache_read: float = 0.1
    """As a multiple of ``input``."""


KNOWN_PRICES: Mapping[str, ModelPrices] = {
    "claude-haiku-4-5": ModelPrices(1.0, 5.0),
    "claude-sonnet-4-5": ModelPrices(3.0, 15.0),
    "claude-opus-4-5": ModelPrices(5.0, 25.0),
}
"""List prices of some models by the beginning of their names; for others they must be given."""


@dataclass(frozen=True, slots=True)
class ContextualSettings:
    """Who writes, and within which bounds."""

    model: str = DEFAULT_MODEL
    max_tokens: int = 300
    """Longest reply; one that reaches it is incomplete and counts as failed."""
    max_document_tokens: int = 150_000
    """Longer documents (estimated) are sent in windows."""
    min_cached_tokens: int = 4096
    """Shorter prompts are not cached by the service, so an estimate counts them in full each
    time. Some models cache from 1,024 on: then the estimate is too high, never too low."""
    concurrency: int = 4
    """Documents under way at once."""
    base_url: str = ""
    """Empty: ``ANTHROPIC_BASE_URL``, else the SDK's own."""
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, estimated or counted by the service."""

    input_tokens: int = 0
    """Neither written to nor read from the cache."""
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.output_tokens + other.output_tokens,
        )

    def cost_usd(self, prices: ModelPrices) -> float:
        """What these tokens cost."""
        read = (
            self.input_tokens
            + self.cache_write_tokens * prices.cache_write
            + self.cache_read_tokens * prices.cache_read
        )
        return (read * prices.input + self.output_tokens * prices.output) / 1e6


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass would ask for."""

    model: str
    n_chunks: int
    """Still without a situation by this model."""
    n_documents: int
    """That hold them."""
    n_known: int
    """Chunks that have one already and cost nothing."""
    n_windowed: int
    """Documents too long to be sent whole."""
    usage: Usage
    """Estimated with `prompting.estimate_tokens`."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Chunk id and reason."""


def prices_of(model: str) -> ModelPrices | None:
    """The list price of a model, or None where it is not known here."""
    return next((p for name, p in KNOWN_PRICES.items() if model.startswith(name)), None)


def plan(index: Index, settings: ContextualSettings, *, store: SituationStore) -> Plan:
    """How much a pass would ask for; nothing is sent.

    Raises:
        RagTuiError: When the store cannot be read.
    """
    known = store.of(index.documents, model=settings.model)
    wanted = [chunk for chunks in _wanted(index, known).values() for chunk in chunks]
    parts = tuple(parts_to_ask(index, settings, known))
    asked = {chunk.chunk_id for part in parts for chunk in part.chunks}
    usage = Usage()
    for part in parts:
        usage += _estimate(part, settings)
    return Plan(
        model=settings.model,
        n_chunks=len(asked),
        n_documents=len({part.document.doc_id for part in parts}),
        n_known=len(index.chunks) - len(wanted),
        n_windowed=len({part.document.doc_id for part in parts if not part.is_whole}),
        usage=usage,
        skipped=tuple(
            (chunk.chunk_id, f"longer than {settings.max_document_tokens:,} tokens")
            for chunk in wanted
            if chunk.chunk_id not in asked
        ),
    )


def parts_to_ask(index: Index, settings: ContextualSettings, known: Situations) -> Iterator[Part]:
    """The documents with the chunks that have no situation yet, in corpus order."""
    for doc_id, chunks in _wanted(index, known).items():
        document = index.document_of[doc_id]
        yield from parts_of(document, chunks, max_tokens=settings.max_document_tokens)


def _wanted(index: Index, known: Situations) -> dict[str, list[Chunk]]:
    hashes = {document.doc_id: text_hash(document.text) for document in index.documents}
    wanted: dict[str, list[Chunk]] = {}
    for chunk in index.chunks:
        if chunk_hash(chunk) not in known.by_document.get(hashes[chunk.doc_id], {}):
            wanted.setdefault(chunk.doc_id, []).append(chunk)
    return wanted


def _estimate(part: Part, settings: ContextualSettings) -> Usage:
    n_chunks = len(part.chunks)
    shared = sum(estimate_tokens(block["text"]) for block in system_blocks(part))
    own = sum(estimate_tokens(str(messages_of(c)[0]["content"])) for c in part.chunks)
    output = n_chunks * SITUATION_TOKENS
    if n_chunks < 2 or shared < settings.min_cached_tokens:
        return Usage(input_tokens=shared * n_chunks + own, output_tokens=output)
    return Usage(
        input_tokens=own,
        cache_write_tokens=shared,
        cache_read_tokens=shared * (n_chunks - 1),
        output_tokens=output,
    )
