"""Prompt templates: TOML files that say how rules, sources and question become a request.

A template has ``system``, ``user`` and, for ``kind = "text"``, ``source``; placeholders stand in
braces, and doubled braces are braces. A text's first line break is not part of it where it opens
with three quotes, as TOML has it. Whatever is put into a placeholder is escaped and is not read
for placeholders again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from rag_tui.engine.errors import UsageError

TEMPLATES = ("numbered", "documents", "native")
"""Those that come with the program."""
DEFAULT_TEMPLATE = "numbered"

_FOLDER = Path(__file__).parent / "templates"
_MAX_BYTES = 100_000
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "system": ("not_found",),
    "source": ("number", "attributes", "file", "title", "section", "heading", "place", "text"),
    "user": ("sources", "question", "not_found"),
}
_OPTIONAL: Mapping[str, str] = {"separator": "\n", "empty": "(no sources were found)"}
_OPENING = re.compile(r"<([A-Za-z_][\w.-]*)(?:\s[^<>]*)?>\s*$")


@dataclass(frozen=True, slots=True)
class Template:
    """One checked template."""

    name: str
    """Of a shipped template, else the file's path as it was given."""
    kind: Literal["text", "search_results"]
    not_found: str
    system: str
    """With the not-found sentence put in."""
    user: str
    source: str = ""
    separator: str = "\n"
    empty: str = ""


def load_template(name: str) -> Template:
    """The template of this name, or of this file.

    Args:
        name: One of `TEMPLATES`, or the path of a file whose name ends in ``.toml``.

    Raises:
        UsageError: Naming the file, the key or placeholder, and what is allowed there.
    """
    if name in TEMPLATES:
        return _checked(name, _FOLDER / f"{name}.toml")
    if not name.endswith(".toml"):
        raise UsageError(
            f"There is no prompt template {name!r}.",
            f"Use {', '.join(TEMPLATES)}, or the path of a .toml file.",
        )
    return _checked(name, Path(name).expanduser())


def _checked(name: str, path: Path) -> Template:
    values = _read(path)
    kind = values.get("kind", "text")
    if kind not in ("text", "search_results"):
        raise UsageError(f"{path}: kind is {kind!r}.", "Write kind = text or search_results.")
    is_text = kind == "text"
    required = {"not_found", "system", "user"} | ({"source"} if is_text else set())
    known = required | {"kind"} | (set(_OPTIONAL) if is_text else set())
    if unknown := sorted(set(values) - known):
        raise UsageError(
            f"{path}: {unknown[0]} is not part of a template of kind {kind}.",
            f"There are: {', '.join(sorted(known))}.",
        )
    for key in sorted(known & (required | set(values))):
        if not isinstance(values.get(key), str) or (key in required and not values[key].strip()):
            raise UsageError(f"{path}: {key} must be a text.", f'Write {key} = "…".')
    used = {key: _placeholders(path, key, values[key], is_text) for key in ("system", "user")}
    if is_text:
        used["source"] = _placeholders(path, "source", values["source"], is_text)
    _check_needed(path, used, is_text=is_text)
    if is_text:
        _check_enclosed(path, values["source"])
        if values["user"].count("{sources}") != 1:
            raise UsageError(f"{path}: user has {{sources}} more than once.", "Keep one.")
    not_found = values["not_found"].strip()
    return Template(
        name=name,
        kind=kind,
        not_found=not_found,
        system=values["system"].format(not_found=not_found),
        user=values["user"].replace("{not_found}", not_found.replace("{", "{{").replace("}", "}}")),
        source=values.get("source", ""),
        separator=values.get("separator", _OPTIONAL["separator"]),
        empty=values.get("empty", _OPTIONAL["empty"]),
    )


def _read(path: Path) -> dict[str, Any]:
    fix = "Correct answer.template, or mend the file."
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"The template {path} is larger than {_MAX_BYTES:,} bytes.", fix)
        return tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"The template {path} cannot be read: {error.strerror}.", fix) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The template {path} is not valid TOML: {error}.", fix) from error


def _placeholders(path: Path, key: str, text: str, is_text: bool) -> frozenset[str]:
    allowed = tuple(n for n in _ALLOWED[key] if is_text or n != "sources")
    fix = (
        f"Allowed in {key}: {', '.join(f'{{{name}}}' for name in allowed)}. "
        "Double the braces that stand for themselves: {{ }}."
    )
    found: set[str] = set()
    try:
        for _, name, spec, conversion in Formatter().parse(text):
            if name is None:
                continue
            if name not in allowed or spec or conversion:
                shown = (
                    f"{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}"
                )
                raise UsageError(f"{path}: {key} has the placeholder {{{shown}}}.", fix)
            found.add(name)
    except ValueError as error:
        raise UsageError(
            f"{path}: {key} has a brace that pairs with none: {error}.", fix
        ) from error
    return frozenset(found)


def _check_needed(path: Path, used: Mapping[str, frozenset[str]], *, is_text: bool) -> None:
    missing: list[tuple[str, str]] = []
    if "question" not in used["user"]:
        missing.append(("user", "{question}"))
    if is_text and "sources" not in used["user"]:
        missing.append(("user", "{sources}"))
    if is_text and "text" not in used["source"]:
        missing.append(("source", "{text}"))
    if is_text and not used["source"] & {"number", "attributes"}:
        missing.append(("source", "{number} or {attributes}"))
    if "not_found" not in used["system"] | used["user"]:
        missing.append(("system", "{not_found}"))
    if missing:
        key, what = missing[0]
        raise UsageError(f"{path}: {key} lacks {what}.", f"Put {what} into {key}.")


def _check_enclosed(path: Path, source: str) -> None:
    """A document's text is escaped, so a closing tag is the one thing it cannot write."""
    before, _, after = source.partition("{text}")
    opening = _OPENING.search(before)
    if opening is None or not after.lstrip().startswith(f"</{opening[1]}>"):
        raise UsageError(
            f"{path}: in source, {{text}} does not stand between an opening and a closing tag, so "
            "a document could end its own source.",
            "Write it as <source …>{text}</source>, with any tag.",
        )
    if "{text}" in after:
        raise UsageError(f"{path}: source has {{text}} twice.", "Keep one.")
