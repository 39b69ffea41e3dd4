"""Ids in TREC files: columns are separated by blanks, so no id may hold one."""

from __future__ import annotations

import re
from urllib.parse import unquote

from rag_tui.engine.errors import UsageError

_UNFIT = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPED = re.compile(r"[%\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def trec_id(name: str) -> str:
    """An id fit for a TREC file: as it is, or with blanks and controls percent-encoded.

    Only in an id that has such characters the percent sign is encoded too, so ids that are fine
    stay what other tools know them as.

    Raises:
        UsageError: When it is empty: a column without content cannot be told from none.
    """
    if not name:
        raise UsageError(
            "An empty id cannot be written to a TREC file.", "Give every question and document one."
        )
    if not _UNFIT.search(name):
        return name
    return _ESCAPED.sub(_encoded, name)


def plain_id(written: str) -> str:
    """The inverse for ids that were encoded; others may change, so try them as written first."""
    return unquote(written, errors="surrogateescape")


def _encoded(match: re.Match[str]) -> str:
    is_byte = "\udc80" <= match[0] <= "\udcff"
    raw = match[0].encode("utf-8", "surrogateescape" if is_byte else "replace")
    return "".join(f"%{byte:02X}" for byte in raw)
