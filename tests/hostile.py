"""Strings that have broken terminals and terminal programs, for every test of a surface."""

from __future__ import annotations

HOSTILE: tuple[str, ...] = (
    "see [/etc/hosts] for names",
    "the path is [/",
    "close it with [/bold] or [/]",
    "[/b]",
    "[link]",
    "[kind=err, data={'row[2]'}]",
    "[@click=app.quit]x[/]",
    "regex [/\\w+/] and [=] and [@click]",
    "note [k='x].md",
    ":warning: {braces} %s \\[escaped\\]",
    "\x1b]0;OWNED-TITLE\x07",
    "\x1b]52;c;aGVsbG8=\x1b\\",
    "\x1b[2J\x1b[31mred",
    "\x1b[6n",
    "\x9d0;OWNED2\x9c",
    "\x9b2J",
    "nul\x00bell\x07back\x08del\x7f",
    "carriage\rreturn",
    "undecodable \udcff byte",
    "overridden \u202egnp.exe\u202c end",
    "isolated \u2066x\u2069",
    "zero\u200bwidth\ufeff",
    "line\u2028separator\u2029paragraph",
    "tags \U000e0041\U000e0042",
    "全角の文字 漢字かな交じり文",
    "family 👩\u200d👩\u200d👧 flag 🇯🇵 keycap 1️⃣",
    "שלום مرحبا",
    "combining e\u0301 n\u0303 Z\u0351\u0352\u0353",
)
"""One string for each way to go wrong: markup, escape sequences, hidden and wide characters."""

LONG_LINE = "0123456789" * 10_000
"""A line of 100,000 characters without a place to break."""

FORBIDDEN = (
    *(chr(code) for code in range(0x20) if chr(code) != "\n"),
    *(chr(code) for code in range(0x7F, 0xA0)),
    *"\u202e\u2066\u2069\u200b\ufeff\u2028\u2029\udcff",
)
"""Characters that never reach the terminal from a foreign string."""
