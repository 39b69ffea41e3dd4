"""Which chunks a filter allows: applied before anything is ranked, in every list alike.

Keys, none of which minds capitals:

=========== ==============================================================================
``path``     the document's path in the corpus folder
``title``    the document's title
``heading``  the title and each heading above the chunk; one of them must fit
``format``   ``markdown``, ``text``, ``pdf`` …
``page``     the page the chunk begins on
``line``     each of the chunk's lines; one of them must fit (``line=42``: the chunk with line 42)
``modified`` the file's modification time, UTC
any other    that key of the document's metadata (front matter); ``meta.title`` is the
             metadata's own ``title``, and ``tag`` also reads ``tags``
=========== ==============================================================================

``=`` and ``in`` compare whole values, ``~`` is a pattern for the whole value in which ``*`` is any
text (slashes too), ``?`` one character and ``[ab]`` one of some. A metadata value that is a list
(``a, b``) fits when the whole or one element does. Paths are compared exactly, all other text
without regard to capitals; both in Unicode's composed form. ``<`` and its kin compare numbers, else
dates; a date without a day or a time of day is the whole month or day: ``modified>2026-01`` begins
with February. ``!=``, ``!~`` and ``not in`` allow exactly what ``=``, ``~`` and ``in`` do not, and
so also chunks that lack the key; no other test allows those.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import translate
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from rag_tui.engine.errors import UsageError
from rag_tui.engine.filter_language import (
    BUILT_IN_KEYS,
    EXAMPLE,
    And,
    Filter,
    Not,
    Or,
    Test,
    combine,
    parse,
    split_query,
)
from rag_tui.engine.filter_values import (
    Period,
    compare_numbers,
    compare_times,
    read_number,
    read_period,
)
from rag_tui.engine.types import Chunk, Document

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

__all__ = [
    "EXAMPLE",
    "ChunkColumns",
    "Filter",
    "Mask",
    "combine",
    "keys_of",
    "mask",
    "parse",
    "split_query",
    "where_mask",
]

Mask = npt.NDArray[np.bool_]
_Value = TypeVar("_Value", bound=Hashable)
_OPPOSITE = {"!=": "=", "!~": "~", "not in": "in"}
_META = "meta."


@dataclass(frozen=True, slots=True, eq=False)
class ChunkColumns:
    """What filters read of chunks, as non-writeable arrays of ``(n_chunks,)``."""

    document: npt.NDArray[np.int32]
    """Place of the chunk's document in the index."""
    heading: npt.NDArray[np.int32]
    """Place of its heading path in ``heading_paths``."""
    heading_paths: tuple[tuple[str, ...], ...]
    line_start: npt.NDArray[np.int32]
    line_end: npt.NDArray[np.int32]
    page: npt.NDArray[np.int32]
    """0 where there is none."""

    @classmethod
    def of(cls, documents: Sequence[Document], chunks: Sequence[Chunk]) -> ChunkColumns:
        """The columns of an index's chunks."""
        number = {document.doc_id: i for i, document in enumerate(documents)}
        paths: dict[tuple[str, ...], int] = {}
        return cls(
            document=_column(number[c.doc_id] for c in chunks),
            heading=_column(paths.setdefault(c.heading_path, len(paths)) for c in chunks),
            heading_paths=tuple(paths),
            line_start=_column(c.line_start for c in chunks),
            line_end=_column(c.line_end for c in chunks),
            page=_column(c.page or 0 for c in chunks),
        )


def where_mask(text: str, index: Index) -> Mask | None:
    """`mask` of a filter as typed; None for a blank one, which allows everything.

    Raises:
        UsageError: When it cannot be parsed, or names a key that this index does not have.
    """
    return mask(parse(text), index) if text.strip() else None


def mask(where: Filter, index: Index) -> Mask:
    """Which chunks a filter allows: bool ``(n_chunks,)``, by position.

    Every test is made once per document, heading path or line column, not once per chunk.

    Raises:
        UsageError: When a key is neither built in nor in any document's metadata.
    """
    match where:
        case And(operands):
            return reduce(np.logical_and, (mask(operand, index) for operand in operands))
        case Or(operands):
            return reduce(np.logical_or, (mask(operand, index) for operand in operands))
        case Not(operand):
            return ~mask(operand, index)
        case Test(key, "!=" | "!~" | "not in" as operator, values, column):
            positive = _OPPOSITE[operator]
            return ~_test(Test(key, positive, values, column), index)  # type: ignore[arg-type]
        case Test():
            return _test(where, index)


def keys_of(index: Index) -> tuple[str, ...]:
    """The keys a filter may name: the built-in ones, then those of metadata, ascending."""
    own = {_folded(key) for document in index.documents for key in document.metadata}
    return (*BUILT_IN_KEYS, *sorted(own - set(BUILT_IN_KEYS)))


