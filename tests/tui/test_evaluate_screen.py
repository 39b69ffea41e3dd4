"""The Evaluate screen with the real engine: questions in, measured columns out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.evaluate import EvalProgress
from rag_tui.engine.evaluation.run_store import RunStore
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.types import EvalRun, QuestionSet
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import with_knobs
from rag_tui.engine.loading import Models
from rag_tui.engine.types import SearchRequest
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.keys import checked_keymap, defaults_of
from rag_tui.tui.screens.evaluate import EvaluateScreen
from rag_tui.tui.screens.evaluate_asking import AskScreen, SureScreen
from rag_tui.tui.screens.evaluate_changes import ChangesScreen
from rag_tui.tui.screens.evaluate_groups import GroupsScreen
from rag_tui.tui.screens.evaluate_keys import evaluate_keys
from rag_tui.tui.screens.evaluate_remarks import RemarksScreen
from rag_tui.tui.screens.evaluate_runs import RunsScreen
from rag_tui.tui.screens.evaluate_thresholds import ThresholdsScreen
from rag_tui.tui.screens.passage import PassageScreen
from rag_tui.tui.screens.search import SearchScreen
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import Gate, SmallBackend, screen_text, search_screen, settle, toasts, until

WIDE = (160, 45)

QUESTIONS = (
    {
        "id": "dog",
        "question": "Can I bring my dog?",
        "evidence": [{"file": "house-rules.md", "heading": "Pets"}],
        "tags": ["paraphrase"],
    },
    {
        "id": "lockbox",
        "question": "Where is the lockbox?",
        "evidence": [{"file": "wifi-and-appliances.md", "heading": "Washing machine"}],
        "tags": ["exact word"],
    },
    {
        "id": "key",
        "question": "What happens if I lose my key?",
        "evidence": [
            {"file": "check-in.md", "heading": "Registration and deposit"},
            {"file": "check-in.md", "quote": "words that stand nowhere"},
        ],
    },
    {"id": "sauna", "question": "Is there a sauna?", "answerable": False},
    {"id": "moon", "question": "How far is the moon?", "answerable": False},
)


class CountingBackend(SmallBackend):
    """Counts what is really asked, and may stop before an evaluation's second question."""

    def __init__(self) -> None:
        super().__init__()
        self.n_lists = 0
        self.pause: Gate | None = None

    def evaluate(
        self,
        questions: QuestionSet,
        request: SearchRequest,
        index: Index,
        models: Models,
        store: RunStore,
        *,
        cancel: CancelToken,
    ) -> Iterator[EvalProgress | EvalRun]:
        """The real evaluation."""
        known = None
        for item in super().evaluate(questions, request, index, models, store, cancel=cancel):
            if isinstance(item, EvalProgress):
                known = item.n_known if known is None else known
                self.n_lists = item.done - known
            yield item
            if self.pause is not None and isinstance(item, EvalProgress) and self.n_lists:
                self.pause.hold()


@pytest.fixture
def folder(tmp_path: Path, corpus: Path) -> Path:
    """The demo corpus with a few questions of its own."""
    folder = tmp_path / "guesthouse"
    shutil.copytree(corpus, folder)
    write_questions(folder, QUESTIONS)
    return folder


@pytest.fixture
def small() -> CountingBackend:
    return CountingBackend()


@pytest.fixture
def workbench(folder: Path, small: CountingBackend) -> RagTuiApp:
    return RagTuiApp(folder, backend=small)


def write_questions(folder: Path, questions: object) -> None:
    lines = [json.dumps(one, ensure_ascii=False) for one in questions]  # type: ignore[attr-defined]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


async def opened(pilot: Pilot[None], *, run: bool = True) -> EvaluateScreen:
    """The screen, with a run on show if that is wanted."""
    await settle(pilot)
    await pilot.app.switch_mode("evaluate")
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, EvaluateScreen)
    if run:
        await pilot.press("r")
        await until(pilot, lambda: screen.scored is not None)
        await settle(pilot)
    return screen


def said(screen: EvaluateScreen, name: str) -> str:
    """The text of one of the screen's lines."""
    return str(screen.query_one(f"#{name}", Static).render())


