"""HTML as Markdown: the main text, without menus and scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_tui.engine.documents.parts import Loaded, one_line

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import Tag

_NEVER_TEXT = (
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "nav",
    "button", "input", "select", "textarea", "dialog", "img", "picture", "video", "audio",
)  # fmt: skip
_NEVER_SHOWN = (
    "[hidden], [aria-hidden=true], [role=navigation], [role=search], .mw-editsection, "
    "a.headerlink, a.anchor"
)
_MAIN_SHARE = 0.25
# text that would be a heading, a rule or a fence at the start of a line
_MARKUP_LINE = re.compile(r"^([ \t]*)(#{1,6}[ \t]|[=-]{2,}[ \t]*$|```|~~~)", re.MULTILINE)


def convert_html(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """The main text of a page as Markdown.

    ``main`` (or the only ``article``) is taken when it holds at least a quarter of the page's
    text, else the whole body; navigation, scripts, forms' fields, hidden parts, pictures, and
    the page's own footer and sidebars are left out. Links keep their text, not their address.
    """
    text, title = html_to_markdown(raw.decode("utf-8", "surrogatepass"))
    return Loaded(text, "html", is_markdown=True, title=title)


def html_to_markdown(html: str) -> tuple[str, str]:
    """Markdown of a page's main text, and the page's title."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    title = one_line(soup.title.get_text()) if soup.title else ""
    main = _main_part(soup)
    first, *others = [one_line(h.get_text()) for h in main.find_all("h1")] or [""]
    # one heading of the first level is the title, without what site generators add to it
    return _markdown(main), title if others or not first else first


def _main_part(soup: BeautifulSoup) -> Tag:
    for tag in soup.find_all(["head", "title", *_NEVER_TEXT]):
        tag.decompose()
    for tag in soup.select(_NEVER_SHOWN):
        tag.decompose()
    for tag in soup.find_all(["header", "footer", "aside"]):
        is_of_page = tag.find_parent(["main", "article", "section"]) is None
        if is_of_page and not (tag.name == "header" and tag.find("h1")):
            tag.decompose()
        elif tag.name == "header":
            for menu in tag.find_all(["ul", "ol", "menu"]):
                menu.decompose()
    body = soup.body or soup
    found = soup.select("main, [role=main]")
    articles = soup.find_all("article")
    candidates = [*found[:1], *(articles if len(articles) == 1 else [])]
    n_all = len(body.get_text())
    for tag in candidates:
        if len(tag.get_text()) >= _MAIN_SHARE * n_all:
            return tag
    return body


def _markdown(tag: Tag) -> str:
    from markdownify import ATX, MarkdownConverter

    class _Plain(MarkdownConverter):  # type: ignore[misc,unused-ignore]
        """Words as they are: an escaped underscore would split an identifier in two."""

        def escape(self, text: str, _parent_tags: Any) -> str:
            return _MARKUP_LINE.sub(r"\1\\\2", text)

    converter = _Plain(
        heading_style=ATX,
        bullets="-",
        strip=["a"],
        table_infer_header=True,
        code_language_callback=_code_language,
    )
    text: str = converter.convert_soup(tag)
    lines = (line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _code_language(tag: Tag) -> str:
    inner = tag.find("code") or tag
    for name in [*(inner.get("class") or []), *(tag.get("class") or [])]:
        for prefix in ("language-", "lang-"):
            if str(name).startswith(prefix):
                return str(name).removeprefix(prefix)
    return ""
