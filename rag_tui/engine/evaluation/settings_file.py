"""Knobs written into a settings file that a person writes too: only their own lines are touched."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.atomic import write_atomically
from rag_tui.engine.evaluation.sweep_space import CHUNKING_KNOBS
from rag_tui.engine.knobs import SPECS
from rag_tui.engine.presets import OFF, toml_value
from rag_tui.engine.types import KnobValue
from rag_tui.engine.voyage import is_voyage

PROJECT_FILE = "rag-tui.toml"
_BOM = "\ufeff"
_CHUNKING = {spec.name: spec for spec in CHUNKING_KNOBS}
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def write_settings(path: Path, knobs: Mapping[str, KnobValue]) -> tuple[str, ...]:
    """Set knobs in a settings file, each in its own section; it is made if it is not there.

    A line that sets a knob already gets the new value and keeps its comment; a knob that has no
    line gets one at the end of its section, or a section at the end of the file. Everything else
    stays byte for byte, and the file is replaced at once or not at all.

    Args:
        path: ``rag-tui.toml`` of a corpus, or the user's own file.
        knobs: Dotted name to value; None is written as ``off``.

    Returns:
        The lines that were written, as ``section.key = value``.

    Raises:
        UsageError: For a knob or value that does not exist, a service in the file of a folder,
            or a file that is no valid TOML, says a knob in a form that cannot be replaced, or
            cannot be written.
    """
    checked = {name: _checked(path, name, value) for name, value in knobs.items()}
    text = _read(path)
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    for name, value in checked.items():
        section, _, key = name.partition(".")
        changed = _with_value(text, section, key, toml_value(value), path)
        if changed is None:
            raise UsageError(
                f"{path} sets {name} in a form that cannot be replaced.",
                f"Write it as {key} = … on a line of its own below [{section}].",
            )
        text = changed
    write_atomically(path, f"{mark}{text}".encode())
    return tuple(f"{name} = {toml_value(value)}" for name, value in checked.items())


def _checked(path: Path, name: str, value: KnobValue) -> KnobValue:
    spec = _CHUNKING.get(name) or SPECS.get(name)
    if spec is None:
        raise UsageError(f"There is no setting {name!r}.", "Name a knob, such as bm25.k1.")
    if isinstance(value, str) and is_voyage(value) and path.name == PROJECT_FILE:
        raise UsageError(
            f"{name} = {value} cannot be written to {path}: a folder of documents may not decide "
            "that texts are sent to a service.",
            "Set it in your own settings file, in the environment or on the command line.",
        )
    return spec.checked(value)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8") if path.exists() else ""
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Check its rights."
        ) from error
    except ValueError as error:
        raise UsageError(f"{path} is not UTF-8: {error}.", "Mend that line first.") from error


def _with_value(text: str, section: str, key: str, value: str, path: Path) -> str | None:
    """The text with one value in it; None when no such text says what it should.

    What looks like a table or a key may stand in a string or a list, so every way to change the
    text is judged by what the whole then says.
    """
    data = _parsed(text)
    if data is None:
        raise UsageError(
            f"{path} is not valid TOML.", "Mend it first: `rag-tui doctor` says where."
        )
    table = data.get(section, {})
    if not isinstance(table, dict):
        return None
    wanted = deepcopy(data)
    wanted.setdefault(section, {})[key] = tomllib.loads(f"v = {value}")["v"]
    if wanted == data and key in table:
        return text
    candidates = _replaced(text, key, value) if key in table else _added(text, section, key, value)
    return next((new for new in candidates if _parsed(new) == wanted), None)


def _replaced(text: str, key: str, value: str) -> Iterator[str]:
    """The text with another value in each line that may be the one that sets the key."""
    pattern = re.compile(
        rf"^(?P<name>[ \t]*(?:[\w\"'.-]+[ \t]*\.[ \t]*)?[\"']?{re.escape(key)}[\"']?[ \t]*=[ \t]*)"
        rf"(?P<old>[^\r\n]*)",
        re.MULTILINE,
    )
    for match in pattern.finditer(text):
        tail = _comment(match["name"], match["old"])
        yield f"{text[: match.start('old')]}{value}{tail}{text[match.end() :]}"


def _comment(name: str, old: str) -> str:
    """What follows the value on its line: blank space and a comment."""
    for match in re.finditer(r"[ \t]*(?:#|$)", old):
        if _parsed(f"{name.strip()} {old[: match.start()]}") is not None:
            return old[match.start() :]
    return ""


def _added(text: str, section: str, key: str, value: str) -> Iterator[str]:
    """The text with a line at the end of the section, else with the section at its end."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    line = f"{key} = {value}{line_end}"
    starts = [match.start() for match in _TABLE.finditer(text)]
    for i, start in enumerate(starts):
        if _parsed(text[start:].splitlines()[0]) == {section: {}}:
            for end in [*starts[i + 1 :], len(text)]:
                place = _end_of_lines(text, start, end)
                lead = "" if text[:place].endswith("\n") else line_end
                yield f"{text[:place]}{lead}{line}{text[place:]}"
    dotted = f"{section}.{line}"
    for match in re.finditer(rf"^[ \t]*{re.escape(section)}[ \t]*\.[^\r\n]*", text, re.MULTILINE):
        yield f"{text[: match.start()]}{dotted}{text[match.start() :]}"
    lead = "" if not text or text.endswith("\n") else line_end
    gap = line_end if text.strip() else ""
    yield f"{text}{lead}{gap}[{section}]{line_end}{line}"


def _end_of_lines(text: str, start: int, end: int) -> int:
    """Where a table's own lines end: before the blank lines and comments that close it."""
    while True:
        line = text.rfind("\n", start, max(start, end - 1)) + 1
        content = text[line:end].strip()
        if line <= start or not (content == "" or content.startswith("#")):
            return end
        end = line


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


__all__ = ["OFF", "PROJECT_FILE", "write_settings"]
