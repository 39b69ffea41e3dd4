"""Scored questions by tag, by document and by length: where the misses are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_tui.engine.evaluation.measures import mean
from rag_tui.engine.evaluation.score_table import Group, GroupKind, QuestionScores
from rag_tui.engine.evaluation.types import Resolved

_LENGTHS = ((3, "1 to 3 words"), (8, "4 to 8 words"), (15, "9 to 15 words"))
_LONGER = "16 words or more"


def groups_of(
    questions: Sequence[QuestionScores],
    resolved: Mapping[str, Resolved],
    n_columns: int,
    n_measures: int,
) -> tuple[Group, ...]:
    """Groups by tag and by document, largest first, then by length, shortest first.

    A question is in the group of each of its tags, and in that of the document of its first
    relevant place. Kinds with a single group that holds all questions say nothing and are absent.
    """
    members: dict[GroupKind, dict[str, list[QuestionScores]]] = {
        "tag": {},
        "document": {},
        "length": {},
    }
    for question in questions:
        for tag in question.tags:
            members["tag"].setdefault(tag, []).append(question)
        place = next(p for p in resolved[question.qid].places if p.evidence.grade > 0)
        members["document"].setdefault(place.document, []).append(question)
        members["length"].setdefault(_length(question.text), []).append(question)
    groups: list[Group] = []
    for kind, named in members.items():
        made = [
            Group(kind, name, len(inside), _means(inside, n_columns, n_measures))
            for name, inside in named.items()
        ]
        if len(made) == 1 and made[0].n == len(questions):
            continue
        order = [name for _, name in _LENGTHS] + [_LONGER]
        if kind == "length":
            made.sort(key=lambda group: order.index(group.name))
        else:
            made.sort(key=lambda group: (-group.n, group.name))
        groups.extend(made)
    return tuple(groups)


def _length(text: str) -> str:
    n_words = len(text.split())
    return next((name for most, name in _LENGTHS if n_words <= most), _LONGER)


def _means(
    questions: Sequence[QuestionScores], n_columns: int, n_measures: int
) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(mean([question.values[c][m] for question in questions]) for m in range(n_measures))
        for c in range(n_columns)
    )
