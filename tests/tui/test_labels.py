"""Labelling on the Search screen: keys, marks, recall, and what is in the file afterwards."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import resolve
from rag_tui.engine.evaluation.types import Question
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.labels import LabelBook, read_book
from rag_tui.tui.screens.grade import GradeScreen
from rag_tui.tui.screens.search import SearchScreen
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle, toasts

WIDE = (160, 45)
ASKED = "Is there somewhere to park?"
DOG = "Can I bring my dog?"


@pytest.fixture
def folder(corpus: Path, tmp_path: Path) -> Path:
    """The demo corpus with its questions, to write in."""
    return Path(shutil.copytree(corpus, tmp_path / "docs"))


@pytest.fixture
def bare(folder: Path) -> Path:
    """The same without a question file."""
    (folder / "questions.jsonl").unlink()
    return folder


def app_on(folder: Path, backend: SmallBackend) -> RagTuiApp:
    return RagTuiApp(folder, backend=backend)


def row_of(folder: Path, text: str) -> dict[str, object] | None:
    """The line of a question in the file."""
    path = folder / "questions.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return next((row for row in map(json.loads, lines) if row["question"] == text), None)


def grades_in(folder: Path, text: str) -> list[int]:
    row = row_of(folder, text)
    assert row is not None
    evidence = row["evidence"]
    assert isinstance(evidence, list)
    return [one.get("grade", 1) for one in evidence]


def line_text(screen: SearchScreen) -> str:
    return str(screen.query_one("#label-line", Static).render())


async def ask_at_list(pilot: Pilot[None], text: str) -> SearchScreen:
    screen = await ask(pilot, text)
    screen.lists["hybrid"].focus()
    await pilot.press("g")
    await settle(pilot)
    return screen


async def test_r_saves_the_selected_chunk_at_once_and_a_number_grades_it(
    bare: Path, backend: SmallBackend
) -> None:
    app = app_on(bare, backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        await pilot.press("r")
        await settle(pilot)
        assert isinstance(app.screen, GradeScreen)
        assert grades_in(bare, ASKED) == [1]  # before any grade was given
        assert f"Added the question to {bare / 'questions.jsonl'}" in toasts(pilot)
        await pilot.press("3")
        await settle(pilot)
        assert search_screen(pilot) is screen
        assert app.current_mode == "search"
        assert grades_in(bare, ASKED) == [3]
        (question,) = read_questions(bare).questions
        assert app.index is not None
        (place,) = resolve(question, app.index).places
        assert screen.selected in place.chunk_ids
        assert "✓3" in screen_text(pilot)
        assert "✓ judged perfect for this question (grade 3)" in screen_text(pilot)
        # again: the grade that is there stays when the prompt is left
        await pilot.press("r", "escape")
        await settle(pilot)
        assert grades_in(bare, ASKED) == [3]
        # one undo takes back label and grade together
        await pilot.press("U")
        await settle(pilot)
        assert row_of(bare, ASKED) is None
        assert "Took back: graded a passage 3." in toasts(pilot)
        assert "✓" not in screen_text(pilot)


async def test_r_and_a_number_typed_in_a_row_reach_the_prompt_not_the_modes(
    bare: Path, backend: SmallBackend
) -> None:
    app = app_on(bare, backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        first, second = (row.chunk_id for row in screen.lists["hybrid"].rows[:2])
        await pilot.press("r", "2", "j", "r", "j")
        await settle(pilot)
        assert app.current_mode == "search"
        assert sorted(grades_in(bare, ASKED)) == [1, 2]
        assert screen.marks is not None
        assert screen.marks.grades == {first: 2, second: 1}
        assert screen.selected == screen.lists["hybrid"].rows[2].chunk_id


async def test_x_judges_not_relevant_and_a_second_x_takes_the_judgement_away(
    bare: Path, backend: SmallBackend
) -> None:
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        await pilot.press("x")
        await settle(pilot)
        assert grades_in(bare, ASKED) == [0]
        assert screen.lists["hybrid"].gold == {screen.selected: "✗"}
        assert "✗ judged not relevant to this question" in screen_text(pilot)
        assert "no passage is marked relevant yet (r on a row)" in screen_text(pilot)
        await pilot.press("x")
        await settle(pilot)
        assert grades_in(bare, ASKED) == []
        assert screen.lists["hybrid"].gold == {}


async def test_u_marks_the_question_unanswerable_and_a_relevant_chunk_refuses_that(
    bare: Path, backend: SmallBackend
) -> None:
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        await pilot.press("u")
        await settle(pilot)
        row = row_of(bare, ASKED)
        assert row is not None
        assert row["answerable"] is False
        assert "∅ nothing in the documents answers it" in line_text(screen)
        await pilot.press("u")
        await settle(pilot)
        row = row_of(bare, ASKED)
        assert row is not None
        assert "answerable" not in row
        await pilot.press("r", "enter", "u")
        await settle(pilot)
        assert "has evidence, so the documents do answer it" in toasts(pilot)
        assert grades_in(bare, ASKED) == [1]


async def test_a_labelled_question_shows_its_marks_where_gold_stands_and_the_recall_now(
    folder: Path, backend: SmallBackend
) -> None:
    app = app_on(folder, backend)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, DOG)
        assert app.index is not None
        assert screen.results is not None
        question = next(q for q in read_questions(folder).questions if q.text == DOG)
        (place,) = resolve(question, app.index).places
        (gold,) = place.chunk_ids
        recalls = []
        for name, result_list in screen.lists.items():
            ranking = screen.results.rankings[name]
            rank = ranking.rank_of(gold)
            where = f"✓ at {rank}" if rank else f"✓ not among the {len(ranking.hits)}"
            assert where in str(result_list.border_subtitle)
            recalls.append(f"{name} {'1.00' if rank and rank <= 5 else '.00'}")
        assert line_text(screen) == f"{question.qid} 4/22 · R@5 " + " · ".join(recalls)
        # more rows: the recall follows the knobs
        screen.knobs = replace(screen.knobs, top_k=13)
        screen.search(DOG)
        await settle(pilot)
        assert "R@13 vector 1.00" in line_text(screen)
        assert gold in {row.chunk_id for row in screen.lists["vector"].rows}
        assert screen.lists["vector"].gold == {gold: "✓"}
        assert any(" ✓ " in line for line in screen_text(pilot).split("\n")[4:])
        # a question that is not in the file has none of it
        await ask(pilot, ASKED)
        assert not screen.has_class("-labelled")
        assert "r on the row that answers it" in line_text(screen)
        assert "n next of 22 labelled questions" in screen_text(pilot)
        assert screen.lists["vector"].gold == {}
        assert "✓" not in str(screen.lists["vector"].border_subtitle)


async def test_n_and_N_walk_through_the_questions_of_the_file_around_its_ends(
    folder: Path, backend: SmallBackend
) -> None:
    texts = [question.text for question in read_questions(folder).questions]
    async with app_on(folder, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        seen = []
        for key in ("n", "n", "N", "N"):
            await pilot.press(key)
            await settle(pilot)
            assert screen.query_bar.question == screen.question
            seen.append(screen.question)
        assert seen == [texts[0], texts[1], texts[0], texts[-1]]
        assert screen.lists["bm25"].rows or screen.lists["bm25"].message


async def test_without_questions_n_says_how_to_make_some(bare: Path, backend: SmallBackend) -> None:
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        search_screen(pilot).lists["hybrid"].focus()
        await pilot.press("n", "r", "x", "u", "U")
        await settle(pilot)
        told = toasts(pilot)
        assert "There are no labelled questions" in told
        assert "press r on the row that answers it" in told
        assert "There is no question to label for" in told
        assert "There is nothing to undo" in told
        assert not (bare / "questions.jsonl").exists()


async def test_letters_typed_in_the_question_label_nothing(
    bare: Path, backend: SmallBackend
) -> None:
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, ASKED)
        screen.action_focus_query()
        await pilot.press("end", *"rxuUnN")
        await settle(pilot)
        assert screen.query_bar.question == f"{ASKED}rxuUnN"
        assert not (bare / "questions.jsonl").exists()


async def test_where_nothing_can_be_written_the_reason_is_told_and_nothing_is_marked(
    bare: Path, backend: SmallBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise UsageError(f"{path} cannot be written: Permission denied.", "Name another file.")

    monkeypatch.setattr("rag_tui.engine.evaluation.labels.write_atomically", refuse)
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        await pilot.press("r")
        await settle(pilot)
        assert search_screen(pilot) is screen  # there is nothing to grade
        assert "questions.jsonl cannot be written: Permission denied." in toasts(pilot)
        assert screen.lists["hybrid"].gold == {}


async def test_damaged_lines_stay_byte_for_byte_and_a_wholly_damaged_file_is_told(
    bare: Path, backend: SmallBackend
) -> None:
    path = bare / "questions.jsonl"
    damaged = b'{"question": "half\n\xff\xfe not text\n'
    path.write_bytes(damaged)
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, ASKED)
        assert "questions.jsonl holds no usable question" in line_text(screen)
        await pilot.press("r", "enter")
        await settle(pilot)
        assert path.read_bytes().startswith(damaged)
        assert "R@5" in line_text(screen)


async def test_labels_that_others_write_are_seen_with_the_next_search(
    bare: Path, backend: SmallBackend
) -> None:
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, ASKED)
        row = {"question": ASKED, "evidence": [{"file": "house-rules.md", "heading": "Pets"}]}
        (bare / "questions.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        await ask(pilot, ASKED)
        assert "R@5" in line_text(screen)
        # and a label that leads nowhere is told with its reason
        row["evidence"] = [{"file": "gone.md", "quote": "away"}]
        (bare / "questions.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        await ask(pilot, ASKED)
        assert "⚠ 1 label not found: " in line_text(screen)


async def test_a_labelled_question_is_found_in_the_palette(
    folder: Path, backend: SmallBackend
) -> None:
    async with app_on(folder, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = search_screen(pilot)
        await pilot.press("ctrl+p", *"bring my dog")
        await pilot.pause(0.3)
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert screen.question == DOG


@pytest.mark.parametrize("size", [(100, 30), (80, 24), (60, 15)])
async def test_marks_fit_into_every_size(
    folder: Path, backend: SmallBackend, size: tuple[int, int]
) -> None:
    async with app_on(folder, backend).run_test(size=size) as pilot:
        await settle(pilot)
        screen = await ask_at_list(pilot, DOG)
        await pilot.press("r")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "1 relevant" in shown
        assert "3 perfect" in shown
        await pilot.press("escape")
        await settle(pilot)
        assert all(len(line) <= size[0] for line in screen_text(pilot).split("\n"))
        assert "✓" in str(screen.lists["hybrid"].border_subtitle)
        assert "✓ at 1" in screen_text(pilot)


async def test_hostile_questions_and_ids_are_harmless_on_every_surface(
    bare: Path, backend: SmallBackend
) -> None:
    path = bare / "questions.jsonl"
    texts = [*HOSTILE, f"dog {LONG_LINE}"]
    rows = [
        {
            "id": f"{i} {text[:40]}",
            "question": text,
            "evidence": [{"file": "house-rules.md", "heading": "Pets"}, {"file": text[:80]}],
        }
        for i, text in enumerate(texts)
        if text.strip() and "\udcff" not in text
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    async with app_on(bare, backend).run_test(size=WIDE) as pilot:
        await settle(pilot)
        search_screen(pilot).lists["hybrid"].focus()
        for _ in range(3):
            await pilot.press("n")
            await settle(pilot)
            shown = screen_text(pilot)
            assert not [char for char in FORBIDDEN if char in shown.replace("\n", "")]


def test_labels_of_a_data_set_in_another_layout_are_read_and_joined_with_ones_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "a"}\n', "utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "What is a?"}\n', "utf-8")
    qrels = "query-id\tcorpus-id\tscore\n1\td1\t1\n"
    (tmp_path / "qrels" / "test.tsv").write_text(qrels, "utf-8")
    book = read_book(tmp_path)
    assert [(q.qid, len(q.evidence)) for q in book.questions] == [("1", 1)]
    own = {"id": "1", "question": "What is a?", "evidence": [{"file": "b.md", "grade": 0}]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(own) + "\n", "utf-8")
    joined = read_book(tmp_path, book)
    assert [(q.qid, len(q.evidence)) for q in joined.questions] == [("1", 2)]
    assert read_book(tmp_path, joined) is joined


def test_the_neighbours_of_a_question_go_around() -> None:
    questions = (Question("a", "One?"), Question("b", "Two?"))
    book = LabelBook(Path("q.jsonl"), questions, by_words={"one?": 0, "two?": 1})
    assert book.neighbour("Two?", 1) is questions[0]
    assert book.neighbour("unknown", 1) is questions[0]
    assert book.neighbour("unknown", -1) is questions[1]
    assert book.find("  TWO? ") is questions[1]
