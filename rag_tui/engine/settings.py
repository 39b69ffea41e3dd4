"""What the engine can be told, as frozen values with the defaults of the design.

`rag_tui.config` fills these from files, environment and flags; the engine never reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.documents.settings import LoadSettings

DEFAULT_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L6-v2"
DEFAULT_ANSWER_MODEL = "claude-opus-5-5"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which models, and how they may be found."""

    embedder: str = DEFAULT_EMBEDDER
    """A hub name, a local folder, or ``hashing`` (no model: for tests and demonstrations)."""
    reranker: str = DEFAULT_RERANKER
    """A hub name or a local folder."""
    backend: Literal["auto", "onnx", "sentence-transformers"] = "auto"
    """``auto``: the verified export when there is one, else sentence-transformers."""
    device: str = "cpu"
    """For sentence-transformers: ``cpu``, ``cuda``, ``mps``; ``auto`` lets it choose."""
    allow_download: bool = True
    """Whether a model that is nowhere on this machine may be fetched from the hub."""


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """Who answers, and how."""

    provider: Literal["auto", "claude", "extractive"] = "auto"
    """``auto``: claude when a key or a base URL is in the environment, else extractive."""
    model: str = DEFAULT_ANSWER_MODEL
    max_tokens: int = 1024
    base_url: str = ""
    """Another server that speaks the Messages API; empty: the SDK's own default."""
    timeout_s: float = 60.0
    n_sources: int = 5
    """Chunks put into the prompt."""


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
