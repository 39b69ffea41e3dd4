"""The explanation, the nearest sentence, the heat map and the scores of sentences on screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_tui.engine.chunkers.reach import Unread
from rag_tui.engine.explain import (
    Explanation,
    HeatMap,
    HeatSpan,
    Histogram,
    HybridExplanation,
    RerankExplanation,
    VectorExplanation,
    explain_rerank_sentences,
    explain_sentences,
)
from rag_tui.engine.explanations import FusionPart
from rag_tui.engine.knobs import with_knobs
from rag_tui.engine.types import Chunk, Column, Hit, Ranking, ScoreKind, SearchRequest
from rag_tui.tui import format as fmt
from rag_tui.tui.app import RagTuiApp
from rag_tui.tui.close_reading import Reading, SentenceRow, SentenceTable, heat_levels
from rag_tui.tui.widgets.chunk_text import HEAT_STYLES, NEAREST_STYLE, Layers, body
from rag_tui.tui.widgets.explain_text import Explained, histogram_line, lines_of
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.conftest import SmallBackend, ask, screen_text, settle, until

QUESTION = "Where can I leave my luggage before check-in?"
WIDE = (160, 45)


def explained(
    explanation: Explanation, *, chunk: Chunk | None = None, **more: object
) -> tuple[str, Explained]:
    """The text of an explanation of a made-up chunk, at 100 cells."""
    found = Explained(
        chunk=chunk or Chunk("c", "a.md", 0, 0, 20, "x" * 20, ("Alpha",)),
        column="mine",
        explanation=explanation,
        rankings={
            "vector": Ranking(
                "vector",
                (Hit("a", 0, 0.9, 1), Hit("b", 1, 0.5, 2)),
                2,
                ScoreKind("cosine", "-1 to 1", "higher is better"),
                elapsed_s=0.009,
            )
        },
        request=SearchRequest("q"),
        chunks={},
        **more,  # type: ignore[arg-type]
    )
    return "\n".join(line.plain for line in lines_of(found, 100)), found


def test_a_chunk_outside_the_list_is_placed_among_all_and_the_cut_off_is_told() -> None:
    part = VectorExplanation(
        0.4,
        None,
        2,
        None,
        corpus_rank=31,
        n_corpus=3341,
        gap_above=0.01,
        gap_below=0.002,
        histogram=Histogram(-0.1, 0.9, (8, 4, 1, 0), 2),
        unread_from=15,
    )
    text, _ = explained(Explanation("c", None, part, None, None))
    assert "VECTOR  cosine · -1 to 1 · higher is better · 9 ms" in text
    assert "similarity 0.4000 · not in the first 2 · 31 of all 3,341 chunks" in text
    assert "0.0100 below the next better chunk, 0.0020 above the next" in text
    assert "the list ends at rank 2 with 0.5000, 0.1000 above this chunk" in text
    assert "does not read the last 5 characters" in text
    assert "all chunks: -0.100 █▄[▁]· 0.900" in text


def test_the_histogram_marks_the_bin_of_the_chunk_even_when_all_scores_are_equal() -> None:
    assert histogram_line(Histogram(0.5, 0.5, (3, 0, 0), 0)) == "0.500 [▇]·· 0.500"


@pytest.mark.parametrize("fusion", ["minmax", "zscore"])
def test_fusion_of_normalised_scores_is_added_up_with_its_weights(fusion: str) -> None:
    parts = (
        FusionPart("vector", 3, 0.484, 0.8, 0.5, 0.4),
        FusionPart("bm25", None, None, 0.0, 2.0, 0.0),
    )
    hybrid = HybridExplanation(
        0.4,
        0,
        parts,
        fusion=fusion,  # type: ignore[arg-type]
        rank=7,
        rank_without=(("vector", None), ("bm25", 2)),
    )
    text, _ = explained(Explanation("c", None, None, hybrid, None))
    assert "0.5×0.8000 + 2×0.0000 = 0.4000 · rank 7" in text
    assert f"vectors: rank 3, 0.4840 → 0.8000 ({fusion}), weight 0.5, adds 0.40000" in text
    assert f"BM25: not in its list, absent → 0.0000 ({fusion}), weight 2, adds 0.00000" in text
    assert "it would be rank 2 without BM25, not listed without vectors" in text
    assert "1/(" not in text


def test_weighted_reciprocal_ranks_are_written_as_they_are_added() -> None:
    parts = (
        FusionPart("vector", 2, 0.5, None, 3.0, 3 / 62),
        FusionPart("bm25", 1, 9, None, 1, 1 / 61),
    )
    hybrid = HybridExplanation(3 / 62 + 1 / 61, 60, parts, rank=1)
    text, _ = explained(Explanation("c", None, None, hybrid, None))
    assert "3/(60+2) + 1/(60+1) = 0.0648 · rank 1" in text


def test_the_reranker_says_what_it_moved_and_what_it_left_unread() -> None:
    part = RerankExplanation(1.5, 0.8176, 4, 1, "vector", 20, unread_from=12)
    text, _ = explained(Explanation("c", None, None, None, part))
    assert "score 1.500 · sigmoid 0.8176" in text
    assert "vector rank 4 → rank 1  ▲3  of 20 read" in text
    assert "the reranker does not read the last 8 characters" in text


@pytest.mark.parametrize("text", [*HOSTILE, LONG_LINE])
def test_hostile_chunks_words_and_sentences_are_shown_and_nothing_is_sent_raw(text: str) -> None:
    chunk = Chunk("c", f"{text}.md", 0, 0, len(text), text, (text, text))
    row = SentenceRow(text, 0.5, 1.0, is_read=False)
    explanation = Explanation("c", None, VectorExplanation(0.1, 1, 2, None), None, None)
    shown, _ = explained(
        explanation,
        chunk=chunk,
        table=SentenceTable("c", (row,), "cosine", text[:50]),
        is_told=text,
    )
    in_body = body(chunk, layers=Layers(nearest=(0, len(text)), heat=((0, 1, 3),))).plain
    for forbidden in FORBIDDEN:
        assert forbidden not in shown
        assert forbidden not in in_body
    assert fmt.display(text[:5]) in shown


def chunk_of(text: str, body_offset: int = 0) -> Chunk:
    return Chunk("c", "a.md", 0, 0, len(text), text, ("T",), body_offset)


def test_the_nearest_sentence_stands_between_marks_and_is_shaded() -> None:
    text = "One is far. Two is near. Three."
    shown = body(chunk_of(text), layers=Layers(frozenset({"near"}), nearest=(12, 24)))
    assert shown.plain == "One is far. ▸Two is near.◂ Three."
    shaded = "".join(
        shown.plain[s.start : s.end] for s in shown.spans if NEAREST_STYLE in str(s.style)
    )
    assert shaded == "▸Two is near.◂"


def test_what_each_model_does_not_read_is_counted_apart() -> None:
    text = "a bc def ghi jkl"
    layers = Layers(unread=Unread(9, 2), reranker_end=13)
    shown = body(chunk_of(text), layers=layers).plain
    assert shown == (
        "a bc def \n… 2 tokens not read:\nghi \n… 3 characters not read by the reranker:\njkl"
    )


def test_heat_levels_are_shares_of_the_way_and_differ_without_colour() -> None:
    text = "# T\n\nfar mid near best"
    embedded = "T\n\nfar mid near best"
    at = {word: embedded.index(word) for word in ("T", "far", "mid", "near", "best")}
    values = {"T": 0.9, "far": 0.1, "mid": 0.35, "near": 0.45, "best": 0.6}
    spans = tuple(HeatSpan(s, s + len(w), values[w], "asked") for w, s in at.items())
    found = HeatMap(embedded, spans, ("asked",), len(embedded), 3, 5, 0, "m")
    chunk = chunk_of(text, body_offset=4)
    heat = heat_levels(chunk, found)
    # From 0.1 to 0.6: .35 is half of the way, .45 seven tenths; the heading is not in the text.
    assert [(text[s:e], level) for s, e, level in heat.words] == [
        ("far", 0), ("mid", 1), ("near", 2), ("best", 3),
    ]  # fmt: skip
    assert heat.best[0] == ("best", "asked", 0.6)
    colourless = {style.partition(" on ")[0].replace("$text-muted", "") for style in HEAT_STYLES}
    assert len(colourless) == len(HEAT_STYLES)
    same = replace(found, spans=tuple(replace(one, similarity=0.3) for one in spans))
    assert {level for _, _, level in heat_levels(chunk, same).words} == {1}


async def test_the_explanation_follows_the_active_column_and_its_knobs(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        columns = (
            Column("hybrid", "hybrid"),
            Column("summed", "hybrid", (("search.fusion", "minmax"), ("bm25.b", 0.0))),
            Column("kept", "vector", (("post.max_per_document", 1),)),
        )
        await screen.change_knobs(replace(screen.knobs, columns=columns), active="hybrid")
        await settle(pilot)
        await pilot.press("e")
        await settle(pilot)
        assert "column hybrid" in screen.explain_panel.text
        assert "1/(60+" in screen.explain_panel.text
        assert "it would be " in screen.explain_panel.text
        await pilot.press("right_square_bracket")
        await settle(pilot)
        text = screen.explain_panel.text
        assert "column summed" in text
        assert "(minmax)" in text
        assert "1/(60+" not in text
        assert "lucene, k1 1.5, b 0\n" in text
        await pilot.press("right_square_bracket")
        await settle(pilot)
        text = screen.explain_panel.text
        assert "AFTER RANKING" in text
        assert "There is no list here of: BM25, HYBRID, RERANKED." in text


async def test_the_nearest_sentence_is_that_of_the_engine_in_both_tabs(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert screen.results is not None
        assert app.session is not None
        assert screen.chunk is not None
        await until(pilot, lambda: "▸" in screen_text(pilot))
        index, models = screen.results.index, app.session.models
        request = screen.results.request_of("hybrid")
        scores = explain_sentences(screen.chunk.chunk_id, request, index, models)
        best = max(scores, key=lambda one: one.score)
        assert f"the nearest sentence, {best.score:.3f}" in screen_text(pilot)
        await pilot.press("e")
        await settle(pilot)
        assert f"carried by {best.score:.4f}" in screen.explain_panel.text
        assert " ".join(best.text.split())[:60] in screen.explain_panel.text


async def test_sentences_are_scored_by_both_models_and_sorted_and_hidden_again(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        assert screen.results is not None
        assert app.session is not None
        assert screen.selected is not None
        await pilot.press("S")
        await settle(pilot)
        assert screen.tabs.active == "explain"
        request, index = screen.results.request_of("hybrid"), screen.results.index
        models = app.session.models
        near = explain_sentences(screen.selected, request, index, models)
        read = explain_rerank_sentences(screen.selected, request, index, models)
        expected = sorted(zip(read, near, strict=True), key=lambda pair: -pair[0].score)
        lines = screen.explain_panel.text.splitlines()
        shown = lines[lines.index(next(x for x in lines if x.startswith("SENTENCES"))) + 2 :]
        for line, (reranked, similar) in zip(shown, expected, strict=False):
            assert f"{similar.score:.3f}" in line
            assert f"{reranked.score:.3f}" in line
            assert " ".join(similar.text.split())[:40] in line
        assert shown[0].lstrip().startswith("▸")
        await pilot.press("S")
        await settle(pilot)
        assert "SENTENCES" not in screen.explain_panel.text


async def test_escape_stops_the_scoring_of_sentences(app: RagTuiApp, backend: SmallBackend) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        gate = backend.gate("sentences", "reranked")
        made = backend.sentence_scores

        def slow(*args: object, by: str, **more: object) -> object:
            if by == "reranked":
                more["report"](3, 40)  # type: ignore[operator]
                gate.hold()
            return made(*args, by=by, **more)  # type: ignore[arg-type]

        backend.sentence_scores = slow  # type: ignore[method-assign,assignment]
        await pilot.press("S")
        await until(
            pilot, lambda: "reranking sentence 3 of 40… (esc stops it)" in screen_text(pilot)
        )
        await pilot.press("escape")
        await pilot.pause()
        assert "stopped (S scores the sentences)" in screen.explain_panel.text
        gate.opened.set()
        await settle(pilot)
        assert "SENTENCES" not in screen.explain_panel.text


async def test_the_heat_map_is_switched_on_and_off_in_the_chunk_and_follows_the_rows(
    app: RagTuiApp,
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await until(pilot, lambda: "h here: heat map" in screen_text(pilot))
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("h")
        await settle(pilot)
        assert "heat: far" in screen_text(pilot)
        # Words of the question stand in the text: the hashing embedder calls them the same.
        line = next(x for x in screen_text(pilot).splitlines() if "heat: far" in x)
        word, _, asked = line.partition(" ~ ")
        assert word.split()[-1].casefold() == asked.split()[0].casefold()
        assert asked.split()[1] == "1.00,"
        first = screen.selected
        await pilot.press("escape", "j")
        await settle(pilot)
        assert screen.selected != first
        assert "heat: " in screen_text(pilot)
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("h")
        await settle(pilot)
        assert "heat: " not in screen_text(pilot)


async def test_without_a_vector_list_there_is_no_heat_and_it_is_said(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, QUESTION)
        await screen.change_knobs(
            replace(screen.knobs, columns=(Column("words", "bm25", (("bm25.b", 0.1),)),))
        )
        await settle(pilot)
        screen.action_heat()
        await settle(pilot)
        assert "no heat map: column words has no vector list" in screen_text(pilot)
        screen.action_sentences()
        await settle(pilot)
        assert "no vector or reranked list" in screen.explain_panel.text


async def test_operators_and_dropped_words_are_told(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "the luggage +dog")
        await screen.change_knobs(with_knobs(screen.knobs, {"bm25.analyzer": "english"}))
        await settle(pilot)
        assert screen.results is not None
        index = screen.results.index
        screen.selected = next(c.chunk_id for c in index.chunks if "luggage" in c.text.lower())
        await pilot.press("e")
        await settle(pilot)
        text = screen.explain_panel.text
        assert "the english analyzer reads: the (dropped) luggage→luggag dog" in text
        assert '✗ must "dog": that alone keeps it out of the list' in text


def test_a_reading_without_sentences_has_no_nearest_one() -> None:
    assert Reading("c").nearest is None


def test_sentence_scoring_in_the_engine_stops_when_told() -> None:
    from rag_tui.engine.errors import Cancelled
    from rag_tui.engine.events import CancelToken
    from rag_tui.engine.types import Document
    from tests.engine.small_index import index_of, small_models

    index = index_of((Document("a.md", "A", "One sentence. And another one.", "1"),))
    cancel = CancelToken()
    cancel.cancel()
    for scores in (explain_sentences, explain_rerank_sentences):
        with pytest.raises(Cancelled):
            scores(index.chunk_ids[0], SearchRequest("q"), index, small_models(), cancel=cancel)
