"""Where is my passage: found however it was pasted, followed through every step, remedies tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from rag_tui.engine.chunkers.base import ChunkingSettings
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.knobs import make_column, with_knobs
from rag_tui.engine.loading import Models
from rag_tui.engine.passage_target import chunk_named, find_passage
from rag_tui.engine.passage_trace import ColumnTrace, PassageTrace, trace_passage
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.rerankers.base import RerankerInfo
from rag_tui.engine.searching import final_results, search
from rag_tui.engine.settings import EngineSettings, ModelSettings
from rag_tui.engine.types import (
    Answer,
    Citation,
    Column,
    Document,
    FileReport,
    Heading,
    KnobValue,
    Ranking,
    ScoreKind,
    SearchRequest,
)
from tests.conftest import build
from tests.engine.small_index import index_of, small_models

PUMP = "The pump must be primed with clean water before the first start of the season."
VALVE = "Close the red valve\nbefore you open the housing of the filter."
STAFF = "Nur das Personal darf den Schaltschrank öffnen."


@pytest.fixture
def manual() -> Index:
    text = f"# Pump\n\n{PUMP}\n\n# Filter\n\n{VALVE}\n\n{STAFF}\n"
    headings = (
        Heading(1, "Pump", text.index("# Pump"), text.index("# Pump") + 7),
        Heading(1, "Filter", text.index("# Filter"), text.index("# Filter") + 9),
    )
    other = Document("notes/copy.md", "Copy", f"{PUMP}\n\nNothing else.", "2")
    return index_of((Document("manual.md", "Manual", text, "1", headings=headings), other))


def texts_at(wanted: str, index: Index) -> list[str]:
    target = find_passage(wanted, index)
    return [index.document_of[p.doc_id].text[p.start : p.end] for p in target.places]


def test_a_pasted_sentence_is_found_at_every_place_with_its_chunks(manual: Index) -> None:
    target = find_passage(PUMP[10:40], manual)
    assert (target.kind, target.match, target.similarity) == ("text", "exact", 1.0)
    assert [place.doc_id for place in target.places] == ["manual.md", "notes/copy.md"]
    assert [manual.chunks[p].text for place in target.places for p in place.holders] == [PUMP, PUMP]
    assert [place.line_start for place in target.places] == [3, 1]


@pytest.mark.parametrize(
    ("pasted", "match", "found"),
    [
        ("valve before  you\topen", "white space", "valve\nbefore you open"),
        ("THE RED VALVE BEFORE", "capitals", "the red valve\nbefore"),
        ("scHaltschrank \u00d6FFNEN", "capitals", "Schaltschrank öffnen"),
        ("Schaltschrank o\u0308ffnen", "white space", "Schaltschrank öffnen"),
        ("Open the blue valve only after the housing of a fan was closed", "", ""),
        (
            "Close that red valve, before you would open the housing of the filter",
            "fuzzy",
            VALVE,
        ),
    ],
)
def test_a_passage_is_found_however_it_was_wrapped_or_remembered(
    manual: Index, pasted: str, match: str, found: str
) -> None:
    target = find_passage(pasted, manual)
    assert target.match == match
    assert (match == "fuzzy") == (0.8 <= target.similarity < 1)
    if found:
        assert texts_at(pasted, manual) == [found]
    else:
        assert target.nearest is not None
        assert target.nearest.doc_id == "manual.md"
        assert 0 < target.similarity < 0.8


def test_a_quotation_that_breaks_is_found_as_one_line() -> None:
    index = index_of((Document("q.md", "Q", "> one two\n> three four\n", "1"),))
    assert texts_at("two three", index) == ["two\n> three"]


@pytest.mark.parametrize(
    ("named", "kind", "found"),
    [
        ("manual.md:3", "line", [PUMP]),
        ("manual.md:7-8", "line", [VALVE]),
        ("manual.md#Pump", "heading", [f"# Pump\n\n{PUMP}"]),
        ("manual.md#filter", "heading", [f"# Filter\n\n{VALVE}\n\n{STAFF}"]),
        ("notes/copy.md", "file", [f"{PUMP}\n\nNothing else."]),
    ],
)
def test_lines_headings_and_files_are_named_by_their_path(
    manual: Index, named: str, kind: str, found: list[str]
) -> None:
    target = find_passage(named, manual)
    assert target.kind == kind
    assert texts_at(named, manual) == found
    assert all(place.holders == place.parts for place in target.places)


def test_a_chunk_is_named_by_its_id_or_a_prefix_of_it_that_is_unique(manual: Index) -> None:
    for chunk_id in manual.chunk_ids:
        for named in (chunk_id, chunk_id[:10]):
            assert chunk_named(named, manual).chunk_id == chunk_id
    twins = replace(
        manual,
        chunks=tuple(
            replace(chunk, chunk_id=f"abcd{i}000000000aa"[:16])
            for i, chunk in enumerate(manual.chunks)
        ),
    )
    with pytest.raises(UsageError, match="begin with abcd"):
        find_passage("abcd", twins)
    with pytest.raises(UsageError, match="no chunk"):
        chunk_named("ffffffff", manual)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (" \n", "empty"),
        ("manual.md:99", "no line 99"),
        ("manual.md:0", "no line 0"),
        ("manual.md#Wiring", "no heading 'Wiring'"),
    ],
)
def test_a_place_that_does_not_exist_is_told(manual: Index, named: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find_passage(named, manual)


# One column after the other: what each step of the pipeline says when it loses the passage.

TEXTS = (
    "alpha beta gamma",
    "alpha beta delta",
    "alpha epsilon",
    "zeta eta theta iota",
    "alpha kappa lambda mu nu xi omicron",
)


class ByText:
    """A reranker that scores a passage by the first word that it knows."""

    info = RerankerInfo("by text", "by text", 512, ScoreKind("logit by text", "0 and up"))

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        self.n_scored = 0

    def score(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[float]:
        """One score a passage."""
        del query, cancel
        for passage in passages:
            self.n_scored += 1
            yield next((s for word, s in self._scores.items() if word in passage), 0.0)


@pytest.fixture
def greek() -> Index:
    documents = tuple(
        Document(f"{'in' if i < 4 else 'out'}/{i}.md", f"{i}", text, str(i))
        for i, text in enumerate(TEXTS)
    )
    index = index_of(documents)
    # Cosines to the vector (1, 0), for which the question stands.
    scores = [0.9, 0.8, 0.3, 0.7, 0.2]
    rows = [[s, (1 - s * s) ** 0.5] for s in scores]
    return replace(index, vectors=np.array(rows, dtype=np.float32))


class OneVector(HashingEmbedder):
    """Every question is the vector (1, 0)."""

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """float32 ``(2,)``."""
        del text
        return np.array([1, 0], dtype=np.float32)


def models_with(scores: Mapping[str, float]) -> tuple[Models, ByText]:
    reranker = ByText(scores)
    settings = ModelSettings(embedder="hashing")
    return Models(settings, Path("none"), embedder=OneVector(), reranker=reranker), reranker


def traced(
    index: Index,
    passage: str,
    method: str,
    knobs: Mapping[str, object],
    *,
    query: str = "alpha beta",
    where: str = "",
    scores: Mapping[str, float] | None = None,
) -> tuple[PassageTrace, ColumnTrace, Models]:
    models, _ = models_with(scores or {})
    column = make_column("c", method, {"search.top_k": 1, **knobs})
    request = SearchRequest(query, columns=(column,), where=where)
    trace = trace_passage(query, find_passage(passage, index), request, index, models)
    (found,) = trace.columns
    for remedy in found.remedies:
        check_remedy(dict(remedy.knobs), remedy.rank, found, request, index, models)
    return trace, found, models


def check_remedy(
    knobs: Mapping[str, KnobValue],
    rank: int | None,
    found: ColumnTrace,
    request: SearchRequest,
    index: Index,
    models: Models,
) -> None:
    """Run the pipeline of the column with the knobs: the passage stands where it was said."""
    (column,) = request.columns
    changed = with_knobs(with_knobs(request, dict(column.knobs)), knobs)
    changed = replace(changed, columns=(Column("c", column.method),))
    (result,) = final_results(search(changed, index, models))
    assert result.ranking is not None
    assert result.ranking.rank_of(found.chunk_id) == rank
    assert rank is not None
    assert rank <= changed.top_k


CASES = [
    ("alpha beta gamma", "vector", {}, "present", 1, {}),
    ("alpha beta delta", "vector", {}, "cut by top_k", 2, {"search.top_k": 2}),
    (
        "alpha kappa",
        "vector",
        {"search.depth": 2},
        "below depth",
        None,
        {"search.depth": 5, "search.top_k": 5},
    ),
    ("zeta eta", "bm25", {}, "no word in common", None, None),
    (
        "alpha kappa",
        "bm25",
        {"search.depth": 2},
        "below depth",
        None,
        {"search.depth": 4, "search.top_k": 4},
    ),
    # Third in the vector list and not in the other one.
    ("zeta eta", "hybrid", {"search.weight_vector": 0.0}, "fused down", None, None),
    (
        "zeta eta",
        "hybrid",
        {"search.top_k": 3, "search.weight_bm25": 4.0},
        "fused down",
        5,
        {"search.weight_vector": 1.0, "search.weight_bm25": 0.0},
    ),
    (
        "zeta eta",
        "hybrid",
        {"search.depth": 3, "search.weight_bm25": 9.0},
        "fused down",
        None,
        None,
    ),
    (
        "alpha beta delta",
        "reranked",
        {"search.rerank_depth": 1},
        "below rerank_depth",
        None,
        None,
    ),
    ("alpha beta gamma", "reranked", {}, "reranked down", 5, None),
    (
        "alpha beta delta",
        "bm25",
        {"search.top_k": 2, "post.min_bm25": 99.0},
        "removed by a step",
        None,
        {"post.min_bm25": None},
    ),
]


@pytest.mark.parametrize(("passage", "method", "knobs", "step", "rank", "remedy"), CASES)
def test_the_step_that_lost_the_passage_is_named_and_what_brings_it_in_was_tried(
    greek: Index,
    passage: str,
    method: str,
    knobs: dict[str, object],
    step: str,
    rank: int | None,
    remedy: dict[str, KnobValue] | None,
) -> None:
    scores = {"gamma": 1.0, "delta": 5.0, "epsilon": 4.0, "zeta": 3.0, "kappa": 2.0}
    trace, found, _ = traced(greek, passage, method, knobs, scores=scores)
    assert found.verdict.step == step, found.verdict
    assert trace.verdict == found.verdict
    assert found.rank == rank
    assert found.verdict.is_present == (step == "present")
    if remedy:
        assert remedy in [dict(one.knobs) for one in found.remedies]


def test_ranks_are_those_of_the_whole_corpus_and_the_rows_above_are_told(greek: Index) -> None:
    _, found, _ = traced(greek, "alpha kappa", "hybrid", {"search.depth": 2})
    places = {place.method: place for place in found.places}
    assert (places["vector"].corpus_rank, places["vector"].n_ranked) == (5, 5)
    assert places["vector"].score == pytest.approx(0.2)
    assert (places["bm25"].corpus_rank, places["bm25"].n_ranked) == (4, 4)
    assert [places[m].rank for m in ("vector", "bm25", "hybrid")] == [None, None, None]
    assert [(hit.rank, hit.chunk_id) for hit in found.above] == [
        (1, greek.chunk_ids[0]),
        (2, greek.chunk_ids[1]),
    ]
    for word in ("rank 5 of 5", "rank 4 of 4", "depth 2"):
        assert word in found.verdict.detail


def test_the_words_of_question_and_passage_are_told_when_they_share_none(greek: Index) -> None:
    _, found, _ = traced(greek, "eta theta", "bm25", {})
    assert "alpha, beta" in found.verdict.detail
    assert "eta, theta" in found.verdict.detail


def test_a_chunk_that_the_reranker_did_not_read_is_scored_once_to_tell_where_it_would_be(
    greek: Index,
) -> None:
    knobs = {"search.rerank_depth": 2, "search.top_k": 2}
    scores = {"gamma": 1.0, "delta": 5.0, "zeta": 3.0}
    _, found, _ = traced(greek, "zeta eta", "reranked", knobs, scores=scores)
    place = next(place for place in found.places if place.method == "reranked")
    assert (place.score, place.rank, place.corpus_rank, place.n_ranked) == (3.0, None, 2, 3)
    # Fourth in the hybrid list: with four rows read it is second of them.
    assert ({"search.rerank_depth": 5}, 2) in [(dict(r.knobs), r.rank) for r in found.remedies]


def test_filters_and_operators_are_named_and_left_alone(greek: Index) -> None:
    _, outside, _ = traced(greek, "alpha kappa", "vector", {}, where="path~in/*")
    assert outside.verdict.step == "excluded by the filter"
    assert "path~in/*" in outside.verdict.detail
    assert outside.remedies == ()
    _, banned, _ = traced(greek, "alpha beta delta", "bm25", {}, query="alpha -delta")
    assert banned.verdict.step == "excluded by an operator"
    assert 'it holds "delta"' in banned.verdict.detail
    _, lacking, _ = traced(greek, "alpha epsilon", "bm25", {}, query='beta "alpha beta"')
    assert lacking.verdict.step == "excluded by an operator"
    assert 'it lacks "alpha beta"' in lacking.verdict.detail


def test_folded_and_reordered_rows_name_the_step_and_the_row_that_stands_for_them() -> None:
    texts = ("pump valve filter", "Pump valve  filter", "valve only")
    index = index_of((Document("a.md", "A", "\n\n".join(texts), "1"),))
    models = small_models()
    column = make_column("c", "bm25", {"search.top_k": 2, "post.fold": True})
    request = SearchRequest("pump valve", columns=(column,))
    target = find_passage(index.chunk_ids[1], index)
    (found,) = trace_passage("pump valve", target, request, index, models).columns
    assert found.verdict.step == "removed by a step"
    assert "folded into a.md:1-1, rank 1" in found.verdict.detail
    assert {"post.fold": False} in [dict(remedy.knobs) for remedy in found.remedies]


def test_of_several_places_the_best_one_counts(manual: Index) -> None:
    models = small_models()
    request = SearchRequest("nothing else copy", columns=(Column("v", "vector"),), top_k=1, depth=1)
    target = find_passage(PUMP, manual)
    trace = trace_passage(request.query, target, request, manual, models)
    ids = [manual.chunk_ids[p] for place in target.places for p in place.holders]
    deep = replace(request, depth=20)
    (result,) = search(deep, manual, models)
    assert result.ranking is not None
    first = next(hit.chunk_id for hit in result.ranking.hits if hit.chunk_id in ids)
    assert trace.columns[0].chunk_id == first
    assert any("2 places" in remark for remark in trace.notes)


def test_what_is_in_the_prompt_and_what_the_answer_cites_is_told(greek: Index) -> None:
    models, _ = models_with({})
    request = SearchRequest("alpha beta", columns=(Column("vector", "vector"),))
    target = find_passage("alpha beta delta", greek)

    def trace(n_sources: int, text: str | None = None) -> PassageTrace:
        prompt = build_prompt("alpha beta", greek.chunks, max_sources=n_sources)
        answer = None
        if text is not None:
            number = int(text[1])
            answer = Answer(text, "complete", "test", (Citation(0, 3, (number,)),))
        return trace_passage(
            "alpha beta", target, request, greek, models,
            prompt_sources=prompt.sources, answer=answer, with_remedies=False,
        )  # fmt: skip

    outside = trace(1)
    assert (outside.verdict.step, outside.number) == ("not among the sources", None)
    inside = trace(2)
    assert (inside.verdict.step, inside.number, inside.is_cited) == ("present", 2, None)
    uncited = trace(2, "[1]")
    assert (uncited.verdict.step, uncited.is_cited) == ("not cited", False)
    cited = trace(2, "[2]")
    assert (cited.verdict.step, cited.is_cited) == ("present", True)


# Before anything is ranked.


def indexed(folder: Path, settings: EngineSettings, models: Models) -> Index:
    return build(folder, settings, models).index


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A folder in which most things are not indexed."""
    place = tmp_path_factory.mktemp("odd")
    root = place / "docs"
    (root / "drafts").mkdir(parents=True)
    (root / "good.md").write_text(
        "---\nsecret: the front matter says plenty\n---\n# Good\n\nThe well is deep and cold.\n"
    )
    (root / "page.html").write_text(
        "<html><head><style>/* the hidden styles of this page */</style></head>"
        "<body><p>Shown text of the page.</p></body></html>"
    )
    (root / "drafts" / "plan.md").write_text("# Plan\n\nThe moon base opens in spring.\n")
    (root / ".gitignore").write_text("drafts/\n")
    (root / "data.bin").write_bytes(b"\0\1The binary secret is out\0")
    (place / "outside.md").write_text("Words that only the outside file has.\n")
    (root / "link.md").symlink_to(place / "outside.md")
    settings = EngineSettings(
        cache_dir=place / "cache", models=ModelSettings(embedder="hashing", allow_download=False)
    )
    return indexed(root, settings, Models(settings.models, settings.cache_dir))


