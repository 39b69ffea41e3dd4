"""Which numbered sources an answer cites.

Read are ``[1]``, ``[1][2]``, ``[1, 2]``, ``[1; 3]``, ``[1-3]`` (any dash), ``[Source 2]`` and
``【2】``. Code is left alone, by CommonMark's rules for code spans and fences (CommonMark 0.31,
sections 4.5 and 6.1), and so is a bracket after a backslash.

Outside of marked code a bracket that touches a word may still be an index. It is taken for one
where it reads like nothing else: ``arr[0]`` (sources begin at 1), ``my_rows[1]``, ``rows[1].name``,
``f[1](x)``, ``x[1] = 3``; ``it[2].`` is a citation. A number beyond the sources is an unknown
citation whatever its size: a year in brackets is marked, not passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from rag_tui.engine.types import Answer, Citation

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212"
_ITEM = rf"(?:[Ss]ources?[ \t]*)?[0-9]{{1,18}}(?:[ \t]*[{_DASHES}][ \t]*[0-9]{{1,18}})?"
_ITEMS = rf"[ \t]*{_ITEM}(?:[ \t]*(?:[,;，、；&]|(?<=[ \t])and(?=[ \t]))[ \t]*{_ITEM})*[ \t]*"
_MARKER = re.compile(rf"\[{_ITEMS}\]|【{_ITEMS}】")
_RUN = re.compile(rf"(?:\[{_ITEMS}\]|【{_ITEMS}】)+")
# What stands behind an index and not behind a citation; and what may yet become that.
_AFTER_INDEX = re.compile(r"\.[^\W\d]|\(|[ \t]*[-+*/]?=")
_MAY_BE_INDEX = re.compile(r"(?:\.|[ \t]*[-+*/]?|[\[【][^\]】\n]*)\Z")
_WORD_BEFORE = re.compile(r"\w+\Z")
_LOOK_BACK = 100
_RANGE = re.compile(rf"([0-9]+)(?:[ \t]*[{_DASHES}][ \t]*([0-9]+))?")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})(.*)", re.DOTALL)
_FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})\s*")
_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"\\.|`+", re.DOTALL)
# What stands in for code in the text that is searched: no marker holds it, so that a marker
# cannot reach across code.
_MASK = "\0"


def find_citations(text: str, n_sources: int, *, is_complete: bool = True) -> tuple[Citation, ...]:
    """The citation markers of an answer, in the order of the text.

    Sources are numbered from 1 to ``n_sources``. Of a range that goes beyond them, the existing
    numbers are cited and the first and last missing one are unknown; a reversed range (``[3-1]``)
    cites nothing and both its ends are unknown.

    Args:
        text: The answer, or what has come of it.
        n_sources: How many sources the prompt has.
        is_complete: False while the text still grows: what stands behind a backtick that may yet
            open code is not decided then, so that a citation once reported stays. For the whole
            text the result is the same however it was cut.
    """
    searched = _without_code(text, is_complete=is_complete)
    return tuple(
        _citation(match.start(), match.end(), match[0], n_sources)
        for run in _RUN.finditer(searched)
        if not _is_index(searched, run.start(), run.end(), is_complete=is_complete)
        for match in _MARKER.finditer(searched, run.start(), run.end())
    )


def unknown_labels(text: str, citation: Citation, n_sources: int) -> tuple[str, ...]:
    """The parts of one marker that name no source, as a reader would write them: ``4-99``."""
    labels: list[str] = []
    for first, last in _ranges(text[citation.start : citation.end]):
        if first > last:
            labels.append(f"{first}-{last}")
            continue
        missing = _missing(first, last, n_sources)
        labels.extend(f"{low}-{high}" if low < high else f"{low}" for low, high in missing)
    return tuple(labels)


def unknown_of(answer: Answer, n_sources: int) -> tuple[str, ...]:
    """What an answer cites that no source has, each once, in the order of the text."""
    labels = (
        label
        for citation in answer.citations
        if citation.unknown
        for label in unknown_labels(answer.text, citation, n_sources)
    )
    return tuple(dict.fromkeys(labels))


def _is_index(text: str, start: int, end: int, *, is_complete: bool) -> bool:
    """Whether markers that touch each other index something, or may turn out to."""
    word = _WORD_BEFORE.search(text, max(start - _LOOK_BACK, 0), start)
    if word is None:
        return False
    if "_" in word[0] or re.search(r"[\[【][ \t]*0[ \t]*[\]】]", text[start:end]):
        return True
    if _AFTER_INDEX.match(text, end):
        return True
    return not is_complete and _MAY_BE_INDEX.match(text, end) is not None


def _citation(start: int, end: int, marker: str, n_sources: int) -> Citation:
    numbers: list[int] = []
    unknown: list[int] = []
    for first, last in _ranges(marker):
        if first > last:
            numbers += (first, last)
            unknown += (first, last)
            continue
        missing = _missing(first, last, n_sources)
        ends = [edge for low, high in missing for edge in ((low, high) if low < high else (low,))]
        known = range(max(first, 1), min(last, n_sources) + 1)
        numbers += sorted((*known, *ends))
        unknown += ends
    return Citation(start, end, tuple(numbers), tuple(unknown))


def _ranges(marker: str) -> Iterator[tuple[int, int]]:
    for first, last in _RANGE.findall(marker):
        yield int(first), int(last or first)


def _missing(first: int, last: int, n_sources: int) -> list[tuple[int, int]]:
    """The stretches of a range outside 1 to ``n_sources``, both ends inclusive."""
    below = (first, min(last, 0))
    above = (max(first, n_sources + 1), last)
    return [(low, high) for low, high in (below, above) if low <= high]


def _without_code(text: str, *, is_complete: bool) -> str:
    """The text, equally long, with code and escaped characters masked."""
    pieces: list[str] = []
    paragraph: list[str] = []
    fence = ""

    def end_paragraph(*, is_ended: bool) -> None:
        pieces.append(_without_code_spans("".join(paragraph), is_ended=is_ended))
        paragraph.clear()

    for line in _LINE.findall(text):
        is_whole = is_complete or line.endswith("\n")
        if fence:
            pieces.append(_MASK * len(line))
            end = _FENCE_END.fullmatch(line)
            fence = "" if end and end[1].startswith(fence) else fence
            continue
        match = _FENCE.match(line)
        if match and is_whole and not (match[1][0] == "`" and "`" in match[2]):
            end_paragraph(is_ended=True)
            pieces.append(_MASK * len(line))
            fence = match[1]
        elif is_whole and not line.strip():
            end_paragraph(is_ended=True)
            pieces.append(line)
        else:
            # An unfinished line that may become the start of a fence is not decided yet.
            is_open = match is not None and not is_whole
            paragraph.append(_MASK * len(line) if is_open else line)
    end_paragraph(is_ended=is_complete)
    return "".join(pieces)


def _without_code_spans(paragraph: str, *, is_ended: bool) -> str:
    closers: defaultdict[int, list[int]] = defaultdict(list)
    for run in _BACKTICKS.finditer(paragraph):
        closers[len(run[0])].append(run.start())
    pieces: list[str] = []
    at = 0
    while special := _SPECIAL.search(paragraph, at):
        start, end = special.span()
        pieces.append(paragraph[at:start])
        if paragraph[start] == "\\":
            pieces.append(_MASK * (end - start))
        else:
            length = end - start
            starts = closers[length]
            following = bisect_left(starts, end)
            if following < len(starts):
                end = starts[following] + length
                pieces.append(_MASK * (end - start))
            elif not is_ended:
                return "".join(pieces) + _MASK * (len(paragraph) - start)
            else:
                pieces.append(special[0])
        at = end
    return "".join(pieces) + paragraph[at:]
