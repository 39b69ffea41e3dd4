"""Front matter: a block of settings at the very start of a file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_tui.engine.types import EMPTY

_MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the start of a text says about the rest."""

    body_start: int = 0
    """Character offset just after the block; 0 when there is none."""
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Values as text: lists joined by commas, deeper values as JSON."""
    warning: str = ""


def read_front_matter(text: str) -> FrontMatter:
    """The YAML (``---``) or TOML (``+++``) block that opens a text, if one does.

    ``---`` opens a block only on the first line, with something other than a blank line after
    it, a closing ``---`` or ``...`` later on, and a mapping in between; else it is a rule.
    Nothing is hidden when in doubt: a block that is never closed, or that is no mapping, is
    text. A closed block that cannot be parsed is left out of the text with a warning.
    """
    first, _, rest = text.partition("\n")
    fence = first.rstrip()
    closing: tuple[str, ...]
    if fence == "---":
        if not rest.split("\n", 1)[0].strip():
            return FrontMatter()
        closing, parse = ("---", "..."), _parse_yaml
    elif fence == "+++":
        closing, parse = ("+++",), _parse_toml
    else:
        return FrontMatter()

    start = len(first) + 1
    at = start
    while at < len(text):
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        if text[at:line_end].rstrip() in closing:
            return _closed(text[start:at], min(line_end + 1, len(text)), parse)
        at = line_end + 1
    if fence == "---" and not _looks_like_settings(rest):
        return FrontMatter()
    return FrontMatter(warning=f"front matter opened by {fence} is never closed: kept as text")


def _closed(block: str, body_start: int, parse: Callable[[str], Any]) -> FrontMatter:
    if len(block) > _MAX_CHARACTERS:
        return FrontMatter(
            body_start, warning=f"front matter of {len(block):,} characters is too long: not read"
        )
    try:
        values = parse(block)
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0] or type(error).__name__
        if not _looks_like_settings(block):
            return FrontMatter()
        return FrontMatter(body_start, warning=f"front matter cannot be read: {reason}")
    if values is None:
        return FrontMatter(body_start)
    if not isinstance(values, dict):
        return FrontMatter()
    return FrontMatter(body_start, {str(key): _as_text(value) for key, value in values.items()})


def _looks_like_settings(block: str) -> bool:
    """Whether the first line that is not a comment begins like ``key:``."""
    for line in block.split("\n"):
        if line.strip() and not line.startswith("#"):
            key, colon, _ = line.partition(":")
            return bool(colon) and bool(key) and not key[0].isspace() and len(key.split()) == 1
    return False


def _parse_yaml(block: str) -> Any:
    import yaml

    class PlainLoader(yaml.SafeLoader):
        """A safe loader without aliases, by which a short block grows without end."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("YAML aliases are not supported")
            return super().compose_node(parent, index)

    try:
        return yaml.load(block, Loader=PlainLoader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _parse_toml(block: str) -> Any:
    return tomllib.loads(block)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value):
        return ", ".join(_as_text(item) for item in value)
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
