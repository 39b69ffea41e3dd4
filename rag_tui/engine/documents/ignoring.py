"""Ignore files: the rules of ``.gitignore`` and of the settings' own globs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.engine.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_BYTES = 1_000_000
"""Of a file of rules; a larger one is something else under that name."""


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder, outermost first.

    As in git, the last rule that matches decides, rules of inner folders come after those of
    outer ones, and nothing below an ignored folder is looked at.
    """

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()
    """Each with the prefix that a path relative to the walked folder gets (``../`` steps of the
    folders above are names) or loses to be relative to the rules' own folder."""

    def ignores(self, doc_id: str, *, is_folder: bool) -> bool:
        """Whether a path relative to the walked folder is to be left out."""
        for prefix, spec in reversed(self.specs):
            path = _relative(doc_id, prefix)
            result = spec.check_file(f"{path}/" if is_folder else path)
            if result.include is not None:
                return result.include
        return False

    def inside(self, folder: Path, doc_id: str) -> IgnoreRules:
        """The rules that hold below a folder, given its path and its id (empty for the root)."""
        lines = _read_lines(folder / ".gitignore")
        if not lines:
            return self
        prefix = f"-{doc_id}/" if doc_id else "-"
        return IgnoreRules((*self.specs, (prefix, make_spec(lines))))


def outer_rules(folder: Path) -> IgnoreRules:
    """The rules of the git repository around a folder: its exclude file, and those in between."""
    folder = folder.resolve()
    top = next((up for up in (folder, *folder.parents) if (up / ".git").exists()), None)
    if top is None:
        return IgnoreRules()
    specs: list[tuple[str, GitIgnoreSpec]] = []
    steps = folder.relative_to(top).parts
    below = "/".join(steps)
    if lines := _read_lines(top / ".git" / "info" / "exclude"):
        specs.append((f"+{below}/" if below else "-", make_spec(lines)))
    at = top
    for depth, step in enumerate(steps):
        if lines := _read_lines(at / ".gitignore"):
            specs.append((f"+{'/'.join(steps[depth:])}/", make_spec(lines)))
        at /= step
    return IgnoreRules(tuple(specs))


def make_spec(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Compiled globs.

    Raises:
        UsageError: When a glob cannot be read.
    """
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise UsageError(f"a glob cannot be read: {error}", "Mend or remove the glob.") from error


def _relative(doc_id: str, prefix: str) -> str:
    if prefix[0] == "+":
        return prefix[1:] + doc_id
    return doc_id.removeprefix(prefix[1:])


def _read_lines(path: Path) -> list[str]:
    try:
        # Only a regular file: opening a pipe waits for one who writes.
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return []
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    good = []
    for line in text.removeprefix("\ufeff").splitlines():
        try:
            make_spec([line])
        except UsageError:  # git passes over a rule it cannot read
            continue
        good.append(line)
    return good
