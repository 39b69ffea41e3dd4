"""Question sets of two files: topics or queries here, judgements (qrels) there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_tui.engine.documents import beir
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.question_files import jsonl_rows, read_text
from rag_tui.engine.evaluation.question_rows import Problems
from rag_tui.engine.evaluation.types import Evidence, Question

QUERIES = "queries.jsonl"
_SPLITS = ("test", "dev", "train")
_TOPIC = re.compile(r"<top>(.*?)(?=<top>|\Z)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"<(/?[a-z]+)[^>]*>", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:number|topic|title|description|narrative)\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One line of a qrels file."""

    qid: str
    document: str
    """As written there."""
    grade: int
    """0 for negative ones too, as trec_eval counts them."""
    place: str


def read_qrels(path: Path, problems: Problems) -> tuple[Judgement, ...]:
    """The judgements of a TREC file (``query 0 document grade``) or a BEIR one (three columns).

    Columns are separated by tabs where there are any, else by blanks; a first row of names is
    passed over. Damaged lines are named and left out; a pair that is judged twice counts as
    judged last, and is named where the grades differ.

    Raises:
        UsageError: When the file cannot be read.
    """
    found: dict[tuple[str, str], Judgement] = {}
    for number, line in enumerate(read_text(path, problems).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path.name}:{number}"
        cells = [c.strip() for c in line.split("\t")] if "\t" in line else line.split()
        if len(cells) not in (3, 4):
            problems.add(place, f"not 3 or 4 columns but {len(cells)}; left out")
            continue
        qid, document, grade = cells[0], cells[-2], cells[-1]
        if not re.fullmatch(r"[+-]?\d{1,6}(\.0+)?", grade):
            if not found and number == 1:
                continue  # the names of the columns
            problems.add(place, f'the grade must be a whole number (got "{grade:.30}"); left out')
            continue
        judgement = Judgement(qid, document, max(0, int(float(grade))), place)
        before = found.get((qid, document))
        if before is not None and before.grade != judgement.grade:
            problems.add(
                place,
                f"{document} is judged {judgement.grade} for {qid} here and {before.grade} at "
                f"{before.place}; the later one counts",
            )
        found[qid, document] = judgement
    return tuple(found.values())


def beir_questions(path: Path, problems: Problems) -> tuple[str, list[Question]]:
    """The questions of a BEIR folder, those that a split judges, in the order of its queries.

    Args:
        path: The folder, or one of its ``qrels/*.tsv`` files for another split than the first of
            test, dev, train and others by name.
        problems: What is wrong is added here.

    Returns:
        The set's name and the questions.

    Raises:
        UsageError: When files are missing.
    """
    folder = path if path.is_dir() else path.parent.parent
    splits = sorted(
        (folder / "qrels").glob("*.tsv"),
        key=lambda p: (_SPLITS.index(p.stem) if p.stem in _SPLITS else len(_SPLITS), p.name),
    )
    chosen = path if path.is_file() else next(iter(splits), None)
    if chosen is None:
        raise UsageError(
            f"{folder} has queries but no judgements in qrels/.",
            "A BEIR folder has qrels/test.tsv with the columns query-id, corpus-id, score.",
        )
    others = [split.name for split in splits if split.name != chosen.name]
    if others and path.is_dir():
        problems.add("", f"only qrels/{chosen.name} was read, not {', '.join(others)}")
    judgements = read_qrels(chosen, problems)
    texts: dict[str, tuple[str, str, str]] = {}
    for place, row in jsonl_rows(folder / QUERIES, problems):
        text = row.get("text") if isinstance(row, Mapping) else None
        qid = row.get("_id") if isinstance(row, Mapping) else None
        if not isinstance(text, str) or not text.strip() or not isinstance(qid, (str, int)):
            problems.add(place, 'a query needs "_id" and "text"; left out')
        elif str(qid) in texts:
            problems.add(place, f"the id {qid} stands at {texts[str(qid)][1]} already; left out")
        else:
            metadata = row.get("metadata")
            answer = metadata.get("answer") if isinstance(metadata, Mapping) else None
            texts[str(qid)] = (text, place, answer if isinstance(answer, str) else "")
    questions = _judged(texts, judgements, chosen.name, problems, prefix=f"{beir.CORPUS}#")
    name = folder.resolve().name + ("" if chosen.stem == "test" else f"/{chosen.stem}")
    return name, questions


