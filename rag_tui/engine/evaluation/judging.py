"""A ranked list against the labels of its question: which rows are relevant, which unjudged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_tui.engine.evaluation.holding import row_holds
from rag_tui.engine.evaluation.types import Place, Resolved, Retrieved, Unit


@dataclass(frozen=True, slots=True)
class Judged:
    """What the labels say about one list; all that the measures need.

    Rows are those of the list, or with unit ``document`` its documents, each at its best row.
    """

    gains: tuple[int, ...]
    """By rank: the highest grade among the places a row is the first to hold; 0 for rows that are
    not relevant, or hold nothing new."""
    n_new: tuple[int, ...]
    """By rank: how many relevant places the row is the first to hold."""
    is_known: tuple[bool, ...]
    """By rank: whether the row holds any labelled place, relevant or not, new or not."""
    n_relevant: int
    """Relevant places (documents) of the question; 0: nothing can be measured."""
    ideal: tuple[int, ...]
    """Gains of the best possible list, descending."""

    @property
    def first_rank(self) -> int | None:
        """1-based rank of the first relevant row, or None when there is none."""
        return next((rank for rank, gain in enumerate(self.gains, 1) if gain > 0), None)

    def n_unjudged(self, k: int | None = None) -> int:
        """Rows among the first k (None: all) that no label says anything about."""
        return self.is_known[:k].count(False)

    def assuming(self, grade: int, k: int | None = None) -> Judged:
        """The same list if every unjudged row among the first k had this grade, above 0.

        Each of those rows becomes a relevant place of its own.
        """
        gains, n_new = list(self.gains), list(self.n_new)
        unknown = [i for i, known in enumerate(self.is_known[:k]) if not known]
        for i in unknown:
            gains[i], n_new[i] = grade, 1
        return replace(
            self,
            gains=tuple(gains),
            n_new=tuple(n_new),
            n_relevant=self.n_relevant + len(unknown),
            ideal=tuple(sorted([*self.ideal, *[grade] * len(unknown)], reverse=True)),
        )


def judge_rows(rows: Sequence[Retrieved], resolved: Resolved, unit: Unit) -> Judged:
    """Hold a list against the labels of its question.

    ``passage``: an evidence place counts once, at the first row that holds it (`row_holds`), so a
    repeated or overlapping chunk gains nothing twice. The ideal list is the greedy best cover of
    the relevant places by the chunks they resolved to, by highest grade, then most places, then
    corpus order; where each place lies in one chunk and each chunk holds one place it is the
    standard one, all grades descending.

    ``document``: each document counts at its best row with the highest grade of its places.

    Args:
        rows: By rank. Without any list (an error, not run) nothing is to be judged: do not call.
        resolved: The question's labels.
        unit: What is judged.
    """
    if unit == "document":
        return _judge_documents(rows, resolved)
    places = resolved.places
    held_already: set[int] = set()
    gains: list[int] = []
    n_new: list[int] = []
    is_known: list[bool] = []
    by_document: dict[str, list[int]] = {}
    by_chunk: dict[str, list[int]] = {}
    for i, place in enumerate(places):
        by_document.setdefault(place.document, []).append(i)
        for chunk_id in place.chunk_ids:
            by_chunk.setdefault(chunk_id, []).append(i)
    for row in rows:
        candidates = {*by_document.get(row.document, ()), *by_chunk.get(row.chunk_id, ())}
        held = {i for i in candidates if row_holds(row, places[i])}
        new = [places[i].evidence.grade for i in held - held_already]
        held_already |= held
        gains.append(max(new, default=0))
        n_new.append(sum(grade > 0 for grade in new))
        is_known.append(bool(held))
    return Judged(
        gains=tuple(max(gain, 0) for gain in gains),
        n_new=tuple(n_new),
        is_known=tuple(is_known),
        n_relevant=sum(place.evidence.grade > 0 for place in places),
        ideal=_best_cover(places),
    )


def _judge_documents(rows: Sequence[Retrieved], resolved: Resolved) -> Judged:
    grades: dict[str, int] = {}
    for place in resolved.places:
        grade = max(place.evidence.grade, 0)
        grades[place.document] = max(grade, grades.get(place.document, 0))
    documents = list(dict.fromkeys(row.document for row in rows))
    gains = tuple(grades.get(document, 0) for document in documents)
    relevant = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return Judged(
        gains=gains,
        n_new=tuple(int(gain > 0) for gain in gains),
        is_known=tuple(document in grades for document in documents),
        n_relevant=len(relevant),
        ideal=tuple(relevant),
    )


def _best_cover(places: Sequence[Place]) -> tuple[int, ...]:
    """Gains of the chunks that cover all relevant places, taken greedily."""
    held: dict[int, set[int]] = {}
    for i, place in enumerate(places):
        if place.evidence.grade > 0:
            for position in place.positions:
                held.setdefault(position, set()).add(i)
    left = {i for i, place in enumerate(places) if place.evidence.grade > 0}
    gains: list[int] = []
    while left:
        best, best_key = -1, (0, 0, 0)
        for position, mine in held.items():
            grades = [places[i].evidence.grade for i in mine & left]
            key = (max(grades, default=0), len(grades), -position)
            if grades and (best < 0 or key > best_key):
                best, best_key = position, key
        if best < 0:  # a place without chunks: it stands for itself
            gains.extend(places[i].evidence.grade for i in left)
            break
        gains.append(best_key[0])
        left -= held.pop(best)
    return tuple(sorted(gains, reverse=True))


def best_ranks(rows: Sequence[Retrieved], resolved: Resolved) -> tuple[int | None, ...]:
    """For each place of the question the 1-based rank of the first row that holds it, or None."""
    return tuple(
        next((rank for rank, row in enumerate(rows, 1) if row_holds(row, place)), None)
        for place in resolved.places
    )
