"""Sweeps: what is tried, what is computed anew, what is kept, and what may be believed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.config import load_settings
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import ModelError, UsageError
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.pareto import Point, dominates, pareto_front
from rag_tui.engine.evaluation.report_sweep import best_toml, verdict
from rag_tui.engine.evaluation.settings_file import write_settings
from rag_tui.engine.evaluation.sweep import sweep
from rag_tui.engine.evaluation.sweep_scores import held_out_values, judge_settings
from rag_tui.engine.evaluation.sweep_space import MAX_SETTINGS, Setting, make_space, parse_space
from rag_tui.engine.evaluation.sweep_store import SweepStore
from rag_tui.engine.evaluation.sweep_tries import check_sweep
from rag_tui.engine.evaluation.sweep_types import (
    Measured,
    SettingScore,
    SweepProgress,
    SweepResult,
)
from rag_tui.engine.evaluation.types import Evidence, Question, QuestionSet
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import AnswerSettings, EngineSettings, ModelSettings
from rag_tui.engine.stores.local import index_dir
from rag_tui.engine.types import SearchRequest
from tests.conftest import build
from tests.engine.small_index import OverlapReranker

DOCUMENTS = {
    "pets.md": "# Pets\n\nDogs are welcome on the ground floor. Cats must stay at home.\n",
    "keys.md": "# Keys\n\nThe key opens the street door. A lost key costs thirty euros.\n",
    "food.md": "# Food\n\nThe kitchen is open to guests until ten.\n\nCoffee is free all day.\n",
}
QUESTIONS = QuestionSet(
    "house",
    (
        Question("dog", "Are dogs welcome?", (Evidence("pets.md", quote="Dogs are welcome"),)),
        Question(
            "key", "What does a lost key cost?", (Evidence("keys.md", quote="costs thirty euros"),)
        ),
        Question("cook", "May we cook at night?", (Evidence("food.md", quote="The kitchen"),)),
        Question("pool", "Is there a pool?", answerable=False),
    ),
    fingerprint="f",
)


class CountingEmbedder(HashingEmbedder):
    """Counts the documents it embeds and the questions."""

    def __init__(self) -> None:
        super().__init__()
        self.n_documents = 0
        self.questions: list[str] = []

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> npt.NDArray[np.float32]:
        self.n_documents += len(texts)
        return super().embed_documents(texts, cancel=cancel)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        self.questions.append(text)
        vector = super().embed_query(text)
        self.n_documents -= 1  # it embeds a question as a document
        return vector


class House:
    """A small corpus on disk with its index."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "house"
        self.folder.mkdir()
        for name, text in DOCUMENTS.items():
            (self.folder / name).write_text(text)
        self.settings = EngineSettings(
            cache_dir=tmp_path / "cache", models=ModelSettings(embedder="hashing")
        )
        self.embedder = CountingEmbedder()
        self.models = self.new_models()
        self.index: Index = build(self.folder, self.settings, self.models).index
        self.store = SweepStore.of(self.settings.cache_dir, self.folder)

    def new_models(self, reranker: OverlapReranker | None = None) -> Models:
        return Models(
            self.settings.models,
            self.settings.cache_dir,
            embedder=self.embedder,
            reranker=reranker or OverlapReranker(),
        )

    def sweep(
        self,
        values: Mapping[str, Sequence[object]],
        *,
        column: str = "hybrid",
        metric: str = "nDCG@10",
        cancel: CancelToken | None = None,
        stop_after: int | None = None,
        request: SearchRequest | None = None,
        models: Models | None = None,
    ) -> tuple[SweepResult, list[SweepProgress]]:
        told: list[SweepProgress] = []
        result = None
        token = cancel or CancelToken()
        for item in sweep(
            make_space(values), QUESTIONS, request or SearchRequest(""), self.settings,
            self.index, models or self.new_models(), metric=metric, column=column, folds=3,
            store=self.store, cancel=token,
        ):  # fmt: skip
            if isinstance(item, SweepResult):
                result = item
                continue
            told.append(item)
            if item.phase == "done" and item.done == stop_after:
                token.cancel()
        assert result is not None
        return result, told


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


