"""The outline and blocks of a Markdown text, as a CommonMark parser sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from rag_tui.engine.types import Block, BlockKind, Heading

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_KINDS: dict[str, BlockKind] = {
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "html_block": "html",
    "blockquote_open": "quote",
    "admonition_open": "quote",
}
_TAB_MARKS = ('=== "', "=== '", '===! "', '===+ "')


@dataclass(frozen=True, slots=True)
class Structure:
    """What a Markdown text is made of, with character offsets into the whole text."""

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    """Tables, code, lists, HTML and quotes of the text itself, ascending, whole lines without the
    blank lines after them. What is inside a list, quote or admonition is part of it."""


def outline(text: str, *, start: int = 0) -> tuple[Heading, ...]:
    """The headings alone; see `structure`."""
    return structure(text, start=start).headings


def structure(text: str, *, start: int = 0) -> Structure:
    r"""The headings of a text in order, ATX and setext, levels 1 to 6, and its blocks.

    Only headings of the text itself count, not those inside quotes, lists, admonitions, code or
    HTML. Bold lines are text. Titles are plain: inline markup, comments, closing hashes and an
    attribute block at the end (``{ #id }``) are removed. Tables are those of GitHub, admonitions
    those of MkDocs (``!!! note``, ``??? tip``, ``=== "tab"``) with indented content.

    Args:
        text: A document's text with ``\n`` line ends.
        start: Where parsing begins, at the start of a line: just after front matter.
    """
    body = text[start:]
    tokens = _block_parser().parse(body)
    line_starts = _line_starts(body)
    headings: list[Heading] = []
    blocks: list[Block] = []
    tab_line = -2
    for token, following in pairwise([*tokens, *tokens[-1:]]):
        if token.level != 0 or not token.map:
            continue
        first, after = token.map
        at, end = start + line_starts[first], start + line_starts[min(after, len(line_starts) - 1)]
        if token.type == "heading_open":
            title = plain_title(following.content)
            headings.append(Heading(int(token.tag[1:]), title, at, end))
        elif token.type == "paragraph_open":
            last = text[start + line_starts[after - 1] : end]
            tab_line = len(blocks) if last.startswith(_TAB_MARKS) else -2
        elif token.type == "code_block" and tab_line == len(blocks):
            # the indented content of a tab is text, and more of it may follow
            continue
        elif kind := _KINDS.get(token.type):
            end = at + len(text[at:end].rstrip())
            end = min(end + 1, len(text))
            blocks.append(Block(kind, at, end, _header_end(token, at, end, text)))
    return Structure(tuple(headings), tuple(blocks))


def _header_end(token: Token, at: int, end: int, text: str) -> int:
    if token.type == "fence":
        return min(text.find("\n", at) + 1 or end, end)
    if token.type == "table_open":
        names_end = text.find("\n", at) + 1
        return min(text.find("\n", names_end) + 1 or end, end)
    return 0


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
    from mdit_py_plugins.admon import admon_plugin

    parser = MarkdownIt("commonmark").enable("table").use(admon_plugin)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")
