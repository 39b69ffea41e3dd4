"""Writing labels: one line changes, what others changed stays, and a label survives re-cutting."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.chunkers.factory import make_chunker
from rag_tui.engine.documents.markdown import structure
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.evidence_choice import evidence_for
from rag_tui.engine.evaluation.labels import LabelFile
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import Resolver, grade_at, resolve
from rag_tui.engine.evaluation.types import Evidence, Question
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from tests.engine.hand_made import chunk, cut, document, index_of

TEXT = (
    "Towels are in the cupboard. The boiler hums at night. "
    + "Breakfast is served in the garden room from seven until ten every single day. "
    + "Guests who leave early can order a packed lunch the evening before. " * 2
    + "The lift is small and holds three persons with their luggage at most, no more."
)
OTHER = "A short one."


def house() -> Index:
    long, short = document(TEXT, "a.md"), document(OTHER, "b.md")
    return index_of([long, short], [*cut(long), *cut(short)])


def question(qid: str = "q1", text: str = "When is breakfast?") -> Question:
    return Question(qid, text)


def rows_in(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# ---- what is quoted ------------------------------------------------------------------------


def test_of_a_long_passage_the_sentence_about_the_question_is_quoted() -> None:
    found = evidence_for(0, Resolver(house()), question="When is breakfast?", grade=2)
    assert found == Evidence(
        "a.md", "Breakfast is served in the garden room from seven until ten every single day.",
        grade=2,
    )  # fmt: skip


def test_a_short_passage_is_quoted_whole() -> None:
    assert evidence_for(1, Resolver(house())).quote == OTHER


def test_every_passage_of_the_demo_corpus_is_found_again_by_its_quote(guesthouse: Index) -> None:
    resolver = Resolver(guesthouse)
    for position in range(len(guesthouse.chunks)):
        evidence = evidence_for(position, resolver)
        (place,) = resolve(Question("", "", (evidence,)), guesthouse).places
        assert place.positions == (position,)


def test_every_passage_is_found_again_after_another_way_of_cutting(
    shared: Path, hashing_models: Models
) -> None:
    from rag_tui.engine.documents.loading import load_document

    path = shared / "data/docs/fastapi-en/tutorial/sql-databases.md"
    source = load_document(path, doc_id="sql.md")
    counter = hashing_models.token_counter()

    def index(settings: ChunkingSettings) -> Index:
        return index_of([source], make_chunker(settings, counter).chunk(source))

    before = index(ChunkingSettings(strategy="recursive", size=96, overlap=24))
    after = index(ChunkingSettings(strategy="headings", size=200, overlap=0))
    assert len(before.chunks) > 30
    resolver = Resolver(before)
    for position, piece in enumerate(before.chunks):
        evidence = evidence_for(position, resolver)
        (now,) = resolver.resolve(Question("", "", (evidence,))).places
        (then,) = resolve(Question("", "", (evidence,)), after).places
        assert position in now.positions
        assert (then.start, then.end) == (now.start, now.end)
        assert piece.start <= now.start
        assert now.end <= piece.end
        assert len(then.positions) <= 2


def test_a_passage_that_stands_twice_is_told_apart_by_its_lines() -> None:
    text = "# A\n\nsame words here\n\n# A\n\nsame words here\n"
    source = replace(document(text), headings=structure(text).headings)
    index = index_of([source], cut(source, source.headings[1].start))
    found = [evidence_for(position, Resolver(index)) for position in (0, 1)]
    assert [one.lines for one in found] == [None, (5, 7)]
    for position, evidence in enumerate(found):
        (place,) = resolve(Question("", "", (evidence,)), index).places
        assert place.positions == (position,)


# ---- judging -------------------------------------------------------------------------------


def test_a_judgement_creates_the_file_and_is_read_back(tmp_path: Path) -> None:
    path, index = tmp_path / "new" / "questions.jsonl", house()
    kept = LabelFile(path).judge(question(), 0, Resolver(index), 3)
    found = read_questions(path, index=index)
    assert found.problems == ()
    assert found.questions[0].evidence == (kept,)
    assert grade_at(resolve(found.questions[0], index), 0) == 3
    assert [p.name for p in path.parent.iterdir()] == ["questions.jsonl"]  # no lock, no rest


def test_judging_again_changes_the_grade_and_adds_nothing(tmp_path: Path) -> None:
    path, resolver = tmp_path / "q.jsonl", Resolver(house())
    labels = LabelFile(path)
    labels.judge(question(), 0, resolver, 3)
    labels.judge(question(), 0, resolver, 0)
    labels.judge(question(), 1, resolver, 1)
    (row,) = rows_in(path)
    evidence = row["evidence"]
    assert isinstance(evidence, list)
    assert [(one["file"], one["grade"]) for one in evidence] == [("a.md", 0), ("b.md", 1)]


def test_a_label_written_by_hand_is_the_one_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    hand = {"question": "When is breakfast?", "id": "q1", "note": "x", "evidence": [
        {"quote": "The boiler hums at night.", "file": "a.md", "relevance": 2}]}  # fmt: skip
    path.write_text(json.dumps(hand), "utf-8")
    LabelFile(path).judge(question(), 0, Resolver(house()), 1)
    (row,) = rows_in(path)
    assert list(row) == ["question", "id", "note", "evidence"]
    assert row["evidence"] == [
        {"quote": "The boiler hums at night.", "file": "a.md", "relevance": 1}
    ]
    assert not path.read_bytes().endswith(b"\n")


def test_removing_a_judgement_leaves_the_others(tmp_path: Path) -> None:
    path, resolver = tmp_path / "q.jsonl", Resolver(house())
    labels = LabelFile(path)
    labels.judge(question(), 0, resolver, 1)
    labels.judge(question(), 1, resolver, 1)
    assert labels.unjudge(question(), 0, resolver) == 1
    assert labels.unjudge(question(), 0, resolver) == 0
    assert [e.document for e in read_questions(path).questions[0].evidence] == ["b.md"]


def test_a_part_of_a_section_that_is_judged_as_a_whole_cannot_be_worth_less(
    tmp_path: Path,
) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "q1", "question": "?", "evidence": [{"file": "a.md", "grade": 2}]}\n')
    source = document(TEXT, "a.md")
    resolver = Resolver(index_of([source], cut(source, 150, 250)))
    with pytest.raises(UsageError, match=r"part of a\.md, which is judged 2 as a whole"):
        LabelFile(path).judge(question(), 0, resolver, 0)
    LabelFile(path).judge(question(), 0, resolver, 3)
    assert [e.grade for e in read_questions(path).questions[0].evidence] == [2, 3]


def test_a_grade_out_of_range_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got 4"):
        LabelFile(tmp_path / "q.jsonl").judge(question(), 0, Resolver(house()), 4)
    assert list(tmp_path.iterdir()) == []


# ---- unanswerable, new questions -----------------------------------------------------------


def test_unanswerable_is_marked_taken_back_and_ended_by_evidence(tmp_path: Path) -> None:
    path, resolver = tmp_path / "q.jsonl", Resolver(house())
    labels = LabelFile(path)
    labels.set_answerable(question(), False)
    assert not read_questions(path).questions[0].answerable
    labels.judge(question(), 1, resolver, 0)
    assert not read_questions(path).questions[0].answerable
    labels.judge(question(), 1, resolver, 2)
    assert read_questions(path).questions[0].answerable
    with pytest.raises(UsageError, match="q1 has evidence"):
        labels.set_answerable(question(), False)
    labels.unjudge(question(), 1, resolver)
    labels.set_answerable(question(), False)
    labels.set_answerable(question(), True)
    assert read_questions(path).questions[0].answerable


def test_a_typed_question_has_the_same_id_wherever_it_is_typed(tmp_path: Path) -> None:
    one, two = LabelFile(tmp_path / "a.jsonl"), LabelFile(tmp_path / "b.jsonl")
    qid = one.add("Where is  the key?")
    assert two.add("where is the KEY?") == qid
    assert one.add("where is the key?") == qid
    assert len(rows_in(tmp_path / "a.jsonl")) == 1
    assert one.add("Where else?", synthetic=True) != qid
    assert read_questions(tmp_path / "a.jsonl").questions[1].synthetic
    with pytest.raises(UsageError, match="needs words"):
        one.add(" \n")


def test_a_question_that_is_there_under_another_id_is_not_added(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"_id": "mine", "text": "Where is the key?"}\n', "utf-8")
    assert LabelFile(path).add("Where is the key?") == "mine"
    assert path.read_text("utf-8").count("\n") == 1


# ---- the file ------------------------------------------------------------------------------

ODD = (
    b'\xef\xbb\xbf{"id":"q0","question":"caf\\u00e9?","evidence":[]}\r\n'
    b"\r\n"
    b'{"id": "broken", \n'
    b'{"id": "q1", "question": "When is breakfast?", "evidence": [], "tags": ["a"]}\r\n'
    b'{"evidence": [],   "id": "q2", "question": "x\xff"}'
)


def test_lines_that_are_not_touched_stay_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(ODD)
    LabelFile(path).judge(question(), 1, Resolver(house()), 1)
    before, after = ODD.split(b"\n"), path.read_bytes().split(b"\n")
    assert after[:3] == before[:3]
    assert after[4:] == before[4:]
    evidence = '[{"file": "b.md", "quote": "A short one.", "grade": 1}]'
    assert after[3].decode() == before[3].decode().replace("[]", evidence)


def test_a_new_line_is_written_like_the_others(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id":"q0","question":"caf\\u00e9?","evidence":[]}')
    LabelFile(path).judge(Question("q0", "café?"), 1, Resolver(house()), 2)
    LabelFile(path).add("Größe?")
    first, second, rest = path.read_bytes().split(b"\n")
    assert first == (
        b'\xef\xbb\xbf{"id":"q0","question":"caf\\u00e9?","evidence":'
        b'[{"file":"b.md","quote":"A short one.","grade":2}]}'
    )
    assert b'"question":"Gr\\u00f6\\u00dfe?"' in second
    assert rest == b""


def test_what_someone_else_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    path, resolver = tmp_path / "q.jsonl", Resolver(house())
    labels = LabelFile(path)
    labels.judge(question(), 0, resolver, 1)
    mine = path.read_text("utf-8")
    theirs = mine.replace('"evidence": [', '"tags": ["new"], "evidence": [{"file": "c.md"}, ')
    path.write_text('{"id": "q9", "question": "Theirs?", "evidence": []}\n' + theirs, "utf-8")
    labels.judge(question(), 1, resolver, 2)
    other, row = rows_in(path)
    assert other["id"] == "q9"
    assert row["tags"] == ["new"]
    evidence = row["evidence"]
    assert isinstance(evidence, list)
    assert [one["file"] for one in evidence] == ["c.md", "a.md", "b.md"]


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    writers = [LabelFile(path) for _ in range(4)]

    def write(i: int) -> None:
        for n in range(5):
            writers[i].add(f"question {i} {n}")

    threads = [Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({str(row["id"]) for row in rows_in(path)}) == 20


def test_undo_restores_the_bytes_step_by_step(tmp_path: Path) -> None:
    path, resolver = tmp_path / "q.jsonl", Resolver(house())
    path.write_bytes(ODD + b"\n")
    labels = LabelFile(path)
    assert not labels.can_undo
    labels.judge(question(), 1, resolver, 1)
    middle = path.read_bytes()
    labels.add("Another?")
    assert labels.undo() == "added the question"
    assert path.read_bytes() == middle
    assert labels.undo() == "graded a passage 1"
    labels.judge(question(), 1, resolver, 0)
    assert labels.undo() == "called a passage not relevant"
    assert path.read_bytes() == ODD + b"\n"
    with pytest.raises(UsageError, match="nothing to undo"):
        labels.undo()


def test_undo_leaves_alone_what_someone_else_has_changed_since(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    labels = LabelFile(path)
    labels.judge(question(), 1, Resolver(house()), 1)
    theirs = path.read_text("utf-8").replace('"grade": 1', '"grade": 3')
    path.write_text(theirs, "utf-8")
    with pytest.raises(UsageError, match="changed by someone else"):
        labels.undo()
    assert path.read_text("utf-8") == theirs
    assert not labels.can_undo


def test_a_change_that_changes_nothing_is_not_written_and_not_undone(tmp_path: Path) -> None:
    path, resolver = tmp_path / "q.jsonl", Resolver(house())
    labels = LabelFile(path)
    labels.judge(question(), 1, resolver, 1)
    labels.judge(question(), 1, resolver, 1)
    labels.undo()
    assert not labels.can_undo


def test_a_file_of_another_kind_or_without_permission_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="JSON lines"):
        LabelFile(tmp_path / "questions.csv")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(UsageError, match="cannot be"):
        LabelFile(tmp_path / "folder.jsonl").add("x?")


def test_damaged_evidence_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "q1", "question": "?", "evidence": "a.md"}\n', "utf-8")
    with pytest.raises(UsageError, match="q1 is not a list"):
        LabelFile(path).judge(question(), 1, Resolver(house()), 1)
    assert path.read_text("utf-8").endswith('"a.md"}\n')


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "q.jsonl"
    real.write_text("", "utf-8")
    real.chmod(0o600)
    link.symlink_to(real)
    LabelFile(link).add("x?")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert len(rows_in(real)) == 1


def test_a_file_name_with_bytes_that_are_no_text_can_be_labelled(tmp_path: Path) -> None:
    source = document("Some words.", "caf\udce9.md")
    index = index_of([source], [chunk(source, 0, 11)])
    LabelFile(tmp_path / "q.jsonl").judge(question(), 0, Resolver(index), 1)
    found = read_questions(tmp_path / "q.jsonl", index=index)
    assert found.problems == ()
    assert resolve(found.questions[0], index).is_judged
