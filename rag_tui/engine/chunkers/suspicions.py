"""What the characters of one text give away: wrong decoding, bad extraction, orders to a model.

Every function takes a text and returns a detail for people, or an empty string when there is
nothing to say. All of them are heuristics over characters; none reads meaning.
"""

from __future__ import annotations

import re
import unicodedata

ONE_WORD_LINES = 8
"""At least this many lines of one word, and"""
ONE_WORD_SHARE = 0.8
"""at least this share of the non-blank lines, make a text of one word a line."""
ONE_WORD_LONGEST = 20
"""Characters; a longer run without blank space is an address or an unspaced script."""

MOJIBAKE_RUN = 3
"""Doubtful wrong pairs count from so many in a row; sure ones (``Ã©``, ``â€™``) count alone."""

SYMBOL_SHARE = 0.4
"""More symbols than this, of the characters that are not blank, are noise."""
SYMBOL_LEAST = 40
"""Characters that are not blank; the share of a shorter text says nothing."""
HYPHENATED_LINES = 3
"""At least this many lines that end in a hyphenated word, and"""
HYPHENATED_SHARE = 0.1
"""at least this share of the lines, are a page's line ends left in the text."""
SPACED_LETTERS = 12
"""So many single letters in a row are letter-spaced print read as words."""
PRIVATE_CHARACTERS = 3
"""So many private-use characters are glyphs whose meaning stayed in a font."""

ZERO_WIDTH_RUN = 8
"""So many zero-width characters in a row can hide a byte, and no script needs them."""

# What the bytes 80-BF become when UTF-8 is read as Windows-1252, or as Latin-1 (C1 controls).
_CP1252_HIGH = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_TAIL = f"[\x80-\xbf{_CP1252_HIGH}]"
_SURE_MOJIBAKE = re.compile(
    rf"(?<![A-ZÀ-Þ])[ÂÃ]{_TAIL}"  # é as Ã©; a capital before may be a word's end: IRMÃ»
    rf"|â[€\x80‚„†\x86ˆ\x88‰œ\x9c\x94\x99]{_TAIL}"  # quotes, dashes, arrows, signs
    rf"|ï»¿|ðŸ{_TAIL}{_TAIL}|ð\x9f{_TAIL}{_TAIL}"  # the byte-order mark; emoji
)
_WRONG_PAIRS = re.compile(
    rf"(?:[\xc2-\xdf]{_TAIL}|[\xe0-\xef]{_TAIL}{_TAIL}|[\xf0-\xf4]{_TAIL}{_TAIL}{_TAIL})"
    rf"{{{MOJIBAKE_RUN},}}"
)
_C1 = re.compile("[\x80-\x84\x86-\x9f]")  # not NEL, which old systems end lines with

_CID = re.compile(r"\(cid:\d+\)")
_HYPHENATED = re.compile(r"[^\W\d_]{2}[-\xad‐]\n[ \t]*[^\W\d_]")
_SPACED = re.compile(rf"(?<!\w)(?:[^\W\d_][ \t]+){{{SPACED_LETTERS - 1},}}[^\W\d_](?!\w)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_SYMBOL = re.compile(r"[^\w\s]")
_LINK = re.compile(r"\]\([^)\s]*\)|https?://\S+")

_WHICH = r"(?:(?:all|any|the|your|my|of|these|those|every)\s+){0,3}"
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|existing|former)"
_ORDERS = r"(?:instructions?|prompts?|directions?|guidelines?|directives?|commands?|rules)"
_MODEL = r"(?:assistant|a\.?i\.?|chat\s?bot|language model|llm|gpt|dan|agent|jailbroken)"
_INSTRUCTIONS = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass)\s+{_WHICH}{_EARLIER}\s+{_ORDERS}\b"
    rf"|\b(?:ignore|disregard|forget|override)\s+(?:your|the\s+system)\s+{_ORDERS}\b"
    r"|\b(?:forget|ignore|disregard)\s+everything\s+(?:above|before|you\s+(?:were|have\s+been))"
    rf"|\byou\s+are\s+(?:now|no\s+longer)\s+(?:an?\s+|the\s+)?(?:[\w-]+\s+){{0,3}}{_MODEL}\b"
    rf"|\byou\s+are\s+an?\s+(?:[\w-]+\s+){{0,3}}{_MODEL}\b"
    r"|\b(?:reveal|print|repeat|output|show|leak)\s+(?:[\w']+\s+){0,3}system\s+prompt\b"
    r"|\bdo\s+not\s+(?:tell|inform|alert|mention\s+(?:this|it)\s+to)\s+the\s+user\b"
    r"|\b(?:when|if)\s+(?:an?\s+)?(?:ai|llm|assistant|language\s+model)s?\s+reads?\s+this\b"
    r"|<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>"
    r"|\[/?INST\]|<</?SYS>>"
    r"|^\#{2,3}\s*(?:system\s+)?instructions?:\s*$"
    r"|\b(?:begin|end)\s+(?:of\s+)?system\s+prompt\b",
    re.IGNORECASE | re.MULTILINE,
)
# Flags of England, Scotland and Wales are spelt with tags behind a black flag.
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")
_ZERO_WIDTH = re.compile(f"[\u200b-\u200d\u2060-\u2064\ufeff]{{{ZERO_WIDTH_RUN},}}")
_MAY_BE_PHRASE = re.compile(
    r"ignore|disregard|forget|override|bypass|you\s+are|prompt|user\b|reads?\s+this|<\||inst|<<",
    re.IGNORECASE,
)
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def one_word_a_line(text: str) -> str:
    """Whether nearly every line is one word: a column or vertical print read downwards.

    List items are not single words: their marker is one more. Lines without a letter, longer
    runs and scripts without spaces do not count as single words.
    """
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    if len(lines) < ONE_WORD_LINES:
        return ""
    n_single = sum(1 for line in lines if _is_single_word(line))
    if n_single < ONE_WORD_LINES or n_single < ONE_WORD_SHARE * len(lines):
        return ""
    return f"{n_single} of {len(lines)} lines are a single word"


