from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.embedders.tokens import TokenVectors
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.late_interaction import LateInteractionReranker, maxsim
from rag_tui.engine.settings import ModelSettings
from tests.engine.test_models import offline_folder

QUESTION = "Can I bring my dog?"
PASSAGES = ["Dogs are welcome in the garden rooms.", "The kitchen closes at ten.", "", "dog " * 600]


class Asked:
    """Tokens by hand: one per word, two dimensions; keeps the roles it was asked for."""

    info = HashingEmbedder().info

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def embed_query(self, text: str) -> Any:
        return HashingEmbedder().embed_query(text)

    def embed_documents(self, texts: Any, *, cancel: Any = None) -> Any:
        return HashingEmbedder().embed_documents(texts)

    def token_vectors(self, texts: Any, role: Any) -> list[TokenVectors]:
        table = {"east": (1.0, 0.0), "north": (0.0, 1.0), "northeast": (0.6, 0.8)}
        self.asked += [(text, role) for text in texts]
        found = []
        for text in texts:
            rows = np.array([table[word] for word in text.split() if word in table], np.float32)
            found.append(TokenVectors((), rows.reshape(-1, 2)))
        return found


def test_the_score_is_the_mean_of_the_best_cosines_of_the_questions_tokens() -> None:
    reranker = LateInteractionReranker(Asked())
    scores = list(reranker.score("east north", ["east", "northeast", "north east", "east east"]))
    # east·east 1, north·east 0; east·northeast 0.6, north·northeast 0.8; both found; as the first
    assert scores == pytest.approx([0.5, 0.7, 1.0, 0.5])
    assert reranker.info.score_kind.name == "MaxSim mean"
    assert "mean over the question's tokens" in reranker.info.score_kind.note


def test_scores_are_those_of_a_plain_loop_over_the_models_own_tokens(models: Models) -> None:
    offline_folder("sentence-transformers/all-MiniLM-L6-v2")
    scores = list(models.rerank_scores(QUESTION, PASSAGES, name="late_interaction"))
    (question,) = models.token_vectors([QUESTION], "query")
    for score, passage in zip(scores, PASSAGES, strict=True):
        (tokens,) = models.token_vectors([passage], "document")
        best = [max((float(q @ p) for p in tokens.vectors), default=-1) for q in question.vectors]
        assert score == pytest.approx(sum(best) / len(best), abs=1e-5)
    assert scores[0] > scores[1] > scores[2] == -1.0


def test_the_maxsim_of_the_library_is_the_sum_of_the_same_terms() -> None:
    import torch
    from sentence_transformers.util import maxsim as library_maxsim

    rng = np.random.default_rng(5)
    question, passage = (rng.normal(size=(n, 16)).astype(np.float32) for n in (7, 30))
    question /= np.linalg.norm(question, axis=1, keepdims=True)
    passage /= np.linalg.norm(passage, axis=1, keepdims=True)
    expected = float(library_maxsim([torch.tensor(question)], [torch.tensor(passage)])[0, 0])
    assert 7 * maxsim(question, passage) == pytest.approx(expected, abs=1e-4)


def test_questions_and_passages_are_read_in_their_roles_and_passages_once() -> None:
    embedder = Asked()
    reranker = LateInteractionReranker(embedder)
    list(reranker.score("east", ["north"]))
    list(reranker.score("northeast", ["north"]))
    assert embedder.asked[1:] == [
        ("east", "query"), ("north", "document"), ("northeast", "query"),
    ]  # fmt: skip


def test_a_question_or_passage_without_tokens_has_a_score_of_its_own() -> None:
    reranker = LateInteractionReranker(Asked())
    assert list(reranker.score("east", ["…"])) == [-1.0]
    assert list(reranker.score("…", ["east"])) == [0.0]
    assert list(reranker.score("east", [])) == []


def test_what_the_embedder_does_not_read_is_told(models: Models) -> None:
    offline_folder("sentence-transformers/all-MiniLM-L6-v2")
    long = "dog " * 600
    # 256 tokens, two of them special, each word one token of 3 letters and a blank
    assert models.read_part(QUESTION, long, "late_interaction") == 254 * 4 - 1
    assert models.read_part(QUESTION, "short", "late_interaction") == 5


def test_cancelling_ends_it_before_the_next_passage() -> None:
    cancel = CancelToken()
    batches = LateInteractionReranker(Asked()).score_batches(
        "east", ["east", "north"], cancel=cancel
    )
    assert next(batches) == {0: 1.0}
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(batches)


def test_it_needs_no_weights_but_the_embedders(tmp_path: Path) -> None:
    models = Models(ModelSettings(embedder="hashing", allow_download=False), tmp_path)
    scores = list(models.rerank_scores("my dog", ["a dog", "a cat"], name="late_interaction"))
    assert scores == pytest.approx([0.5, 0.0])
    assert models.reranker("late_interaction").info.name == "late_interaction (hashing)"


def test_an_embedder_without_tokens_disables_only_this_reranker(tmp_path: Path) -> None:
    class Whole:
        info = HashingEmbedder().info

        def embed_query(self, text: str) -> Any:
            return HashingEmbedder().embed_query(text)

        def embed_documents(self, texts: Any, *, cancel: Any = None) -> Any:
            return HashingEmbedder().embed_documents(texts)

    models = Models(ModelSettings(), tmp_path, embedder=Whole())
    with pytest.raises(ModelError, match="none for its words"):
        models.reranker("late_interaction")
    assert models.embed_query("a").shape == (256,)
