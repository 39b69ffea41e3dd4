"""Bytes become text: encodings, byte-order marks, line ends, and what is no text at all."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from rag_tui.engine.errors import CorpusError
from rag_tui.engine.types import FileState

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG picture"),
    (b"\xff\xd8\xff", "JPEG picture"),
    (b"GIF87a", "GIF picture"),
    (b"GIF89a", "GIF picture"),
    (b"PK\x03\x04", "ZIP archive or office file"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"%PDF-", "PDF"),
    (b"\x7fELF", "ELF program"),
    (b"\x1f\x8b", "gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old office file"),
    (b"SQLite format 3\x00", "SQLite database"),
)

_NULS_ALLOWED = 8
_NULS_PER_BYTE = 1000


class UnusableFileError(CorpusError):
    """One file that is not indexed; the others are not affected."""

    def __init__(self, reason: str, *, state: FileState, hint: str = "") -> None:
        super().__init__(reason, hint)
        self.state: FileState = state


@dataclass(frozen=True, slots=True)
class DecodedText:
    r"""A file's text with ``\n`` line ends and without its byte-order mark."""

    text: str
    notes: tuple[str, ...] = ()
    """What a reader should know, e.g. that the encoding was a guess."""
    is_exact: bool = True
    """False when characters may be wrong."""


def decode(raw: bytes) -> DecodedText:
    """The text of a file's bytes.

    UTF-8, and UTF-16 or UTF-32 with a byte-order mark, are read as such. Bytes that are not
    UTF-8 are read as UTF-8 with replacement signs where most of the other characters are
    UTF-8, else as Windows-1252 (Latin-1 where that has no character); a note says so.

    Raises:
        UnusableFileError: When the bytes are a known binary format or hold many NULs.
    """
    for mark, codec, name in _MARKS:
        if raw.startswith(mark):
            return _decode_marked(raw[len(mark) :], codec, name)
    for signature, kind in _SIGNATURES:
        if raw.startswith(signature):
            raise UnusableFileError(f"not text: {kind}", state="skipped")
    n_nul = raw.count(0)
    if n_nul > max(_NULS_ALLOWED, len(raw) // _NULS_PER_BYTE):
        raise UnusableFileError(
            f"not text: {n_nul:,} NUL bytes",
            state="skipped",
            hint="If it is UTF-16 text without a byte-order mark, save it as UTF-8.",
        )
    notes = (f"{n_nul} NUL byte{'s' if n_nul > 1 else ''} kept",) if n_nul else ()
    try:
        return DecodedText(_unix_lines(raw.decode("utf-8")), notes)
    except UnicodeDecodeError as error:
        text, note = _decode_damaged(raw, error)
        return DecodedText(_unix_lines(text), (*notes, note), is_exact=False)


def _decode_marked(raw: bytes, codec: str, name: str) -> DecodedText:
    try:
        return DecodedText(_unix_lines(raw.decode(codec)))
    except UnicodeDecodeError as error:
        note = f"not valid {name} at byte {error.start}: wrong characters replaced"
        return DecodedText(_unix_lines(raw.decode(codec, "replace")), (note,), is_exact=False)


def _decode_damaged(raw: bytes, error: UnicodeDecodeError) -> tuple[str, str]:
    replaced = raw.decode("utf-8", "replace")
    n_bad = replaced.count("\ufffd") - raw.count("\ufffd".encode())
    n_good = sum(not c.isascii() for c in replaced) - n_bad
    where = f"not UTF-8 at byte {error.start}"
    if n_good > n_bad:
        return replaced, f"{where}: {n_bad} wrong byte{'s' if n_bad > 1 else ''} replaced"
    try:
        return raw.decode("cp1252"), f"{where}: read as Windows-1252, some letters may be wrong"
    except UnicodeDecodeError:
        return raw.decode("latin-1"), f"{where}: read as Latin-1, some letters may be wrong"


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