def _is_single_word(line: str) -> bool:
    return (
        len(line) <= ONE_WORD_LONGEST
        and not any(c.isspace() for c in line)
        and any(c.isalpha() for c in line)
        and not _SPACELESS.search(line)
    )


def mojibake(text: str) -> str:
    """Signs of bytes decoded with the wrong code page.

    Replacement characters (U+FFFD); C1 controls other than U+0085; UTF-8 read as Windows-1252 or
    Latin-1. Of the last, pairs that no language writes count alone: ``Ã`` or ``Â`` with a tail
    byte's character unless a capital stands before it, ``â€`` and its like with one more, the
    byte-order mark ``ï»¿``, emoji ``ðŸ..``. Others (``Ð¿Ñ€``, ``æ—¥``) count from
    `MOJIBAKE_RUN` in a row if they are valid UTF-8 when put back.
    """
    if text.isascii():
        return ""
    n_replaced = text.count("\ufffd")
    if n_replaced:
        return f"{_times(n_replaced, 'replacement character')} (U+FFFD)"
    sure = _SURE_MOJIBAKE.findall(text)
    if sure:
        return f"{sure[0]!r} reads like UTF-8 decoded as Windows-1252 ({_times(len(sure), 'time')})"
    for run in _WRONG_PAIRS.findall(text):
        if _put_back(run):
            return f"{run[:12]!r} reads like {_put_back(run)[:6]!r} decoded as Windows-1252"
    n_controls = len(_C1.findall(text))
    if n_controls:
        return f"{_times(n_controls, 'control character')} between U+0080 and U+009F"
    return ""


def _put_back(run: str) -> str:
    raw = bytearray()
    for character in run:
        try:
            raw += character.encode("cp1252")
        except UnicodeEncodeError:
            raw += character.encode("latin-1")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def extraction_noise(text: str) -> str:
    """Signs that a page's print, not its text, was read.

    ``(cid:12)`` glyph numbers; private-use characters; letter-spaced words; words hyphenated at
    line ends; more symbols than `SYMBOL_SHARE` of what is not blank, link targets not counted.
    Give it prose: tables and code are made of symbols.
    """
    n_glyphs = len(_CID.findall(text))
    if n_glyphs:
        return f"{_times(n_glyphs, 'glyph')} without a character, such as (cid:12)"
    if not text.isascii():
        n_private = len(_PRIVATE.findall(text))
        if n_private >= PRIVATE_CHARACTERS:
            return f"{n_private} private-use characters: their meaning stayed in a font"
    spaced = _SPACED.search(text)
    if spaced:
        return f"letters with spaces between them: {spaced.group()[:24]!r}"
    n_hyphenated = len(_HYPHENATED.findall(text))
    n_lines = text.count("\n") + 1
    if n_hyphenated >= HYPHENATED_LINES and n_hyphenated >= HYPHENATED_SHARE * n_lines:
        return f"{n_hyphenated} of {n_lines} lines end in a hyphenated word"
    return _symbols(text)


def _symbols(text: str) -> str:
    shown = _LINK.sub(" ", text)
    n_solid = len("".join(shown.split()))
    if n_solid < SYMBOL_LEAST:
        return ""
    symbols = _SYMBOL.findall(shown)
    if len(symbols) <= SYMBOL_SHARE * n_solid:
        return ""
    # Vowel signs of many scripts are marks, which belong to letters.
    n_symbols = sum(1 for symbol in symbols if not unicodedata.category(symbol).startswith("M"))
    if n_symbols <= SYMBOL_SHARE * n_solid:
        return ""
    return f"{n_symbols / n_solid:.0%} of the characters are symbols"


def instructions(text: str) -> str:
    """Whether a text seems to speak to a language model, or hides characters from readers.

    A heuristic over well-known English phrases of prompt injection, chat template markers, tag
    characters outside flags, runs of variation selectors and of zero-width characters. A finding
    is a reason to read the text, no proof; no finding is no proof either.
    """
    hidden = "" if text.isascii() else _hidden(text)
    if hidden:
        return hidden
    if not _MAY_BE_PHRASE.search(text):
        return ""
    found = _INSTRUCTIONS.search(text)
    return f"speaks to a model: {' '.join(found.group().split())[:80]!r}" if found else ""


def _hidden(text: str) -> str:
    tags = "".join(_TAGS.findall(_FLAG.sub("", text)))
    if tags:
        spelt = "".join(chr(ord(c) - 0xE0000) for c in tags)
        readable = "".join(c for c in spelt if c.isprintable())
        return f"{_times(len(tags), 'invisible tag character')}: {readable[:60]!r}"
    run = _SELECTORS.search(text)
    if run:
        return f"{len(run.group())} variation selectors in a row can hide text"
    run = _ZERO_WIDTH.search(text)
    if run:
        return f"{len(run.group())} zero-width characters in a row can hide text"
    return ""


def _times(n: int, noun: str) -> str:
    return f"{n} {noun if n == 1 else noun + 's'}"
