"""``rag-tui eval --answers`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_ask import docs
from tests.cli.test_commands import env, rag_tui
from tests.sse_server import Script, replay_server, text_events

__all__ = ["docs", "env"]

KEY = "sk-eval-0123456789-secret"
QUESTIONS = (
    {"id": "dog", "question": "Are dogs welcome on the ground floor?", "answer": "Yes, 12 euros.",
     "evidence": [{"file": "house.md", "heading": "Pets"}]},
    {"id": "key", "question": "What does a lost key cost?",
     "evidence": [{"file": "keys.md", "quote": "A lost key costs 30 euros."}]},
    {"id": "pool", "question": "Is there a swimming pool?", "answerable": False},
)  # fmt: skip


@pytest.fixture
def labelled(docs: Path) -> str:
    lines = (json.dumps(question) for question in QUESTIONS)
    (docs / "questions.jsonl").write_text("\n".join(lines))
    return str(docs)


def test_a_table_tells_outcomes_support_time_and_cost(labelled: str, env: dict[str, str]) -> None:
    told = rag_tui("eval", labelled, "--answers", "--save", "first", env=env).stdout
    assert "run first, answers by extractive" in told
    for line in (
        "right section: 2 answered, and cites a place",
        "other section: 0 ",
        "refused rightly: 1 ",
        "false refusal: 0 ",
        "missing refusal: 0 ",
        "support: 100% of the claims",
    ):
        assert line in " ".join(told.split())
    again = rag_tui("eval", labelled, "--answers", "--baseline", "first", env=env).stdout
    assert "(3 answers were known)" in again
    assert "fixed 0, broken 0, otherwise changed 0, same 3 (3 word for word)" in again
    runs = rag_tui("eval", labelled, "--answer-runs", env=env).stdout
    assert runs.splitlines()[1].split()[:3] == ["first", "extractive", "3/3"]
    assert len(runs.splitlines()) == 3
    taken = rag_tui("eval", labelled, "--answers", "--save", "first", env=env, code=2)
    assert "already" in taken.stderr


def test_a_service_is_paid_judged_and_labelled_and_its_key_is_nowhere(
    labelled: str, env: dict[str, str], tmp_path: Path
) -> None:
    with replay_server(Script(text_events("Yes, for 99 euros [1]."))) as server:
        env |= {"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": KEY}
        flags = ("eval", labelled, "--answers", "--judge")
        found = json.loads(rag_tui(*flags, "--json", env=env).stdout)
        # Three answers and two judgements, of 100 tokens read and 20 written each.
        assert len(server.requests) == 5
        assert found["spent"] == pytest.approx(5 * (100 * 5 + 20 * 25) / 1e6)
        # The server says the same to the judge's question: no verdict, counted as such.
        assert found["summary"]["verdicts"]["no verdict"] == 2
        assert found["summary"]["outcomes"]["missing refusal"] == 1
        assert found["summary"]["n_missing_figures"] == 3
        labels = ("--label", "dog=wrong", "--label", "key=wrong")
        told = rag_tui(*flags, *labels, env=env).stdout
        assert len(server.requests) == 5
    assert "no verdict  wrong" in told
    assert (
        "judge and labels, n=0: kappa nothing is labelled and judged; 2 without a verdict" in told
    )
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "asked.jsonl" for path in written)
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


def test_a_cost_limit_stops_and_says_so(labelled: str, env: dict[str, str]) -> None:
    with replay_server(Script(text_events("Yes [1]."))) as server:
        env["ANTHROPIC_BASE_URL"] = server.base_url
        done = rag_tui("eval", labelled, "--answers", "--cost-limit", "0.01", env=env)
        assert server.requests == []
    assert "stopped: the cost limit of 0.01 USD" in done.stderr
    assert "not asked: 3 questions" in done.stdout


def test_a_judge_without_a_key_and_odd_flags_are_refused(
    labelled: str, env: dict[str, str]
) -> None:
    none = rag_tui("eval", labelled, "--answers", "--judge", env=env, code=1)
    assert "no API key is set" in none.stderr
    assert "--answers" in rag_tui("eval", labelled, "--judge", env=env, code=2).stderr
    lost = rag_tui("eval", labelled, "--label", "dog=right", env=env, code=2)
    assert "no run of answers to label" in lost.stderr


def test_when_every_answer_fails_the_exit_code_says_so(labelled: str, env: dict[str, str]) -> None:
    with replay_server(Script(status=401, message=f"no {KEY}")) as server:
        env |= {"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": KEY}
        done = rag_tui("eval", labelled, "--answers", env=env, code=1)
    assert "no answer: failed" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_gate_of_lists_is_refused_with_answers_instead_of_being_met(
    labelled: str, env: dict[str, str]
) -> None:
    for flags in (["--fail-under", "bm25:R@1=0.9"], ["--fail-on-regression"], ["--html", "a.html"]):
        refused = rag_tui("eval", labelled, "--answers", *flags, env=env, code=2)
        assert f"{flags[0]} do not go with --answers" in refused.stderr