async def test_key_3_shows_the_questions_and_the_key_that_asks_them(workbench: RagTuiApp) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("escape", "3")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "3 Evaluate" in shown
        assert "5 questions: 3 answerable, 2 that nothing answers" in shown
        assert "3 have evidence that was found in the documents; 1 label not found" in shown
        assert "0 problems in the file" in shown
        assert "Press r to ask them in 4 columns: vector, bm25, hybrid, reranked" in shown
        assert "20 lists of 100 candidates" in shown
        for key in ("b", "s", "t", "u", "n", "slash"):
            await pilot.press(key)
        assert "Nothing has been measured yet." in toasts(pilot)
        await pilot.press("i")
        await pilot.pause()
        assert "words that stand nowhere" in screen_text(pilot) or "quote" in screen_text(pilot)
        assert isinstance(workbench.screen, RemarksScreen)


async def test_without_questions_it_says_how_to_make_some_and_notices_when_they_are_there(
    workbench: RagTuiApp, folder: Path
) -> None:
    (folder / "questions.jsonl").unlink()
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot, run=False)
        shown = screen_text(pilot)
        assert "There are no questions to measure with." in shown
        assert "press r on the row that answers it" in shown
        assert "Draft questions" in shown
        assert '{"id": "q1", "question": "…", "evidence"' in shown
        await pilot.press("r", "o", "I")
        await settle(pilot)
        assert "There are no questions to ask." in toasts(pilot)
        write_questions(folder, QUESTIONS)
        await workbench.switch_mode("search")
        await workbench.switch_mode("evaluate")
        await settle(pilot)
        assert screen.problem is None
        assert "Press r to ask them" in screen_text(pilot)


