"""Presets in a settings file that a person writes too: only the preset's own table is touched."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import with_knobs
from rag_tui.engine.presets import OFF, toml_knobs, toml_text
from rag_tui.engine.types import KnobValue, SearchRequest

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def save_preset(path: Path, name: str, knobs: Mapping[str, KnobValue]) -> None:
    """Write a preset into a settings file: at its end, or in place of the one with this name.

    Everything else in the file, comments and order included, stays byte for byte; the file is
    replaced at once or not at all. A file that does not exist is made.

    Raises:
        UsageError: When a knob is wrong, the file cannot be read or written, is no valid TOML, or
            holds a preset of this name in another form than a table of its own.
    """
    if not name.strip():
        raise UsageError("A preset needs a name.", "Give it one, such as short-questions.")
    with_knobs(SearchRequest(""), knobs)
    target = path.resolve()  # a link stays a link
    try:
        raw = target.read_bytes() if target.exists() else b""
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Check its rights."
        ) from error
    mark = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
    try:
        text = raw.removeprefix(mark).decode("utf-8")
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.", "Mend that line first.") from error
    new = _with_preset(text, data, name, knobs)
    if new is None:
        raise UsageError(
            f"{path} holds the preset {name!r} in a form that cannot be replaced.",
            f"Write it as a table of its own, [presets.{toml_text(name)}], or remove it.",
        )
    try:
        _replace(target, mark + new.encode("utf-8"), mode)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.", "Check the rights of its folder."
        ) from error


def _with_preset(
    text: str, data: Mapping[str, Any], name: str, knobs: Mapping[str, KnobValue]
) -> str | None:
    """The text with the preset in it; None when no such text says what it should.

    A ``[`` at the start of a line may also stand in a string or a list, so every way to cut the
    text is judged by what the whole then says.
    """
    line_end = "\r\n" if "\r\n" in text else "\n"
    table = [f"[presets.{toml_text(name)}]", *toml_knobs(knobs), ""]
    block = line_end.join(table)
    wanted = _wanted(data, name, knobs)
    is_new = wanted is None or name not in data.get("presets", {})
    for before, after in _cuts(text, name, is_new=is_new):
        lead = "" if not before or before.endswith("\n") else line_end
        needs_gap = is_new and before.strip() and not before.endswith(line_end * 2)
        gap = line_end if needs_gap else ""
        tail = line_end if after.strip() and not after.startswith(("\n", "\r\n")) else ""
        new = f"{before}{lead}{gap}{block}{tail}{after}"
        if _says(new, wanted):
            return new
    return None


def _cuts(text: str, name: str, *, is_new: bool) -> Iterator[tuple[str, str]]:
    """Before and after the table of a preset; of a new one, the whole text and nothing."""
    if is_new:
        yield text, ""
        return
    starts = [match.start() for match in _HEADER.finditer(text)]
    for i, start in enumerate(starts):
        if _says(text[start:].splitlines()[0], {"presets": {name: {}}}):
            for end in [*starts[i + 1 :], len(text)]:
                yield text[:start], text[_with_comments(text, start, end) :]


def _with_comments(text: str, start: int, end: int) -> int:
    """The end of a table without the comments and blank lines that introduce the next one."""
    if end == len(text):
        return end
    while True:
        line = text.rfind("\n", start, end - 1) + 1
        content = text[line:end].strip()
        if line <= start or not (content == "" or content.startswith("#")):
            return end
        end = line


def _wanted(
    data: Mapping[str, Any], name: str, knobs: Mapping[str, KnobValue]
) -> dict[str, Any] | None:
    presets = data.get("presets", {})
    if not isinstance(presets, dict):
        return None
    values = {key: OFF if value is None else value for key, value in knobs.items()}
    return {**data, "presets": {**presets, name: values}}


def _says(text: str, wanted: Mapping[str, Any] | None) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except ValueError:
        return False


def _replace(target: Path, content: bytes, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".rag-tui-", suffix=".toml")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
