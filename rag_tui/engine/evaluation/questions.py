"""Reading labelled questions, whatever their file: ours, CSV, TOML, BEIR or TREC."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.engine.documents import beir
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.document_names import DocumentNames
from rag_tui.engine.evaluation.question_files import (
    Row,
    csv_rows,
    json_rows,
    jsonl_rows,
    read_text,
    toml_rows,
)
from rag_tui.engine.evaluation.question_rows import Problems, question_of
from rag_tui.engine.evaluation.question_sets import (
    beir_questions,
    is_beir,
    is_query_file,
    trec_questions,
)
from rag_tui.engine.evaluation.types import Question, QuestionSet, Unit
from rag_tui.engine.ids import fingerprint

if TYPE_CHECKING:
    from rag_tui.engine.index import Index

_READERS: dict[str, Callable[[Path, Problems], Iterator[Row]]] = {
    ".jsonl": jsonl_rows,
    ".ndjson": jsonl_rows,
    ".json": json_rows,
    ".toml": toml_rows,
    ".csv": csv_rows,
}
_OURS = (beir.QUESTIONS, "questions.json", "questions.toml", "questions.csv")


def read_questions(
    path: Path, *, index: Index | None = None, qrels: Path | None = None
) -> QuestionSet:
    """All questions of a file or folder, and what is wrong with it.

    - ``.jsonl``, ``.json``, ``.toml``, ``.csv``: one question a row with ``id``, ``question``,
      ``evidence`` (``file``, ``heading``, ``quote``, ``lines``, ``grade``), ``answer``, ``tags``,
      ``answerable``, ``synthetic``; ``_id``, ``text``, ``query`` and a single ``file``,
      ``anchor``, ``line`` are understood too. A missing id is made of the question's words.
    - A folder with ``queries.jsonl`` and ``qrels/*.tsv`` (BEIR), or one of those qrels files.
    - TREC topics, or ``id<TAB>question`` lines, with qrels beside them.
    - Any other folder: the ``questions.jsonl``, ``.json``, ``.toml`` or ``.csv`` in it.

    What is damaged is left out and named; the rest goes on. The unit is ``document`` when every
    label means a whole document, as in BEIR and TREC, else ``passage``.

    Args:
        path: The file or folder.
        index: When given, labels of documents that it does not have are named.
        qrels: The judgements of TREC topics, where they do not lie beside them.

    Raises:
        UsageError: When nothing usable is there.
    """
    problems = Problems()
    name, found = _read(path, qrels, problems)
    questions = _unique(found, problems)
    if not questions:
        why = f" ({problems.found[0]})" if problems.found else ""
        raise UsageError(
            f"{path} holds no usable question{why}.",
            'Write one JSON object a line: {"id": "q1", "question": "…", "evidence": [{"file": '
            '"a.md", "quote": "…"}]}.',
        )
    if index is not None:
        _name_unknown_documents(questions, index, problems)
    unit = _unit(questions)
    return QuestionSet(
        name=name,
        questions=questions,
        unit=unit,
        problems=problems.sentences(),
        fingerprint=questions_fingerprint(questions, unit),
    )


def questions_fingerprint(questions: tuple[Question, ...], unit: Unit) -> str:
    """Changes when any question or label does; where they were read does not matter."""
    rows = [asdict(replace(question, place="")) for question in questions]
    return fingerprint({"version": 1, "unit": unit, "questions": rows})


def _read(path: Path, qrels: Path | None, problems: Problems) -> tuple[str, list[Question]]:
    path = path.expanduser()
    if is_query_file(path):
        path = path.parent
    if is_beir(path):
        return beir_questions(path, problems)
    if path.is_dir():
        ours = next((path / name for name in _OURS if (path / name).is_file()), None)
        if ours is None:
            raise UsageError(
                f"{path} holds no questions.",
                f"Put {', '.join(_OURS[:-1])} or {_OURS[-1]} there, or name a file.",
            )
        path = ours
    reader = _READERS.get(path.suffix.lower())
    if reader is None and path.suffix.lower() == ".tsv" and _has_names(path):
        reader = csv_rows
    if reader is None:
        return path.name, trec_questions(path, qrels, problems)
    found = (question_of(row, place, problems) for place, row in reader(path, problems))
    return path.name, [question for question in found if question is not None]


def _has_names(path: Path) -> bool:
    """Whether the first row of a table names its columns."""
    first = read_text(path, Problems()).lstrip("\n").split("\n", 1)[0]
    cells = {cell.strip().lower() for cell in first.split("\t")}
    return bool(cells & {"question", "text", "query"}) and not re.match(r"\d", first)


def _unique(found: list[Question], problems: Problems) -> tuple[Question, ...]:
    kept: dict[str, Question] = {}
    for question in found:
        first = kept.setdefault(question.qid, question)
        if first is not question:
            problems.add(
                question.place, f"the id {question.qid} stands at {first.place} already; left out"
            )
    return tuple(kept.values())


def _unit(questions: tuple[Question, ...]) -> Unit:
    labels = [evidence for question in questions for evidence in question.evidence]
    return "document" if labels and all(one.is_document for one in labels) else "passage"


def _name_unknown_documents(
    questions: tuple[Question, ...], index: Index, problems: Problems
) -> None:
    names = DocumentNames(index.document_of, index.reports)
    for question in questions:
        for document in dict.fromkeys(evidence.document for evidence in question.evidence):
            if names.find(document) is None:
                problems.add(question.place, f"{document}: {names.why_missing(document)}")
