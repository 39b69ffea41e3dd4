"""Answering a set of questions: nothing twice, nothing lost, nothing beyond the limit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.answer_making import AnswerJob
from rag_tui.engine.evaluation.answer_scoring import compare_answer_runs, summarise
from rag_tui.engine.evaluation.answer_store import AnswerStore
from rag_tui.engine.evaluation.answer_types import AnswerProgress, AnswerRun
from rag_tui.engine.evaluation.answers import evaluate_answers
from rag_tui.engine.evaluation.judge import Judge
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.refusals import OUTCOMES, answer_kind, count_outcomes, outcome_of
from rag_tui.engine.evaluation.run_store import BadRunError
from rag_tui.engine.evaluation.types import Evidence, Question, QuestionSet
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import NOT_FOUND, Answer, AnswerState, Document, Prompt, SearchRequest
from tests.conftest import CORPUS
from tests.engine.small_index import index_of, small_models
from tests.sse_server import Script, replay_server, text_events

KEY = "sk-answers-0123456789-secret"
DOCUMENTS = (
    Document("pets.md", "Pets", "Dogs are welcome on the ground floor for 12 euros.", "a"),
    Document("keys.md", "Keys", "A lost key costs 30 euros.\n\nThe key opens the door.", "b"),
)
QUESTIONS = QuestionSet(
    "small",
    (
        Question("dog", "Are dogs welcome?", (Evidence("pets.md", "Dogs are welcome"),)),
        Question("key", "What does a lost key cost?", (Evidence("keys.md", "A lost key"),)),
        Question("pool", "Is there a pool?", answerable=False),
    ),
    fingerprint="f",
)
REQUEST = SearchRequest("", rerank=False)
SETTINGS = AnswerSettings(model="scripted", max_tokens=100)


class Scripted:
    """Answers by question, and counts how often it was asked."""

    name = "scripted"

    def __init__(self, replies: dict[str, str], *, state: AnswerState = "complete") -> None:
        self.replies = replies
        self.state = state
        self.asked: list[str] = []
        self.after: Callable[[], None] = lambda: None

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
        self.asked.append(prompt.question)
        text = self.replies.get(prompt.question, NOT_FOUND)
        self.after()
        await asyncio.sleep(0)
        yield Answer(
            text, self.state, self.name, detail="so it is", input_tokens=1000, output_tokens=100
        )


GOOD = {
    "Are dogs welcome?": "Dogs are welcome on the ground floor for 12 euros [1].",
    "What does a lost key cost?": "A lost key costs 30 euros [1].",
}


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(DOCUMENTS)


@pytest.fixture(scope="module")
def small() -> Models:
    return small_models()


def run_all(
    index: Index, models: Models, answerer: Any, store: AnswerStore, **options: Any
) -> tuple[AnswerRun, list[AnswerProgress]]:
    job = options.pop("job", AnswerJob(SETTINGS))
    questions = options.pop("questions", QUESTIONS)
    request = options.pop("request", REQUEST)
    items = list(
        evaluate_answers(questions, request, index, models, answerer, job, store=store, **options)
    )
    run = items[-1]
    assert isinstance(run, AnswerRun)
    return run, [item for item in items if isinstance(item, AnswerProgress)]


def test_each_question_gets_its_outcome_by_labels_and_citations(
    index: Index, small: Models, tmp_path: Path
) -> None:
    run, progress = run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path))
    assert [row.outcome for row in run.rows] == [
        "right section", "right section", "refused rightly",
    ]  # fmt: skip
    assert [p.done for p in progress] == [0, 1, 2, 3]
    dog = run.rows[0]
    assert (dog.cited, dog.checks.support_share, dog.checks.n_missing) == ((1,), 1.0, 0)
    ref = dog.sources[0]
    assert (ref.document, ref.start, ref.end) == ("pets.md", 0, len(DOCUMENTS[0].text))
    summary = summarise(run)
    assert summary.outcomes["right section"] == 2
    assert (summary.input_tokens, summary.output_tokens) == (3000, 300)
    assert summary.support is not None
    assert summary.support.mean == 1.0


def test_the_demo_is_answered_from_the_right_sections_or_refused(
    guesthouse: Index, models: Models, tmp_path: Path
) -> None:
    questions = read_questions(CORPUS / "questions.jsonl", index=guesthouse)
    run, _ = run_all(
        guesthouse, models, ExtractiveAnswerer(models), AnswerStore(tmp_path),
        questions=questions, request=SearchRequest(""),
    )  # fmt: skip
    outcomes = {row.qid: row.outcome for row in run.rows}
    assert {outcomes[qid] for qid in ("u01", "u02", "u03", "u04")} == {"refused rightly"}
    answerable = [outcome for qid, outcome in outcomes.items() if qid.startswith("q")]
    assert len(answerable) == 18
    assert answerable.count("right section") >= 12
    assert answerable.count("other section") <= 1
    # The rest is refused, although the section was in the prompt: never invented.
    assert set(answerable) <= {"right section", "other section", "false refusal"}
    # By the sections' headings, without labels resolved to places, it is the same.
    for question, row in zip(questions.questions, run.rows, strict=True):
        headings = {(e.document, e.heading) for e in question.evidence}
        cited = [guesthouse.chunk(row.sources[n - 1].chunk_id) for n in row.cited]
        is_right = any((chunk.doc_id, chunk.heading_path[-1]) in headings for chunk in cited)
        assert is_right == (row.outcome == "right section")
    # Quotations are supported by construction.
    summary = summarise(run)
    assert summary.support is not None
    assert (summary.support.mean, summary.n_missing_figures) == (1.0, 0)


@pytest.mark.parametrize(
    ("reply", "outcomes"),
    [
        (NOT_FOUND, ("false refusal", "refused rightly")),
        (f" {NOT_FOUND}\n", ("false refusal", "refused rightly")),
        (f"{NOT_FOUND} But 12 euros [1].", ("hedged", "hedged")),
        (NOT_FOUND.lower(), ("other section", "missing refusal")),
        ("It is so [1].", ("right section", "missing refusal")),
        ("It is so [9].", ("other section", "missing refusal")),
        ("It is so.", ("other section", "missing refusal")),
    ],
)
def test_refusals_are_told_from_answers_exactly(
    index: Index, small: Models, tmp_path: Path, reply: str, outcomes: tuple[str, str]
) -> None:
    answerer = Scripted(dict.fromkeys(("Are dogs welcome?", "Is there a pool?"), reply))
    run, _ = run_all(index, small, answerer, AnswerStore(tmp_path))
    assert (run.rows[0].outcome, run.rows[2].outcome) == outcomes


def test_a_refusal_without_the_evidence_in_the_prompt_is_the_searchs_fault(
    index: Index, small: Models, tmp_path: Path
) -> None:
    asked = Question("x", "Are dogs welcome?", (Evidence("keys.md", "The key opens the door."),))
    questions = QuestionSet("one", (asked, replace(asked, qid="y", evidence=())), fingerprint="g")
    run, _ = run_all(
        index, small, Scripted({}), AnswerStore(tmp_path), questions=questions,
        job=AnswerJob(replace(SETTINGS, n_sources=1)),
    )  # fmt: skip
    assert [row.outcome for row in run.rows] == ["not in sources", "unjudged"]


def test_outcomes_are_all_explained_and_counted() -> None:
    counted = count_outcomes(["hedged", "hedged", "right section"])
    assert list(counted) == list(OUTCOMES)
    assert (counted["hedged"], counted["right section"], counted["other section"]) == (2, 1, 0)
    failed = answer_kind(Answer("", "failed", "m"))
    assert outcome_of(failed, is_answerable=True, cites_evidence=True, has_evidence=True) == (
        "no answer"
    )
    other = "No lo encontré."
    assert answer_kind(Answer(other, "complete", "m"), other) == "not found"
    assert answer_kind(Answer(NOT_FOUND, "complete", "m"), other) == "answered"


def test_a_second_pass_asks_only_what_is_missing(
    index: Index, small: Models, tmp_path: Path
) -> None:
    first = Scripted(GOOD)
    token = CancelToken()
    first.after = lambda: token.cancel() if len(first.asked) == 2 else None
    run, _ = run_all(index, small, first, AnswerStore(tmp_path), cancel=token)
    assert run.stopped == "cancelled"
    assert [row.qid for row in run.rows] == ["dog"]
    second = Scripted(GOOD)
    run, _ = run_all(index, small, second, AnswerStore(tmp_path))
    assert second.asked == ["What does a lost key cost?", "Is there a pool?"]
    assert (run.n_known, len(run.rows), run.stopped) == (1, 3, "")
    assert run.spent == pytest.approx(2 * (1000 * 5 + 100 * 25) / 1e6)


def test_other_prompts_models_and_answerers_are_asked_anew(
    index: Index, small: Models, tmp_path: Path
) -> None:
    run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path))
    for job in (
        AnswerJob(replace(SETTINGS, model="another")),
        AnswerJob(replace(SETTINGS, n_sources=1)),
        AnswerJob(replace(SETTINGS, template="documents")),
    ):
        again = Scripted(GOOD)
        run_all(index, small, again, AnswerStore(tmp_path), job=job)
        assert len(again.asked) == 3, job
    same = Scripted(GOOD)
    run_all(index, small, same, AnswerStore(tmp_path))
    assert same.asked == []


def test_mended_labels_change_outcomes_without_asking(
    index: Index, small: Models, tmp_path: Path
) -> None:
    run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path))
    moved = replace(QUESTIONS.questions[0], evidence=(Evidence("keys.md", "A lost key"),))
    again = Scripted(GOOD)
    questions = replace(QUESTIONS, questions=(moved,))
    run, _ = run_all(index, small, again, AnswerStore(tmp_path), questions=questions)
    assert (run.rows[0].outcome, again.asked) == ("other section", [])


def test_nothing_is_asked_that_could_pass_the_cost_limit(
    index: Index, small: Models, tmp_path: Path
) -> None:
    # An answer of 100 tokens costs at most 0.0025 and its prompt, of 200 to 1,000 tokens, 0.001 to
    # 0.005. The first really costs 0.0075; with the second it would be more than 0.010.
    answerer = Scripted(GOOD)
    job = AnswerJob(SETTINGS, prices=Prices(), cost_limit=0.0100)
    run, _ = run_all(index, small, answerer, AnswerStore(tmp_path), job=job)
    assert answerer.asked == ["Are dogs welcome?"]
    assert run.spent == pytest.approx(0.0075)
    assert "the cost limit of 0.01 USD: 0.0075 USD are spent" in run.stopped
    assert [row.qid for row in run.rows] == ["dog"]
    none = Scripted(GOOD)
    run, _ = run_all(
        index, small, none, AnswerStore(tmp_path / "b"), job=replace(job, cost_limit=0.0)
    )
    assert (none.asked, run.rows) == ([], ())
    # What is known costs nothing and is always there.
    free = Scripted(GOOD)
    run, _ = run_all(index, small, free, AnswerStore(tmp_path), job=replace(job, cost_limit=0.0))
    assert (free.asked, len(run.rows)) == ([], 1)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(
    index: Index, small: Models, tmp_path: Path, limit: float
) -> None:
    job = AnswerJob(SETTINGS, cost_limit=limit)
    with pytest.raises(UsageError, match="cost limit"):
        run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path), job=job)


def test_failed_answers_are_not_kept_and_five_in_a_row_end_the_pass(
    index: Index, small: Models, tmp_path: Path
) -> None:
    many = tuple(
        replace(QUESTIONS.questions[0], qid=f"d{n}", text=f"Are {n} dogs welcome?")
        for n in range(8)
    )
    questions = QuestionSet("many", many, fingerprint="m")
    broken = Scripted({}, state="failed")
    run, _ = run_all(index, small, broken, AnswerStore(tmp_path), questions=questions)
    assert len(broken.asked) == len(run.rows) == 5
    assert "5 answers failed one after the other, the last: so it is" in run.stopped
    mended = Scripted({})
    run, _ = run_all(index, small, mended, AnswerStore(tmp_path), questions=questions)
    assert len(mended.asked) == 8


def test_a_hanging_answerer_is_left_soon_after_a_cancel(
    index: Index, small: Models, tmp_path: Path
) -> None:
    token = CancelToken()
    closed = []

    class Hanging:
        name = "hanging"

        async def stream(self, prompt: Prompt) -> AsyncIterator[str | Answer]:
            token.cancel()
            try:
                await asyncio.Event().wait()
            finally:
                closed.append(prompt.question)
            yield "never"

    run, _ = run_all(index, small, Hanging(), AnswerStore(tmp_path), cancel=token)
    assert (run.stopped, run.rows, closed) == ("cancelled", (), ["Are dogs welcome?"])


def test_a_filtered_out_chunk_is_in_no_prompt_even_as_a_neighbour(
    index: Index, small: Models, tmp_path: Path
) -> None:
    request = replace(REQUEST, post=replace(REQUEST.post, neighbours=1))
    job = AnswerJob(replace(SETTINGS, n_sources=1))
    questions = replace(QUESTIONS, questions=QUESTIONS.questions[1:2])
    run, _ = run_all(
        index, small, Scripted(GOOD), AnswerStore(tmp_path), request=request, job=job,
        questions=questions,
    )  # fmt: skip
    whole = len(DOCUMENTS[1].text)
    assert [(ref.start, ref.end) for ref in run.rows[0].sources] == [(0, whole)]
    filtered = replace(request, where="line<=1")
    run, _ = run_all(
        index, small, Scripted(GOOD), AnswerStore(tmp_path), request=filtered, job=job,
        questions=questions,
    )  # fmt: skip
    assert [(ref.start, ref.end) for ref in run.rows[0].sources] == [
        (0, len("A lost key costs 30 euros."))
    ]


def test_a_run_comes_back_as_it_was_kept(index: Index, small: Models, tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    run, _ = run_all(index, small, Scripted(GOOD), store)
    kept = store.save(run, "first")
    assert AnswerStore(tmp_path).load("first") == kept
    assert store.save(run).name.endswith("-1")
    with pytest.raises(UsageError, match="already"):
        store.save(run, "first")
    with pytest.raises(BadRunError, match="no run of answers 'second'"):
        store.load("second")
    assert all(p.stat().st_mode & 0o077 == 0 for p in store.folder.rglob("*.json*"))
    (store.folder / "runs" / "bad.json").write_text("{")
    runs, damaged = store.runs()
    assert len(runs) == 2
    assert len(damaged) == 1


def test_damaged_lines_cost_only_themselves(index: Index, small: Models, tmp_path: Path) -> None:
    run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path))
    path = tmp_path / "answers" / "asked.jsonl"
    lines = path.read_text().splitlines()
    torn = [lines[0], lines[1].replace('"complete"', '"finished"'), lines[2][:50]]
    path.write_text("\n".join(torn))
    store = AnswerStore(tmp_path)
    assert store.n_damaged == 2
    again = Scripted(GOOD)
    run_all(index, small, again, store)
    assert again.asked == ["What does a lost key cost?", "Is there a pool?"]
    assert AnswerStore(tmp_path).n_damaged == 2


def test_two_runs_tell_what_was_fixed_and_what_broke(
    index: Index, small: Models, tmp_path: Path
) -> None:
    worse = {"What does a lost key cost?": "12 euros.", "Are dogs welcome?": NOT_FOUND}
    before, _ = run_all(
        index, small, Scripted({**worse, "Is there a pool?": "Yes [1]."}), AnswerStore(tmp_path)
    )
    after, _ = run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path / "b"))
    change = compare_answer_runs(before, after)
    assert [(c.qid, c.kind) for c in change.changes] == [
        ("dog", "fixed"), ("key", "fixed"), ("pool", "fixed"),
    ]  # fmt: skip
    assert [c.kind for c in compare_answer_runs(after, before).changes] == ["broken"] * 3
    same = compare_answer_runs(after, after)
    assert (same.changes, same.n_same, same.n_same_text, same.notes) == ((), 3, 3, ())
    other = replace(after, answerer="other", settings={**after.settings, "answer.n_sources": 1})
    assert compare_answer_runs(after, other).notes == (
        "answered by scripted, then by other", "answer.n_sources: 5, then 1",
    )  # fmt: skip


def test_judgements_are_asked_once_kept_and_never_hold_the_key(
    index: Index, small: Models, tmp_path: Path
) -> None:
    reply = json.dumps({"code": "c0de", "verdict": "wrong", "reason": f"no {KEY[:3]}"})
    with replay_server(Script(events=text_events(reply))) as server:
        settings = replace(SETTINGS, base_url=server.base_url)
        judge = Judge(
            settings, environ={"ANTHROPIC_API_KEY": KEY}, prices=Prices(), make_code=lambda: "c0de"
        )
        run, _ = run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path), judge=judge)
        assert len(server.requests) == 2  # the unanswerable question is not judged
        store = AnswerStore(tmp_path)
        run, _ = run_all(index, small, Scripted(GOOD), store, judge=judge)
        assert len(server.requests) == 2
    assert [row.judgement.verdict if row.judgement else "" for row in run.rows] == [
        "wrong", "wrong", "",
    ]  # fmt: skip
    assert summarise(run).verdicts == {"correct": 0, "partly": 0, "wrong": 2, "no verdict": 0}
    store.save(run, "judged")
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY not in path.read_text()


def test_a_judge_out_of_reach_leaves_no_judgement_behind(
    index: Index, small: Models, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, base_url="http://127.0.0.1:9", max_retries=0)
    judge = Judge(settings, environ={})
    store = AnswerStore(tmp_path)
    run, _ = run_all(index, small, Scripted(GOOD), store, judge=judge)
    verdicts: Sequence[Any] = [row.judgement for row in run.rows]
    assert verdicts[0].verdict == "no verdict"
    assert '"judgement":{' not in (tmp_path / "answers" / "asked.jsonl").read_text()


def test_a_judge_that_the_limit_forbids_leaves_the_answer(
    index: Index, small: Models, tmp_path: Path
) -> None:
    judge = Judge(replace(SETTINGS, base_url="http://127.0.0.1:9"), environ={})
    job = AnswerJob(SETTINGS, cost_limit=0.02)  # one answer, but no 2,048 tokens of a judge
    run, _ = run_all(index, small, Scripted(GOOD), AnswerStore(tmp_path), judge=judge, job=job)
    assert [row.qid for row in run.rows] == ["dog"]
    assert run.rows[0].judgement is None
    assert "cost limit" in run.stopped
