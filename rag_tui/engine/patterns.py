"""Regular expressions that people type, searched for with a limit: none can hang a program."""

from __future__ import annotations

import time
from typing import Any

from rag_tui.engine.errors import UsageError
from rag_tui.engine.types import Chunk

PATTERN_TIMEOUT_S = 0.5
"""Seconds a pattern may look at one chunk: a pattern that backtracks would never end."""
PATTERN_BUDGET_S = 2.0
"""Seconds it may look at all chunks together: many slow chunks are as bad as an endless one."""

_SIMPLER = "Write a simpler one, without a repetition inside a repetition such as (a+)+."


class Pattern:
    """A regular expression, ready, with what is left of its time; one for each search.

    ``^`` and ``$`` stand for line ends.

    Args:
        source: The expression.
        name: What messages call it, e.g. ``/a+/``.
        hint: What to do when it cannot be read.
        ignore_case: Whether letter case is ignored.

    Raises:
        UsageError: When it cannot be read.
    """

    def __init__(self, source: str, *, name: str, hint: str, ignore_case: bool = False) -> None:
        import regex

        flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
        try:
            self._compiled: Any = regex.compile(source, flags)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            # Flags that exclude each other, and nesting deeper than the library's parser goes.
            raise UsageError(f"{name} is no regular expression: {error}.", hint) from error
        self._name = name
        self._left_s = PATTERN_BUDGET_S

    def found_in(self, chunk: Chunk) -> bool:
        """Whether it is found in the chunk's text.

        Raises:
            UsageError: After `PATTERN_TIMEOUT_S` on this chunk, or `PATTERN_BUDGET_S` on all.
        """
        limit = min(PATTERN_TIMEOUT_S, self._left_s)
        started = time.perf_counter()
        try:
            # Concurrent: a search that takes its time does not hold up other threads.
            found = self._compiled.search(chunk.text, timeout=limit, concurrent=True)
        except TimeoutError as error:
            if limit < PATTERN_TIMEOUT_S:
                raise self._over_budget() from error
            raise UsageError(
                f"{self._name} takes more than {PATTERN_TIMEOUT_S:g} s on {chunk.location}.",
                _SIMPLER,
            ) from error
        self._left_s -= time.perf_counter() - started
        if self._left_s <= 0:
            raise self._over_budget()
        return found is not None

    def _over_budget(self) -> UsageError:
        return UsageError(
            f"{self._name} takes more than {PATTERN_BUDGET_S:g} s on these chunks.", _SIMPLER
        )
