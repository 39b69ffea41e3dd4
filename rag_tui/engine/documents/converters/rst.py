"""reStructuredText: the source as it is, with docutils' view of its sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rag_tui.engine.documents.parts import INSTALL_FORMATS, Loaded, one_line
from rag_tui.engine.types import Heading

_RULE = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")
# nothing is read from other files or the network, and no report is printed
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 6,
    "doctitle_xform": False,
    "input_encoding": "unicode",
}


def convert_rst(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """The text unchanged; without docutils it has no headings, and says so."""
    text = raw.decode("utf-8", "surrogatepass")
    try:
        titles = list(_section_titles(text))
    except ModuleNotFoundError:
        note = f"headings need docutils: {INSTALL_FORMATS}"
        return Loaded(text, "rst", notes=(note,), is_partial=True)
    headings = tuple(_locate(text, titles))
    first, *others = [h.title for h in headings if h.level == 1] or [""]
    return Loaded(text, "rst", title="" if others else first, headings=headings)


def _section_titles(text: str) -> Iterator[tuple[int, str, str]]:
    """Level, source and plain title of every section, in order."""
    from docutils import nodes
    from docutils.core import publish_doctree

    tree = publish_doctree(text, settings_overrides=_SETTINGS)
    for section in tree.findall(nodes.section):
        title = section.next_node(nodes.title)
        if title is None:
            continue
        level = 1
        parent = section.parent
        while parent is not None:
            level += isinstance(parent, nodes.section)
            parent = parent.parent
        yield min(level, 6), title.rawsource or title.astext(), one_line(title.astext())


def _locate(text: str, titles: list[tuple[int, str, str]]) -> Iterator[Heading]:
    """Docutils keeps no line numbers of titles: each is the next line like it with a rule below."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    at = 0
    for level, source, title in titles:
        for number in range(at, len(lines) - 1):
            if lines[number].strip() != source.strip() or not _RULE.match(lines[number + 1]):
                continue
            has_rule_above = number > at and _RULE.match(lines[number - 1])
            first = number - 1 if has_rule_above else number
            yield Heading(level, title, starts[first], min(starts[number + 2], len(text)))
            at = number + 2
            break
