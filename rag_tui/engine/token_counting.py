"""The token counter that goes with an embedder, without loading the embedder."""

from __future__ import annotations

from collections.abc import Callable

from rag_tui.engine.chunkers.base import TokenCounter
from rag_tui.engine.models import ModelFiles
from rag_tui.engine.tokenizing import ModelTokenCounter, WordTokenCounter
from rag_tui.engine.voyage import is_voyage

_USUAL_LIMIT = 256


def token_counter_of(
    name: str, resolve: Callable[[], ModelFiles | None]
) -> tuple[TokenCounter, bool]:
    """The model's own tokenizer; else an estimate, and whether it stands in for a missing one.

    Args:
        name: The embedder's name, as asked for.
        resolve: Finds its files; None for an embedder that needs none.
    """
    if is_voyage(name):
        from rag_tui.engine.embedders.voyage import context_length, model_of

        return WordTokenCounter(limit=context_length(model_of(name))), False
    limit = _USUAL_LIMIT
    try:
        files = resolve()
        if files is None:
            return WordTokenCounter(n_special=0), False
        from rag_tui.engine.embedders.profile import read_profile

        profile = read_profile(files)
        limit = profile.max_tokens
        counter = ModelTokenCounter(
            profile.tokenizer_file or files.folder / "tokenizer.json",
            limit=limit,
            document_prompt=profile.document_prompt,
        )
    except Exception:  # a broken folder breaks libraries anywhere; the embedder will say how
        return WordTokenCounter(limit=limit), True
    return counter, False