# -- the space ------------------------------------------------------------------------------


def test_what_is_expensive_changes_least_often() -> None:
    space = parse_space(["bm25.k1=0.5,1", "chunking.size=64,128", "bm25.analyzer=words,english"])
    assert space.names == ("chunking.size", "bm25.analyzer", "bm25.k1")
    assert [tuple(dict(s.knobs).values()) for s in space.settings()] == [
        (64, "words", 0.5), (64, "words", 1.0), (64, "english", 0.5), (64, "english", 1.0),
        (128, "words", 0.5), (128, "words", 1.0), (128, "english", 0.5), (128, "english", 1.0),
    ]  # fmt: skip


def test_a_random_part_is_of_the_grid_without_repeats_and_the_same_for_a_seed() -> None:
    values = {"bm25.k1": [0.5, 1, 1.5, 2], "bm25.b": [0, 0.5, 1]}
    whole = make_space(values).settings()
    one = make_space(values, n_random=5, seed=3).settings()
    assert one == make_space(values, n_random=5, seed=3).settings()
    assert one != make_space(values, n_random=5, seed=4).settings()
    assert len(set(one)) == 5
    assert [s for s in whole if s in one] == list(one)
    assert make_space(values, n_random=99).settings() == whole


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["bm25.k1"], "knob=value"),
        (["bm25.k9=1"], "bm25.k"),
        (["bm25.b=0.5,2"], "bm25.b must be 1 or less (got '2')"),
        (["chunking.strategy=tables"], "chunking.strategy must be one of"),
        (["search.top_k=3,5"], "search.top_k"),
        (["models.embedder=hashing"], "models.embedder"),
        (["bm25.k1="], "no value"),
        ([], "no knob"),
        (["bm25.k1=" + ",".join(map(str, range(MAX_SETTINGS + 1)))], "501 settings"),
    ],
)
def test_a_space_that_cannot_be_is_refused_by_knob_and_value(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_space(texts)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_a_knob_that_changes_nothing_in_the_column_is_refused(house: House) -> None:
    space = make_space({"search.rrf_k": [10, 60]})
    with pytest.raises(UsageError, match=r"search.rrf_k changes nothing in the column 'bm25'"):
        check_sweep(space, SearchRequest(""), house.settings, metric="nDCG@10", column="bm25")
    assert check_sweep(space, SearchRequest(""), house.settings, metric="R@5", column="hybrid") == 2


def test_impossible_combinations_are_left_out_and_named(house: House) -> None:
    result, _ = house.sweep({"chunking.size": [16, 64], "bm25.b": [0.5]}, column="bm25")
    assert [one.setting.name for one in result.settings] == [
        "chunking.size=256 bm25.b=0.75",
        "chunking.size=64 bm25.b=0.5",
    ]
    assert "chunking.size=16 bm25.b=0.5: chunk overlap must be smaller" in result.notes[0]
    with pytest.raises(UsageError, match="None of the settings is possible"):
        house.sweep({"chunking.size": [16]}, column="bm25")


# -- measuring ------------------------------------------------------------------------------


def test_every_setting_has_its_own_lists_figures_and_costs(house: House) -> None:
    result, told = house.sweep(
        {"chunking.strategy": ["headings", "sentences"], "chunking.size": [12, 256],
         "chunking.overlap": [0]},
        column="bm25", metric="RR@10",
    )  # fmt: skip
    assert [one.is_present for one in result.settings] == [True, False, False, False, False]
    present, *others = result.settings
    assert present.setting.name == "chunking.strategy=headings chunking.size=256 " + (
        "chunking.overlap=32"
    )
    by_name = {one.setting.name: one for one in others}
    small = by_name["chunking.strategy=sentences chunking.size=12 chunking.overlap=0"]
    # by hand: one sentence with each question's words ranks first; "cook" has no word in common
    assert present.measured.values == {"dog": 1.0, "key": 1.0, "cook": 0.0}
    assert small.measured.values["dog"] == 1.0
    assert small.measured.n_chunks > present.measured.n_chunks
    assert small.measured.spans is not None
    assert present.measured.spans is not None
    assert small.measured.spans.unit == "tokens"
    # the same evidence in smaller chunks: less else is retrieved
    assert small.measured.spans.precision > present.measured.spans.precision
    assert present.measured.prompt_tokens is not None
    assert all(one.measured.latency_ms for one in result.settings)
    assert {item.phase for item in told} >= {"cutting", "asking", "timing", "done"}
    assert (result.n_questions, result.n_scored) == (4, 3)


def test_the_users_own_index_is_never_touched(house: House) -> None:
    place = index_dir(house.settings.cache_dir, house.folder)
    before = {
        p: p.read_bytes() for p in place.rglob("*") if p.is_file() and "sweeps" not in p.parts
    }
    house.sweep({"chunking.size": [40, 64]})
    after = {p: p.read_bytes() for p in place.rglob("*") if p.is_file() and "sweeps" not in p.parts}
    assert after == before
    assert house.index.manifest.chunking["size"] == 256


def test_an_index_is_cut_and_embedded_once_for_all_settings_that_share_it(house: House) -> None:
    house.embedder.n_documents = 0
    result, _ = house.sweep(
        {
            "bm25.k1": [0.5, 1, 2],
            "chunking.overlap": [0],
            "chunking.size": [12],
            "search.rrf_k": [10, 60],
        }
    )
    n_embedded = house.embedder.n_documents
    assert len(result.settings) == 7
    assert n_embedded == result.settings[-1].measured.n_chunks > 3
    # another sweep, other settings, the same chunks: all vectors are in the cache
    house.sweep({"bm25.b": [0.2], "chunking.size": [12], "chunking.overlap": [0]})
    assert house.embedder.n_documents == n_embedded


def test_lists_that_a_knob_does_not_change_are_not_made_again(house: House) -> None:
    house.embedder.questions.clear()
    house.sweep({"search.rrf_k": [10, 20, 30]})
    one_setting = len(house.embedder.questions)
    house.embedder.questions.clear()
    house.sweep({"search.rrf_k": [10, 20, 30, 40, 50, 70, 80]})
    # each new setting costs the questions that are timed afresh, and no other: 4 and one before
    assert len(house.embedder.questions) == 4 + 4 * 5
    assert one_setting == 4 + 4 * 5


def test_a_finished_setting_is_kept_at_once_and_a_sweep_goes_on_where_it_stopped(
    house: House,
) -> None:
    values: Mapping[str, Sequence[object]] = {
        "bm25.k1": [0.5, 1, 2],
        "chunking.size": [40, 256],
    }
    stopped, _ = house.sweep(values, stop_after=3)
    assert (stopped.is_whole, len(stopped.settings)) == (False, 3)
    again, told = house.sweep(values)
    assert again.is_whole
    assert [one.is_known for one in again.settings] == [True] * 3 + [False] * 4
    assert told[0].n_known == 3
    assert [one.measured for one in again.settings[:3]] == [
        one.measured for one in stopped.settings
    ]
    house.embedder.questions.clear()
    third, _ = house.sweep(values)
    assert all(one.is_known for one in third.settings)
    assert house.embedder.questions == []
    # another metric is another sweep
    other, _ = house.sweep(values, metric="R@1")
    assert not any(one.is_known for one in other.settings)


def test_a_torn_line_costs_its_setting_only(house: House) -> None:
    values: Mapping[str, Sequence[object]] = {"bm25.k1": [0.5, 1, 2]}
    house.sweep(values, column="bm25")
    (file,) = (index_dir(house.settings.cache_dir, house.folder) / "sweeps").glob("*.jsonl")
    file.write_bytes(b'null\n["x",{}]\n' + file.read_bytes()[:-25])
    again, _ = house.sweep(values, column="bm25")
    assert [one.is_known for one in again.settings].count(False) == 1
    again, _ = house.sweep(values, column="bm25")
    assert all(one.is_known for one in again.settings)


def test_a_setting_that_fails_carries_its_reason_is_not_kept_and_does_not_compete(
    house: House,
) -> None:
    for _ in range(2):
        result, _ = house.sweep({"search.embedder": ["", "no/such-model"]}, column="vector")
        good, bad = result.settings
        assert "no/such-model" in bad.reason
        assert (bad.interval, bad.is_known, bad.measured.latency_ms) == (None, False, None)
        assert good.interval is not None
        assert result.best == 0


def test_a_failing_reranker_is_never_a_zero(house: House) -> None:
    class Broken(OverlapReranker):
        def score(self, *_: object, **__: object) -> object:  # type: ignore[override]
            raise ModelError("The cross-encoder is out of order.")

    result, _ = house.sweep(
        {"search.rerank_depth": [2, 5]}, column="reranked", models=house.new_models(Broken())
    )
    assert {one.reason for one in result.settings} == {"The cross-encoder is out of order."}
    assert result.best is None
    assert list(verdict(result)) == ["No setting could be scored."]


def test_a_column_with_knobs_of_its_own_keeps_those_that_are_not_varied(house: House) -> None:
    from rag_tui.engine.knobs import make_column

    column = make_column("short", "bm25", {"bm25.k1": 0.2, "bm25.b": 0.1})
    request = SearchRequest("", columns=(column,))
    result, _ = house.sweep({"bm25.k1": [0.2, 0.9]}, column="short", request=request)
    assert [one.setting.name for one in result.settings] == ["bm25.k1=0.2", "bm25.k1=0.9"]
    assert result.settings[0].is_present
    assert result.knobs["bm25.b"] == 0.1
    with pytest.raises(UsageError, match="'hybrid'"):
        house.sweep({"bm25.k1": [0.2]}, request=request)


def test_the_prompt_of_fewer_sources_is_shorter(house: House) -> None:
    long, _ = house.sweep({"bm25.k1": [1]}, column="bm25")
    house.settings = replace(house.settings, answer=AnswerSettings(n_sources=1))
    short, _ = house.sweep({"bm25.k1": [1]}, column="bm25")
    assert not any(one.is_known for one in short.settings)
    for one, other in zip(short.settings, long.settings, strict=True):
        assert one.measured.prompt_tokens < other.measured.prompt_tokens  # type: ignore[operator]


# -- what may be believed -------------------------------------------------------------------


def scored(name: str, *values: float, **fields: object) -> SettingScore:
    measured = Measured({f"q{i}": value for i, value in enumerate(values)})
    return SettingScore(Setting((("bm25.k1", name),)), measured, **fields)  # type: ignore[arg-type]


def test_the_held_out_score_is_that_of_what_was_best_on_the_other_folds() -> None:
    # two settings, four questions, a fold for each question. By hand, for every question: leave
    # it out, the better of the two on the other three is chosen, its value here counts.
    rows = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.9, 1.0]]
    # without q0: 1.0 against 1.9 -> second, 0.0; without q1: the same, 0.0;
    # without q2: 2.0 against 1.0 -> first, 0.0; without q3: 2.0 against 0.9 -> first, 0.0
    held, chosen = held_out_values(rows, 4)
    assert held == [0.0, 0.0, 0.0, 0.0]
    assert sorted(chosen) == [0, 0, 1, 1]
    found = judge_settings(
        [scored("a", *rows[0], is_present=True), scored("b", *rows[1])],
        parse_measure("RR"),
        folds=9,
    )
    assert found.cross_validation is not None
    assert found.cross_validation.n_folds == 4
    assert found.cross_validation.held_out.mean == 0.0
    assert found.best == 0  # its own mean is 0.5, and the held-out one says what that is worth
    assert found.settings[0].interval is not None
    assert found.settings[0].interval.mean == 0.5


