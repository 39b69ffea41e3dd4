"""What is wrong with chunks, told from their text alone: no question and no model is needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from rag_tui.engine.chunkers import suspicions
from rag_tui.engine.chunkers.near_duplicates import LEAST_SHINGLES, RESEMBLANCE, similar_pairs
from rag_tui.engine.chunkers.repeats import (
    PASSAGE_CHARACTERS,
    PASSAGE_PLACES,
    PASSAGE_SHARE,
    blocks_in,
    first_copies,
    prose,
    repeated_passages,
)
from rag_tui.engine.chunkers.units import word_spans
from rag_tui.engine.errors import UsageError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.types import Block, Chunk, Document

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

LintKind = Literal[
    "over-limit", "tiny", "heading-only", "duplicate", "near-duplicate", "table-cut", "code-cut",
    "one-word-a-line", "mojibake", "boilerplate", "instructions", "extraction-noise",
]  # fmt: skip

LINT_KINDS: tuple[LintKind, ...] = get_args(LintKind)
"""All kinds, in the order in which they are counted and shown."""

TINY_WORDS = 8
"""A chunk with fewer words in its body is tiny; scripts without spaces: characters."""

_CHECK_EVERY = 64

RULES: Mapping[LintKind, str] = MappingProxyType(
    {
        "over-limit": "more tokens than the model reads; the rest is not in its vector",
        "tiny": f"fewer than {TINY_WORDS} words, headings not counted",
        "heading-only": "no text but headings",
        "duplicate": "the same text as an earlier chunk, case and blank space aside",
        "near-duplicate": f"shares {RESEMBLANCE:.0%} of its three-word runs with an earlier chunk "
        f"(Jaccard; {LEAST_SHINGLES} runs at least)",
        "table-cut": "begins inside a table and does not repeat its column names, or is cut "
        "within a row or between column names and rows",
        "code-cut": "begins or ends inside a code block",
        "one-word-a-line": f"{suspicions.ONE_WORD_SHARE:.0%} of its lines, and at least "
        f"{suspicions.ONE_WORD_LINES}, are one word",
        "mojibake": "replacement characters, or UTF-8 read as Windows-1252 or Latin-1",
        "boilerplate": f"a line or sentence of {PASSAGE_CHARACTERS} characters or more that "
        f"stands in more than {PASSAGE_PLACES} places and {PASSAGE_SHARE:.0%} of the chunks",
        "instructions": "seems to speak to a language model, or hides characters (a heuristic: "
        "read it)",
        "extraction-noise": "glyph numbers, private-use characters, letter spacing, words "
        f"hyphenated at line ends, or more than {suspicions.SYMBOL_SHARE:.0%} symbols",
    }
)
"""The rule of each kind in words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one chunk."""

    position: int
    """The chunk's place in ``Index.chunks``."""
    kind: LintKind
    detail: str
    """For people; may quote the document."""
    other: int | None = None
    """The earlier chunk's position, for duplicates and near-duplicates."""


def lint(
    index: Index,
    *,
    kinds: Collection[LintKind] = LINT_KINDS,
    cancel: CancelToken | None = None,
) -> tuple[Finding, ...]:
    """Everything that is wrong, by position, then in the order of `LINT_KINDS`.

    A chunk has at most one finding of a kind. Of several equal chunks all but the first are
    duplicates, so the count says how many could go; a duplicate is not a near-duplicate as well,
    nor is a heading-only chunk tiny. Tables and code are known from ``Document.blocks``: where a
    format gives none, neither is reported cut, and nothing is left out as code.

    Args:
        index: Not changed; its vectors are not read.
        kinds: Only these.
        cancel: Polled every few chunks.

    Raises:
        UsageError: When a kind does not exist.
        Cancelled: Soon after the token was set.
    """
    for kind in kinds:
        if kind not in LINT_KINDS:
            raise UsageError(f"{kind} is no kind of warning.", f"There are {', '.join(LINT_KINDS)}")
    token = cancel if cancel is not None else CancelToken()
    chunks, documents = index.chunks, index.document_of
    found: list[Finding] = []
    over = range(len(chunks)) if "over-limit" in kinds and index.manifest.max_tokens > 0 else ()
    for position in over:
        found.extend(_over_limit(position, int(index.n_tokens[position]), index))
    for position, chunk in enumerate(chunks):
        if position % _CHECK_EVERY == 0:
            token.check()
        document = documents.get(chunk.doc_id)
        found.extend(_structural(position, chunk, document, kinds))
        found.extend(_textual(position, chunk, document, kinds))
    if not {"duplicate", "near-duplicate"}.isdisjoint(kinds):
        found.extend(f for f in _copies(chunks, token) if f.kind in kinds)
    if "boilerplate" in kinds:
        found.extend(_boilerplate(chunks, documents, token))
    order = {kind: i for i, kind in enumerate(LINT_KINDS)}
    return tuple(sorted(found, key=lambda finding: (finding.position, order[finding.kind])))


def count_by_kind(findings: Iterable[Finding]) -> dict[LintKind, int]:
    """How many findings of each kind, every kind included, in the order of `LINT_KINDS`."""
    counts = Counter(finding.kind for finding in findings)
    return {kind: counts[kind] for kind in LINT_KINDS}


def _over_limit(position: int, n_tokens: int, index: Index) -> Iterator[Finding]:
    limit = index.manifest.max_tokens
    if n_tokens > limit:
        detail = f"{n_tokens} tokens, the model reads {limit}: the last {n_tokens - limit} are lost"
        yield Finding(position, "over-limit", detail)