@pytest.mark.parametrize(
    ("passage", "step", "told"),
    [
        ("The moon base opens", "never loaded", "drafts"),
        ("drafts/plan.md", "never loaded", "ignored"),
        ("drafts/plan.md:3", "never loaded", "drafts"),
        ("The binary secret is out", "never loaded", "data.bin holds it, but was skipped"),
        ("data.bin", "never loaded", "not a supported type"),
        ("the hidden styles of this page", "lost in extraction", "page.html"),
        ("the front matter says plenty", "lost in cutting", "front matter"),
        ("nobody ever wrote this down", "not found", "no document holds it"),
    ],
)
def test_a_passage_that_no_chunk_holds_is_traced_to_its_file(
    odd_files: Index, passage: str, step: str, told: str
) -> None:
    target = find_passage(passage, odd_files)
    trace = trace_passage("moon", target, SearchRequest("moon"), odd_files, small_models())
    assert trace.verdict.step == step, trace.verdict
    assert told in trace.verdict.detail
    assert trace.columns == ()
    assert not trace.verdict.is_present


def test_links_out_of_the_folder_are_not_looked_into(odd_files: Index) -> None:
    assert any(report.path == "link.md" for report in odd_files.reports)
    target = find_passage("Words that only the outside file has.", odd_files)
    trace = trace_passage("x", target, SearchRequest("x"), odd_files, small_models())
    assert trace.verdict.step == "not found"
    assert find_passage("../outside.md", odd_files).path == ""


