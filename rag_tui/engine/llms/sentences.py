"""Sentences of Markdown prose."""

from __future__ import annotations

import re
from collections.abc import Iterator


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of Markdown prose, in order, white space made single spaces.

    Paragraphs, list items and table rows end a sentence whatever they end with; headings, rules
    and fenced code are no sentences. Versions, decimals, abbreviations and initials do not end
    one.
    """
    return tuple(
        sentence
        for block in _blocks(text)
        for sentence in _split_block(block)
        if any(char.isalnum() for char in sentence)
    )


_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_NO_PROSE = re.compile(r"\s*(?:#{1,6}(?:\s|$)|[-=*_|:\s]+$)")
_MARK = re.compile(r"\s*(?:>\s?)*\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_ITEM = re.compile(r"\s*(?:>\s?)*\s*(?:[-*+]|\d{1,9}[.)])\s|\s*\|")
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_`]*(?=\s)|[。！？]+[”』」）]*")
_ABBREVIATIONS = frozenset(
    re.findall(r"\S+", "e.g i.e cf vs approx ca incl excl etc a.m p.m z.b d.h mr mrs ms dr prof st")
)
# These are whole words too; abbreviations only in front of a number.
_BEFORE_NUMBERS = frozenset(
    re.findall(
        r"\S+",
        "no nr fig eq sec ch vol p pp art ver v jan feb mar apr jun jul aug sep sept oct nov dec",
    )
)
# After these a capital letter does begin a sentence.
_MAY_END = frozenset({"etc", "a.m", "p.m"})


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and table rows as single lines."""
    lines: list[str] = []
    fence = ""
    for line in (*text.split("\n"), ""):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        is_break = not line.strip() or mark is not None or _NO_PROSE.match(line) is not None
        if (is_break or _ITEM.match(line)) and lines:
            yield " ".join(" ".join(lines).split())
            lines = []
        if mark:
            fence = mark[1]
        elif not is_break:
            lines.append(_MARK.sub("", line, count=1))


def _split_block(block: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(block):
        following = block[end.end() :].lstrip()
        is_wide = end[0][0] in "。！？"
        if not following or not (is_wide or _ends_sentence(block[start : end.end()], following)):
            continue
        yield block[start : end.end()].strip()
        start = end.end()
    if rest := block[start:].strip():
        yield rest


def _ends_sentence(so_far: str, following: str) -> bool:
    next_char = next((char for char in following if char not in "\"'“‘«([*_`"), "")
    if next_char.islower():
        return False
    stripped = so_far.rstrip("\"'”’»)]*_`")
    if not stripped.endswith(".") or stripped.endswith(".."):
        return True
    word = stripped[:-1].split()[-1].lstrip("\"'“‘«([*_`") if stripped[:-1].split() else ""
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    abbreviation = word.casefold()
    if abbreviation in _BEFORE_NUMBERS and next_char.isdigit():
        return False
    if is_initial or abbreviation in _ABBREVIATIONS:
        return abbreviation in _MAY_END and next_char.isupper()
    # "3. Turn the key": the number of a step, not the end of anything.
    return not (word.isdigit() and word == stripped[:-1].strip())
