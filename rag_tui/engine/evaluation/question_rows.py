"""One row of a question file becomes a question, or a sentence about what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_tui.engine.evaluation.types import Evidence, Question
from rag_tui.engine.ids import text_hash

MOST_PROBLEMS = 200
"""Sentences that are kept; of a file that is damaged throughout, the rest is counted."""

_ID = ("id", "_id", "qid", "query_id")
_TEXT = ("question", "text", "query")
_FILE = ("file", "document", "doc_id", "path")
_HEADING = ("heading", "anchor", "section")
_LINES = ("lines", "line")
_GRADE = ("grade", "score", "relevance")
EVIDENCE_KEYS = frozenset((*_FILE, *_HEADING, *_LINES, *_GRADE, "quote"))
_KEYS = frozenset(
    (*_ID, *_TEXT, "evidence", "answer", "tags", "answerable", "synthetic", "metadata")
)
_LINE_PAIR = re.compile(r"\s*([0-9]{1,9})\s*(?:[-–:]\s*([0-9]{1,9}))?\s*")


@dataclass(slots=True)
class Problems:
    """What was wrong with a file, in the order found."""

    found: list[str] = field(default_factory=list)
    n_more: int = 0

    def add(self, place: str, reason: str) -> None:
        """Note one fault: ``questions.jsonl:3: the grade must be …``."""
        if len(self.found) < MOST_PROBLEMS:
            self.found.append(f"{place}: {reason}" if place else reason)
        else:
            self.n_more += 1

    def sentences(self) -> tuple[str, ...]:
        """All that is kept, and how many are not."""
        more = (f"and {self.n_more:,} more problems like these",) if self.n_more else ()
        return (*self.found, *more)


def typed_id(text: str) -> str:
    """The id of a question that has none: ``q-`` and 8 hex digits of its words."""
    return f"q-{text_hash(' '.join(text.split()).casefold())[:8]}"


def question_of(row: Any, place: str, problems: Problems) -> Question | None:
    """A question of plain values as JSON, TOML or CSV give them; None when it is not usable.

    Parts that are wrong are left out and named; so are keys that mean nothing here.
    """
    if not isinstance(row, Mapping):
        problems.add(place, f"not an object with a question in it but {_kind(row)}; left out")
        return None

    def say(reason: str) -> None:
        problems.add(place, reason)

    text = _first(row, _TEXT)
    if not isinstance(text, str) or not text.strip():
        given = "there is none" if text is None else f"got {_kind(text)}"
        say(f"the question must be a text that is not blank ({given}); left out")
        return None
    qid = _id_of(row, text, say)
    if qid is None:
        return None
    answerable = _flag(row, "answerable", True, say)
    evidence = _evidence_of(row, say)
    if not answerable and any(one.grade > 0 for one in evidence):
        say(
            f"question {qid} is marked unanswerable but has evidence; left out: remove the "
            'evidence or "answerable": false'
        )
        return None
    if answerable and not any(one.grade > 0 for one in evidence):
        say(
            f"question {qid} has no evidence, so it cannot be scored; add some, or say "
            '"answerable": false'
        )
    metadata = row.get("metadata")
    answer = _text_in(row, "answer", say)
    if not answer and isinstance(metadata, Mapping) and isinstance(metadata.get("answer"), str):
        answer = metadata["answer"]
    _name_unknown(row, _KEYS | EVIDENCE_KEYS if "evidence" not in row else _KEYS, say)
    return Question(
        qid=qid,
        text=" ".join(text.split()),
        evidence=evidence,
        answerable=answerable,
        answer=answer,
        tags=_tags_of(row, say),
        synthetic=_flag(row, "synthetic", False, say),
        place=place,
    )


def evidence_of(row: Any, say: Callable[[str], None]) -> Evidence | None:
    """One piece of evidence of plain values; None when it is not usable, which is said."""
    if not isinstance(row, Mapping):
        say(f"evidence must be an object with a file in it (got {_kind(row)}); left out")
        return None
    file = _first(row, _FILE)
    if not isinstance(file, str) or not file.strip():
        given = "there is none" if file is None else f"got {_kind(file)}"
        say(f"evidence must name a file ({given}); left out")
        return None
    grade = _grade_of(_first(row, _GRADE), say)
    lines = _lines_of(_first(row, _LINES), say)
    if grade is None or lines == ():
        return None
    return Evidence(
        document=file.strip(),
        quote=_text_in(row, "quote", say),
        heading=_text_of(row, _HEADING, say),
        lines=(lines[0], lines[1]) if lines else None,
        grade=grade,
    )


def _evidence_of(row: Mapping[str, Any], say: Callable[[str], None]) -> tuple[Evidence, ...]:
    given = row.get("evidence")
    if given is None and _first(row, _FILE) is not None:
        given = [{key: value for key, value in row.items() if key in EVIDENCE_KEYS}]
    if given is None:
        return ()
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list):
        say(f"evidence must be a list of objects (got {_kind(given)}); left out")
        return ()
    found: list[Evidence] = []
    for one in given:
        if isinstance(one, Mapping):
            _name_unknown(one, EVIDENCE_KEYS, say, " in its evidence")
        evidence = evidence_of(one, say)
        if evidence is not None and evidence not in found:
            found.append(evidence)
    return tuple(found)


def _id_of(row: Mapping[str, Any], text: str, say: Callable[[str], None]) -> str | None:
    given = _first(row, _ID)
    if given is None:
        return typed_id(text)
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not (isinstance(given, str) and given.strip()) and not is_number:
        say(f"the id must be a text or a whole number (got {_kind(given)}); left out")
        return None
    return str(given).strip()


def _grade_of(given: Any, say: Callable[[str], None]) -> int | None:
    if given is None:
        return 1
    if isinstance(given, bool) or not isinstance(given, int):
        say(f"a grade must be a whole number from 0 to 3 (got {_kind(given)}); evidence left out")
        return None
    if not 0 <= given <= 3:
        say(f"a grade must be 0, 1, 2 or 3 (got {given}); evidence left out")
        return None
    return given


def _lines_of(given: Any, say: Callable[[str], None]) -> tuple[int, int] | tuple[()] | None:
    """First and last line; None when none are given, empty when they are wrong."""
    if given is None:
        return None
    pair: Sequence[Any] = ()
    if isinstance(given, int) and not isinstance(given, bool):
        pair = (given, given)
    elif isinstance(given, str) and (match := _LINE_PAIR.fullmatch(given)):
        pair = (int(match[1]), int(match[2] or match[1]))
    elif isinstance(given, (list, tuple)) and len(given) in (1, 2):
        pair = (given[0], given[-1])
    are_numbers = all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if not pair or not are_numbers or not 1 <= pair[0] <= pair[1]:
        shown = given if isinstance(given, (int, list)) else _kind(given)
        say(f"lines must be [first, last], counted from 1 (got {shown!s:.60}); evidence left out")
        return ()
    return pair[0], pair[1]


def _tags_of(row: Mapping[str, Any], say: Callable[[str], None]) -> tuple[str, ...]:
    given = row.get("tags")
    if given is None:
        return ()
    if isinstance(given, str):
        given = [part.strip() for part in re.split("[;,]", given)]
    if not isinstance(given, list) or not all(isinstance(tag, str) for tag in given):
        say(f"tags must be a list of texts (got {_kind(given)}); tags left out")
        return ()
    return tuple(dict.fromkeys(tag for tag in given if tag))


def _flag(row: Mapping[str, Any], key: str, default: bool, say: Callable[[str], None]) -> bool:
    given = row.get(key)
    if given is None:
        return default
    if not isinstance(given, bool):
        say(f"{key} must be true or false (got {_kind(given)}); taken as {str(default).lower()}")
        return default
    return given


def _text_in(row: Mapping[str, Any], key: str, say: Callable[[str], None]) -> str:
    return _text_of(row, (key,), say)


def _text_of(row: Mapping[str, Any], keys: Sequence[str], say: Callable[[str], None]) -> str:
    given = _first(row, keys)
    if given is None:
        return ""
    if not isinstance(given, str):
        say(f"{keys[0]} must be a text (got {_kind(given)}); {keys[0]} left out")
        return ""
    return given


def _name_unknown(
    row: Mapping[str, Any], known: Collection[str], say: Callable[[str], None], where: str = ""
) -> None:
    unknown = [str(key) for key in row if key not in known]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        say(f"unknown key{plural}{where}: {', '.join(unknown[:5])}; not used")


def _first(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _kind(value: Any) -> str:
    """A value as a reader of the file would call it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value!s:.20}"
        case str():
            return f'the text "{value:.30}"' if value.strip() else "a blank text"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
