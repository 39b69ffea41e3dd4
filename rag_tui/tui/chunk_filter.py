"""What is typed into the filter line of the Chunks screen: words, a pattern, and prefixed terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_tui.engine.index import Index
from rag_tui.engine.patterns import Pattern
from rag_tui.engine.types import Chunk

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_WHERE = re.compile(r"(?:^|\s)where:")
_TERM = re.compile(r'(?:^|(?<=\s))(path|heading|warning):("[^"]*"|\S+)\s*')


@dataclass(frozen=True, slots=True)
class ChunkFilter:
    """A filter line, taken apart. All parts that are set must hold."""

    text: str = ""
    """Plain text, letter case ignored, looked for in text, path and headings."""
    pattern: str = ""
    """A regular expression looked for in the text; ``^`` and ``$`` stand for line ends."""
    path: str = ""
    """Part of the path, letter case ignored."""
    heading: str = ""
    """Part of the heading path, letter case ignored."""
    warning: str = ""
    """The kind of a finding, or the beginning of its name."""
    where: str = ""
    """An expression of `rag_tui.engine.filters`, as searches take it."""


def parse_filter(line: str) -> ChunkFilter:
    """Take a filter line apart.

    ``path:x``, ``heading:x`` and ``warning:x`` (values with spaces in double quotes) and, at the
    end, ``where: expression`` are terms of their own. What is left is a regular expression if it
    stands between slashes, else plain text; nothing in it is ever a syntax error. A line that
    begins with a double quote is plain text without any terms.

    Raises:
        UsageError: When the regular expression cannot be read.
    """
    if line.startswith('"'):
        return ChunkFilter(text=line.strip('"'))
    where = ""
    if (found := _WHERE.search(line)) is not None:
        line, where = line[: found.start()], line[found.end() :].strip()
    terms: dict[str, str] = {}

    def take(match: re.Match[str]) -> str:
        terms[match[1]] = match[2].strip('"')
        return ""

    rest = _TERM.sub(take, line)
    if terms or where:
        rest = rest.strip()
    if len(rest) > 2 and rest[0] == rest[-1] == "/":
        compiled(rest[1:-1])
        return ChunkFilter(pattern=rest[1:-1], where=where, **terms)
    return ChunkFilter(text=rest, where=where, **terms)


def compiled(pattern: str) -> Pattern:
    """The pattern, ready to search with a time limit.

    Raises:
        UsageError: When it cannot be read.
    """
    return Pattern(
        pattern,
        name=f"/{pattern}/",
        hint="Put a backslash before characters that stand for themselves.",
        ignore_case=True,
    )


def chunk_test(wanted: ChunkFilter) -> Callable[[Chunk], bool]:
    """Whether a chunk holds what is asked of its text, path and headings.

    The test raises `UsageError` when a pattern takes too long on one chunk, or on all so far.
    """
    text, path, heading = (part.casefold() for part in (wanted.text, wanted.path, wanted.heading))
    pattern = compiled(wanted.pattern) if wanted.pattern else None

    def holds(chunk: Chunk) -> bool:
        return (
            (not path or path in chunk.doc_id.casefold())
            and (not heading or heading in chunk.context.casefold())
            and (not text or _mentions(chunk, text))
            and (pattern is None or pattern.found_in(chunk))
        )

    return holds


def allowed(where: str, index: Index) -> npt.NDArray[np.bool_] | None:
    """Which chunks an expression over metadata allows, bool ``(n_chunks,)``; None for all.

    Raises:
        UsageError: When the expression cannot be read.
    """
    from rag_tui.engine.filters import where_mask

    return where_mask(where, index)


def kinds_meant(name: str, kinds: Sequence[str]) -> frozenset[str]:
    """The kinds of findings that a name stands for: itself, else all that begin like it.

    Spaces, hyphens and underscores are the same.
    """
    wanted = _plain(name)
    exact = [kind for kind in kinds if _plain(kind) == wanted]
    return frozenset(exact or [kind for kind in kinds if _plain(kind).startswith(wanted)])


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _mentions(chunk: Chunk, needle: str) -> bool:
    return (
        needle in chunk.text.casefold()
        or needle in chunk.doc_id.casefold()
        or needle in chunk.context.casefold()
    )