def test_a_setting_that_is_best_everywhere_keeps_its_score() -> None:
    rows = [[0.2, 0.3, 0.4, 0.5, 0.1], [0.9, 0.8, 0.7, 0.6, 1.0]]
    held, chosen = held_out_values(rows, 5)
    assert held == rows[1]
    assert chosen == [1] * 5


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=6, max_size=6), min_size=2, max_size=4),
    st.integers(2, 8),
    st.integers(0, 5),
)
def test_a_held_out_value_had_no_part_in_the_choice(
    rows: list[list[float]], folds: int, seed: int
) -> None:
    held, chosen = held_out_values(rows, folds, seed=seed)
    assert len(chosen) == min(folds, 6)
    for question in range(6):
        # whatever the values of one question are, the same row is chosen for it
        changed = [[1 - v if q == question else v for q, v in enumerate(row)] for row in rows]
        other, _ = held_out_values(changed, folds, seed=seed)
        assert other[question] == pytest.approx(1 - held[question])


def test_a_lower_failure_rate_is_better() -> None:
    found = judge_settings(
        [scored("a", 0.5, 0.5, is_present=True), scored("b", 0.1, 0.3)],
        parse_measure("Failure@5"),
        folds=2,
    )
    assert found.best == 1
    assert found.settings[1].comparison is not None
    assert found.settings[1].comparison.wins == 2


