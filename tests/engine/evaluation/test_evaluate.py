"""Evaluating: every column for every question, nothing twice, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_tui.engine.errors import ModelError, UsageError
from rag_tui.engine.evaluation.evaluate import EvalProgress, evaluate
from rag_tui.engine.evaluation.fingerprints import column_fingerprint, index_fingerprint
from rag_tui.engine.evaluation.run_store import RunStore
from rag_tui.engine.evaluation.types import EvalRun, Question, QuestionSet
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import make_column
from rag_tui.engine.loading import Models
from rag_tui.engine.searching import search
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.types import Chunk, Column, Document, SearchRequest
from tests.engine.small_index import OverlapReranker, index_of, small_models

TEXTS = (
    "Dogs are welcome in the ground-floor rooms.",
    "The key opens the street door.",
    "Breakfast is served in the garden.",
    "The deposit covers a lost key.",
)
QUESTIONS = QuestionSet(
    "small",
    (
        Question("a", "Can I bring my dogs?"),
        Question("b", "What does a lost key cost?"),
        Question("c", "Where is breakfast served?", answerable=False),
    ),
    fingerprint="f",
)


def small_index(*texts: str) -> Index:
    return index_of([Document("house.md", "House", "\n\n".join(texts or TEXTS), sha256="0")])


class CountingReranker(OverlapReranker):
    """Counts the questions it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        self.asked.append(query)
        yield from super().score(query, passages, cancel=cancel)


class BrokenReranker(OverlapReranker):
    """Cannot read."""

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        for passage in passages:
            if passage:
                raise ModelError("The cross-encoder is out of order.")
            yield 0.0


def models_with(reranker: OverlapReranker) -> Models:
    from rag_tui.engine.embedders.hashing import HashingEmbedder

    return Models(
        ModelSettings(embedder="hashing"),
        Path("no-cache"),
        embedder=HashingEmbedder(),
        reranker=reranker,
    )


def run_of(
    request: SearchRequest,
    index: Index,
    models: Models,
    store: RunStore | None = None,
    *,
    questions: QuestionSet = QUESTIONS,
    depth: int = 100,
) -> tuple[EvalRun, EvalProgress]:
    items = list(evaluate(questions, request, index, models, store=store, depth=depth))
    run, last = items[-1], items[-2]
    assert isinstance(run, EvalRun)
    assert isinstance(last, EvalProgress)
    return run, last


def test_every_column_holds_for_every_question_what_a_search_shows() -> None:
    index, models = small_index(), small_models()
    run, last = run_of(SearchRequest(""), index, models)
    assert [c.column.name for c in run.columns] == ["vector", "bm25", "hybrid", "reranked"]
    assert (last.done, last.total, last.n_known) == (12, 12, 0)
    for question in QUESTIONS.questions:
        request = SearchRequest(question.text, depth=100)
        found = {r.stage: r.ranking for r in search(request, index, models)}
        for column in run.columns:
            kept = next(q for q in column.questions if q.qid == question.qid)
            ranking = found[column.column.name]
            assert ranking is not None
            assert kept.rows
            assert [(row.chunk_id, row.score) for row in kept.rows] == [
                (hit.chunk_id, hit.score) for hit in ranking.hits
            ]
            for row in kept.rows:
                chunk = index.chunk(row.chunk_id)
                assert (row.document, row.start, row.end) == ("house.md", chunk.start, chunk.end)
    assert run.columns[0].score_name.startswith("cosine")
    assert run.depth == 100
    assert run.knobs["bm25.k1"] == 1.5


def test_what_is_known_is_not_asked_again_and_gives_the_same_run(tmp_path: Path) -> None:
    index, store, reranker = small_index(), RunStore(tmp_path), CountingReranker()
    first, _ = run_of(SearchRequest(""), index, models_with(reranker), store)
    assert len(reranker.asked) == 3
    again, last = run_of(SearchRequest("", top_k=3), index, models_with(reranker), store)
    assert len(reranker.asked) == 3
    assert last.n_known == 12
    assert again.columns == first.columns


