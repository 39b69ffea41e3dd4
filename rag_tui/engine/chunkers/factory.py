"""From settings to the chunker they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_tui.engine.chunkers.base import Chunker, ChunkingSettings, Strategy, TokenCounter
from rag_tui.engine.chunkers.headings import HeadingsChunker
from rag_tui.engine.errors import UsageError

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

    Embed = Callable[[Sequence[str]], Vectors]

STRATEGIES: Mapping[Strategy, str] = MappingProxyType(
    {
        "headings": "one chunk a section; long ones at blocks, sentences, then windows",
        "recursive": "near the size, cut at headings, blocks, lines, sentences, words",
        "sentences": "as many whole sentences as fit",
        "words": "windows of whole words",
        "tokens": "windows of the model's tokens",
        "page": "one chunk a page, however long",
        "whole": "one chunk a document, however long",
        "semantic": "where neighbouring sentences differ in meaning; embeds every sentence",
        "chonkie": "chonkie's recursive chunker (extra: chunkers)",
        "semchunk": "semchunk (extra: chunkers)",
    }
)
"""Every strategy in a few words, in the order in which they are offered."""

OVERLAP: Mapping[Strategy, str] = MappingProxyType(
    {
        "headings": "0 at paragraphs, rows and lines; whole sentences within a paragraph; "
        "exact in windows",
        "recursive": "whole words, at most the overlap; 0 at tables and code",
        "sentences": "whole sentences, at most the overlap; exact in sentences",
        "words": "whole words, at most the overlap; exact in words",
        "tokens": "whole tokens, at most the overlap; exact in tokens",
        "page": "0 used",
        "whole": "0 used",
        "semantic": "0 used",
        "chonkie": "0 used",
        "semchunk": "as semchunk makes it, about the overlap",
    }
)
"""What the overlap setting means for each strategy, for the screen."""


def make_chunker(
    settings: ChunkingSettings,
    counter: TokenCounter,
    *,
    embed: Embed | None = None,
    reserve: int = 0,
) -> Chunker:
    """The chunker that the settings name.

    Args:
        settings: Strategy, size, overlap, unit.
        counter: The embedding model's tokens.
        embed: Texts to L2-normalised float32 ``(n, dim)``; only ``semantic`` calls it, and only
            while it cuts.
        reserve: Tokens kept free in each chunk for what is put in front of it later, e.g. a
            situation. ``page`` and ``whole`` have no size and keep none.

    Raises:
        UsageError: When the strategy is not known, its library is not installed, ``semantic``
            has no ``embed``, or ``reserve`` leaves no room.
    """
    if reserve < 0 or (settings.unit == "tokens" and reserve >= settings.size):
        raise UsageError(
            f"tokens kept free must be from 0 to below the chunk size "
            f"(got {reserve} for size {settings.size})",
            "Raise chunking.size, or keep fewer tokens free.",
        )
    # Imported when wanted: numpy and the libraries cost time that the default need not pay.
    match settings.strategy:
        case "headings":
            return HeadingsChunker(settings, counter, reserve=reserve)
        case "recursive":
            from rag_tui.engine.chunkers.recursive import RecursiveChunker

            return RecursiveChunker(settings, counter, reserve=reserve)
        case "sentences":
            from rag_tui.engine.chunkers.sentences import SentencesChunker

            return SentencesChunker(settings, counter, reserve=reserve)
        case "words" | "tokens":
            from rag_tui.engine.chunkers.plain import WindowsChunker

            return WindowsChunker(settings, counter, by=settings.strategy, reserve=reserve)
        case "page" | "whole":
            from rag_tui.engine.chunkers.coarse import PageChunker

            return PageChunker(settings, counter, is_whole=settings.strategy == "whole")
        case "semantic":
            from rag_tui.engine.chunkers.semantic import SemanticChunker

            if embed is None:
                raise UsageError(
                    "the chunking strategy semantic needs an embedding model",
                    "Set models.embedder to a model that can be loaded, or chunking.strategy "
                    "to headings.",
                )
            return SemanticChunker(settings, counter, embed=embed, reserve=reserve)
        case "chonkie" | "semchunk":
            from rag_tui.engine.chunkers.libraries import LibraryChunker

            return LibraryChunker(settings, counter, reserve=reserve)
    raise UsageError(
        f"chunking strategy {settings.strategy!r} is not known",
        f"Set chunking.strategy to one of {', '.join(STRATEGIES)}.",
    )
