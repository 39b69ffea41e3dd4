"""Questions by columns, and columns by measures: what is drawn, in which order, of which text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult

from rag_tui.engine.evaluation.conscience import conscience as whole_conscience
from rag_tui.engine.evaluation.score_table import Cell, ColumnScores, QuestionScores, ScoreTable
from rag_tui.engine.evaluation.types import Comparison, Interval
from rag_tui.tui.evaluation_text import (
    cell_sentence,
    conscience,
    histogram,
    mark,
    remarks,
    share,
    short_interval,
)
from rag_tui.tui.widgets.metrics_table import CellList, MetricsTable
from rag_tui.tui.widgets.rank_matrix import (
    RankMatrix,
    filter_word,
    loss,
    matches,
    rank_text,
    sorted_rows,
)
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE


def question(
    qid: str, *ranks: int | None, text: str = "", tags: tuple[str, ...] = (), lists: str = ""
) -> QuestionScores:
    """A question; ``lists`` has an x for each column without a list."""
    has_list = tuple(sign != "x" for sign in lists) or (True,) * len(ranks)
    return QuestionScores(qid, text or f"question {qid}", tags, (), ranks, has_list)


def table(*questions: QuestionScores, columns: tuple[ColumnScores, ...] = ()) -> ScoreTable:
    """A table of two columns unless others are given."""
    return ScoreTable(
        run="run",
        measures=("R@1", "RR@10"),
        unit="passage",
        k=10,
        columns=columns or (scores("vector"), scores("bm25", delta=-0.25, p=0.01)),
        questions=questions,
        groups=(),
        baseline="vector",
        n_questions=6,
        n_answerable=5,
        n_unanswerable=1,
        n_judged=4,
        unlabelled=("q9",),
        unresolved=("q8: a.md: the quote does not stand there",),
    )


def scores(name: str, *, delta: float | None = None, p: float = 1.0) -> ColumnScores:
    """A column that has .5 in both measures."""
    cells = tuple(
        Cell(
            measure,
            Interval(0.5, 0.25, 0.75, 4),
            0.5,
            0.8,
            Comparison(measure, delta, p, 1, 1, 2, 0.12) if delta is not None else None,
        )
        for measure in ("R@1", "RR@10")
    )
    return ColumnScores(
        name, "cosine", cells, n_scored=4, n_without_list=0, n_unjudged=7, n_rows=40
    )


class OneList(App[None]):
    """An app around one list and its titles."""

    def __init__(self, shown: CellList) -> None:
        super().__init__()
        self.shown = shown

    def compose(self) -> ComposeResult:
        yield self.shown.head
        yield self.shown

    def lines(self) -> list[str]:
        """What is drawn, without blank space at the end."""
        strips = self.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]


def test_a_missing_evidence_a_missing_list_and_a_rank_are_three_things() -> None:
    assert rank_text(3, has_list=True) == "3"
    assert rank_text(None, has_list=True) == "–"
    assert rank_text(None, has_list=False) == "✗"


def test_rows_are_ordered_by_disagreement_by_loss_by_tag_or_as_in_the_file() -> None:
    alike = question("alike", 2, 2, tags=("b",))
    apart = question("apart", 1, None)
    near = question("near", 2, 1, tags=("a",))
    rows = (alike, apart, near)

    def order(sort: str, column: int = 0) -> list[str]:
        return [one.qid for one in sorted_rows(rows, sort, column)]  # type: ignore[arg-type]

    assert order("disagreement") == ["apart", "near", "alike"]  # 1, 1/2, 0
    assert order("loss", 0) == ["near", "alike", "apart"]  # 1/2, 0, -1
    assert order("loss", 1) == ["apart", "alike", "near"]  # 1, 0, -1/2
    assert order("tag") == ["near", "alike", "apart"]  # those without a tag last
    assert order("file") == ["alike", "apart", "near"]


def test_what_a_column_lost_counts_lists_only_and_never_its_own_failure() -> None:
    assert loss(question("q", 1, 4), 1) == pytest.approx(0.75)
    assert loss(question("q", 1, None, lists=".x"), 1) == 0.0
    assert loss(question("q", 1, None, lists="x."), 1) == 0.0


def test_all_words_of_a_filter_must_hold_and_tags_and_files_are_looked_up_where_they_are() -> None:
    one = question("q07", 1, 1, text="Can I bring my DOG?", tags=("two words", "paraphrase"))
    files = ("docs/house rules.md",)
    for needle in ("dog bring", "q07", "tag:para", "file:rules", "dog tag:two", ""):
        assert matches(one, needle, files), needle
    for needle in ("dog cat", "tag:dog", "file:dog", "dog tag:none"):
        assert not matches(one, needle, files), needle
    assert matches(one, filter_word("tag", "two words"), files)
    assert matches(one, filter_word("file", "docs/house rules.md"), files)


def test_numbers_are_short_and_marks_say_only_what_chance_does_not_explain() -> None:
    assert (share(0.7222), share(1.0), share(-0.05)) == (".722", "1.000", "-.050")
    assert short_interval(Interval(0.7, 0.5, 1.0, 4)) == ".50–1.00"
    better = Comparison("R@5", 0.2, 0.01, 3, 1, 0, 0.1)
    assert mark(better) == "▲"
    assert mark(replace(better, delta=-0.2)) == "▼"
    assert mark(replace(better, p_value=0.05)) == " "
    assert mark(replace(better, measure="Failure@5")) == "▼"  # more failures are worse
    assert mark(replace(better, is_identical=True)) == "="


def test_a_histogram_puts_both_ends_into_its_first_and_last_bin() -> None:
    assert histogram([0.0, 0.0, 1.0], 0.0, 1.0, 4) == "█  ▄"
    assert histogram([], 0.0, 1.0, 3) == "   "
    assert histogram([2.0], 2.0, 2.0, 3) == " █ "


def test_a_cell_in_words_says_interval_comparison_counts_and_bounds() -> None:
    shown = table()
    told = cell_sentence(shown, shown.columns[1], "R@1")
    for part in (
        "bm25 R@1 .500, 95 % interval .25–.75, 4 questions",
        "−.250 against vector, p = .010: more than chance; won 1, tied 1, lost 2",
        "more labels could put it at .500 to .800",
    ):
        assert part in told
    assert "the baseline" in cell_sentence(shown, shown.columns[0], "R@1")
    line = conscience(shown, "R@1")
    for part in (
        "differences in R@1 up to .120 are noise",
        "4 of 6 questions judged",
        "1 without a label",
        "1 unanswerable",
        "1 label not found",
        "14 of 80 rows in the first 10 unjudged",
    ):
        assert part in line


def test_what_is_noise_is_told_for_the_pair_that_it_was_worked_out_for() -> None:
    shown = table(columns=(scores("vector"), scores("bm25", delta=-0.4), scores("h", delta=-0.3)))
    far = shown.columns[1].cells[0]
    assert far.comparison is not None
    wide = replace(far, comparison=replace(far.comparison, noise=0.389))
    calm = replace(shown.columns[1].cells[1], comparison=replace(far.comparison, noise=0.0))
    bm25 = replace(shown.columns[1], cells=(wide, calm))
    shown = replace(shown, columns=(shown.columns[0], bm25, shown.columns[2]))
    assert "h differs in R@1 by up to .120 by chance" in conscience(shown, "R@1", "h")
    assert "bm25 differs in R@1 by up to .389 by chance" in conscience(shown, "R@1", "bm25")
    assert "up to .120 or .389, by column, are noise" in conscience(shown, "R@1", "vector")
    said = "R@1: differences from vector below these are noise on this set: bm25 0.389, h 0.120"
    assert said in list(whole_conscience(shown))
    told = dict(remarks(shown, ()))["Noise"]
    assert told[0] == "R@1: differences from vector that are noise: bm25 up to .389, h up to .120"
    assert told[1] == "RR@10: differences from vector that are noise: h up to .120"


async def test_the_matrix_draws_ranks_marks_the_active_cell_and_follows_keys_and_mouse() -> None:
    matrix = RankMatrix()
    async with (app := OneList(matrix)).run_test(size=(60, 8)) as pilot:
        matrix.show(table(question("q1", 1, None), question("q2", 4, 3, lists="..")), {})
        matrix.focus()
        await pilot.pause()
        head, first, second = app.lines()[:3]
        assert "▾vector" in head
        assert "bm25" in head
        assert first.startswith("❯ q1  question q1")
        assert first.split()[-2:] == ["[1]", "–"]
        assert second.split()[-2:] == ["4", "3"]
        await pilot.press("right", "down")
        assert matrix.column_name == "bm25"
        assert "▾bm25" in app.lines()[0]
        assert app.lines()[2].split()[-2:] == ["4", "[3]"]
        await pilot.press("right")  # there is no third column
        assert matrix.active == 1
        await pilot.click(RankMatrix, offset=(app.lines()[1].rindex("1"), 0))
        assert (matrix.active, matrix.cursor) == (0, 0)
        matrix.needle = "nothing like it"
        matrix.reorder()
        await pilot.pause()
        assert "No question matches the filter" in app.lines()[1]
        assert matrix.picked is None


@pytest.mark.parametrize("width", [20, 60, 160])
async def test_hostile_questions_tags_and_columns_are_drawn_harmless_in_one_line_each(
    width: int,
) -> None:
    columns = tuple(scores(f"{i}{text}") for i, text in enumerate((*HOSTILE[:3], LONG_LINE)))
    questions = tuple(
        question(f"{text}", 1, None, 2, 3, text=text, tags=(text,))
        for text in (*HOSTILE, LONG_LINE)
    )
    shown = table(*questions, columns=columns)
    for widget in (matrix := RankMatrix(), scored := MetricsTable()):
        async with (app := OneList(widget)).run_test(size=(width, 30)) as pilot:
            if widget is matrix:
                matrix.sort = "tag"
                matrix.show(shown, {})
            else:
                scored.show(shown)
            await pilot.pause()
            drawn = "\n".join(app.lines())
            assert not [c for c in FORBIDDEN if c in drawn]
            assert len(app.lines()) <= 30
            await pilot.press("down", "right", "end")
    assert len(matrix.rows) == len(questions)


async def test_scores_show_intervals_where_there_is_room_and_keep_the_active_measure_in_view() -> (
    None
):
    scored = MetricsTable()
    async with (app := OneList(scored)).run_test(size=(100, 8)) as pilot:
        failed = replace(scores("broken"), reason="no model", cells=(Cell("R@1", None),) * 2)
        shown = table()
        scored.show(replace(shown, columns=(*shown.columns, failed)))
        await pilot.pause()
        head, vector, bm25, broken = app.lines()[:4]
        assert "▾R@1" in head
        assert "won/tied/lost" in head
        assert ".500  .25–.75" in vector
        assert vector.split()[-2:] == ["baseline", "4"]
        assert ".500▼ .25–.75" in bm25
        assert bm25.split()[-2:] == ["1/1/2", "4"]
        assert "✗ not scored: no model" in broken
        await pilot.resize_terminal(24, 8)
        scored.active = 1
        await pilot.pause()
        assert "▾RR@10" in app.lines()[0]
        assert ".25" not in app.lines()[1]
