"""From a chunk to evidence that still means the same text when everything is cut anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.resolving import Resolver
from rag_tui.engine.evaluation.types import Evidence, Question
from rag_tui.engine.sentences import sentences
from rag_tui.engine.types import Chunk

SHORT_BODY = 300
"""Characters: a body up to this length is quoted whole."""
_LONGEST = 400
_SHORTEST = 25


def evidence_for(
    position: int, resolver: Resolver, *, question: str = "", grade: int = 1
) -> Evidence:
    """Evidence that resolves to the chunk at a position now, and to the same words later.

    A short body is quoted whole. Of a longer one a single sentence is quoted, since one sentence
    is rarely cut in two: of the sentences that no other chunk holds the one with the most rare
    words of the question, then the one with most rare words at all. Where there are no such
    sentences, the first lines that do. The innermost heading and the line numbers go along,
    the lines only where the quote stands in the document more than once.

    Args:
        position: Of the chunk.
        resolver: Of its index.
        question: What the evidence is for; empty: any.
        grade: 0 to 3.

    Raises:
        UsageError: When nothing in the chunk can be quoted so that it leads back to it.
    """
    chunk = resolver.index.chunks[position]
    second_best: Evidence | None = None
    for quote, line in _candidates(chunk, resolver, question):
        evidence = Evidence(chunk.doc_id, quote, _heading(chunk, resolver), grade=grade)
        for one in (evidence, replace(evidence, lines=(line, line + quote.count("\n")))):
            found = resolver.resolve(Question("", "", (one,)))
            held = found.places[0].positions if found.places else ()
            if held == (position,):
                return one
            if position in held and second_best is None:
                second_best = one  # a neighbour that overlaps holds it as well
    if second_best is not None:
        return second_best
    raise UsageError(
        f"Nothing in {chunk.location} leads back to this passage alone.",
        "Write the label by hand, with a quote or with lines.",
    )


def _candidates(chunk: Chunk, resolver: Resolver, question: str) -> Iterator[tuple[str, int]]:
    """Quotes with the line they begin on, best first."""
    body_start = chunk.start + chunk.body_offset
    text = resolver.index.document_of[chunk.doc_id].text
    body = text[body_start : chunk.end]
    offset = len(body) - len(body.lstrip())
    stripped = body.strip()
    line_of_body = text.count("\n", 0, body_start) + 1

    def line(at: int) -> int:
        return line_of_body + body.count("\n", 0, at)

    if len(stripped) <= SHORT_BODY:
        if stripped:
            yield stripped, line(offset)
        return
    wanted = set(WORDS.tokens(question))
    scored = []
    for sentence in sentences(body):
        quote = body[sentence.start : sentence.end]
        if _SHORTEST <= len(quote) <= _LONGEST:
            shared, all_words = _weights(quote, wanted, resolver)
            scored.append((-shared, -all_words, sentence.start, quote))
    for _, _, start, quote in sorted(scored)[:8]:
        yield quote, line(start)
    for start, end in _line_windows(body):
        yield body[start:end], line(start)
    yield stripped, line(offset)


def _weights(quote: str, wanted: set[str], resolver: Resolver) -> tuple[float, float]:
    """How rare the words of a quote are: those of the question, and all (at most 12 count)."""
    postings = resolver.index.bm25
    weights = {}
    for word in set(WORDS.tokens(quote)):
        weights[word] = 1 / (1 + postings.df(word))
    shared = sum(weight for word, weight in weights.items() if word in wanted)
    return round(shared, 9), round(sum(sorted(weights.values(), reverse=True)[:12]), 9)


def _line_windows(body: str) -> Iterator[tuple[int, int]]:
    """Up to four stretches of whole lines, each as short as it can be above 40 characters."""
    starts = [i for i, line in _lines(body) if line.strip()]
    for start in starts[:4]:
        end = start
        while end < len(body) and len(body[start:end].strip()) < 40:
            following = body.find("\n", end + 1)
            end = following if following >= 0 else len(body)
        quote = body[start : min(end, start + SHORT_BODY)].rstrip()
        if quote:
            yield start, start + len(quote)


def _lines(body: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in body.split("\n"):
        yield at, line
        at += len(line) + 1


def _heading(chunk: Chunk, resolver: Resolver) -> str:
    """The innermost heading above the chunk, if the document really has it."""
    titles = {heading.title for heading in resolver.index.document_of[chunk.doc_id].headings}
    innermost = chunk.heading_path[-1] if chunk.heading_path else ""
    return innermost if innermost in titles else ""