def _structural(
    position: int, chunk: Chunk, document: Document | None, kinds: Collection[LintKind]
) -> Iterator[Finding]:
    is_bare = _is_heading_only(chunk, document)
    if "heading-only" in kinds and is_bare:
        yield Finding(position, "heading-only", "no text but headings")
    if "tiny" in kinds and not is_bare:
        n_words = _n_words(chunk.body)
        if n_words < TINY_WORDS:
            detail = f"{n_words} {'word' if n_words == 1 else 'words'} beside its headings"
            yield Finding(position, "tiny", detail)
    if document is None:
        return
    cuts: dict[LintKind, list[str]] = {}
    for block in blocks_in(document, chunk.start, chunk.end):
        if block.kind == "table" and "table-cut" in kinds:
            cuts.setdefault("table-cut", []).extend(_table_cuts(chunk, block, document.text))
        elif block.kind == "code" and "code-cut" in kinds:
            cuts.setdefault("code-cut", []).extend(_code_cuts(chunk, block, document.text))
    for kind, details in cuts.items():
        if details:
            yield Finding(position, kind, "; ".join(details))


def _n_words(body: str) -> int:
    """Words, not counted further than it takes to see that there are enough."""
    n_runs = len(body.split(None, TINY_WORDS))
    return n_runs if n_runs >= TINY_WORDS else len(word_spans(body[:4096]))


_HEADING_LINE = re.compile(r" {0,3}(?:#{1,6}(?:\s.*)?|={3,}\s*|-{3,}\s*)$")


def _is_heading_only(chunk: Chunk, document: Document | None) -> bool:
    body = chunk.body
    if not body:
        return bool(chunk.text.strip())
    if document is None or not document.headings or len(body) > 1000:
        return False
    if any(block.kind == "code" for block in blocks_in(document, chunk.start, chunk.end)):
        return False
    lines = [line for line in body.split("\n") if line.strip()]
    return any("#" in line for line in lines) and all(_HEADING_LINE.match(line) for line in lines)


def _begins_inside(chunk: Chunk, block: Block, text: str) -> bool:
    return block.start < chunk.start and bool(text[block.start : chunk.start].strip())


def _ends_inside(chunk: Chunk, block: Block, text: str) -> bool:
    return chunk.end < block.end and bool(text[chunk.end : block.end].strip())


def _table_cuts(chunk: Chunk, block: Block, text: str) -> Iterator[str]:
    begins = _begins_inside(chunk, block, text)
    if begins and not chunk.prefix:
        yield "begins inside a table without its column names"
    if begins and not _is_line_start(text, chunk.start):
        yield "begins within a row"
    if not _ends_inside(chunk, block, text):
        return
    if not _is_line_start(text, chunk.end):
        yield "ends within a row"
    elif block.header_end and chunk.end <= block.header_end and not begins:
        yield "ends with the column names of a table, without a row"


def _code_cuts(chunk: Chunk, block: Block, text: str) -> Iterator[str]:
    if _begins_inside(chunk, block, text):
        yield "begins inside a code block"
    if _ends_inside(chunk, block, text):
        yield "ends inside a code block"


def _is_line_start(text: str, at: int) -> bool:
    """Whether only blank space lies between a place and a line feed on either side."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    line_end = text.find("\n", at)
    after = text[at : line_end if line_end >= 0 else len(text)]
    return not before.strip() or not after.strip()


def _textual(
    position: int, chunk: Chunk, document: Document | None, kinds: Collection[LintKind]
) -> Iterator[Finding]:
    checks: tuple[LintKind, ...] = ("one-word-a-line", "mojibake", "instructions")
    wanted = [kind for kind in (*checks, "extraction-noise") if kind in kinds]
    if not wanted:
        return
    text = prose(chunk, document)
    for kind in wanted:
        if kind == "one-word-a-line":
            detail = suspicions.one_word_a_line(text)
        elif kind == "mojibake":
            detail = suspicions.mojibake(chunk.text)
        elif kind == "instructions":
            detail = suspicions.instructions(chunk.text)
        else:
            detail = suspicions.extraction_noise(text)
        if detail:
            yield Finding(position, kind, detail)


def _copies(chunks: Sequence[Chunk], token: CancelToken) -> Iterator[Finding]:
    copies = first_copies(chunks, cancel=token)
    for position, first in copies.items():
        detail = f"the same text as #{first} {chunks[first].location}"
        yield Finding(position, "duplicate", detail, first)
    singles = [i for i in range(len(chunks)) if i not in copies]
    best: dict[int, tuple[float, int]] = {}
    for pair in similar_pairs([chunks[i].body for i in singles], cancel=token):
        position, first = singles[pair.second], singles[pair.first]
        if position not in best or pair.resemblance > best[position][0]:
            best[position] = (pair.resemblance, first)
    for position, (resemblance, first) in best.items():
        detail = f"{resemblance:.0%} like #{first} {chunks[first].location}"
        yield Finding(position, "near-duplicate", detail, first)


def _boilerplate(
    chunks: Sequence[Chunk], documents: Mapping[str, Document], token: CancelToken
) -> Iterator[Finding]:
    for position, passages in repeated_passages(chunks, documents, cancel=token).items():
        most = max(passages, key=lambda passage: passage.n_places)
        shown = most.text if len(most.text) <= 60 else f"{most.text[:59]}…"
        yield Finding(position, "boilerplate", f"stands in {most.n_places} places: {shown!r}")
