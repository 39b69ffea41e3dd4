"""What the engine can be told, as frozen values with the defaults of the design.

`rag_tui.config` fills these from files, environment and flags; the engine never reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.types import PromptOrder

DEFAULT_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L6-v2"
DEFAULT_ANSWER_MODEL = "claude-opus-5-5"
Effort = Literal["", "low", "medium", "high", "xhigh", "max"]
"""What the Messages API calls effort; empty: nothing is sent."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which models, and how they may be found."""

    embedder: str = DEFAULT_EMBEDDER
    """A hub name, a local folder, ``voyage`` or ``voyage/MODEL``, or ``hashing`` (no model: for
    tests and demonstrations)."""
    reranker: str = DEFAULT_RERANKER
    """A hub name, a local folder, ``late_interaction``, ``voyage`` or ``voyage/MODEL``."""
    backend: Literal["auto", "onnx", "sentence-transformers"] = "auto"
    """``auto``: the verified export when there is one, else sentence-transformers."""
    device: str = "cpu"
    """For sentence-transformers: ``cpu``, ``cuda``, ``mps``; ``auto`` lets it choose."""
    allow_download: bool = True
    """Whether a model that is nowhere on this machine may be fetched from the hub."""
    truncate_dim: int = 0
    """Only the first so many numbers of a vector are kept (Matryoshka models); 0: all."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """``bfloat16``: less exact and faster, through torch only, where the processor has it."""
    voyage_base_url: str = ""
    """Another server that speaks the Voyage API; empty: the client's own default."""


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """Who answers, and how."""

    provider: str = "auto"
    """``auto``: claude when there is a key or a base URL, else extractive. Or the name of an
    answerer (`rag_tui.engine.answering.make_answerer`)."""
    model: str = DEFAULT_ANSWER_MODEL
    max_tokens: int = 4096
    """Thinking included, and many models think whether or not they are asked to."""
    base_url: str = ""
    """Another server that speaks the Messages API; empty: the SDK's own default."""
    timeout_s: float = 60.0
    n_sources: int = 5
    """Chunks put into the prompt."""
    template: str = "numbered"
    """``numbered``, ``documents``, ``native``, or the path of a template file."""
    order: PromptOrder = "best first"
    thinking: bool = False
    """Ask the model to think, and to show it."""
    effort: Effort = ""
    """How hard the model tries; empty: its own default."""
    cache_prompt: bool = False
    """Ask the service to keep rules and sources for a few minutes."""
    max_retries: int = 2
    """Further tries of a request that was refused for now, before anything has come."""
    not_found_below: float | None = None
    """For the extractive answerer: best reranker logit of a source that is enough; None: its own
    rule."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """All of it."""

    cache_dir: Path
    """Where indexes, embeddings and exported models are kept."""
    loading: LoadSettings = field(default_factory=LoadSettings)
    chunking: ChunkingSettings = field(default_factory=ChunkingSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    answer: AnswerSettings = field(default_factory=AnswerSettings)
    analyzer: str = "words"
    """The analyzer that an index's postings are made with."""