def test_differences_that_are_noise_are_called_so() -> None:
    present = scored("a", 0.0, 1.0, 0.5, 0.5, 0.5, 0.5, is_present=True)
    found = judge_settings(
        [present, scored("b", 1.0, 0.0, 0.5, 0.5, 0.5, 0.6)], parse_measure("RR"), folds=2
    )
    # by hand: of the 8 sign patterns of (1, -1, .1) the largest mean is 2.1 / 6
    assert found.noise == pytest.approx(2.1 / 6)
    compared = found.settings[1].comparison
    assert compared is not None
    assert compared.delta == pytest.approx(0.1 / 6)
    assert compared.p_value == 1.0


def test_settings_are_compared_on_the_questions_that_all_of_them_have() -> None:
    one = scored("a", 1.0, 0.0, is_present=True)
    other = SettingScore(Setting(()), Measured({"q0": 0.0, "q2": 1.0}))
    failed = SettingScore(Setting(()), Measured({"q0": 1.0}, failed={"q1": "too slow"}))
    found = judge_settings([one, other, failed], parse_measure("RR"), folds=2)
    assert found.qids == ("q0",)
    assert "2 of 3 questions" in found.notes[0]
    assert found.settings[2].reason == "failed for q1: too slow"
    assert found.best == 0
    # what fails everywhere is nobody's fault
    both = [
        SettingScore(Setting(()), Measured({"q0": v}, failed={"q1": "too long"})) for v in (0, 1)
    ]
    found = judge_settings(both, parse_measure("RR"), folds=2)
    assert found.best == 1
    assert [s.reason for s in found.settings] == ["", ""]