def test_a_new_question_is_the_only_one_that_is_asked(tmp_path: Path) -> None:
    index, store, reranker = small_index(), RunStore(tmp_path), CountingReranker()
    run_of(SearchRequest(""), index, models_with(reranker), store)
    more = replace(
        QUESTIONS, questions=(*QUESTIONS.questions, Question("d", "Which door does it open?"))
    )
    _, last = run_of(SearchRequest(""), index, models_with(reranker), store, questions=more)
    assert reranker.asked[3:] == ["Which door does it open?"]
    assert last.n_known == 12


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({"bm25": "k1"}, {"bm25", "hybrid", "reranked"}),
        ({"rrf_k": 10.0}, {"hybrid", "reranked"}),
        ({"rerank_depth": 2}, {"reranked"}),
        ({"top_k": 1}, set()),
        ({"where": "path=house.md"}, {"vector", "bm25", "hybrid", "reranked"}),
    ],
)
def test_a_knob_asks_only_the_columns_anew_whose_lists_it_can_change(
    change: dict[str, object], columns: set[str], tmp_path: Path
) -> None:
    index, models = small_index(), small_models()
    request = SearchRequest("")
    if "bm25" in change:
        other = replace(request, bm25=replace(request.bm25, k1=0.9))
    else:
        other = replace(request, **change)  # type: ignore[arg-type]
    differing = {
        column.name
        for column in request.columns
        if column_fingerprint(request, column, index, models)
        != column_fingerprint(other, column, index, models)
    }
    assert differing == columns


def test_another_reranker_has_another_fingerprint_and_a_name_has_none() -> None:
    index, request = small_index(), SearchRequest("")
    one = column_fingerprint(request, Column("a", "reranked"), index, small_models())
    assert one == column_fingerprint(request, Column("b", "reranked"), index, small_models())
    other = CountingReranker()
    other.info = replace(other.info, fingerprint="other weights")
    assert one != column_fingerprint(request, Column("a", "reranked"), index, models_with(other))


def test_the_index_fingerprint_follows_texts_and_model_and_nothing_else() -> None:
    index = small_index()
    mark = index_fingerprint(index)
    assert mark == index_fingerprint(small_index())
    later = replace(
        index,
        folder=Path("elsewhere"),
        manifest=replace(index.manifest, created="2031-01-01", versions={"numpy": "9"}),
        documents=tuple(replace(d, modified=5.0) for d in index.documents),
    )
    assert index_fingerprint(later) == mark
    assert index_fingerprint(small_index(*TEXTS[:3], "The deposit covers a lost fork.")) != mark
    other = replace(index, manifest=replace(index.manifest, embedder_fingerprint="other"))
    assert index_fingerprint(other) != mark
    assert index_fingerprint(replace(index, vectors=None)) != mark

    def situated(chunk: Chunk) -> Chunk:
        return replace(chunk, situation="About the house.")

    assert index_fingerprint(replace(index, chunks=tuple(map(situated, index.chunks)))) != mark


def test_a_failing_column_carries_its_error_and_is_tried_again(tmp_path: Path) -> None:
    index, store = small_index(), RunStore(tmp_path)
    run, _ = run_of(SearchRequest(""), index, models_with(BrokenReranker()), store)
    reranked = run.columns[3]
    assert [q.error for q in reranked.questions] == ["The cross-encoder is out of order."] * 3
    assert not any(q.rows for q in reranked.questions)
    assert all(q.rows and not q.error for q in run.columns[2].questions)
    mended, _ = run_of(SearchRequest(""), index, small_models(), store)
    assert all(q.rows and not q.error for q in mended.columns[3].questions)


