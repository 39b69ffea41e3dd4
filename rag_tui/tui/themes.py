"""Which theme to use."""

from __future__ import annotations

from collections.abc import Iterable

DEFAULT_THEME = "textual-dark"


def usable_theme(wanted: str, available: Iterable[str], *, no_color: bool) -> tuple[str, str]:
    """The theme to use, and why it is not the wanted one (empty when it is).

    Without colours, the themes that leave all colours to the terminal come out as black on
    black, so they are replaced.
    """
    name = wanted or DEFAULT_THEME
    known = sorted(available)
    if name not in known:
        return DEFAULT_THEME, f"Unknown theme {name!r} in ui.theme. Known: {', '.join(known)}."
    if no_color and name.startswith("ansi-"):
        light = name.endswith("light")
        return (
            "textual-light" if light else DEFAULT_THEME,
            f"Theme {name!r} cannot be read without colours (NO_COLOR is set); another is used.",
        )
    return name, ""
