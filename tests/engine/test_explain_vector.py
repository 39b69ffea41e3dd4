"""A chunk among all scores of the corpus, its sentences, its words, and what is left unread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.explain import (
    explain,
    explain_rerank_sentences,
    explain_sentences,
    heat_map,
)
from rag_tui.engine.explain_columns import explain_column
from rag_tui.engine.explain_vector import unread_from
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import make_column
from rag_tui.engine.loading import Models
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.searching import search
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.types import Document, ScoreKind, SearchRequest
from tests.engine.small_index import OverlapReranker, index_of, small_models

NOTES = Document(
    "notes.md",
    "Notes",
    "The pump is loud. Close the valve first. Then call us.\n\n"
    "```\nvalve = open()\n\nclose(valve)\n```\n\n"
    "Nothing here.",
    "1",
)


@pytest.fixture
def index() -> Index:
    return index_of((NOTES,))


def with_scores(index: Index, scores: Sequence[float]) -> Index:
    """An index whose cosines to the vector (1, 0) are these."""
    rows = [[score, (1 - score * score) ** 0.5] for score in scores]
    return replace(index, vectors=np.array(rows, dtype=np.float32))


def test_a_chunk_has_a_rank_among_all_and_both_gaps_and_equal_ones_go_by_position() -> None:
    document = Document("a.md", "A", "\n\n".join("abcde"), "1")
    index = with_scores(index_of((document,)), [0.5, 0.75, 0.5, -0.25, 1.0])
    query = np.array([1, 0], dtype=np.float32)
    found = [
        explain(chunk_id, SearchRequest("q"), index, {}, query_vector=query).vector
        for chunk_id in index.chunk_ids
    ]
    told = [(v.corpus_rank, v.gap_above, v.gap_below) for v in found if v is not None]
    assert told == [
        (3, 0.25, 0.0),
        (2, 0.25, 0.25),
        (4, 0.0, 0.75),
        (5, 0.75, None),
        (1, None, 0.25),
    ]
    assert all(v is not None and v.n_corpus == 5 for v in found)


def test_the_histogram_has_twenty_bins_and_marks_that_of_the_chunk() -> None:
    document = Document("a.md", "A", "\n\n".join("abcde"), "1")
    index = with_scores(index_of((document,)), [0.0, 0.1, 0.5, 0.5, 1.0])
    query = np.array([1, 0], dtype=np.float32)
    spreads = []
    for chunk_id in index.chunk_ids:
        vector = explain(chunk_id, SearchRequest("q"), index, {}, query_vector=query).vector
        assert vector is not None
        assert vector.histogram is not None
        spreads.append(vector.histogram)
    # Bins are 0.05 wide; the highest score is in the last one. 0.1 is 0.1000000015 in float32.
    counts = [0] * 20
    counts[0], counts[2], counts[10], counts[19] = 1, 1, 2, 1
    assert [spread.counts for spread in spreads] == [tuple(counts)] * 5
    assert [spread.bin for spread in spreads] == [0, 2, 10, 10, 19]
    assert (spreads[0].low, spreads[0].high) == (0.0, 1.0)


def test_a_filter_leaves_only_what_it_allows_to_be_ranked(index: Index) -> None:
    query = HashingEmbedder().embed_query("valve")
    request = SearchRequest("valve", where="line<=2")
    first, *_, last = index.chunk_ids
    allowed = explain(first, request, index, {}, query_vector=query).vector
    outside = explain(last, request, index, {}, query_vector=query).vector
    assert allowed is not None
    assert outside is not None
    assert (allowed.corpus_rank, allowed.n_corpus) == (1, 1)
    assert outside.corpus_rank is None


def test_the_question_is_shown_as_the_analyzer_cut_it_and_where_its_words_stand(
    index: Index,
) -> None:
    request = SearchRequest('the Valves "close the valve" -nothing')
    column = make_column("c", "bm25", {"bm25.analyzer": "english"})
    models = small_models()
    found = explain_column(index.chunk_ids[0], request, column, index, models).bm25
    assert found is not None
    assert [(word.text, word.tokens) for word in found.query_words] == [
        ("the", ()),
        ("Valves", ("valv",)),
        ("close", ("close",)),
        ("the", ()),
        ("valve", ("valv",)),
    ]
    text = index.chunks[0].text
    assert [(text[s.start : s.end], s.token) for s in found.spans] == [
        ("Close", "close"),
        ("valve", "valv"),
    ]
    assert [(c.kind, c.tokens, c.holds) for c in found.operators] == [
        ("phrase", ("close", "valv"), True),
        ("must not", ("noth",), True),
    ]


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ('pump "valve first"', [True]),
        ('pump "first valve"', [False]),
        ("pump +valve", [True]),
        ("pump +handbook", [False]),
        ("pump -valve", [False]),
    ],
)
def test_an_operator_that_does_not_hold_is_why_a_chunk_is_not_in_the_list(
    index: Index, query: str, holds: list[bool]
) -> None:
    column = make_column("c", "bm25", {})
    chunk_id = index.chunk_ids[0]
    found = explain_column(chunk_id, SearchRequest(query), column, index, small_models()).bm25
    assert found is not None
    assert [check.holds for check in found.operators] == holds
    assert (found.rank is not None) == all(holds)
    assert found.score > 0


def test_each_sentence_has_its_own_similarity_and_code_goes_line_by_line(index: Index) -> None:
    models = small_models()
    request = SearchRequest("close the valve first -unknownword")
    scores = explain_sentences(index.chunk_ids[0], request, index, models)
    text = index.chunks[0].text
    assert [text[s.start : s.end] for s in scores] == [s.text for s in scores]
    assert [s.text for s in scores] == [
        "The pump is loud.",
        "Close the valve first.",
        "Then call us.",
    ]
    embedder = HashingEmbedder()
    expected = embedder.embed_documents([s.text for s in scores]) @ embedder.embed_query(
        "close the valve first"
    )
    assert [s.score for s in scores] == pytest.approx(expected.tolist(), abs=1e-6)
    assert max(scores, key=lambda s: s.score).text == "Close the valve first."
    code = index.chunks[1]
    lines = explain_sentences(code.chunk_id, request, index, models)
    assert [line.text for line in lines] == ["```", "valve = open()"]


def test_the_reranker_scores_each_sentence_alone(index: Index) -> None:
    scores = explain_rerank_sentences(
        index.chunk_ids[0], SearchRequest("close the valve"), index, small_models()
    )
    assert [s.score for s in scores] == [1.0, 3.0, 0.0]


class ShortReranker(OverlapReranker):
    """Reads 30 characters of a passage."""

    info = RerankerInfo("short", "short", 8, ScoreKind("logit short", "0 and up"))

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        for i, score in enumerate(self.score(query, passages, cancel=cancel)):
            yield {i: score}

    def read_part(self, query: str, passage: str) -> int:
        del query
        return min(30, len(passage))


def test_what_the_reranker_cannot_read_is_marked_in_the_text_of_the_chunk(index: Index) -> None:
    models = Models(
        ModelSettings(embedder="hashing"),
        index.folder,
        embedder=HashingEmbedder(),
        reranker=ShortReranker(),
    )
    request = SearchRequest("valve pump")
    chunk = index.chunks[0]
    found = explain_column(
        chunk.chunk_id, request, make_column("c", "reranked", {}), index, models
    ).reranked
    assert found is not None
    assert found.unread_from is not None
    # "Notes", a blank line, then the text: 7 characters stand above it.
    assert chunk.embedded_text[:30] == "Notes\n\n" + chunk.text[: found.unread_from]
    scores = explain_rerank_sentences(chunk.chunk_id, request, index, models)
    assert [s.is_read for s in scores] == [True, False, False]


def test_where_the_embedder_stops_reading_is_where_changes_stop_to_matter(
    guesthouse: Index, models: Models
) -> None:
    words = " ".join(f"word{i % 97} follows" for i in range(400))
    document = Document("long.md", "Long", f"{words}\n\nshort", "1")
    long = index_of((document,))
    chunk = long.chunks[0]
    counter = models.token_counter()
    n = np.array([counter.count([c.embedded_text])[0] + 2 for c in long.chunks], dtype=np.int32)
    index = replace(long, manifest=guesthouse.manifest, n_tokens=n)
    end = unread_from(0, index, models)
    assert end is not None
    assert 0 < end < len(chunk.text)
    assert unread_from(1, index, models) is None

    def vector(text: str) -> npt.NDArray[np.float32]:
        changed = replace(chunk, text=text)
        row: npt.NDArray[np.float32] = models.embedder().embed_documents([changed.embedded_text])[0]
        return row

    whole = vector(chunk.text)
    assert float(vector(chunk.text[:end] + " another ending") @ whole) == pytest.approx(1, abs=1e-6)
    last = chunk.text.rindex(" ", 0, end - 1)
    assert float(vector(chunk.text[:last] + " zebra" + chunk.text[end:]) @ whole) < 0.9999
    scores = explain_sentences(chunk.chunk_id, SearchRequest("word"), index, models)
    assert [s.is_read for s in scores] == [False]


def test_the_heat_map_names_the_nearest_word_of_the_question(
    guesthouse: Index, models: Models
) -> None:
    question = "How many megabits has the internet?"
    chunk = next(chunk for chunk in guesthouse.chunks if chunk.label == "Wi-Fi")
    heat = heat_map(chunk.chunk_id, SearchRequest(question), guesthouse, models)
    assert heat.text == chunk.embedded_text
    assert heat.query_words == ("How", "many", "megabits", "has", "the", "internet")
    assert (heat.read_to, heat.n_cut) == (len(heat.text), 0)
    assert all(heat.text[span.start : span.end].isalnum() for span in heat.spans)
    assert [span.start for span in heat.spans] == sorted({span.start for span in heat.spans})
    for span in heat.spans:
        at = heat.in_chunk(span.start)
        if at is not None:
            length = span.end - span.start
            assert chunk.text[at : at + length] == heat.text[span.start : span.end]
    # The same numbers from the vectors of the tokens; the sign at the end is no word.
    asked = models.token_vectors([question], "query")[0]
    read = models.token_vectors([heat.text], "document")[0]
    assert question[slice(*asked.spans[-1])] == "?"
    near = read.vectors @ asked.vectors[:-1].T
    pieces = [
        [i for i, (a, b) in enumerate(read.spans) if span.start <= a and b <= span.end]
        for span in heat.spans
    ]
    assert any(len(rows) > 1 for rows in pieces)
    expected = [float(near[rows].max()) for rows in pieces]
    assert [span.similarity for span in heat.spans] == pytest.approx(expected, abs=1e-6)
    best = max(heat.spans, key=lambda span: span.similarity)
    assert (heat.text[best.start : best.end], best.query_word) == ("megabits", "megabits")


class PlainEmbedder:
    """An embedder that gives one vector a text and none for its words."""

    def __init__(self) -> None:
        self._hashing = HashingEmbedder()
        self.info = self._hashing.info
        self.embed_query = self._hashing.embed_query
        self.embed_documents = self._hashing.embed_documents


def test_an_embedder_without_vectors_for_words_says_so(index: Index) -> None:
    models = Models(ModelSettings(embedder="hashing"), index.folder, embedder=PlainEmbedder())
    with pytest.raises(ModelError, match="words"):
        heat_map(index.chunk_ids[0], SearchRequest("valve"), index, models)


def test_steps_tell_what_took_a_chunk_out_and_what_it_was_folded_into() -> None:
    texts = ["the pump valve", "The  pump valve", "the pump", "no more"]
    index = index_of((Document("a.md", "A", "\n\n".join(texts), "1"),))
    models = small_models()
    request = SearchRequest("pump valve")
    first, copy, second, _ = index.chunk_ids
    folded = explain_column(
        copy, request, make_column("f", "bm25", {"post.fold": True}), index, models
    ).steps
    head = explain_column(
        first, request, make_column("f", "bm25", {"post.fold": True}), index, models
    ).steps
    assert folded is not None
    assert head is not None
    assert (folded.removed_by, folded.folded_into, folded.rank_after) == ("fold", first, None)
    assert (head.removed_by, head.folded, head.rank_after) == ("", (copy,), 1)
    (result,) = search(replace(request, columns=(make_column("b", "bm25", {}),)), index, models)
    assert result.ranking is not None
    hit = result.ranking.hit_of(second)
    assert hit is not None
    least = make_column("t", "bm25", {"post.min_bm25": hit.score + 1e-6})
    dropped = explain_column(second, request, least, index, models).steps
    assert dropped is not None
    assert (dropped.removed_by, dropped.rank_before) == ("threshold", 3)
    assert "below" in dropped.note
    assert explain_column(first, request, make_column("b", "bm25", {}), index, models).steps is None
