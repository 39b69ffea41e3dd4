"""Two answers to one question, side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from rag_tui.engine.faithfulness import ClaimCheck, support_share
from rag_tui.engine.prompting import escaped
from rag_tui.engine.types import Answer, Prompt

PartKind = Literal["same", "only first", "only second"]

_PIECE = re.compile(r"\s+|[^\W_]+(?:['’][^\W_]+)?|\[[^\[\]\n]{1,40}\]|.", re.DOTALL)
_MAX_PIECES = 4_000
"""Longer answers are compared by lines: the matching takes the square of it."""

CLOSED_BOOK = """\
You answer a question from what you know yourself; there are no documents to read. Be brief: one \
to four sentences unless the question asks for more. If you do not know, say so.
"""
"""The rules of a prompt without retrieval."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A finished answer with its prompt, and its checks if they were made."""

    answer: Answer
    prompt: Prompt
    checks: tuple[ClaimCheck, ...] = ()
    outcome: str = ""
    """What became of it by labels or a judge, where that is known."""


@dataclass(frozen=True, slots=True)
class DiffPart:
    """A stretch of text that both answers have, or only one."""

    kind: PartKind
    text: str


@dataclass(frozen=True, slots=True)
class AnswerDiff:
    """How two answers differ. Sources are compared as chunks: the same one may have two numbers."""

    parts: tuple[DiffPart, ...]
    """In reading order: without ``only second`` they are the first text, and the other way round.
    """
    similarity: float
    """0 to 1: twice the words in common over all words (Ratcliff and Obershelp 1988)."""
    cited_by_both: tuple[str, ...]
    cited_by_first: tuple[str, ...]
    cited_by_second: tuple[str, ...]
    """Chunk ids, in the order of the prompt's sources."""
    sources_of_both: tuple[str, ...]
    sources_of_first: tuple[str, ...]
    sources_of_second: tuple[str, ...]
    outcomes: tuple[str, str]
    support: tuple[float | None, float | None]
    """Share of supported claims; None where nothing was checked."""

    @property
    def is_same_text(self) -> bool:
        """Whether both say the same, word for word."""
        return all(part.kind == "same" for part in self.parts)


def compare_answers(first: Answered, second: Answered) -> AnswerDiff:
    """What two answers have in common and what only one has."""
    parts, similarity = _diff(first.answer.text, second.answer.text)
    cited, other_cited = _cited(first), _cited(second)
    sources = [source.chunk_id for source in first.prompt.sources]
    other_sources = [source.chunk_id for source in second.prompt.sources]
    return AnswerDiff(
        parts=parts,
        similarity=similarity,
        cited_by_both=tuple(c for c in cited if c in other_cited),
        cited_by_first=tuple(c for c in cited if c not in other_cited),
        cited_by_second=tuple(c for c in other_cited if c not in cited),
        sources_of_both=tuple(c for c in sources if c in other_sources),
        sources_of_first=tuple(c for c in sources if c not in other_sources),
        sources_of_second=tuple(c for c in other_sources if c not in sources),
        outcomes=(first.outcome or first.answer.state, second.outcome or second.answer.state),
        support=(support_share(first.checks), support_share(second.checks)),
    )


def closed_book_prompt(question: str) -> Prompt:
    """A question without any source: what a model says without retrieval."""
    asked = escaped(question.strip())
    return Prompt(
        question=question,
        system=CLOSED_BOOK,
        user=f"<question>\n{asked}\n</question>",
        sources=(),
        template="closed book",
        is_closed_book=True,
    )


def _cited(one: Answered) -> list[str]:
    return [s.chunk_id for s in one.prompt.sources if s.number in one.answer.cited]


def _diff(first: str, second: str) -> tuple[tuple[DiffPart, ...], float]:
    a, b = _PIECE.findall(first), _PIECE.findall(second)
    if max(len(a), len(b)) > _MAX_PIECES:
        a, b = first.splitlines(keepends=True), second.splitlines(keepends=True)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    parts: list[DiffPart] = []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            parts.append(DiffPart("same", "".join(a[a0:a1])))
            continue
        if a1 > a0:
            parts.append(DiffPart("only first", "".join(a[a0:a1])))
        if b1 > b0:
            parts.append(DiffPart("only second", "".join(b[b0:b1])))
    return tuple(parts), _similarity(a, b)


def _similarity(a: Sequence[str], b: Sequence[str]) -> float:
    words, other_words = ([p for p in pieces if not p.isspace()] for pieces in (a, b))
    return SequenceMatcher(None, words, other_words, autojunk=False).ratio()
