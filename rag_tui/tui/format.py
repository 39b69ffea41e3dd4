"""Display text for Textual: `rag_tui.display`, and the one thing that needs Textual itself."""

from __future__ import annotations

from textual.content import Content

from rag_tui.display import (
    ELLIPSIS,
    TAB,
    bar,
    clip,
    count,
    display,
    duration,
    fit,
    one_line,
    plain,
    score,
)

__all__ = [
    "ELLIPSIS",
    "TAB",
    "bar",
    "clip",
    "content",
    "count",
    "display",
    "duration",
    "fit",
    "one_line",
    "plain",
    "score",
]


def content(text: str, style: str = "", *, newlines: bool = False) -> Content:
    """A foreign string as Textual content, for all other widgets and titles; never markup."""
    shown = display(text, newlines=newlines)
    return Content.styled(shown, style) if style else Content(shown)
