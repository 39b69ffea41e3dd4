"""Python source: definitions as headings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from rag_tui.engine.documents.parts import Loaded
from rag_tui.engine.types import Heading


def convert_python(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """The source unchanged, with classes, functions (level 2) and methods (level 3) as headings.

    A heading begins at the first decorator and has no lines of its own: the signature stays part
    of the text. Source of another Python version has no headings.
    """
    text = raw.decode("utf-8", "surrogatepass")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "") or str(error)
        return Loaded(text, "code", notes=(f"no definitions found: {reason}",))
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return Loaded(text, "code", headings=tuple(_definitions(tree.body, 2, starts)))


def _definitions(body: list[ast.stmt], level: int, starts: list[int]) -> Iterator[Heading]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            at = starts[first - 1]
            yield Heading(level, node.name, at, at)
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, min(level + 1, 6), starts)
