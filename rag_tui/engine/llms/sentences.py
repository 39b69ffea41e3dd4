"""Sentences of Markdown prose, as quotations."""

from __future__ import annotations

from rag_tui.engine.sentences import sentences


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of Markdown prose, in order, white space made single spaces.

    What is a sentence is said at `rag_tui.engine.sentences.sentences`.
    """
    return tuple(sentence.text for sentence in sentences(text))
