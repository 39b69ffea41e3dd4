"""Foreign text inside a prompt: it closes no tag, and nothing in it is invisible."""

from __future__ import annotations

import math
import re

_KEPT = frozenset("\n\t")
# C0 and C1 controls, the byte-order mark, direction overrides, line separators, tag characters
# (invisible copies of ASCII), surrogates from undecodable file names: what hides or cannot be
# sent. Joiners stay: scripts and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Text in which everything a reader could not see, or JSON not carry, is written out."""
    return _UNSEEN.sub(lambda m: m[0] if m[0] in _KEPT else _written(m[0]), text)


def escaped(text: str) -> str:
    """Text that can stand between tags: no raw ``<``, ``>``, ``&``, nothing invisible."""
    return visible(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def escaped_attribute(value: str) -> str:
    """Text that can stand between the double quotes of a tag's attribute."""
    plain = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    quoted = plain.replace('"', "&quot;").replace("'", "&apos;")
    return _UNSEEN.sub(lambda m: _written(m[0]), quoted)


def one_line(value: str) -> str:
    """Text for a plain field of one line: nothing invisible, line breaks written out."""
    return _UNSEEN.sub(lambda m: _written(m[0]), value)


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a language model counts for a text; an estimate, to be shown as one.

    Rule of thumb: four characters a token for Latin script, two for other alphabets (from Greek,
    U+0370, on), one for East Asian script and emoji (from U+2E80 on); rounded up. The exact number
    is known only to the model's own tokenizer, which is not on this machine.
    """
    if text.isascii():
        return math.ceil(len(text) / 4)
    quarters = sum(1 if char < "\u0370" else 2 if char < "\u2e80" else 4 for char in text)
    return math.ceil(quarters / 4)


def _written(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