def test_a_hybrid_list_of_one_retriever_is_no_hybrid_list() -> None:
    index = replace(small_index(), vectors=None)
    run, _ = run_of(SearchRequest(""), index, small_models())
    errors = {c.column.name: [bool(q.error) for q in c.questions] for c in run.columns}
    assert errors == {
        "vector": [True] * 3,
        "bm25": [False] * 3,
        "hybrid": [True] * 3,
        "reranked": [True] * 3,
    }
    assert "keyword only" in run.columns[2].questions[0].error


def test_interrupting_loses_no_finished_question(tmp_path: Path) -> None:
    index, store, token = small_index(), RunStore(tmp_path), CancelToken()
    run = None
    for item in evaluate(
        QUESTIONS, SearchRequest(""), index, small_models(), store=store, cancel=token
    ):
        if isinstance(item, EvalRun):
            run = item
        elif item.done == 6:  # two questions in the three columns without a reranker
            token.cancel()
    assert run is not None
    assert [len(c.questions) for c in run.columns] == [2, 2, 2, 0]
    _, last = run_of(SearchRequest(""), index, small_models(), store)
    assert (last.n_known, last.done) == (6, 12)


def test_a_torn_line_costs_its_question_and_not_the_next(tmp_path: Path) -> None:
    index, store = small_index(), RunStore(tmp_path)
    request = SearchRequest("", methods=("bm25",))
    first, _ = run_of(request, index, small_models(), store)
    (file,) = (tmp_path / "asked").iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    again, last = run_of(request, index, small_models(), store)
    assert last.n_known == 2
    _, last = run_of(request, index, small_models(), store)
    assert last.n_known == 3
    assert [[row.chunk_id for row in q.rows] for q in again.columns[0].questions] == [
        [row.chunk_id for row in q.rows] for q in first.columns[0].questions
    ]


def test_lines_that_name_chunks_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    index, store = small_index(), RunStore(tmp_path)
    request = SearchRequest("", methods=("bm25",))
    run_of(request, index, small_models(), store)
    (file,) = (tmp_path / "asked").iterdir()
    lines = file.read_text().splitlines()
    lines[0] = lines[0].replace("[0]", "[99]").replace("[0,", "[99,")
    file.write_text("\n".join(["null", "[1,2]", '["x",1,[],3,4]', *lines]) + "\n")
    _, last = run_of(request, index, small_models(), store)
    assert last.n_known == 2


def test_a_request_that_makes_no_sense_is_refused_before_the_first_question() -> None:
    asked = evaluate(
        QUESTIONS, SearchRequest("", where="colour=red"), small_index(), small_models()
    )
    with pytest.raises(UsageError, match="colour"):
        next(asked)


def test_a_question_that_cannot_be_asked_costs_only_itself() -> None:
    long = Question("long", "word " * 1200)
    questions = replace(QUESTIONS, questions=(long, *QUESTIONS.questions))
    run, _ = run_of(SearchRequest(""), small_index(), small_models(), questions=questions)
    assert "1,200 words" in run.columns[0].questions[0].error
    assert all(not q.error for q in run.columns[0].questions[1:])


def test_columns_of_one_method_with_other_knobs_are_measured_side_by_side() -> None:
    columns = (
        make_column("bm25", "bm25", {}),
        make_column("bm25 b=0", "bm25", {"bm25.b": 0}),
    )
    run, _ = run_of(SearchRequest("", columns=columns), small_index(), small_models())
    scores = [[row.score for row in c.questions[1].rows] for c in run.columns]
    assert scores[0] != pytest.approx(scores[1])
    assert np.argmax(scores[0]) == 0


def test_the_reranker_is_not_asked_where_reranking_is_off() -> None:
    reranker = CountingReranker()
    run, _ = run_of(SearchRequest("", rerank=False), small_index(), models_with(reranker))
    assert [c.column.name for c in run.columns] == ["vector", "bm25", "hybrid"]
    assert not reranker.asked
