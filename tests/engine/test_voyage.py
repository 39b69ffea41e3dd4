"""The Voyage service, spoken to through its own client; a small local server takes its place."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_tui.engine.embedders.voyage import VoyageEmbedder, batches
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.voyage import VoyageReranker
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.voyage import VoyageService
from tests.engine.small_index import small_models

KEY = "pa-0123456789-very-secret"


@dataclass
class Voyage:
    """What the server got, and how it answers."""

    base_url: str = ""
    requests: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    """Path, body and the Authorization header."""
    statuses: list[int] = field(default_factory=list)
    """Of the next answers; 0 is silence."""
    body: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    let_go: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, body, _ in self.requests]


def vector(text: str) -> list[float]:
    """Four numbers that depend on the text, not of norm 1."""
    return [float(len(text)), 1.0, float(text.count("dog")), 2.0]


def reply(path: str, body: dict[str, Any]) -> dict[str, Any]:
    if path.endswith("/embeddings"):
        rows = [np.array(vector(text), "<f4") for text in body["input"]]
        data: list[dict[str, Any]] = [
            {
                "object": "embedding",
                "index": i,
                "embedding": base64.b64encode(row.tobytes()).decode(),
            }
            for i, row in enumerate(rows)
        ]
    else:
        scores = [1 / (1 + len(text)) for text in body["documents"]]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        data = [{"index": i, "relevance_score": scores[i]} for i in order]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"total_tokens": 1}}


@pytest.fixture
def voyage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Voyage]:
    state = Voyage()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, body, self.headers.get("Authorization", "")))
            status = state.statuses.pop(0) if state.statuses else 200
            if status == 0:
                state.waiting.set()
                state.let_go.wait(20)
                return
            if status == 200:
                answer = (state.body or reply)(self.path, body)
            else:
                # A careless server: it quotes the key.
                answer = {"detail": f"no: {self.headers.get('Authorization')} is not welcome"}
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield state
    state.let_go.set()
    server.shutdown()
    server.server_close()


def service(voyage: Voyage, **settings: Any) -> VoyageService:
    return VoyageService(
        "voyage", base_url=voyage.base_url, **{"attempts": 1, "timeout_s": 5.0, **settings}
    )


def embedder(voyage: Voyage, name: str = "voyage", **settings: Any) -> VoyageEmbedder:
    return VoyageEmbedder(name, service(voyage), **settings)


def reranker(voyage: Voyage, name: str = "voyage") -> VoyageReranker:
    return VoyageReranker(name, service(voyage))


# --- embedding ----------------------------------------------------------------------------


def test_questions_and_passages_are_sent_in_their_roles_and_come_back_in_order(
    voyage: Voyage,
) -> None:
    voyager = embedder(voyage)
    texts = ["a dog", "", "no pets at all", "dog dog"]
    vectors = voyager.embed_documents(texts)
    expected = np.array([vector(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_allclose(voyager.embed_query("a dog"), expected[0], atol=1e-6)
    assert [body["input_type"] for body in voyage.bodies] == ["document", "document", "query"]
    assert all(body["truncation"] is True for body in voyage.bodies)
    assert {path for path, _, _ in voyage.requests} == {"/v1/embeddings"}
    assert {key for _, _, key in voyage.requests} == {f"Bearer {KEY}"}


def test_the_info_says_that_texts_leave_and_where_they_are_cut(voyage: Voyage) -> None:
    info = embedder(voyage, "voyage/voyage-law-2").info
    assert (info.name, info.dimensions, info.max_tokens) == ("voyage/voyage-law-2", 4, 16_000)
    assert "sent to the Voyage service" in info.note
    assert "16,000 tokens is cut" in info.note
    assert info.similarity == "cosine"
    assert voyage.bodies[0]["model"] == "voyage-law-2"


def test_other_models_and_dimensions_have_other_fingerprints(voyage: Voyage) -> None:
    one, same, other = (
        embedder(voyage, name).info.fingerprint
        for name in ("voyage", "voyage/voyage-3.5", "voyage/voyage-4")
    )
    assert one == same != other


def test_truncation_is_asked_of_the_service(voyage: Voyage) -> None:
    embedder(voyage, truncate_dim=512).embed_query("a")
    assert [body["output_dimension"] for body in voyage.bodies] == [512, 512]


def test_batches_stay_within_the_documented_limits() -> None:
    texts = ["x" * 50_000, "é" * 30_000, "a", "b" * 200_000, "c", *["t"] * 130]
    parts = list(batches(texts, 128, 120_000))
    assert [text for part in parts for text in part] == texts
    assert all(
        len(part) == 1 or (len(part) <= 128 and sum(len(t.encode()) for t in part) <= 120_000)
        for part in parts
    )
    assert [len(part) for part in parts] == [3, 1, 128, 3]


def test_many_texts_become_several_requests(voyage: Voyage) -> None:
    vectors = embedder(voyage).embed_documents(["x" * n for n in range(1, 301)])
    assert vectors.shape == (300, 4)
    assert [len(body["input"]) for body in voyage.bodies] == [1, 128, 128, 44]


def test_no_texts_cost_no_request(voyage: Voyage) -> None:
    voyager = embedder(voyage)
    assert voyager.embed_documents([]).shape == (0, 4)
    assert len(voyage.requests) == 1


def test_a_lone_surrogate_can_be_sent(voyage: Voyage) -> None:
    embedder(voyage).embed_query("caf\udce9")
    assert voyage.bodies[-1]["input"] == ["caf\ufffd"]


def test_fewer_vectors_than_texts_are_refused(voyage: Voyage) -> None:
    voyager = embedder(voyage)
    voyage.body = lambda path, body: reply(path, {**body, "input": body["input"][1:]})
    with pytest.raises(ModelError, match="1 vectors for 2 texts"):
        voyager.embed_documents(["a", "b"])


def test_an_open_model_that_the_client_would_run_here_is_refused(voyage: Voyage) -> None:
    with pytest.raises(ModelError, match="open model"):
        embedder(voyage, "voyage/voyage-4-nano")
    assert voyage.requests == []


# --- reranking ----------------------------------------------------------------------------


def test_passages_get_their_own_scores_whatever_order_the_service_answers_in(
    voyage: Voyage,
) -> None:
    passages = ["long passage", "a", "middle"]
    scores = list(reranker(voyage).score("dog", passages))
    assert scores == pytest.approx([1 / 13, 1 / 2, 1 / 7])
    (body,) = voyage.bodies
    assert (body["query"], body["documents"]) == ("dog", passages)
    assert (body["model"], body["truncation"]) == ("rerank-2.5", True)
    assert voyage.requests[0][0] == "/v1/rerank"


def test_many_passages_are_sent_in_batches(voyage: Voyage) -> None:
    found = list(reranker(voyage, "voyage/rerank-2").score_batches("q", ["p"] * 250))
    assert [len(batch) for batch in found] == [100, 100, 50]
    assert sorted(i for batch in found for i in batch) == list(range(250))
    assert {body["model"] for body in voyage.bodies} == {"rerank-2"}


def test_a_long_question_makes_the_batches_smaller(voyage: Voyage) -> None:
    found = list(reranker(voyage).score_batches("q" * 20_000, ["p"] * 20))
    assert max(len(batch) for batch in found) * 20_000 <= 150_000


def test_the_score_kind_says_that_it_is_the_services_own(voyage: Voyage) -> None:
    info = reranker(voyage).info
    assert info.score_kind.name == "Voyage relevance"
    assert info.score_kind.range == "0 to 1"
    assert reranker(voyage).read_part("q", "four") == 4


def test_a_missing_score_is_refused(voyage: Voyage) -> None:
    voyage.body = lambda path, body: reply(path, {**body, "documents": body["documents"][1:]})
    with pytest.raises(ModelError, match="1 scores for 2 passages"):
        list(reranker(voyage).score("q", ["a", "b"]))


# --- failures -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "says", "hint"),
    [
        (401, "refused the key", "VOYAGE_API_KEY"),
        (429, "rate limit", "Wait"),
        (400, "refused the request", "model"),
        (500, "failed", "later"),
        (503, "failed", "later"),
        (418, "failed", "later"),
    ],
)
def test_failures_are_readable_and_never_hold_the_key(
    voyage: Voyage, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str],
    status: int, says: str, hint: str,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    voyage.statuses = [status]
    with pytest.raises(ModelError, match=says) as caught:
        embedder(voyage)
    assert f"HTTP {status}" in str(caught.value)
    assert hint in caught.value.hint
    logging.getLogger("test").warning("failed", exc_info=caught.value)
    for text in (str(caught.value), caplog.text, *capsys.readouterr()):
        assert KEY not in text
    assert caught.value.__cause__ is None


def test_the_client_tries_again_after_a_rate_limit(
    voyage: Voyage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    voyage.statuses = [429, 503]
    assert VoyageEmbedder("voyage", service(voyage, attempts=3)).info.dimensions == 4
    assert len(voyage.requests) == 3


def test_a_silent_server_is_given_up_with_the_time_it_had(voyage: Voyage) -> None:
    voyage.statuses = [0]
    with pytest.raises(ModelError, match=r"did not answer within 0\.2 s"):
        VoyageEmbedder("voyage", service(voyage, timeout_s=0.2))


def test_a_silent_server_does_not_hold_up_a_cancel(voyage: Voyage) -> None:
    voyager = embedder(voyage)
    voyage.statuses = [0]
    cancel = CancelToken()

    def stop() -> None:
        voyage.waiting.wait(10)
        cancel.cancel()

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(Cancelled):
        voyager.embed_documents(["a"], cancel=cancel)
    assert not voyage.let_go.is_set()


def test_an_address_where_nobody_listens_is_an_error_with_a_fix(
    voyage: Voyage, monkeypatch: pytest.MonkeyPatch
) -> None:
    voyage.base_url = "http://127.0.0.1:9/v1"
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        embedder(voyage)
    assert "local model" in caught.value.hint


def test_a_missing_key_is_an_error_that_names_the_variable(
    voyage: Voyage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY")
    with pytest.raises(ModelError, match="VOYAGE_API_KEY is not set"):
        service(voyage)
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-1234567\n{}")
    with pytest.raises(ModelError, match="is no key") as caught:
        service(voyage)
    assert "1234567" not in str(caught.value)


def test_a_missing_package_is_an_error_with_the_command_that_mends_it(
    voyage: Voyage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "voyageai", None)
    with pytest.raises(ModelError, match="voyageai") as caught:
        service(voyage)
    assert 'pip install "rag-tui-explorer[voyage]"' in caught.value.hint


# --- in a session ---------------------------------------------------------------------------


def test_models_load_the_service_by_name_with_the_address_of_the_settings(
    voyage: Voyage, tmp_path: Path
) -> None:
    chosen = ModelSettings(embedder="hashing", voyage_base_url=voyage.base_url)
    models = Models(chosen, tmp_path)
    assert models.embed_query("a dog", "voyage").shape == (4,)
    assert models.embed_query("a dog").shape == (256,)
    assert list(models.rerank_scores("q", ["a"], name="voyage")) == [0.5]
    counter = Models(ModelSettings(embedder="voyage"), tmp_path).token_counter()
    assert counter.limit == 32_000


def test_a_missing_key_costs_only_the_columns_that_need_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rag_tui.engine.searching import final_results, search
    from rag_tui.engine.types import Column, Document, SearchRequest
    from tests.engine.small_index import index_of

    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    index = index_of([Document("a.md", "A", "a dog barks\n\na cat sleeps", "0")])
    columns = (
        Column("vector", "vector"),
        Column("other vectors", "vector", (("search.embedder", "voyage"),)),
        Column("bm25", "bm25"),
        Column("reranked", "reranked"),
        Column("by voyage", "reranked", (("search.reranker", "voyage"),)),
    )
    request = SearchRequest("dog", columns=columns)
    results = {r.stage: r for r in final_results(search(request, index, small_models()))}
    for name in ("vector", "bm25", "reranked"):
        assert results[name].ranking is not None
    for name in ("other vectors", "by voyage"):
        error = results[name].error
        assert error is not None
        assert "VOYAGE_API_KEY is not set" in error.message
        assert "local model" in error.hint


@pytest.mark.parametrize(
    "content",
    [
        '[models]\nembedder = "voyage"',
        '[search]\nreranker = "voyage/rerank-2"',
        '[[columns]]\nname = "a"\nmethod = "vector"\nknobs = {"search.embedder" = "voyage/x"}',
        '[presets.mine]\n"search.embedder" = "voyage"',
        '[models]\nvoyage_base_url = "http://example.org"',
    ],
)
def test_a_folder_of_documents_cannot_decide_that_texts_are_sent_away(
    tmp_path: Path, content: str
) -> None:
    from rag_tui.config import load_settings
    from rag_tui.engine.errors import UsageError

    (tmp_path / "rag-tui.toml").write_text(content)
    with pytest.raises(UsageError, match="folder of documents may not decide"):
        load_settings(tmp_path)


def test_a_user_may_choose_the_service_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_tui.config import load_settings

    monkeypatch.setenv("RAG_TUI_MODELS__EMBEDDER", "voyage/voyage-3.5")
    monkeypatch.setenv("RAG_TUI_MODELS__TRUNCATE_DIM", "512")
    models = load_settings(tmp_path).engine.models
    assert (models.embedder, models.truncate_dim) == ("voyage/voyage-3.5", 512)


def test_doctor_says_whether_the_service_could_be_asked_without_showing_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rag_tui.cli.doctor import doctor_command

    monkeypatch.setenv("RAG_TUI_MODELS__EMBEDDER", "voyage")
    monkeypatch.setenv("RAG_TUI_MODELS__RERANKER", "late_interaction")
    monkeypatch.setenv("RAG_TUI_MODELS__PRECISION", "bfloat16")
    monkeypatch.setattr("rag_tui.engine.precision.cpu_has_bfloat16", lambda: False)
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    doctor_command(tmp_path, as_json=True)
    found = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert found["embedder voyage"]["state"] == "problem"
    assert "VOYAGE_API_KEY is not set" in found["embedder voyage"]["detail"]
    assert found["models.precision"]["state"] == "problem"
    assert "MaxSim" in found["reranker"]["detail"]
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    monkeypatch.setattr("rag_tui.engine.precision.cpu_has_bfloat16", lambda: True)
    doctor_command(tmp_path, as_json=True)
    out = capsys.readouterr().out
    assert KEY not in out
    found = {f["name"]: f for f in json.loads(out)}
    assert found["embedder voyage"]["state"] == "ok"
    assert "reduced precision" in found["models.precision"]["detail"]