def test_a_split_passage_names_both_chunks_the_cut_and_what_would_hold_it_whole(
    tmp_path: Path, hashing_settings: EngineSettings, hashing_models: Models
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    sentences = [f"Sentence {i} tells of item {i} and its colour." for i in range(40)]
    (root / "long.md").write_text("# Long\n\n" + " ".join(sentences) + "\n")
    settings = replace(
        hashing_settings, chunking=ChunkingSettings("words", size=40, overlap=0, unit="words")
    )
    index = indexed(root, settings, hashing_models)
    document = index.documents[0]
    at = index.chunks[0].end
    wanted = document.text[at - 30 : at + 30]
    target = find_passage(wanted, index)
    (place,) = target.places
    assert place.is_split
    assert place.parts == (0, 1)
    request = SearchRequest("item colour", rerank=False, top_k=1, columns=(Column("b", "bm25"),))
    trace = trace_passage(request.query, target, request, index, hashing_models)
    assert trace.verdict.step == "split across chunks"
    assert all(chunk.location in trace.verdict.detail for chunk in index.chunks[:2])
    assert any("cut at line" in remark for remark in trace.notes)
    # Each way of cutting that is offered does hold it: the folder is indexed with it.
    assert trace.remedies
    for remedy in trace.remedies:
        changed = {name.removeprefix("chunking."): value for name, value in remedy.knobs}
        chunking = replace(settings.chunking, **changed)  # type: ignore[arg-type]
        other = indexed(root, replace(settings, chunking=chunking), hashing_models)
        assert find_passage(wanted, other).places[0].holders
    shown = replace(request, top_k=20)
    both = trace_passage(request.query, target, shown, index, hashing_models)
    assert both.verdict.is_present
    assert "2 chunks" in both.verdict.detail


def test_a_passage_behind_the_models_limit_is_said_to_be_unread(manual: Index) -> None:
    models = small_models()
    long = index_of((Document("l.md", "L", f"{'word ' * 60}the needle is here\n\nother", "1"),))
    index = replace(
        long,
        manifest=replace(long.manifest, max_tokens=20),
        n_tokens=np.array([66, 5], dtype=np.int32),
    )
    request = SearchRequest("other", columns=(Column("v", "vector"),), top_k=1, depth=1)
    target = find_passage("the needle is here", index)
    trace = trace_passage("other", target, request, index, models)
    assert trace.verdict.step == "beyond the model's limit"
    assert "reads none of the passage" in trace.verdict.detail
    begun = trace_passage("other", find_passage("word word", index), request, index, models)
    assert begun.verdict.step == "below depth"


class Shortsighted(ByText):
    """Reads ten characters of a passage."""

    def score_batches(
        self, query: str, passages: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Iterator[dict[int, float]]:
        """One pair at a time."""
        for i, score in enumerate(self.score(query, passages, cancel=cancel)):
            yield {i: score}

    def read_part(self, query: str, passage: str) -> int:
        """Ten characters."""
        del query
        return min(10, len(passage))


def test_a_passage_that_the_reranker_does_not_read_is_told_where_it_stops(greek: Index) -> None:
    reranker = Shortsighted({"gamma": -1.0})
    settings = ModelSettings(embedder="hashing")
    models = Models(settings, Path("none"), embedder=OneVector(), reranker=reranker)
    request = SearchRequest("alpha beta", columns=(Column("r", "reranked"),), top_k=1)
    target = find_passage("gamma", greek)
    (found,) = trace_passage("alpha beta", target, request, greek, models).columns
    assert found.verdict.step == "reranked down"
    # "0", a blank line, "alpha b": seven characters of the chunk.
    assert "the reranker reads none of the passage: it stops at character 7 of 16" in (
        found.verdict.detail
    )


def test_a_cancelled_trace_stops(greek: Index) -> None:
    models, reranker = models_with({})
    token = CancelToken()
    token.cancel()
    target = find_passage("alpha kappa", greek)
    with pytest.raises(Cancelled):
        trace_passage("alpha", target, SearchRequest("alpha"), greek, models, cancel=token)
    assert reranker.n_scored == 0


def test_a_list_that_cannot_be_made_does_not_hide_the_others(greek: Index) -> None:
    models, _ = models_with({})
    index = replace(greek, vectors=None)
    columns = (Column("v", "vector"), Column("b", "bm25"))
    request = SearchRequest("alpha", columns=columns)
    trace = trace_passage("alpha", find_passage("alpha kappa", index), request, index, models)
    assert [column.verdict.step for column in trace.columns] == ["no list", "present"]
    assert "no vectors" in trace.columns[0].verdict.detail
    assert trace.verdict == trace.columns[1].verdict


def test_on_the_demo_corpus_ranks_are_those_of_a_search_as_deep_as_the_corpus(
    guesthouse: Index, models: Models
) -> None:
    question = "Can I bring my dog?"
    deep: dict[str, Ranking] = {}
    request = SearchRequest(question, depth=len(guesthouse.chunks), rerank=False)
    for result in search(request, guesthouse, models):
        assert result.ranking is not None
        deep[result.stage] = result.ranking
    shallow = SearchRequest(question, depth=5, rerank=False)
    for chunk_id in guesthouse.chunk_ids:
        target = find_passage(chunk_id, guesthouse)
        trace = trace_passage(question, target, shallow, guesthouse, models, with_remedies=False)
        for column in trace.columns:
            place = next(p for p in column.places if p.method == column.method)
            assert place.corpus_rank == deep[column.method].rank_of(chunk_id)


def test_a_report_without_a_document_is_never_loaded(manual: Index) -> None:
    index = replace(manual, reports=(FileReport("broken.pdf", "failed", "the file is encrypted"),))
    trace = trace_passage(
        "x", find_passage("broken.pdf", index), SearchRequest("x"), index, small_models()
    )
    assert trace.verdict.step == "never loaded"
    assert trace.verdict.detail == "broken.pdf was failed: the file is encrypted"
