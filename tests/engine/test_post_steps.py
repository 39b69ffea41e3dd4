"""Steps after ranking: what each takes away, what it says about it, and that scores stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.post_steps import apply_post_steps, expand_neighbours
from rag_tui.engine.searching import search
from rag_tui.engine.types import (
    Document,
    Hit,
    Method,
    PostSteps,
    Ranking,
    ScoreKind,
    SearchRequest,
)
from tests.engine.hand_made import index_of_texts
from tests.engine.small_index import index_of, small_models

LONG = "The pump is primed with clean water before it is started for the first time each spring."
UNIT = np.eye(4, dtype=np.float32)


def ranked(scores: Sequence[float], method: Method = "bm25", index: Index | None = None) -> Ranking:
    hits = tuple(
        Hit(index.chunk_ids[i] if index else f"c{i}", i, score, i + 1)
        for i, score in enumerate(scores)
    )
    return Ranking(method, hits, 50, ScoreKind("", ""))


def positions(ranking: Ranking) -> list[int]:
    return [hit.position for hit in ranking.hits]


def test_without_steps_the_list_itself_comes_back() -> None:
    index = index_of_texts("a", "b")
    ranking = ranked([2, 1], index=index)
    assert apply_post_steps(ranking, PostSteps(neighbours=2), index) is ranking


@pytest.mark.parametrize("method", ["vector", "bm25", "hybrid", "reranked"])
def test_a_threshold_is_one_methods_own(method: Method) -> None:
    index = index_of_texts("a", "b", "c")
    post = PostSteps(**{f"min_{method}": 0.5})  # type: ignore[arg-type]
    ranking = ranked([0.9, 0.5, 0.4], method, index)
    cut = apply_post_steps(ranking, post, index)
    assert [hit.score for hit in cut.hits] == [0.9, 0.5]
    (step,) = cut.steps
    assert (step.name, step.note) == ("threshold", "dropped 1 row below 0.5")
    assert step.removed == (index.chunk_ids[2],)
    other: Method = "bm25" if method == "vector" else "vector"
    ranking = ranked([0.9, 0.5, 0.4], other, index)
    assert apply_post_steps(ranking, post, index) is ranking


def test_rows_of_the_same_text_stand_as_one_at_the_best_rank() -> None:
    index = index_of_texts("Short text.", LONG, "short  TEXT.", LONG.replace("spring", "year"), "x")
    ranking = ranked([5, 4, 3, 2, 1], index=index)
    folded = apply_post_steps(ranking, PostSteps(fold=True), index)
    assert positions(folded) == [0, 1, 4]
    assert [hit.rank for hit in folded.hits] == [1, 2, 3]
    assert [hit.score for hit in folded.hits] == [5, 4, 1]
    ids = index.chunk_ids
    assert dict(folded.folded) == {ids[0]: (ids[2],), ids[1]: (ids[3],)}
    (step,) = folded.steps
    assert step.note == "folded 2 rows into 2 of the same text"
    assert step.removed == (ids[2], ids[3])


def test_different_texts_are_not_folded_and_the_step_says_so() -> None:
    index = index_of_texts(LONG, "Another thing altogether, that has nothing to do with it at all.")
    folded = apply_post_steps(ranked([2, 1], index=index), PostSteps(fold=True), index)
    assert positions(folded) == [0, 1]
    assert folded.steps[0].note == "no two rows have the same text"


def test_one_document_has_at_most_so_many_rows() -> None:
    texts = ("one\n\ntwo\n\nthree", "four\n\nfive")
    index = index_of([Document(f"{i}.md", "T", text, "") for i, text in enumerate(texts)])
    limited = apply_post_steps(
        ranked([5, 4, 3, 2, 1], index=index), PostSteps(max_per_document=2), index
    )
    assert positions(limited) == [0, 1, 3, 4]
    (step,) = limited.steps
    assert step.note == "dropped 1 row, at most 2 of one document"
    assert step.removed == (index.chunk_ids[2],)


def mmr(scores: Sequence[float], vectors: np.ndarray, weight: float) -> list[int]:
    index = index_of_texts(*(f"text {i}" for i in range(len(scores))), vectors=vectors)
    done = apply_post_steps(ranked(scores, index=index), PostSteps(mmr=weight), index)
    assert {hit.position: hit.score for hit in done.hits} == dict(enumerate(scores))
    return positions(done)


def test_maximal_marginal_relevance_is_the_order_computed_by_hand() -> None:
    # 1 says what 0 says; 2 and 3 say something else each. Relevance 1, 2/3, 1/3, 0.
    vectors = UNIT[[0, 0, 1, 2]]
    # After 0: 1 has 0.5 * 2/3 - 0.5 * 1 = -1/6, 2 has 1/6, 3 has 0. After 2: 3 has 0.
    assert mmr([4, 3, 2, 1], vectors, 0.5) == [0, 2, 3, 1]
    # 0.8 * 2/3 - 0.2 = 0.333 against 0.8 / 3 = 0.267.
    assert mmr([4, 3, 2, 1], vectors, 0.8) == [0, 1, 2, 3]


def test_its_ends_are_relevance_alone_and_difference_alone() -> None:
    vectors = UNIT[[0, 0, 0, 1]]
    assert mmr([4, 3, 2, 1], vectors, 1.0) == [0, 1, 2, 3]
    assert mmr([4, 3, 2, 1], vectors, 0.0) == [0, 3, 1, 2]


def test_vectors_of_any_length_are_compared_by_their_angle() -> None:
    vectors = UNIT[[0, 0, 1, 2]]
    longer = vectors * np.array([[1], [100], [0.01], [7]], np.float32)
    assert mmr([4, 3, 2, 1], longer, 0.5) == mmr([4, 3, 2, 1], vectors, 0.5)


def test_equal_scores_and_single_rows_are_no_trouble() -> None:
    assert mmr([1, 1], UNIT[[0, 0]], 0.5) == [0, 1]
    assert mmr([1], UNIT[[0]], 0.5) == [0]
    assert mmr([], UNIT[[]], 0.5) == []


def test_mmr_without_vectors_is_not_done_and_says_so() -> None:
    index = index_of_texts("a", "b")
    done = apply_post_steps(ranked([2, 1], index=index), PostSteps(mmr=0.5), index)
    assert positions(done) == [0, 1]
    assert done.steps[0].note == "not done: the index has no vectors"


def test_steps_follow_each_other_and_each_is_recorded() -> None:
    index = index_of_texts(LONG, LONG, "x", "y", "z", vectors=np.ones((5, 2), np.float32))
    post = PostSteps(min_bm25=2, fold=True, max_per_document=1, mmr=0.5)
    done = apply_post_steps(ranked([5, 4, 3, 2, 1], index=index), post, index)
    assert [step.name for step in done.steps] == ["threshold", "fold", "max per document", "mmr"]
    assert positions(done) == [0, 2, 3]


def test_steps_change_neither_candidates_nor_the_lists_below() -> None:
    index = index_of([Document("a.md", "T", "\n\n".join(f"pump {i}" for i in range(30)), "")])
    request = SearchRequest("pump", depth=20)
    limited = replace(request, post=PostSteps(max_per_document=1))
    plain = {r.stage: r for r in search(request, index, small_models())}
    cut = {r.stage: r for r in search(limited, index, small_models())}
    for name, result in cut.items():
        assert result.ranking is not None
        assert len(result.ranking.hits) == 1
        own = result.ranking.method
        before = plain[name].ranking
        assert before is not None
        assert result.inputs[own].hits == before.hits


def spans(found: list[tuple[object, bool]]) -> list[tuple[str, bool]]:
    return [(chunk.text, is_added) for chunk, is_added in found]  # type: ignore[attr-defined]


TWO = index_of(
    [Document("a.md", "T", "a0\n\na1\n\na2\n\na3", ""), Document("b.md", "T", "b0\n\nb1", "")]
)


def test_neighbours_stand_around_their_source_in_the_order_of_the_document() -> None:
    chunks = [TWO.chunks[4], TWO.chunks[1]]
    assert spans(expand_neighbours(chunks, TWO, 1)) == [  # type: ignore[arg-type]
        ("b0", False),
        ("b1", True),
        ("a0", True),
        ("a1", False),
        ("a2", True),
    ]
    assert spans(expand_neighbours(chunks, TWO, 0)) == [("b0", False), ("a1", False)]  # type: ignore[arg-type]


def test_a_chunk_stands_once_and_a_source_is_never_an_addition() -> None:
    chunks = [TWO.chunks[0], TWO.chunks[2]]
    assert spans(expand_neighbours(chunks, TWO, 2)) == [  # type: ignore[arg-type]
        ("a0", False),
        ("a1", True),
        ("a2", False),
        ("a3", True),
    ]


def test_a_filter_holds_for_neighbours_too() -> None:
    allowed = np.array([True, True, False, True, True, True])
    found = expand_neighbours([TWO.chunks[1]], TWO, 2, allowed=allowed)
    assert spans(found) == [("a0", True), ("a1", False), ("a3", True)]  # type: ignore[arg-type]


def test_mmr_on_the_demo_corpus_keeps_all_rows(guesthouse: Index, models: Models) -> None:
    request = SearchRequest("Can I bring my dog?", post=PostSteps(mmr=0.3), methods=("vector",))
    (result,) = search(request, guesthouse, models)
    assert result.ranking is not None
    assert sorted(positions(result.ranking)) == list(range(len(guesthouse.chunks)))
    assert positions(result.ranking) != positions(result.inputs["vector"])
