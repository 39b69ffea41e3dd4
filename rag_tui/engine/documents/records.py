"""Rows and JSON records: each becomes a few ``name: value`` lines."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from rag_tui.engine.documents.parts import Loaded, Part, UnusableFileError, join_parts
from rag_tui.engine.documents.settings import LoadSettings
from rag_tui.engine.types import EMPTY

_MAX_PAGES = 5000
_MAX_CELL = 10_000_000
_SNIFF_CHARACTERS = 20_000
_TITLE_FIELDS = ("title", "name")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a JSON file."""

    number: int
    """1-based; of a JSONL file the line."""
    text: str
    title: str = ""
    record_id: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    source: str = ""
    """The record as written, or as one line of JSON: its hash tells whether it has changed."""


@dataclass(frozen=True, slots=True)
class Records:
    """A JSON file's records in order, and what was wrong with others."""

    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()


def load_csv(text: str, *, is_tab: bool = False) -> Loaded:
    """Rows as records under the names of the first row, one page a record.

    The delimiter is found by `csv.Sniffer` among comma, tab, semicolon and bar. A first row with
    empty, equal or numeric cells is no header: columns are numbered then. Of more than 5,000
    records several share a page.

    Raises:
        UnusableFileError: When it cannot be read as a table.
    """
    csv.field_size_limit(_MAX_CELL)
    dialect = _dialect(text, is_tab=is_tab)
    try:
        rows = [row for row in csv.reader(StringIO(text, newline=""), dialect) if any(row)]
    except csv.Error as error:
        raise UnusableFileError(f"not a readable table: {error}", state="failed") from error
    names, rows = table_header(rows)
    records = [table_record(names, row) for row in rows] or [", ".join(names)]
    n_long = sum(len(row) > len(names) for row in rows)
    verb = "rows have" if n_long > 1 else "row has"
    notes = (f"{n_long} {verb} more cells than the first",) if n_long else ()
    text, pages = join_parts(grouped(records, "row"))
    return Loaded(text, "csv", pages=pages, notes=notes)


def table_header(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The column names, and the rows below them."""
    if not rows:
        return [], []
    first = [cell.strip() for cell in rows[0]]
    if all(first) and len(set(first)) == len(first) and not any(map(_is_number, first)):
        return first, rows[1:]
    return [f"column {i}" for i in range(1, len(first) + 1)], rows


def table_record(names: Sequence[str], row: Sequence[str]) -> str:
    """``name: value`` lines of the cells that are not empty."""
    more = [f"column {i}" for i in range(len(names) + 1, len(row) + 1)]
    cells = zip([*names, *more], row, strict=False)
    return "\n".join(f"{name}: {cell.strip()}" for name, cell in cells if cell.strip())


def grouped(records: Sequence[str], word: str) -> Iterator[Part]:
    """Records as parts, several in one where there would be too many pages."""
    size = -(-len(records) // _MAX_PAGES) or 1
    for at in range(0, len(records), size):
        group = records[at : at + size]
        last = at + len(group)
        label = f"{word} {last}" if len(group) == 1 else f"{word}s {at + 1}-{last}"
        yield Part("\n\n".join(group), label)


def read_json(text: str, settings: LoadSettings) -> Records:
    """The records of a JSON file.

    They are the items of a list, or of the only list in an object of otherwise plain values;
    else the whole is one record.

    Raises:
        UnusableFileError: When it is not JSON.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise UnusableFileError(f"not valid JSON: {reason}", state="failed") from error
    items = _items(value)
    return Records(
        tuple(
            _record(number, item, settings, json.dumps(item, ensure_ascii=True))
            for number, item in enumerate(items, start=1)
        )
    )


def read_jsonl(text: str, settings: LoadSettings) -> Records:
    """One record a line; lines that are not JSON are left out and named.

    Raises:
        UnusableFileError: When no line is JSON.
    """
    records: list[Record] = []
    bad: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(number, json.loads(line), settings, line))
        except (ValueError, RecursionError):
            bad.append(number)
    if not records:
        raise UnusableFileError("no line is valid JSON", state="failed")
    notes: tuple[str, ...] = ()
    if bad:
        shown = ", ".join(map(str, bad[:3])) + (" …" if len(bad) > 3 else "")
        plural = "s" if len(bad) > 1 else ""
        notes = (f"{len(bad)} line{plural} not valid JSON, left out: {shown}",)
    return Records(tuple(records), notes)


