"""Labels point at text; resolving finds the chunks that hold that text now."""

from __future__ import annotations

from collections.abc import Iterable

from rag_tui.engine.evaluation.document_names import DocumentNames
from rag_tui.engine.evaluation.finding import NotFoundError, find_place
from rag_tui.engine.evaluation.holding import covers, overlap
from rag_tui.engine.evaluation.types import Evidence, Place, Question, Resolved
from rag_tui.engine.index import Index


class Resolver:
    """Resolves questions in one index; what it looks up is kept for the next question."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.names = DocumentNames(index.document_of, index.reports)

    def resolve(self, question: Question) -> Resolved:
        """The question's labels as places and chunks, and those that are nowhere, with why."""
        places: list[Place] = []
        unresolved: list[tuple[Evidence, str]] = []
        for evidence in question.evidence:
            try:
                places.append(self._place(evidence))
            except NotFoundError as error:
                unresolved.append((evidence, str(error)))
        return Resolved(question, tuple(places), tuple(unresolved))

    def _place(self, evidence: Evidence) -> Place:
        doc_id = self.names.find(evidence.document)
        if doc_id is None:
            raise NotFoundError(self.names.why_missing(evidence.document))
        document = self.index.document_of[doc_id]
        start, end = find_place(document, evidence)
        positions = self.positions(doc_id, start, end)
        if not positions:
            reason = "no chunk holds it"
            if doc_id not in self.index.positions_in:
                reason = "the document has no chunks: no text below its headings"
            raise NotFoundError(reason)
        ids = tuple(self.index.chunks[position].chunk_id for position in positions)
        return Place(evidence, doc_id, start, end, positions, ids)

    def positions(self, doc_id: str, start: int, end: int) -> tuple[int, ...]:
        """Positions of the chunks that hold a span of a document (`covers`), ascending.

        When none holds it, the one that shares most characters with it; of equals the first.
        """
        chunks = self.index.chunks
        near = [
            position
            for position in self.index.positions_in.get(doc_id, ())
            if chunks[position].start < end and chunks[position].end > start
        ]
        held = [p for p in near if covers(chunks[p].start, chunks[p].end, start, end)]
        if not held and near:
            held = [max(near, key=lambda p: overlap(chunks[p].start, chunks[p].end, start, end))]
        return tuple(held)


def resolve(question: Question, index: Index) -> Resolved:
    """One question's labels in an index; for many questions use `resolve_all`."""
    return Resolver(index).resolve(question)


def resolve_all(questions: Iterable[Question], index: Index) -> dict[str, Resolved]:
    """Every question's labels in an index, by question id, in the order given."""
    resolver = Resolver(index)
    return {question.qid: resolver.resolve(question) for question in questions}


def grade_at(resolved: Resolved, position: int) -> int | None:
    """The highest grade that a label gives to the chunk at a position; None: unjudged."""
    grades = [p.evidence.grade for p in resolved.places if position in p.positions]
    return max(grades, default=None)
