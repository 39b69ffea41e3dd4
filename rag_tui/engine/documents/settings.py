"""What can be told to the loaders."""

from __future__ import annotations

from dataclasses import dataclass, field

from rag_tui.engine.errors import UsageError
from rag_tui.engine.ids import fingerprint

MAX_BYTES = 50_000_000
"""Default size limit: larger files are data rather than documents."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """Which files of a folder are read, and how.

    Globs are those of ``.gitignore``: ``*.md`` matches at any depth, ``docs/**`` below one folder.

    Raises:
        UsageError: When a limit is not positive.
    """

    include: tuple[str, ...] = ()
    """Only files that match one of these; they are read whatever their suffix. Empty: every file
    of a known type."""
    exclude: tuple[str, ...] = ()
    """Files and folders that are left out, whatever ``include`` says."""
    gitignore: bool = True
    """Leave out what ``.gitignore`` files and ``.git/info/exclude`` name."""
    hidden: bool = False
    """Look into files and folders whose name begins with a dot; never into ``.git``."""
    outside_links: bool = False
    """Follow links that lead out of the folder."""
    max_bytes: int = MAX_BYTES
    """Larger files are skipped by name."""
    max_line: int = 2_000_000
    """Characters; Markdown and plain text with a longer line are skipped."""
    max_code_line: int = 20_000
    """Characters; source code with a longer line is skipped as minified."""
    timeout_s: float = 20.0
    """Seconds after which the conversion of one file is given up."""
    json_text_fields: tuple[str, ...] = ()
    """Fields of a JSON record that make its text, ``a.b`` for nested ones. Empty: all of it."""
    json_metadata_fields: tuple[str, ...] = ()
    """Fields of a JSON record that become metadata. When set, each record is a document."""
    json_id_field: str = ""
    """Field that names a record. When set, each record is a document ``file#id``."""
    pdf_passwords: tuple[str, ...] = field(default=(), repr=False)
    """Tried in turn on encrypted PDF files."""
    output_characters: int = 2000
    """Longer outputs of notebook cells are cut, with a note."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_line", "max_code_line", "timeout_s"):
            value = getattr(self, name)
            if value <= 0:
                raise UsageError(
                    f"loading.{name} must be positive (got {value})",
                    "Leave the setting out to use the default.",
                )
        if self.output_characters < 0:
            raise UsageError(
                f"loading.output_characters must not be negative (got {self.output_characters})",
                "Set it to 0 to drop outputs.",
            )

    def fingerprint(self) -> str:
        """Identifies what a file becomes: documents loaded with another one are not reused."""
        names = ("json_text_fields", "json_metadata_fields", "json_id_field", "output_characters")
        limits = ("max_line", "max_code_line")
        values = {name: getattr(self, name) for name in names + limits}
        return fingerprint({"version": 1, **values})

    @property
    def record_documents(self) -> bool:
        """Whether each JSON record is a document of its own."""
        return bool(self.json_metadata_fields or self.json_id_field)