def paged(found: Records, format_name: str) -> Loaded:
    """All records as one text, one page a record."""
    text, pages = join_parts(grouped([record.text for record in found.records], "record"))
    return Loaded(text, format_name, pages=pages, notes=found.notes, is_partial=bool(found.notes))


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists = [v for v in value.values() if isinstance(v, list) and v]
        has_objects = any(isinstance(v, dict) for v in value.values())
        if len(lists) == 1 and not has_objects and all(isinstance(v, dict) for v in lists[0]):
            return lists[0]
    return [value]


def _record(number: int, item: Any, settings: LoadSettings, source: str) -> Record:
    fields = item if isinstance(item, dict) else {}
    text_fields = settings.json_text_fields
    if text_fields and fields:
        values = [_field(item, name) for name in text_fields]
        text = "\n\n".join("\n".join(_lines(v, 0)) for v in values if v not in (None, ""))
    else:
        text = "\n".join(_lines(item, 0))
    title = next((fields[n] for n in _TITLE_FIELDS if isinstance(fields.get(n), str)), "")
    record_id = _field(item, settings.json_id_field) if settings.json_id_field else None
    metadata = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name in settings.json_metadata_fields
        if (value := _field(item, name)) is not None
    }
    return Record(
        number=number,
        text=text if text.strip() else title,
        title=title,
        record_id="" if record_id is None else str(record_id),
        metadata=metadata,
        source=source,
    )


def _field(item: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(item, dict):
            return None
        item = item.get(step)
    return item


def _lines(value: Any, depth: int) -> Iterator[str]:
    """Nested values as indented ``name: value`` lines; null and empty values are left out."""
    pad = "  " * depth
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, (dict, list)):
                if inner:
                    yield f"{pad}{name}:"
                    yield from _lines(inner, depth + 1)
            elif inner not in (None, ""):
                yield f"{pad}{name}: {_scalar(inner)}"
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, (dict, list)):
                lines = list(_lines(inner, depth + 1))
                if lines:
                    yield f"{pad}- {lines[0].lstrip(' ')}"
                    yield from lines[1:]
            elif inner not in (None, ""):
                yield f"{pad}- {_scalar(inner)}"
    elif value not in (None, ""):
        yield f"{pad}{_scalar(value)}"


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _dialect(text: str, *, is_tab: bool) -> type[csv.Dialect]:
    sample = text[:_SNIFF_CHARACTERS]
    cut = sample.rfind("\n")
    sample = sample[:cut] if cut > 0 and len(text) > _SNIFF_CHARACTERS else sample
    if not is_tab:
        counts = Counter(c for c in sample.split("\n", 1)[0] if c in ",\t;|")
        try:
            found = csv.Sniffer().sniff(sample, delimiters=",\t;|")
        except csv.Error:
            found = csv.excel
        # the sniffer is led astray by punctuation inside cells; the first row has its own say
        if counts and found.delimiter not in counts:
            found = csv.excel
        if counts and found is csv.excel and "," not in counts:
            return _Delimited.of(counts.most_common(1)[0][0])
        return _Delimited.of(found.delimiter)
    return csv.excel_tab


class _Delimited(csv.excel):
    """Excel's rules with another delimiter."""

    @classmethod
    def of(cls, delimiter: str) -> type[csv.Dialect]:
        return type("Delimited", (cls,), {"delimiter": delimiter})


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return False
    return True
