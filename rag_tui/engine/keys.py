"""The key of the answering service: looked up when it is needed, and kept nowhere.

It is never written to a file, a log or a screen. It comes from the environment, else, where the
``keyring`` package is installed, from the system's keyring: service ``rag-tui``, user name
``ANTHROPIC_API_KEY`` (``keyring set rag-tui ANTHROPIC_API_KEY``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Where the key is looked for, first one first."""
KEYRING_SERVICE = "rag-tui"
SHORTEST_KEY = 8
"""Characters that a key has at least."""
HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Key:
    """A key that was found."""

    name: str
    """One of `KEY_VARIABLES`: also says how the key is sent."""
    value: str = field(repr=False)
    place: Literal["environment", "keyring"]


def find_key(environ: Mapping[str, str]) -> Key | None:
    """The key in the environment, else the one in the keyring; None where there is neither.

    A keyring may ask its owner to unlock it and wait for that: not to be called where waiting
    would hold up a screen.
    """
    for name in KEY_VARIABLES:
        if value := environ.get(name, "").strip():
            return Key(name, value, "environment")
    value = _from_keyring()
    return Key(KEY_VARIABLES[0], value, "keyring") if value else None


def without_keys(text: str, values: Iterable[str]) -> str:
    """A text with every key in it hidden: servers echo what they were sent.

    Anything shorter than `SHORTEST_KEY` is no key, and may be a word of the text itself.
    """
    for value in values:
        if len(value) >= SHORTEST_KEY:
            text = text.replace(value, HIDDEN)
    return text


def _from_keyring() -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return (keyring.get_password(KEYRING_SERVICE, KEY_VARIABLES[0]) or "").strip()
    except (KeyringError, OSError, RuntimeError, ValueError):
        # No keyring service on this machine, or one that stayed locked: as if there were no key.
        return ""