def test_the_front_holds_what_nothing_beats_in_all_three() -> None:
    points = [
        Point(0.9, 100, 500),  # best quality
        Point(0.8, 20, 500),  # faster
        Point(0.8, 21, 400),  # shorter prompts
        Point(0.8, 20, 400),  # beats neither of the two above it by time alone ...
        Point(0.7, 50, 600),  # beaten
        Point(0.1, 1, 10),  # cheapest
    ]
    assert pareto_front(points) == (0, 2, 3, 5)
    # ... but by 400 against 500 tokens the first of them; 20 and 21 ms are the same time
    assert dominates(points[3], points[1])
    assert not dominates(points[3], points[2])
    assert pareto_front([]) == ()


@given(
    st.lists(
        st.builds(
            Point, st.sampled_from([0.1, 0.5, 0.9]), st.floats(1, 5), st.sampled_from([1, 2])
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_front_is_never_empty_and_holds_the_best_quality(points: list[Point]) -> None:
    front = pareto_front(points)
    assert front
    best = max(point.quality for point in points)
    assert any(points[i].quality == best for i in front)


# -- "use this" -----------------------------------------------------------------------------


def test_settings_are_written_into_their_lines_and_nothing_else_changes(tmp_path: Path) -> None:
    path = tmp_path / "rag-tui.toml"
    path.write_text(
        "# mine\n[bm25]\nk1 = 1.2  # measured in June\n# b is fine\n\n# cutting\n[chunking]\n"
        'size = 256\nstrategy = "headings" # "recursive" was worse\n\n[[columns]]\n'
        'name = "short"\nmethod = "bm25"\nknobs = { "bm25.k1" = 0.4 }\n'
    )
    told = write_settings(
        path,
        {"bm25.k1": 0.9, "bm25.b": 0.4, "chunking.strategy": "sentences", "search.rrf_k": 10,
         "post.mmr": None},
    )  # fmt: skip
    assert path.read_text() == (
        "# mine\n[bm25]\nk1 = 0.9  # measured in June\nb = 0.4\n# b is fine\n\n# cutting\n"
        '[chunking]\nsize = 256\nstrategy = "sentences" # "recursive" was worse\n\n[[columns]]\n'
        'name = "short"\nmethod = "bm25"\nknobs = { "bm25.k1" = 0.4 }\n\n[search]\nrrf_k = 10.0\n'
        '\n[post]\nmmr = "off"\n'
    )
    assert told[0] == "bm25.k1 = 0.9"
    settings = load_settings(tmp_path)
    assert (settings.bm25.k1, settings.bm25.b, settings.search.rrf_k) == (0.9, 0.4, 10)
    assert (settings.chunking.strategy, settings.post.mmr) == ("sentences", None)


def test_a_file_is_made_and_what_cannot_be_said_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rag-tui.toml"
    write_settings(path, {"chunking.size": 128, "bm25.analyzer": "english"})
    settings = load_settings(tmp_path)
    assert (settings.chunking.size, settings.bm25.analyzer) == (128, "english")
    for text, knobs, said in (
        ("bm25 = { k1 = 1 }\n", {"bm25.b": 0.5}, "cannot be replaced"),
        ("[bm25]\nk1 = \n", {"bm25.b": 0.5}, "not valid TOML"),
        ("", {"bm25.k9": 1}, "bm25.k9"),
        ("", {"bm25.b": 7}, "bm25.b must be 1 or less"),
        ("", {"search.embedder": "voyage"}, "sent to a service"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=said):
            write_settings(path, knobs)
        assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff[bm25]\r\nk1=1.5\r\n[search]\r\n",
        "bm25.k1 = 1\nsearch.depth = 40\n",
        "[ bm25 ]\n\"k1\" = 2 # [search]\n[ui.keys]\nx = '[bm25]'\n",
        '[presets."[bm25]"]\n"bm25.k1" = 3\n[bm25]\nb = 0.5',
        '[ui]\ntheme = """\n[bm25]\nk1 = 5\n"""\n',
    ],
)
def test_whatever_the_file_looks_like_it_says_the_same_and_the_new_values(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    before = tomllib.loads(text.removeprefix("\ufeff"))
    write_settings(path, {"bm25.k1": 0.7, "search.rrf_k": 5})
    after = path.read_bytes().decode()
    data = tomllib.loads(after.removeprefix("\ufeff"))
    before.setdefault("bm25", {})["k1"] = 0.7
    before.setdefault("search", {})["rrf_k"] = 5.0
    assert data == before
    assert after.startswith("\ufeff") == text.startswith("\ufeff")


def test_the_toml_of_the_best_setting_is_what_is_written(house: House, tmp_path: Path) -> None:
    result, _ = house.sweep({"bm25.k1": [0.5], "chunking.size": [40]}, column="bm25")
    chosen = replace(result, best=1)
    write_settings(tmp_path / "rag-tui.toml", dict(chosen.settings[1].setting.knobs))
    assert tomllib.loads(best_toml(chosen)) == tomllib.loads(
        (tmp_path / "rag-tui.toml").read_text()
    )
    assert best_toml(replace(result, best=0)) == ""
