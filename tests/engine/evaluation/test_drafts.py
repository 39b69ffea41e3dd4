"""Drafted questions: from headings by template, from a model through a replayed service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread

import pytest

from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.evaluation.drafts import (
    HEADING,
    MAX_TOKENS,
    Draft,
    DraftFailure,
    draft_questions,
    heading_question,
    parse_question,
    plan_drafts,
)
from rag_tui.engine.evaluation.resolving import Resolver, resolve
from rag_tui.engine.evaluation.types import Question
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Chunk
from tests.engine.hand_made import cut, document, index_of, index_of_texts
from tests.sse_server import ReplayServer, Script, replay_server, text_events

KEY = {"ANTHROPIC_API_KEY": "sk-test-12345678"}
PRICES = Prices(input=4.0, output=20.0)
SETTINGS = AnswerSettings(max_retries=0, timeout_s=20)
BODY = "Guests may borrow a bicycle from the shed whenever the weather is dry and the day is long. "


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with replay_server(Script()) as running:
        yield running


def asked(server: ReplayServer) -> AnswerSettings:
    return replace(SETTINGS, base_url=server.base_url)


def headed(*path: str) -> Chunk:
    return replace(cut(document(BODY))[0], heading_path=path)


@pytest.mark.parametrize(
    ("path", "question"),
    [
        (("Check-in", "Arrival times"), "What does Check-in say about arrival times?"),
        (("Check-in", "Where is the key?"), "Where is the key?"),
        (("FastAPI", "How to add CORS"), "How do I add CORS?"),
        (("FastAPI", "OAuth2 scopes"), "What does FastAPI say about OAuth2 scopes?"),
        (("Pets",), "What should I know about pets?"),
    ],
)
def test_a_heading_becomes_a_question(path: tuple[str, ...], question: str) -> None:
    assert heading_question(headed(*path)) == question


def test_without_a_key_questions_are_made_from_headings_and_cost_nothing(guesthouse: Index) -> None:
    plan = plan_drafts(guesthouse, 6, SETTINGS, prices=PRICES, environ={})
    assert (plan.by, plan.is_free, plan.most_cost) == (HEADING, True, 0.0)
    found = list(draft_questions(plan, Resolver(guesthouse), SETTINGS, environ={}))
    assert [one.position for one in found] == list(plan.positions)
    assert len({guesthouse.chunks[p].doc_id for p in plan.positions}) == len(guesthouse.documents)
    for draft in found:
        assert isinstance(draft, Draft)
        assert draft.text == heading_question(guesthouse.chunks[draft.position])
        (place,) = resolve(Question("", "", (draft.evidence,)), guesthouse).places
        assert draft.position in place.positions


def test_passages_that_are_short_repeated_or_excluded_are_not_chosen_judged_ones_last() -> None:
    index = index_of_texts(BODY, "Too short.", BODY, BODY + "Ask at the desk.")
    for seed in range(4):
        plan = plan_drafts(index, 9, SETTINGS, prices=PRICES, environ=KEY, judged={0, 2}, seed=seed)
        assert len(plan.positions) == 2
        assert plan.positions[0] == 3
        assert plan.positions[1] in (0, 2)
    plan = plan_drafts(index, 9, SETTINGS, prices=PRICES, environ=KEY, excluded={0, 3})
    assert plan.positions == (2,)


def test_the_cost_is_told_before_anything_is_sent(server: ReplayServer) -> None:
    index = index_of_texts(BODY, BODY + "Ask at the desk.")
    plan = plan_drafts(index, 5, asked(server), prices=PRICES, environ=KEY)
    assert plan.by == SETTINGS.model
    assert plan.most_cost == pytest.approx(
        plan.n_input_tokens * 4 / 1e6 + 2 * MAX_TOKENS * 20 / 1e6
    )
    assert server.requests == []


def test_a_model_is_asked_once_a_passage_and_its_question_is_taken(server: ReplayServer) -> None:
    reply = json.dumps({"code": "c0de", "question": "Where do I get\na bike?"})
    server.script = Script(text_events(reply[:9], reply[9:]))
    index = index_of_texts(BODY + "<b>&", BODY + "Ask at the desk.")
    settings = asked(server)
    plan = plan_drafts(index, 2, settings, prices=PRICES, environ=KEY)
    drafts = draft_questions(plan, Resolver(index), settings, environ=KEY, make_code=lambda: "c0de")
    found = list(drafts)
    assert [(one.text, one.by) for one in found if isinstance(one, Draft)] == [
        ("Where do I get a bike?", SETTINGS.model)
    ] * 2
    assert len(server.requests) == 2
    sent = [request.body["messages"][0]["content"] for request in server.requests]
    assert any("&lt;b&gt;&amp;" in text for text in sent)
    assert all("<passage-c0de>" in text for text in sent)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Where is it?", "not one JSON object"),
        ('{"code": "x", "question": "Where?"}', "does not hold the code"),
        ('{"code": "c", "question": "A?", "question": "B?"}', "not one JSON object"),
        ('{"code": "c", "question": "A?", "note": ""}', "other parts"),
        ('{"code": "c", "question": " "}', "nothing that anybody would ask"),
        ('{"code": "c", "question": "' + "a" * 401 + '"}', "401 characters"),
    ],
)
def test_a_reply_that_is_not_what_was_asked_for_is_no_draft(reply: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_question(reply, "c")


def test_a_wrong_key_ends_it_with_the_first_passage(server: ReplayServer) -> None:
    server.script = Script(status=401)
    index = index_of_texts(BODY, BODY + "Ask at the desk.")
    settings = asked(server)
    plan = plan_drafts(index, 2, settings, prices=PRICES, environ=KEY)
    (failure,) = draft_questions(plan, Resolver(index), settings, environ=KEY)
    assert isinstance(failure, DraftFailure)
    assert failure.reason.startswith("failed: ")
    assert KEY["ANTHROPIC_API_KEY"] not in failure.reason
    assert len(server.requests) == 1


def test_cancelling_while_a_reply_is_awaited_closes_the_connection(server: ReplayServer) -> None:
    server.script = Script(text_events("{"), ending="hang")
    index = index_of_texts(BODY)
    settings = asked(server)
    plan = plan_drafts(index, 1, settings, prices=PRICES, environ=KEY)
    cancel, ended = CancelToken(), Event()

    def work() -> None:
        with pytest.raises(Cancelled):
            list(draft_questions(plan, Resolver(index), settings, environ=KEY, cancel=cancel))
        ended.set()

    thread = Thread(target=work, daemon=True)
    thread.start()
    assert server.sent.wait(20)
    cancel.cancel()
    assert ended.wait(20)
    assert server.client_gone.wait(20)


def test_without_headings_and_without_a_key_the_fault_and_the_way_out_are_told() -> None:
    with pytest.raises(UsageError, match="No passage with a heading") as told:
        plan_drafts(index_of_texts(BODY), 3, SETTINGS, prices=PRICES, environ={})
    assert "ANTHROPIC_API_KEY" in told.value.hint
    with pytest.raises(UsageError, match="at least 1"):
        plan_drafts(index_of([], []), 0, SETTINGS, prices=PRICES, environ={})