def _test(test: Test, index: Index) -> Mask:
    columns = index.chunk_columns
    key = _folded(test.key)
    match key:
        case "path":
            fits = _text_test(test, _composed)
            return _of_documents(index, [fits(d.doc_id) for d in index.documents])
        case "title":
            fits = _text_test(test, _folded)
            return _of_documents(index, [fits(d.title) for d in index.documents])
        case "format":
            fits = _text_test(test, _folded)
            return _of_documents(index, [fits(d.format) for d in index.documents])
        case "heading":
            fits = _remembered(_text_test(test, _folded))
            by_path = [any(fits(heading) for heading in path) for path in columns.heading_paths]
            return _bools(by_path)[columns.heading]
        case "modified":
            fits_time = _modified_test(test)
            return _of_documents(index, [fits_time(d) for d in index.documents])
        case "page":
            return _numbers_fit(test, columns.page, columns.page) & (columns.page > 0)
        case "line":
            return _numbers_fit(test, columns.line_start, columns.line_end)
        case _:
            return _metadata_test(key.removeprefix(_META), test, index)


def _metadata_test(key: str, test: Test, index: Index) -> Mask:
    names = (key, f"{key}s")
    if not any(_folded(k) in names for d in index.documents for k in d.metadata):
        raise _unknown(test, index)
    ordered = test.operator in ("<", "<=", ">", ">=")
    fits = _remembered(_ordered_test(test) if ordered else _value_test(test))
    return _of_documents(
        index,
        [
            any(
                fits(element)
                for name, value in document.metadata.items()
                if _folded(name) in names
                for element in _elements(value)
            )
            for document in index.documents
        ],
    )


def _unknown(test: Test, index: Index) -> UsageError:
    keys = keys_of(index)
    near = get_close_matches(_folded(test.key), keys, n=1, cutoff=0.5)
    guess = f"Did you mean {near[0]}? " if near else ""
    listed = ", ".join(keys[:40]) + (f" and {len(keys) - 40} more" if len(keys) > 40 else "")
    return UsageError(
        f"The filter names {test.key!r} at column {test.column}, which no document here has.",
        f"{guess}There are: {listed}.",
    )


def _text_test(test: Test, normal: Callable[[str], str]) -> Callable[[str], bool]:
    """Whether one text fits ``=``, ``in`` or ``~``, in the normal form of both sides."""
    if test.operator == "~":
        pattern = re.compile(translate(normal(test.values[0])))
        return lambda text: pattern.match(normal(text)) is not None
    wanted = {normal(value) for value in test.values}
    return lambda text: normal(text) in wanted


def _value_test(test: Test) -> Callable[[str], bool]:
    """As `_text_test`, and a date also fits the month or year it lies in."""
    fits_text = _text_test(test, _folded)
    if test.operator == "~":
        return fits_text
    periods = [period for value in test.values if (period := read_period(value)) is not None]

    def fits(text: str) -> bool:
        if fits_text(text):
            return True
        when = read_period(text) if periods else None
        return when is not None and any(compare_times(when, "=", period) for period in periods)

    return fits


def _ordered_test(test: Test) -> Callable[[str], bool]:
    limit, period = read_number(test.values[0]), read_period(test.values[0])

    def fits(text: str) -> bool:
        number = read_number(text)
        if limit is not None and number is not None:
            return compare_numbers(number, test.operator, limit)
        when = read_period(text)
        return (
            period is not None and when is not None and compare_times(when, test.operator, period)
        )

    return fits


def _modified_test(test: Test) -> Callable[[Document], bool]:
    periods = [period for value in test.values if (period := read_period(value)) is not None]

    def fits(document: Document) -> bool:
        when = Period(document.modified, document.modified)
        return bool(document.modified) and any(
            compare_times(when, test.operator, period) for period in periods
        )

    return fits


def _numbers_fit(test: Test, first: npt.NDArray[np.int32], last: npt.NDArray[np.int32]) -> Mask:
    """Chunks of which a number between first and last, both included, fits."""
    limits = [float(value) for value in test.values]
    match test.operator:
        case "<":
            return first < limits[0]
        case "<=":
            return first <= limits[0]
        case ">":
            return last > limits[0]
        case ">=":
            return last >= limits[0]
        case _:
            found = np.zeros(first.shape, np.bool_)
            for number in limits:
                if number.is_integer():
                    found |= (first <= number) & (last >= number)
            return found


def _elements(value: str) -> tuple[str, ...]:
    """A metadata value and, where it is a list, its elements."""
    parts = tuple(part.strip() for part in value.split(","))
    return (value.strip(), *parts) if len(parts) > 1 else (value.strip(),)


def _of_documents(index: Index, fits: Sequence[bool]) -> Mask:
    return _bools(fits)[index.chunk_columns.document]


def _bools(values: Sequence[bool]) -> Mask:
    return np.asarray(values, dtype=np.bool_)


def _column(values: Iterable[int]) -> npt.NDArray[np.int32]:
    column = np.fromiter(values, dtype=np.int32)
    column.setflags(write=False)
    return column


def _remembered(fits: Callable[[_Value], bool]) -> Callable[[_Value], bool]:
    known: dict[_Value, bool] = {}

    def fits_once(value: _Value) -> bool:
        if value not in known:
            known[value] = fits(value)
        return known[value]

    return fits_once


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())
