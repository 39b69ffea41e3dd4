from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from rag_tui.engine import answering
from rag_tui.engine.answering import ANSWERER_GROUP, answer, make_answerer
from rag_tui.engine.errors import UsageError
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.settings import AnswerSettings
from rag_tui.engine.types import Chunk

NO_MODELS: Any = object()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if packages with these answerers were installed."""
    added = EntryPoints(
        (
            EntryPoint("echo", "tests.echo_provider:make", ANSWERER_GROUP),
            EntryPoint("broken", "tests.echo_provider:nothing", ANSWERER_GROUP),
        )
    )
    monkeypatch.setattr(answering, "entry_points", lambda group: added.select(group=group))


@pytest.mark.usefixtures("installed")
async def test_an_installed_answerer_answers_like_the_others() -> None:
    chunks = [Chunk("c", "a.md", 0, 0, 9, "Dry it now.")]
    prompt = build_prompt("q", chunks, max_sources=1)
    answerer = make_answerer(AnswerSettings(provider="echo"), NO_MODELS, {})
    seen = [one async for one in answer(prompt, answerer)]
    assert [one.text for one in seen] == [
        "Dry ", "Dry it ", "Dry it now. ", "Dry it now. [1] ", "Dry it now. [1]",
    ]  # fmt: skip
    assert [one.state for one in seen] == ["streaming"] * 4 + ["complete"]
    assert [one.cited for one in seen] == [(), (), (), (1,), (1,)]
    final = seen[-1]
    assert final.answerer == "echo"
    # It gives text alone: the times are taken from its pieces.
    assert final.first_token_s is not None
    assert 0 < final.first_token_s <= final.elapsed_s
    assert final.cost is None


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ("nonesuch", "auto, claude, extractive, broken, echo"),
        ("broken", "cannot be loaded"),
    ],
)
def test_an_answerer_that_is_not_there_is_named_with_those_that_are(
    provider: str, told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make_answerer(AnswerSettings(provider=provider), NO_MODELS, {})
    assert provider in caught.value.message
    assert told in str(caught.value)
