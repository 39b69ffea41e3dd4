"""Finding a label's place in a document: by its words, its heading or its lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from rag_tui.engine.evaluation.types import Evidence
from rag_tui.engine.types import Document, Heading

Span = tuple[int, int]

LONGEST_QUOTE = 20_000
"""Characters."""

_ALIKE = (
    "'’‘‛‚′´`",
    '"“”„‟«»″',
    "-‐‑‒–—―−\xad",
)
"""Signs that are typed one way and printed another; each group is one sign."""
_EXPLICIT_ID = re.compile(r"\{[^{}\n]*#([^\s{}]+)[^{}\n]*\}\s*$")


class NotFoundError(Exception):
    """Evidence that is nowhere in its document; the message is the reason, in words."""


def find_place(document: Document, evidence: Evidence) -> Span:
    """Where the evidence stands, as character offsets without blank space at either side.

    A quote is what was meant, else a heading's section, else lines, else the whole document; what
    else is given only chooses among several that fit. Without such a choice the first one counts.

    Raises:
        NotFoundError: When it stands nowhere.
    """
    if evidence.quote.strip():
        return _find_quote(document, evidence)
    if evidence.heading.strip():
        found = _sections(document, evidence.heading)
        if not found:
            raise NotFoundError(f"the heading {_short(evidence.heading)} is not in it")
        near = _line_span(document, evidence.lines) if evidence.lines else None
        return _trimmed(document, _nearest(found, [near] if near else []))
    if evidence.lines is not None:
        return _find_lines(document, evidence.lines)
    return _trimmed(document, (document.body_start, len(document.text)))


def _find_quote(document: Document, evidence: Evidence) -> Span:
    quote = evidence.quote.strip()
    if len(quote) > LONGEST_QUOTE:
        raise NotFoundError(
            f"the quote is longer than {LONGEST_QUOTE:,} characters; shorten it to a sentence"
        )
    found = occurrences(document.text, quote)
    if not found:
        raise NotFoundError(f"the quote {_short(quote)} is not in it")
    if len(found) == 1:
        return found[0]
    near = _sections(document, evidence.heading) if evidence.heading.strip() else []
    lines = _line_span(document, evidence.lines) if evidence.lines else None
    return _nearest(found, [lines] if lines else near)


def occurrences(text: str, quote: str) -> list[Span]:
    """Where some words stand in a text, ascending, not overlapping; in linear time.

    Any run of white space equals any other. Only if the words stand nowhere as written, case is
    ignored and typographic quotes, dashes and ellipses equal plain ones.
    """
    wanted = " ".join(quote.split())
    if not wanted:
        return []
    words = _words(text)
    found = words.find(wanted)
    if found:
        return found
    folded = wanted.translate(_FOLDED)
    for one in dict.fromkeys((folded, folded.replace("…", "..."), folded.replace("...", "…"))):
        found = words.find(one, is_folded=True)
        if found:
            return found
    return []


class _Words:
    """A text with single spaces, and where its characters come from."""

    def __init__(self, text: str) -> None:
        words = list(re.finditer(r"\S+", text))
        self._line = " ".join([word[0] for word in words])
        self._sources = [word.start() for word in words]
        lengths = (len(word[0]) + 1 for word in words)
        self._places = [0, *accumulate(lengths)][: len(words)]

    @cached_property
    def _folded_line(self) -> str:
        return self._line.translate(_FOLDED)

    def find(self, wanted: str, *, is_folded: bool = False) -> list[Span]:
        line = self._folded_line if is_folded else self._line
        found: list[Span] = []
        at = line.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            found.append((self._source(at), self._source(end - 1) + 1))
            at = line.find(wanted, end)
        return found

    def _source(self, at: int) -> int:
        word = bisect_right(self._places, at) - 1
        return self._sources[word] + at - self._places[word]


@lru_cache(maxsize=4)
def _words(text: str) -> _Words:
    """Kept for the few documents that several labels in a row are about."""
    return _Words(text)


class _Fold(dict[int, int]):
    """Characters to what they are compared as, one for one so that offsets stay."""

    def __missing__(self, code: int) -> int:
        group = next((group for group in _ALIKE if chr(code) in group), "")
        lower = group[:1] or chr(code).lower()
        self[code] = ord(lower) if len(lower) == 1 else code
        return self[code]


_FOLDED = _Fold()


def _sections(document: Document, wanted: str) -> list[Span]:
    """The sections under a heading, with everything below it, in order.

    The heading is named by its text, by a path of headings (``Heading > Subheading``, from any
    level down), by an explicit id (``{ #id }``) or by the anchor GitHub gives it. The first way
    that finds any decides; texts are compared without case and markup.
    """
    headings = document.headings
    parts = [_plain(part) for part in wanted.split(" > ")]
    paths = _paths(document)
    found = [i for i, path in enumerate(paths) if _ends_with(path, parts)]
    if not found and len(parts) > 1:  # a heading may hold the sign itself
        found = [i for i, path in enumerate(paths) if path[-1] == _plain(wanted)]
    if not found:
        anchor = wanted.strip().removeprefix("#")
        found = [i for i, one in enumerate(headings) if _explicit_id(document, one) == anchor]
        if not found:
            found = [i for i, slug in enumerate(_slugs(headings)) if slug == anchor.lower()]
    spans = [_section(document, i) for i in found]
    if not spans and _plain(wanted) == _plain(document.title) and len(parts) == 1:
        spans = [(document.body_start, len(document.text))]
    return spans


def _section(document: Document, i: int) -> Span:
    """From a heading to the next one of its level or above."""
    level = document.headings[i].level
    following = (h.start for h in document.headings[i + 1 :] if h.level <= level)
    return document.headings[i].start, next(following, len(document.text))


def _paths(document: Document) -> list[list[str]]:
    """Of each heading the titles from the document's title down, plain."""
    paths = []
    above: list[Heading] = []
    for heading in document.headings:
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        titles = [_plain(one.title) for one in above]
        title = _plain(document.title)
        paths.append(titles if titles[0] == title else [title, *titles])
    return paths


def _ends_with(path: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the wanted titles stand in the path in this order, the last one at its end."""
    if path[-1] != wanted[-1]:
        return False
    rest = iter(path[:-1])
    return all(part in rest for part in wanted[:-1])


def _plain(title: str) -> str:
    return " ".join(title.replace("`", "").replace("*", "").split()).strip("# ").casefold()


def _explicit_id(document: Document, heading: Heading) -> str:
    line = document.text[heading.start : heading.body_start].strip()
    match = _EXPLICIT_ID.search(line)
    return match[1] if match else ""


def _slugs(headings: Sequence[Heading]) -> list[str]:
    """The anchors GitHub gives to headings: repeated ones are numbered ``-1``, ``-2``, …."""
    counts: dict[str, int] = {}
    slugs = []
    for heading in headings:
        kept = (c for c in heading.title.lower() if c.isalnum() or c in " -_")
        slug = "".join(kept).replace(" ", "-")
        n = counts.get(slug, 0)
        counts[slug] = n + 1
        slugs.append(f"{slug}-{n}" if n else slug)
    return slugs


def _find_lines(document: Document, lines: tuple[int, int]) -> Span:
    span = _line_span(document, lines)
    if span is None:
        n_lines = document.text.count("\n") + (not document.text.endswith("\n"))
        raise NotFoundError(
            f"lines {lines[0]}-{lines[1]} are beyond its end (it has {n_lines:,} lines)"
        )
    start, end = _trimmed(document, span)
    if start == end:
        raise NotFoundError(f"lines {lines[0]}-{lines[1]} are blank")
    return start, end


def _line_span(document: Document, lines: tuple[int, int]) -> Span | None:
    """The characters of some lines; None where the document is shorter.

    Raises:
        NotFoundError: For lines that no document has: below 1, or the last before the first.
    """
    first, last = lines
    if not 1 <= first <= last:
        raise NotFoundError(f"lines {first}-{last} are none: write first-last, counted from 1")
    starts = [0, *(match.end() for match in re.finditer("\n", document.text))]
    if starts[-1] == len(document.text) and len(starts) > 1:
        starts.pop()
    if last > len(starts):
        return None
    end = starts[last] if last < len(starts) else len(document.text)
    return starts[first - 1], end


def _nearest(found: Sequence[Span], near: Sequence[Span]) -> Span:
    """Of several spans the one nearest to any of some others; of equally near ones the first."""
    if not near:
        return found[0]
    return min(found, key=lambda span: min(_distance(span, other) for other in near))


def _distance(one: Span, other: Span) -> int:
    """Characters between two spans; 0 when they touch."""
    return max(0, other[0] - one[1], one[0] - other[1])


def _trimmed(document: Document, span: Span) -> Span:
    start, end = span
    text = document.text[start:end]
    first = start + len(text) - len(text.lstrip())
    return first, max(first, start + len(text.rstrip()))


def _short(text: str) -> str:
    words = " ".join(text.split())
    return f'"{words}"' if len(words) <= 60 else f'"{words[:59]}…"'
