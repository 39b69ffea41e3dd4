"""Answers that say nothing was found: exact, and right or wrong to say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from rag_tui.engine.types import NOT_FOUND, Answer

AnswerKind = Literal["answered", "not found", "hedged", "no answer"]

Outcome = Literal[
    "right section",
    "other section",
    "not in sources",
    "unjudged",
    "refused rightly",
    "false refusal",
    "missing refusal",
    "hedged",
    "no answer",
]

OUTCOMES: dict[Outcome, str] = {
    "right section": "answered, and cites a place that answers the question",
    "other section": "answered, and cites only other places, or none",
    "not in sources": "not found, and no source of the prompt held an answer: retrieval failed",
    "unjudged": "answered, but no label of the question is found in the documents",
    "refused rightly": "not found, and nothing answers the question",
    "false refusal": "not found, although a source of the prompt holds an answer",
    "missing refusal": "answered, although nothing answers the question",
    "hedged": "the not-found sentence with other text: neither an answer nor a refusal",
    "no answer": "failed, or ended without text",
}
"""What can become of a question, in the order of tables, and what it means."""

GOOD: frozenset[Outcome] = frozenset({"right section", "refused rightly"})
"""What is as it should be."""


def answer_kind(answer: Answer, not_found: str = NOT_FOUND) -> AnswerKind:
    """Whether an answer answers.

    ``not found`` is exactly the template's sentence, blank space around it apart; ``hedged`` is
    one that holds the sentence and more. Wordings of the model's own count as answers.
    """
    text = answer.text.strip()
    if answer.state == "not found" or text == not_found:
        return "not found"
    if not text or answer.state in ("failed", "empty answer", "refused by the model"):
        return "no answer"
    return "hedged" if not_found in answer.text else "answered"


def outcome_of(
    kind: AnswerKind,
    *,
    is_answerable: bool,
    cites_evidence: bool | None,
    has_evidence: bool | None,
) -> Outcome:
    """What became of a question.

    Args:
        kind: As of `answer_kind`.
        is_answerable: Whether the documents answer the question.
        cites_evidence: Whether a cited source is a place that answers; None: no such place is
            known.
        has_evidence: Whether any source of the prompt is one; None: no such place is known.
    """
    if kind in ("hedged", "no answer"):
        return "hedged" if kind == "hedged" else "no answer"
    if not is_answerable:
        return "refused rightly" if kind == "not found" else "missing refusal"
    if kind == "not found":
        # Without labels nobody knows whether there was anything to be found.
        if has_evidence is None:
            return "unjudged"
        return "false refusal" if has_evidence else "not in sources"
    if cites_evidence is None:
        return "unjudged"
    return "right section" if cites_evidence else "other section"


def count_outcomes(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    """How many of each, in the order of `OUTCOMES`, none left out."""
    counted = Counter(outcomes)
    return {outcome: counted[outcome] for outcome in OUTCOMES}
