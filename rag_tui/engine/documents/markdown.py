"""The outline of a Markdown text, as a CommonMark parser sees it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from rag_tui.engine.types import Heading

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


def outline(text: str, *, start: int = 0) -> tuple[Heading, ...]:
    r"""The headings of a text in order: ATX and setext, levels 1 to 6.

    Only headings of the text itself count, not those inside quotes, lists, code or HTML. Bold
    lines are text. Titles are plain: inline markup, comments, closing hashes and an attribute
    block at the end (``{ #id }``) are removed.

    Args:
        text: A document's text with ``\n`` line ends.
        start: Where parsing begins, at the start of a line: just after front matter.

    Returns:
        Headings with character offsets into ``text``.
    """
    body = text[start:]
    tokens = _block_parser().parse(body)
    line_starts = _line_starts(body)
    headings: list[Heading] = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            first, after = token.map
            headings.append(
                Heading(
                    level=int(token.tag[1:]),
                    title=plain_title(inline.content),
                    start=start + line_starts[first],
                    body_start=start + line_starts[min(after, len(line_starts) - 1)],
                )
            )
    return tuple(headings)


def plain_title(content: str) -> str:
    """The text of a heading's content without markup, on one line."""
    children = _inline_parser().parseInline(content)[0].children or []
    title = _plain(children)
    if children and children[-1].type == "text":
        title = _without_attributes(title)
    return " ".join(title.split())


def _plain(tokens: Iterable[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            parts.append(_plain(token.children or []))
        elif token.type != "html_inline":
            parts.append(token.content)
    return "".join(parts)


def _without_attributes(title: str) -> str:
    """Drop a trailing ``{ #id .class key=value }``, as many site generators write it."""
    opening = title.rfind("{")
    if opening < 0 or not title.rstrip().endswith("}"):
        return title
    parts = title[opening + 1 :].rstrip()[:-1].removeprefix(":").split()
    if not parts or not all((p[0] in "#." and len(p) > 1) or "=" in p for p in parts):
        return title
    return title[:opening]


def _line_starts(text: str) -> list[int]:
    """Character offset of each line, and at the end the length of the text."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    starts.append(len(text))
    return starts


@cache
def _block_parser() -> MarkdownIt:
    """Blocks only: parsing the inline text of a whole file takes most of the time."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")
