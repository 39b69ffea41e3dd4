"""Display text: the one module that turns foreign strings and numbers into what is shown.

Foreign is whatever we did not write ourselves: document text, file names, questions, model output,
exceptions. Such a string may hold escape sequences that a terminal would obey, characters that
hide or reorder others, and square brackets that look like markup. `display` makes the first two
visible; `plain` carries text to a table without it ever being parsed as markup (for Textual's other
widgets `rag_tui.tui.format.content` does).

Stored text and offsets are never changed: copying and exporting use the original.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

if TYPE_CHECKING:
    from rag_tui.engine.types import ScoreKind

TAB = " " * 4
ELLIPSIS = "…"

_JOINERS = "\u200c\u200d"
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1 controls
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Arabic mark
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # zero width, separators, bidi controls
    "\u3164\ufeff\uffa0\ufff0-\ufffb"  # fillers, byte-order mark, interlinear marks
    "\ud800-\udfff"  # lone surrogates: undecodable bytes; they cannot be encoded for the terminal
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand and music format controls
    "\U000e0000-\U000e0fff"  # tags: invisible ASCII, known from prompt injection
)
_FOREIGN = re.compile(f"[{_HIDDEN}]|[{_JOINERS}]+")
_HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")
_PARTIAL_BLOCKS = " ▏▎▍▌▋▊▉"
_DECIMALS = {"cosine": 3, "bm25": 3, "rrf": 5, "logit": 2}


def display(text: str, *, newlines: bool = False) -> str:
    r"""Make a foreign string safe and readable: what it hides is shown, nothing is removed.

    C0 controls become their symbols (``␛``), DEL ``␡``, a tab four spaces; C1 controls, lone
    surrogates, bidi controls, zero-width and separator characters become escapes such as
    ``\x9d``, ``\udcff`` and ``\u202e``. Zero-width joiners stay where a script or an emoji needs
    them, between two characters beyond ASCII, and are escaped elsewhere. Square brackets, quotes
    and backslashes stay as they are. Displaying a displayed string changes nothing.

    Args:
        text: Any string.
        newlines: Keep line feeds instead of drawing them as ``␊``.
    """
    if text.isascii() and text.isprintable():
        return text

    def visible(match: re.Match[str]) -> str:
        found = match.group()
        if found == "\n" and newlines:
            return found
        if found[0] in _JOINERS:
            before = match.string[match.start() - 1] if match.start() else ""
            after = match.string[match.end() : match.end() + 1]
            return found if _carries(before) and _carries(after) else "".join(map(_mark, found))
        return _mark(found)

    return _FOREIGN.sub(visible, text)


def without_hidden(text: str) -> str:
    """The text with a space in place of each character that hides, reorders or steers.

    For what is typed: an input draws its text as it is, so such characters must not get in.
    """
    return _HIDDEN_CHARACTER.sub(" ", text)


def plain(text: str, style: str = "", *, newlines: bool = False) -> Text:
    """A foreign string as Rich text, for table cells and tree labels; never parsed as markup."""
    return Text(display(text, newlines=newlines), style=style)


def clip(text: str, width: int, *, keep_end: bool = False) -> str:
    """One displayed line of at most ``width`` terminal cells, with ``…`` where it was cut.

    Wide characters are never cut in half, so the result may be one cell short of ``width``.

    Args:
        text: Any string.
        width: Terminal cells to fill at most.
        keep_end: Cut the front, as is right for paths and other names that differ at the end.
    """
    if width <= 0:
        return ""
    # No more is looked at than could be shown: a row may be made from a line of any length.
    reach = 8 * width + 64
    shown = display(text[-reach:] if keep_end else text[:reach])
    if len(text) <= reach and cell_len(shown) <= width:
        return shown
    room = min(width - 1, cell_len(shown))
    if keep_end:
        return ELLIPSIS + _last_cells(shown, room)
    return set_cell_size(shown, room).rstrip() + ELLIPSIS


def fit(text: str, width: int, *, keep_end: bool = False) -> str:
    """`clip` and pad with spaces to exactly ``width`` cells."""
    shown = clip(text, width, keep_end=keep_end)
    return shown + " " * (max(width, 0) - cell_len(shown))


def one_line(text: str) -> str:
    """All runs of white space as single spaces, none at the ends; then `display`."""
    return display(" ".join(text.split()))


def score(value: float, kind: ScoreKind | str) -> str:
    """A score with the digits that tell neighbours apart: cosine and BM25 3, RRF 5, logit 2.

    The first word of the kind's name decides; unknown kinds get three decimals.
    """
    name = (kind if isinstance(kind, str) else kind.name).split(maxsplit=1)
    decimals = _DECIMALS.get(name[0].lower(), 3) if name else 3
    if not math.isfinite(value):
        return str(value)
    # Adding 0.0 turns a negative zero into a positive one.
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def bar(fraction: float, width: int) -> str:
    """A bar of exactly ``width`` cells, filled in eighths; out-of-range values are clamped.

    A fraction above zero always shows at least an eighth of a cell, so it differs from nothing.
    """
    if width <= 0:
        return ""
    share = min(max(fraction, 0.0), 1.0) if not math.isnan(fraction) else 0.0
    eighths = round(share * width * 8) or (1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_PARTIAL_BLOCKS[rest] if rest else "")).ljust(width)


def duration(seconds: float) -> str:
    """A span of time in its largest unit: ``9 ms``, ``1.2 s``, ``2 min 5 s``, ``1 h 4 min``."""
    if seconds < 0 or not math.isfinite(seconds):
        return "–"
    if seconds < 0.0005:
        return "<1 ms" if seconds else "0 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 chunk``, ``1,234 chunks``.

    Args:
        n: How many.
        noun: The singular.
        plural: Where it is not the singular with an s.
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def _mark(character: str) -> str:
    """The visible stand-in of one hidden character."""
    code = ord(character)
    if character == "\t":
        return TAB
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _last_cells(text: str, width: int) -> str:
    """The end of a string, at most ``width`` cells of it, beginning with a visible character."""
    while text:
        excess = cell_len(text) - width
        # What would join the ellipsis goes too, and may free what it had joined: measure again.
        if excess <= 0 and cell_len(text[0]) and not text[0].isspace():
            break
        # No character has more than two cells, so half the excess can always go.
        text = text[max(1, excess // 2) :]
    return text


def _carries(neighbour: str) -> bool:
    """Whether a joiner beside this character has something to join."""
    return bool(neighbour) and not neighbour.isascii() and not _HIDDEN_CHARACTER.match(neighbour)