async def test_a_run_shows_the_engines_own_figures_and_asks_nothing_twice(
    workbench: RagTuiApp, small: CountingBackend
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        scored = screen.scored
        assert scored is not None
        assert small.n_lists == 20
        assert scored.is_whole
        labelled = scored.labelled
        expected = score(scored.run, labelled.resolved, screen.measures, labelled.questions.unit)
        assert scored.table == expected
        shown = screen_text(pilot)
        for column in expected.columns:
            mean = column.cells[0].interval
            assert mean is not None
            line = next(x for x in shown.splitlines() if x[2:].startswith(column.name))
            assert f"{mean.mean:.3f}".lstrip("0") in line
        assert "3 of 5 questions judged" in said(screen, "conscience")
        assert "1 label not found" in said(screen, "conscience")
        assert "unjudged" in said(screen, "conscience")
        ranks = {one.qid: one.ranks for one in expected.questions}
        drawn = next(line for line in shown.splitlines() if "dog  Can I" in line)
        found = ["–" if rank is None else str(rank) for rank in ranks["dog"]]
        assert [part.strip("[]") for part in drawn.split()[-4:]] == found
        # nothing has changed: nothing is asked
        await pilot.press("r")
        await settle(pilot)
        assert small.n_lists == 0
        assert "reused 20 of 20 lists" in said(screen, "set-line")
        assert screen.store is not None
        assert len(screen.store.list().runs) == 1
        # a knob of BM25 leaves the vector column alone
        search = screen.search_screen
        assert search is not None
        await search.change_knobs(with_knobs(search.knobs, {"bm25.k1": 0.5}))
        screen.show_state()
        assert "the knobs are others now" in said(screen, "set-line")
        await pilot.press("r")
        await settle(pilot)
        assert small.n_lists == 15
        assert "reused 5 of 20 lists" in said(screen, "set-line")
        assert "the knobs are others now" not in said(screen, "set-line")


async def test_escape_stops_a_run_keeps_what_was_asked_and_the_next_one_goes_on(
    workbench: RagTuiApp, small: CountingBackend
) -> None:
    small.pause = gate = Gate()
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot, run=False)
        await pilot.press("r")
        await until(pilot, gate.reached.is_set)
        assert "asking" in said(screen, "job-line")
        assert "3/20" in said(screen, "job-line")
        assert "esc stops" in said(screen, "job-line")
        await pilot.press("r")
        assert "being asked already" in toasts(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert "stopping" in said(screen, "job-line")
        small.pause = None
        gate.opened.set()
        await until(pilot, lambda: screen.scored is not None)
        await settle(pilot)
        part = screen.scored
        assert part is not None
        assert not part.is_whole
        assert "stopped half-way, r goes on" in said(screen, "set-line")
        assert screen.store is not None
        assert screen.store.list().runs == ()  # half a run is not kept
        await pilot.press("r")
        await settle(pilot)
        whole = screen.scored
        assert whole is not None
        assert whole.is_whole
        assert small.n_lists == 17


async def test_a_column_that_fails_is_not_scored_and_says_why(
    workbench: RagTuiApp, small: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Iterator[float]:
        raise UsageError("the reranker is broken")

    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot, run=False)
        session = workbench.session
        assert session is not None
        monkeypatch.setattr(type(session.models.reranker()), "score", fail)
        await pilot.press("r")
        await until(pilot, lambda: screen.scored is not None)
        await settle(pilot)
        shown = screen_text(pilot)
        assert "✗ not scored: failed for every question: the reranker is broken" in shown
        assert "not scored everywhere: reranked" in said(screen, "conscience")
        await pilot.press("i")
        await pilot.pause()
        assert "Columns that are not scored" in screen_text(pilot)


async def test_baseline_measures_sort_and_filter_are_chosen_by_keys(workbench: RagTuiApp) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        screen.scores.focus()
        await pilot.press("down", "b")
        await settle(pilot)
        assert screen.scored is not None
        assert screen.scored.table.baseline == "bm25"
        assert "against bm25" in screen_text(pilot)
        await pilot.press("right", "right")
        assert screen.scores.measure == "R@5"
        assert "bm25 R@5" in said(screen, "cell-line")
        await pilot.press("m")
        await pilot.pause()
        asking = workbench.screen
        assert isinstance(asking, AskScreen)
        asking.query_one(Input).value = "R@x"
        await pilot.press("enter")
        assert workbench.screen is asking
        assert "There is no measure 'R@x'" in screen_text(pilot)
        asking.query_one(Input).value = "2,20"
        await pilot.press("enter")
        await settle(pilot)
        assert screen.measures == ("R@2", "R@20", "RR@10", "nDCG@10")
        assert "R@20" in screen_text(pilot)
        await pilot.press("slash", *"tag:exact", "enter")
        await pilot.pause()
        assert [one.qid for one in screen.matrix.rows] == ["lockbox"]
        assert "1 of 3 questions" in said(screen, "matrix-line")
        await pilot.press("escape")
        await pilot.pause()
        assert len(screen.matrix.rows) == 3
        assert screen.focused is screen.matrix
        await pilot.press("s", "s")
        assert "in the order of the file" in said(screen, "matrix-line")
        assert [one.qid for one in screen.matrix.rows] == ["dog", "lockbox", "key"]
        await pilot.press("t")
        await pilot.pause()
        assert isinstance(workbench.screen, GroupsScreen)
        assert "by document of the evidence" in screen_text(pilot)
        await pilot.press("m", "down", "enter")
        await pilot.pause()
        assert screen.matrix.needle.startswith("tag:")
        assert len(screen.matrix.rows) == 1


async def test_enter_opens_the_question_in_search_with_its_column_and_evidence(
    workbench: RagTuiApp,
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        screen.matrix.sort = "file"
        screen.matrix.reorder()
        screen.matrix.cursor, screen.matrix.active = 1, 1
        picked = screen.matrix.picked
        assert picked is not None
        assert (picked.question.qid, picked.rank) == ("lockbox", 1)
        await pilot.press("enter")
        await settle(pilot)
        search = search_screen(pilot)
        assert search.question == "Where is the lockbox?"
        assert search.active == "bm25"
        assert search.chunk is not None
        assert search.chunk.heading_path[-1] == "Washing machine"
        assert search.lists["bm25"].gold[search.chunk.chunk_id].startswith("✓")
        # what is labelled there counts here, without asking anything again
        assert screen.scored is not None
        assert screen.scored.table.n_judged == 3
        before = screen.scored.table.columns[1].n_unjudged
        await pilot.press("down", "r")
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert screen.scored.table.columns[1].n_unjudged == before - 1
        assert "questions or labels are others now" in said(screen, "set-line")


async def test_a_dash_opens_where_the_passage_was_lost(workbench: RagTuiApp, folder: Path) -> None:
    lost = {
        "id": "lost",
        "question": "zebra xylophone",
        "evidence": [{"file": "house-rules.md", "heading": "Pets"}],
    }
    write_questions(folder, [lost, *QUESTIONS])
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        screen.matrix.sort = "file"
        screen.matrix.reorder()
        screen.matrix.cursor, screen.matrix.active = 0, 1
        assert screen.matrix.picked is not None
        assert screen.matrix.picked.rank is None
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(workbench.screen, PassageScreen))
        await settle(pilot)
        assert isinstance(workbench.screen_stack[0], SearchScreen)
        assert workbench.screen_stack[0].active == "bm25"


async def test_unanswerable_questions_are_told_apart_and_the_threshold_is_used_for_the_session(
    workbench: RagTuiApp,
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await pilot.press("u")
        await pilot.pause()
        dialog = workbench.screen
        assert isinstance(dialog, ThresholdsScreen)
        shown = screen_text(pilot)
        assert "AUC" in shown
        assert "answerable 3" in shown
        assert "unanswerable 2" in shown
        rows = dialog._list.rows
        place = next(i for i, row in enumerate(rows) if row.column.name == "vector")
        dialog._list.cursor = place
        threshold = rows[place].found.threshold
        await pilot.press("enter")
        await settle(pilot)
        search = screen.search_screen
        assert search is not None
        assert search.knobs.post.min_vector == pytest.approx(threshold)
        assert f"[post]\nmin_vector = {threshold:.6g}" in toasts(pilot)
        await pilot.press("u")
        await pilot.pause()
        dialog = workbench.screen
        assert isinstance(dialog, ThresholdsScreen)
        rows = dialog._list.rows
        dialog._list.cursor = next(i for i, r in enumerate(rows) if r.column.name == "reranked")
        await pilot.press("enter")
        await settle(pilot)
        assert workbench.session is not None
        told = workbench.session.settings.engine.answer.not_found_below
        assert told is not None
        assert "[answer]\nnot_found_below = " in toasts(pilot)


async def test_runs_are_named_listed_compared_used_as_baseline_and_deleted(
    workbench: RagTuiApp, small: CountingBackend
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await pilot.press("n")
        await pilot.pause()
        await pilot.press(*"before", "enter")
        await settle(pilot)
        assert said(screen, "set-line").startswith("run before")
        search = screen.search_screen
        assert search is not None
        await search.change_knobs(with_knobs(search.knobs, {"bm25.b": 0.0, "bm25.k1": 3.0}))
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("o")
        await settle(pilot)
        runs = workbench.screen
        assert isinstance(runs, RunsScreen)
        assert [head.name for head in runs._rows.heads][1] == "before"
        await pilot.press("down")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "this index" in shown
        assert "bm25.k1 1.5 (now 3.0), bm25.b 0.75 (now 0.0)" in shown
        await pilot.press("c")
        await settle(pilot)
        changes = workbench.screen
        assert isinstance(changes, ChangesScreen)
        shown = screen_text(pilot)
        assert "before → " in shown
        assert "bm25.k1: 1.5 → 3.0" in shown
        assert "vector: no change" in shown
        await pilot.press("escape", "o")
        await settle(pilot)
        await pilot.press("down", "b")
        await settle(pilot)
        assert screen.scored is not None
        assert screen.scored.table.baseline == "run before"
        await pilot.press("o")
        await settle(pilot)
        await pilot.press("down", "d")
        await pilot.pause()
        assert isinstance(workbench.screen, SureScreen)
        await pilot.press("n")
        await settle(pilot)
        assert screen.store is not None
        assert "before" in [head.name for head in screen.store.list().runs]
        await pilot.press("d", "y")
        await settle(pilot)
        assert "before" not in [head.name for head in screen.store.list().runs]


async def test_a_run_has_not_changed_against_itself_is_exported_and_comes_back_as_a_column(
    workbench: RagTuiApp, tmp_path: Path
) -> None:
    async with workbench.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await pilot.press("o")
        await settle(pilot)
        await pilot.press("c")
        await settle(pilot)
        assert isinstance(workbench.screen, ChangesScreen)
        shown = screen_text(pilot)
        assert "No change: every list of both runs is the same." in shown
        assert "hybrid: no change" in shown
        await pilot.press("escape")
        target = tmp_path / "out.trec"
        await pilot.press("x")
        await pilot.pause()
        workbench.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await settle(pilot)
        names = sorted(path.name for path in tmp_path.glob("out*"))
        assert names == [
            "out-bm25.trec",
            "out-hybrid.trec",
            "out-reranked.trec",
            "out-vector.trec",
            "out.qrels",
        ]
        assert str(tmp_path / "out-bm25.trec") in toasts(pilot)
        await pilot.press("x")
        await pilot.pause()
        workbench.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await settle(pilot)
        assert "exists already" in toasts(pilot)
        await pilot.press("I")
        await pilot.pause()
        workbench.screen.query_one(Input).value = str(tmp_path / "out-bm25.trec")
        await pilot.press("enter")
        await settle(pilot)
        assert screen.scored is not None
        columns = {column.name: column for column in screen.scored.table.columns}
        assert "bm25 2" in columns  # the name was taken
        own, other = columns["bm25"].cells[0], columns["bm25 2"].cells[0]
        assert own.interval == other.interval
        await pilot.press("r")  # it stays beside the columns of the next run
        await settle(pilot)
        assert [column.name for column in screen.scored.table.columns][-1] == "bm25 2"


async def test_the_screen_is_usable_at_every_size(workbench: RagTuiApp) -> None:
    async with workbench.run_test(size=(100, 30)) as pilot:
        screen = await opened(pilot)
        for size in ((100, 30), (80, 24), (40, 10)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            shown = screen_text(pilot).splitlines()
            assert any("dog" in line for line in shown), size
            assert any("▾" in line for line in shown), size
            told = next((line.strip() for line in shown if "  column " in line), "")
            assert told.endswith(("enter opens in Search", "…")), told
            for key in ("u", "t", "i", "o"):
                await pilot.press(key)
                await settle(pilot)
                assert workbench.screen is not screen
                await pilot.press("escape")
                await pilot.pause()
            assert workbench.screen is screen
        assert "vector" not in "".join(shown[2:])
        await pilot.press("tab")
        await settle(pilot)
        assert any(line[2:].startswith("reranked") for line in screen_text(pilot).splitlines())
        assert screen.focused is screen.scores


async def test_hostile_questions_tags_and_run_names_break_nothing(
    workbench: RagTuiApp, folder: Path
) -> None:
    evidence = [{"file": "house-rules.md", "heading": "Pets"}]
    texts = [*(text for text in HOSTILE if "\udcff" not in text), LONG_LINE[:50_000]]
    hostile = [
        {
            "id": f"{i}{text[:40]}",
            "question": f"dog {text}",
            "evidence": evidence,
            "tags": [text[:60]],
        }
        for i, text in enumerate(texts)
    ]
    lost = {"file": "[/b]\x1b[31m.md", "quote": "[/b] \x07 nowhere"}
    write_questions(folder, [*hostile, {**QUESTIONS[2], "evidence": [*evidence, lost]}])
    async with workbench.run_test(size=(100, 30)) as pilot:
        screen = await opened(pilot)
        assert screen.scored is not None
        for key in ("s", "s", "s", "down", "end"):
            await pilot.press(key)
        for key in ("t", "i", "o"):
            await pilot.press(key)
            await settle(pilot)
            assert not [c for c in FORBIDDEN if c in screen_text(pilot)]
            await pilot.press("down", "escape")
            await pilot.pause()
        assert not [c for c in FORBIDDEN if c in screen_text(pilot)]
        await pilot.press("enter")
        await settle(pilot)
        assert not [c for c in FORBIDDEN if c in screen_text(pilot)]


def test_every_key_of_the_screen_and_its_dialogs_can_be_remapped_without_a_clash() -> None:
    others = defaults_of(evaluate_keys())
    assert "evaluate.run" in others
    keymap, problems = checked_keymap({"evaluate.run": "R", "runs.delete": "D"}, others)
    assert problems == ()
    assert keymap["evaluate.run"] == "R"
    _, problems = checked_keymap({"evaluate.run": "j"}, others)
    assert "already the key of 'list.down'" in problems[0]
    for binding_id in others:  # no default key is taken twice where both act
        _, problems = checked_keymap({binding_id: others[binding_id]}, others)
        assert problems == (), binding_id