def trec_questions(path: Path, qrels: Path | None, problems: Problems) -> list[Question]:
    """The questions of TREC topics (``<top>`` with num and title, or ``id<TAB>text`` lines).

    Args:
        path: The topics.
        qrels: The judgements; None: the one file beside it that has ``qrel`` in its name.
        problems: What is wrong is added here.

    Raises:
        UsageError: When there are no topics or no judgements.
    """
    text = read_text(path, problems)
    topics = _sgml_topics(text, path.name, problems) or _plain_topics(text, path.name, problems)
    if not topics:
        raise UsageError(
            f"{path} holds no questions.",
            "Write JSON lines with question and evidence, TREC topics, or id<TAB>question.",
        )
    if qrels is None:
        beside = [p for p in sorted(path.parent.glob("*qrel*")) if p.is_file() and p != path]
        if len(beside) != 1:
            names = ", ".join(p.name for p in beside) or "none is there"
            raise UsageError(
                f"The judgements of {path} must be the one file beside it with qrel in its name "
                f"({names}).",
                "Put them there, or name the file.",
            )
        qrels = beside[0]
    return _judged(topics, read_qrels(qrels, problems), qrels.name, problems)


def _judged(
    texts: Mapping[str, tuple[str, str, str]],
    judgements: Iterable[Judgement],
    qrels_name: str,
    problems: Problems,
    *,
    prefix: str = "",
) -> list[Question]:
    """Topics and judgements joined; what has no counterpart is counted."""
    by_question: dict[str, list[Evidence]] = {}
    for one in judgements:
        evidence = Evidence(prefix + one.document, grade=one.grade)
        by_question.setdefault(one.qid, []).append(evidence)
    unknown = [qid for qid in by_question if qid not in texts]
    if unknown:
        problems.add(
            qrels_name,
            f"{len(unknown):,} judged questions are not among the questions: "
            f"{', '.join(unknown[:3])}{' …' if len(unknown) > 3 else ''}",
        )
    n_unjudged = sum(qid not in by_question for qid in texts)
    if n_unjudged:
        problems.add(
            "",
            f"{n_unjudged:,} of {len(texts):,} questions have no judgement in {qrels_name} and "
            "were left out",
        )
    return [
        Question(qid, " ".join(text.split()), tuple(by_question[qid]), answer=answer, place=place)
        for qid, (text, place, answer) in texts.items()
        if qid in by_question
    ]


def _sgml_topics(text: str, name: str, problems: Problems) -> dict[str, tuple[str, str, str]]:
    """``<top><num>Number: 301<title>…</top>``, closing tags or not; only the title is asked."""
    topics: dict[str, tuple[str, str, str]] = {}
    for match in _TOPIC.finditer(text):
        place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        pieces = _FIELD.split(match[1])
        fields: dict[str, str] = {}
        for tag, content in zip(pieces[1::2], pieces[2::2], strict=True):
            fields.setdefault(tag.lower(), _LABEL.sub("", content).strip())
        number, title = fields.get("num", ""), fields.get("title", "")
        _keep(topics, number, title, place, problems, 'a topic needs "num" and "title"')
    return topics


def _plain_topics(text: str, name: str, problems: Problems) -> dict[str, tuple[str, str, str]]:
    topics: dict[str, tuple[str, str, str]] = {}
    if "\t" not in text:
        return topics
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            qid, _, question = line.partition("\t")
            need = "not an id, a tab and a question"
            _keep(topics, qid.strip(), question.strip(), f"{name}:{number}", problems, need)
    return topics


def _keep(
    topics: dict[str, tuple[str, str, str]],
    qid: str,
    text: str,
    place: str,
    problems: Problems,
    need: str,
) -> None:
    if not qid or not text:
        problems.add(place, f"{need}; left out")
    elif qid in topics:
        problems.add(place, f"the id {qid} stands at {topics[qid][1]} already; left out")
    else:
        topics[qid] = (text, place, "")


def is_beir(path: Path) -> bool:
    """Whether a path is a BEIR folder, or a file of judgements in one."""
    if path.is_dir():
        return (path / QUERIES).is_file()
    return path.parent.name == "qrels" and (path.parent.parent / QUERIES).is_file()


def is_query_file(path: Path) -> bool:
    """Whether a file is the ``queries.jsonl`` of a BEIR folder."""
    if path.name != QUERIES or not path.is_file():
        return False
    if not (path.parent / "qrels").is_dir():
        return False
    with path.open("rb") as file:
        first = file.readline(1_000_000)
    try:
        row = json.loads(first.decode("utf-8-sig"))
    except ValueError:
        return True
    return isinstance(row, dict) and "_id" in row
