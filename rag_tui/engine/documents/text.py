"""Bytes become text: encodings, byte-order marks, line ends, and what is no text at all."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from unicodedata import category

from rag_tui.engine.documents.parts import UnusableFileError

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

# Without a mark: the widest first, for UTF-32 is also UTF-16 with NULs.
_WIDE = (
    ("utf-32-le", "UTF-32"),
    ("utf-32-be", "UTF-32"),
    ("utf-16-le", "UTF-16"),
    ("utf-16-be", "UTF-16"),
)
_NULS_ALLOWED = 1
_SAMPLE_BYTES = 100_000
_MULTIBYTE = frozenset(
    {"cp932", "shift_jis", "shift_jis_2004", "euc_jp", "cp949", "euc_kr", "johab", "big5",
     "big5hkscs", "cp950", "gb2312", "gbk", "gb18030", "hz", "iso2022_jp", "iso2022_kr"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DecodedText:
    r"""A file's text with ``\n`` line ends and without its byte-order mark."""

    text: str
    notes: tuple[str, ...] = ()
    """What a reader should know, e.g. that the encoding was a guess."""
    is_exact: bool = True
    """False when characters may be wrong."""


def decode(raw: bytes, *, declared: str = "") -> DecodedText:
    """The text of a file's bytes.

    UTF-8, and UTF-16 or UTF-32 with or without a byte-order mark, are read as such. Bytes that
    are not UTF-8 are read as UTF-8 with replacement signs where most of the other characters are
    UTF-8; else as the encoding that the file itself declares, else as the code page that
    charset-normalizer finds a language in, else as Windows-1252 (Latin-1 where that has no
    character). A note names what was chosen; it is exact unless there was nothing to go by.

    Args:
        raw: The whole file.
        declared: The encoding that the file names, if its format can.

    Raises:
        UnusableFileError: When the bytes are a known binary format or hold more than one NUL.
    """
    for mark, codec, name in _MARKS:
        if raw.startswith(mark):
            return _decode_marked(raw[len(mark) :], codec, name)
    for signature, kind in _SIGNATURES:
        if raw.startswith(signature):
            raise UnusableFileError(f"not text: {kind}", state="skipped")
    n_nul = raw.count(0)
    if n_nul > _NULS_ALLOWED:
        wide = _decode_wide(raw)
        if wide is not None:
            return wide
        raise UnusableFileError(f"not text: {n_nul:,} NUL bytes", state="skipped")
    notes = ("1 NUL byte kept",) if n_nul else ()
    try:
        return DecodedText(_unix_lines(raw.decode("utf-8")), notes)
    except UnicodeDecodeError as error:
        text, note, is_exact = _decode_other(raw, error, declared)
        return DecodedText(_unix_lines(text), (*notes, note), is_exact=is_exact)


def _decode_wide(raw: bytes) -> DecodedText | None:
    """UTF-16 or UTF-32 without a mark; None unless nearly every character is one of a text."""
    for codec, name in _WIDE:
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            continue
        sample = text[:_SAMPLE_BYTES]
        n_odd = sum(category(c)[0] == "C" and c not in "\t\n\r\f" for c in sample)
        n_plain = sum(c.isascii() for c in sample)
        if n_odd * 100 <= len(sample) and n_plain * 10 >= len(sample):
            return DecodedText(_unix_lines(text), (f"read as {name} without a byte-order mark",))
    return None


def _decode_marked(raw: bytes, codec: str, name: str) -> DecodedText:
    try:
        return DecodedText(_unix_lines(raw.decode(codec)))
    except UnicodeDecodeError as error:
        note = f"not valid {name} at byte {error.start}: wrong characters replaced"
        return DecodedText(_unix_lines(raw.decode(codec, "replace")), (note,), is_exact=False)


def _decode_other(raw: bytes, error: UnicodeDecodeError, declared: str) -> tuple[str, str, bool]:
    replaced = raw.decode("utf-8", "replace")
    n_bad = replaced.count("\ufffd") - raw.count("\ufffd".encode())
    n_good = sum(not c.isascii() for c in replaced) - n_bad
    where = f"not UTF-8 at byte {error.start}"
    if n_good >= n_bad:
        return replaced, f"{where}: {n_bad} wrong byte{'s' if n_bad > 1 else ''} replaced", False
    for codec, how, is_exact in (
        (declared, "as the file says", True),
        (_detect(raw), "detected", True),
        ("cp1252", "some letters may be wrong", False),
    ):
        text = _try(raw, codec)
        if text is not None:
            return text, f"{where}: read as {_name(codec)}, {how}", is_exact
    return raw.decode("latin-1"), f"{where}: read as Latin-1, some letters may be wrong", False


def _detect(raw: bytes) -> str:
    """The code page that makes words of a known language of the bytes; empty when none does."""
    from charset_normalizer import from_bytes

    # of a long text only lines with other letters than ASCII's say something
    lines = [line for line in raw.splitlines() if not line.isascii()]
    sample = raw if len(raw) <= _SAMPLE_BYTES else b"\n".join(lines)[:_SAMPLE_BYTES]
    best = from_bytes(sample).best()
    if best is None or best.encoding.startswith("utf"):
        return ""
    # several bytes a letter follow rules that chance does not; single bytes need a language
    return best.encoding if best.coherence > 0 or best.encoding in _MULTIBYTE else ""


def _try(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec) if codec else None
    except (UnicodeError, LookupError):
        return None


def _name(codec: str) -> str:
    number = codec.lower().replace("windows-", "cp").removeprefix("cp")
    if number.startswith("125") and number.isdigit():
        return f"Windows-{number}"
    return codec


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
