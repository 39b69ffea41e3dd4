"""An answer as claims: its sentences, each with the sources that it cites."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_tui.engine.sentences import sentences
from rag_tui.engine.types import Answer

_WORD = re.compile(r"[^\W_]+")
_EMPTY_WORDS = frozenset(
    _WORD.findall(
        "a am an and any are as at be been by can could did do does for from get had has have how "
        "i if in is it its may me must my of on or our shall should so some that the their them "
        "there these they this those to up us was we were what when where which who why will with "
        "would you your yes no not ok okay sure sorry"
    )
)
_NEGATIONS = re.compile(
    r"\b(?:not|no|never|nobody|none|nothing|nowhere|neither|nor|cannot|without)\b|n['’]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of an answer that says something."""

    start: int
    end: int
    """Character offsets into the answer's text, end-exclusive; markers before its end included."""
    text: str
    """One line, without citation markers and emphasis."""
    numbers: tuple[int, ...]
    """The existing sources it cites, ascending; empty when it cites none."""
    markers: tuple[tuple[int, int], ...] = ()
    """Spans of the citation markers within ``start`` and ``end``, in the answer's text."""


def claims_of(answer: Answer) -> tuple[Claim, ...]:
    """The claims of an answer, in order.

    Sentences are those of `rag_tui.engine.sentences` (headings and fenced code are none). Markers
    that stand behind a sentence's end belong to it, unless it has markers before its end already.
    Sentences without a content word (``Yes.``) claim nothing that could be looked up.
    """
    found: list[Claim] = []
    for sentence in sentences(answer.text):
        start, end = sentence.start, sentence.end
        inside = [c for c in answer.citations if start <= c.start and c.end <= end]
        leading = []
        at = start
        for citation in inside:
            if answer.text[at : citation.start].strip(" \n\t.,;"):
                break
            leading.append(citation)
            at = citation.end
        rest = answer.text[at:end].strip(" \n\t.,;!?)")
        is_behind = bool(found) and not answer.text[found[-1].end : start].count("\n\n")
        if leading and is_behind and (not rest or not found[-1].markers):
            last = found[-1]
            numbers = {n for c in leading for n in c.numbers if n not in c.unknown}
            found[-1] = Claim(
                last.start,
                leading[-1].end,
                last.text,
                tuple(sorted({*last.numbers, *numbers})),
                (*last.markers, *((c.start, c.end) for c in leading)),
            )
            start = at + len(answer.text[at:end]) - len(answer.text[at:end].lstrip())
            inside = inside[len(leading) :]
        if start >= end or not rest:
            continue
        found.append(
            Claim(
                start,
                end,
                _plain(answer.text, start, end, [(c.start, c.end) for c in inside]),
                tuple(sorted({n for c in inside for n in c.numbers if n not in c.unknown})),
                tuple((c.start, c.end) for c in inside),
            )
        )
    return tuple(claim for claim in found if content_words(claim.text))


def content_words(text: str) -> frozenset[str]:
    """The words of a text that say something, case-folded, without a plural s; numbers too."""
    words = {word.casefold() for word in _WORD.findall(text)} - _EMPTY_WORDS
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words)


def normalised(text: str) -> str:
    """One line without emphasis and quotation marks, case-folded: what makes a quotation equal."""
    plain = re.sub(r"[*_`\"“”„«»]", "", text.casefold())
    plain = re.sub("[‘’]", "'", re.sub("[\u2010-\u2015\u2212]", "-", plain))
    return " ".join(plain.split()).strip(" .!?…,;:")


def differs_in_negation(claim: str, evidence: str) -> bool:
    """Whether one of the two holds an odd number of negations and the other an even one.

    A hint for readers, nothing more: ``may not smoke`` and ``smoke-free`` differ by it.
    """
    return len(_NEGATIONS.findall(claim)) % 2 != len(_NEGATIONS.findall(evidence)) % 2


def _plain(text: str, start: int, end: int, markers: list[tuple[int, int]]) -> str:
    piece = ""
    at = start
    for first, last in markers:
        piece += text[at:first]
        at = last
    piece += text[at:end]
    one_line = " ".join(re.sub(r"[*`]+|(?m:^\s*>+)", "", piece).split())
    return re.sub(r"\s+([.,;:!?])", r"\1", one_line)
