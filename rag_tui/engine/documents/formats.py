"""Which format a file has: by its name, unless its first bytes say otherwise."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import PurePath

from rag_tui.engine.documents.parts import UnusableFileError

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})

_CODE = (
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .kt .scala .go .rs .c .h .cc .cpp .cxx .hpp .cs "
    ".rb .php .pl .lua .r .jl .swift .m .sh .bash .zsh .fish .ps1 .sql .css .scss .vue .svelte "
    ".hs .ml .ex .exs .erl .clj .dart .proto .tf .nix .vim .el .gradle .cmake"
)
FORMAT_OF_SUFFIX: dict[str, str] = {
    **dict.fromkeys(MARKDOWN_SUFFIXES, "markdown"),
    **dict.fromkeys((".txt", ".text", ".log", ".adoc", ".asciidoc", ".org", ".tex"), "text"),
    **dict.fromkeys((".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"), "text"),
    **dict.fromkeys((".rst", ".rest"), "rst"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".xlsx", ".xlsm"), "xlsx"),
    **dict.fromkeys((".vtt", ".srt"), "subtitles"),
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".epub": "epub",
    ".eml": "email",
    ".json": "json",
    ".ipynb": "notebook",
    **dict.fromkeys(_CODE.split(), "code"),
}
_TEXT_NAMES = frozenset(
    {"readme", "license", "licence", "copying", "authors", "changelog", "changes", "contributing",
     "notice", "install", "makefile", "dockerfile", "todo"}
)  # fmt: skip
CONTAINERS = frozenset({"pdf", "docx", "pptx", "xlsx", "epub"})
"""Formats whose bytes are not text."""

_OFFICE = (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx"))
_UNPACKED_PER_BYTE_LIMIT = 10


def format_of_name(name: str) -> str:
    """The format a file name promises; empty for an unknown type."""
    path = PurePath(name)
    if not path.suffix and path.name.lower() in _TEXT_NAMES:
        return "text"
    return FORMAT_OF_SUFFIX.get(path.suffix.lower(), "")


def format_of(name: str, raw: bytes, *, max_bytes: int) -> tuple[str, str]:
    """The format of a file's content, and a note where its name says something else.

    Raises:
        UnusableFileError: When a container is of no known kind, damaged, or unpacks to more than
            ten times ``max_bytes``.
    """
    named = format_of_name(name) or "text"
    if raw[:1024].lstrip().startswith(b"%PDF-"):
        found = "pdf"
    elif raw.startswith(b"PK\x03\x04"):
        found = _format_of_archive(raw, max_bytes * _UNPACKED_PER_BYTE_LIMIT)
    elif named in CONTAINERS:
        if raw.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
            raise UnusableFileError(
                f"an encrypted or old office file, not {named.upper()}", state="failed"
            )
        raise UnusableFileError(f"damaged: does not begin like {named.upper()}", state="failed")
    else:
        return named, ""
    note = (
        "" if found == named else f"named {PurePath(name).suffix or name}, but is {found.upper()}"
    )
    return found, note


def _format_of_archive(raw: bytes, limit: int) -> str:
    try:
        with zipfile.ZipFile(BytesIO(raw)) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            is_epub = "META-INF/container.xml" in names
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise UnusableFileError(f"damaged archive: {error}", state="failed") from error
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > limit:
        raise UnusableFileError(
            f"unpacks to {unpacked / 1e6:,.0f} MB, more than {limit / 1e6:,.0f} MB",
            state="skipped",
        )
    if is_epub:
        return "epub"
    for folder, office in _OFFICE:
        if "[Content_Types].xml" in names and any(name.startswith(folder) for name in names):
            return office
    raise UnusableFileError("not text: ZIP archive", state="skipped")
