"""Reports: all that is known, readable anywhere, and never more than text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from rag_tui.engine.evaluation.compare import compare_runs
from rag_tui.engine.evaluation.measures import parse_measure
from rag_tui.engine.evaluation.report import (
    report_html,
    report_markdown,
    sweep_html,
    sweep_markdown,
)
from rag_tui.engine.evaluation.report_plots import (
    Bar,
    Dot,
    bar_chart,
    rank_matrix,
    roc_plot,
    scatter,
)
from rag_tui.engine.evaluation.report_sweep import verdict
from rag_tui.engine.evaluation.score_table import ScoreTable
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.sweep_scores import judge_settings
from rag_tui.engine.evaluation.sweep_space import Setting
from rag_tui.engine.evaluation.sweep_types import (
    Measured,
    SettingScore,
    SpanMeans,
    SweepResult,
)
from rag_tui.engine.evaluation.types import (
    ColumnRun,
    EvalRun,
    Evidence,
    Place,
    Question,
    QuestionRun,
    Resolved,
    Retrieved,
)
from rag_tui.engine.types import Column

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></svg></pre><iframe src=https://evil.example>",
    "[click](javascript:alert(1)) ![x](https://evil.example/p.png)",
    "| a | b |\n| --- | --- |\n# heading\n```\n<b>",
    "https://evil.example www.evil.example <https://evil.example>",
    "\x1b]0;title\x07\u202egnp.exe\udcff & &lt;b&gt;",
    "- item\n1. item\n=== \n---",
)
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "div", "table",
    "thead", "tbody", "tr", "th", "td", "pre", "svg", "g", "text", "rect", "path", "circle",
}  # fmt: skip


class Tags(HTMLParser):
    """Collects the tags, attributes and text of a page, and checks that they are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def row(document: str, value: float) -> Retrieved:
    return Retrieved(document, document, 0, 10, value)


def made(hostile: str = "") -> tuple[ScoreTable, EvalRun, dict[str, Resolved]]:
    """Two columns, three judged questions and an unanswerable one; foreign text everywhere."""
    resolved = {}
    for qid in ("one", "two", "three", "none"):
        evidence = Evidence(f"{qid}.md{hostile}")
        question = Question(
            f"{qid}{hostile}", f"About {qid}? {hostile}", (evidence,), answerable=qid != "none",
            tags=(f"tag{hostile}",),
        )  # fmt: skip
        place = Place(evidence, f"{qid}.md{hostile}", 0, 10, (0,), (f"{qid}.md{hostile}",))
        resolved[question.qid] = Resolved(
            question, (place,), ((Evidence(f"gone.md{hostile}"), f"no such document{hostile}"),)
        )
    ids = list(resolved)
    right = tuple(
        QuestionRun(qid, (row(f"{name}.md{hostile}", 3.0), row("else.md", 1.0)))
        for qid, name in zip(ids, ("one", "two", "three", "x"), strict=True)
    )
    wrong = tuple(
        QuestionRun(qid, (row("else.md", 2.0), row(f"{name}.md{hostile}", 1.0)))
        for qid, name in zip(ids, ("one", "two", "x", "x"), strict=True)
    )
    failed = tuple(QuestionRun(qid, error=f"broken{hostile}") for qid in ids)
    run = EvalRun(
        name=f"a{hostile}",
        created="2026-01-02T03:04:05+00:00",
        folder=f"/somewhere{hostile}",
        index_fingerprint="1234",
        questions_fingerprint="5678",
        depth=100,
        columns=(
            ColumnRun(Column(f"right{hostile}", "bm25"), f"BM25{hostile}", right),
            ColumnRun(
                Column(f"wrong{hostile}", "vector", (("search.embedder", hostile),)),
                "cosine",
                wrong,
            ),
            ColumnRun(Column(f"failed{hostile}", "hybrid"), "RRF", failed),
        ),
        knobs={"bm25.k1": 1.5, "where": hostile},
    )
    return score(run, resolved, ("R@1", "RR@10", "Failure@1"), "document"), run, resolved


def swept(hostile: str = "") -> SweepResult:
    settings = [
        SettingScore(
            Setting((("search.embedder", name),)),
            Measured(
                {f"q{i}": value for i, value in enumerate(values)},
                latency_ms=ms,
                prompt_tokens=tokens,
                spans=SpanMeans(0.5, 0.25, 0.2, "tokens"),
                n_chunks=1234,
            ),
            is_present=name == "now",
        )
        for name, values, ms, tokens in (
            ("now", (0.0, 0.5, 0.5, 1.0), 10.0, 400.0),
            (f"better{hostile}", (1.0, 1.0, 0.5, 1.0), 30.0, 500.0),
            ("slow", (0.0, 0.5, 0.5, 0.5), 90.0, 900.0),
        )
    ]
    settings.append(
        SettingScore(Setting((("search.embedder", "x"),)), Measured({}), reason=f"no{hostile}")
    )
    told = judge_settings(settings, parse_measure("RR@10"), folds=2)
    return SweepResult(
        metric="RR@10", higher_is_better=True, column=f"mine{hostile}", method="vector",
        unit="passage", n_sources=5, settings=told.settings, best=told.best, front=told.front,
        cross_validation=told.cross_validation, noise=told.noise, n_questions=4, n_scored=4,
        is_whole=True, notes=(f"left out{hostile}",), folder=f"/x{hostile}",
        created="2026-01-02T03:04:05+00:00", index_fingerprint="12", questions_fingerprint="34",
        depth=100, folds=2, knobs={"where": hostile},
    )  # fmt: skip


def pages(hostile: str = "") -> list[str]:
    table, run, resolved = made(hostile)
    change = compare_runs(replace(run, name=f"before{hostile}"), swapped(run), resolved)
    return [report_html(table, run, change), sweep_html(swept(hostile))]


def texts(hostile: str = "") -> list[str]:
    table, run, resolved = made(hostile)
    change = compare_runs(replace(run, name=f"before{hostile}"), swapped(run), resolved)
    return [report_markdown(table, run, change), sweep_markdown(swept(hostile))]


def swapped(run: EvalRun) -> EvalRun:
    """The same columns with each other's lists."""
    one, other, *rest = run.columns
    columns = (replace(one, questions=other.questions), replace(other, questions=one.questions))
    return replace(run, columns=(*columns, *rest))


def test_a_report_holds_scores_comparisons_ranks_changes_and_what_made_it() -> None:
    table, run, resolved = made()
    text = report_markdown(table, run, compare_runs(swapped(run), run, resolved, unit="document"))
    # by hand: right finds all three at once, wrong two of them in the second row
    assert "| right | 1.0000 (1.00 to 1.00) | 1.0000 (1.00 to 1.00) | 0.0000" in text
    assert "| wrong | 0.0000 (0.00 to 0.00) | 0.3333 (0.00 to 0.50) |" in text
    assert "failed for every question: broken" in text
    assert "| three | About three? | 1 | – |   |" in text
    assert "| wrong | -1.0000 0/0/3 p=0.250 | -0.6667 0/0/3 p=0.250 |" in text
    assert "right: 1 fixed, 0 broken, 2 better, 0 worse of 4 at 5" in text
    assert "| fixed | – → 1 | three | About three? |" in text
    assert "4 questions: 3 judged, 0 without a label, 1 unanswerable" in text
    assert "label not found: one: gone.md: no such document" in text
    assert "| index | 1234 |" in text
    assert "| bm25.k1 | 1.5 |" in text
    assert "| Failure@1 | share of the relevant places that the first 1 rows miss" in text
    assert "AUC" in text


def test_the_page_has_the_same_text_and_the_plots() -> None:
    table, run, resolved = made()
    page = report_html(table, run, compare_runs(swapped(run), run, resolved))
    read = Tags(page)
    assert not read.open
    for said in ("1.0000 (1.00 to 1.00)", "About three?", "fixed", "no such document", "1234"):
        assert said in read.text
    labels = [value for name, value in read.attributes if name == "aria-label"]
    assert {label.partition(":")[0] for label in labels} == {
        "R@1", "RR@10", "Failure@1", "Rank of the first evidence",
        "ROC of the best score, with AUC",
    }  # fmt: skip
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_a_sweep_says_what_the_best_is_worth_and_what_it_costs() -> None:
    result = swept()
    text = sweep_markdown(result)
    # by hand: better has a mean of .875, now .5
    assert "Best RR@10 in mine: 0.875" in text
    assert "best of 4 settings on the very questions" in text
    assert "Chosen on other questions (2 folds): " in text
    assert "4 questions are few" in text
    assert "| search.embedder=better | best front | 0.8750" in text
    assert "| 0.500 | 0.250 | 0.200 | 30 | 500 | 1,234 |" in text
    assert "| search.embedder=x | no |" in text
    assert '```toml\n[search]\nembedder = "better"\n```' in text
    # the slow one costs more and gives less
    front = text.partition("## Pareto front")[2].partition("##")[0]
    assert "embedder=now" in front
    assert "embedder=slow" not in front
    labels = [v for n, v in Tags(sweep_html(result)).attributes if n == "aria-label"]
    assert {label.partition(":")[0] for label in labels} == {
        "RR@10", "Quality against time", "Quality against prompt"
    }  # fmt: skip


def test_a_difference_that_chance_explains_is_said_to_be_chance() -> None:
    assert any("chance alone explains that" in line for line in verdict(swept()))
    few = replace(swept(), is_whole=False)
    assert next(verdict(few)).startswith("Interrupted after 4 settings")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_foreign_text_is_never_a_tag_an_attribute_or_a_reference(hostile: str) -> None:
    for page in pages(hostile):
        read = Tags(page)
        assert read.tags <= ALLOWED
        assert not read.open
        names = {name for name, _ in read.attributes}
        assert not {name for name in names if name.startswith("on")}
        assert not names & {"href", "src", "style", "xlink:href", "action"}
        # everything between the tags of the page itself, style aside, can be sent and seen
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", page)
        page.encode("utf-8")
        assert "default-src 'none'" in page


@pytest.mark.parametrize("hostile", HOSTILE)
def test_foreign_text_is_never_markup_in_markdown(hostile: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table"])
    for text, plain in zip(texts(hostile), texts(), strict=True):
        tokens = parser.parse(text)
        inline = [child for token in tokens for child in token.children or ()]
        assert {t.type for t in inline} <= {"text", "softbreak", "text_special"}
        assert {t.type for t in tokens} == {t.type for t in parser.parse(plain)}
        kinds = [t.type for t in tokens]
        expected = [t.type for t in parser.parse(plain)]
        assert kinds.count("heading_open") == expected.count("heading_open")
        assert kinds.count("list_item_open") == expected.count("list_item_open")
        around = re.sub(r"(?s)```toml\n.*?\n```", "", text)  # what is to be copied is as it is
        assert "://evil" not in around
        assert "www.evil" not in around
        text.encode("utf-8")


def test_the_same_run_gives_the_same_bytes() -> None:
    assert pages() == pages()
    assert texts() == texts()


def test_nothing_is_loaded_from_elsewhere() -> None:
    for page in pages():
        assert "://" not in page
        assert "url(" not in page
        assert "@import" not in page


def test_a_plot_of_nothing_or_of_one_point_is_still_a_plot() -> None:
    for plot in (
        bar_chart("x", []),
        bar_chart("x", [Bar("a", 0.5, 0.5, 0.5)]),
        scatter("x", "ms", "R@1", [Dot("a", 0.0, 0.0)]),
        scatter("x", "ms", "R@1", [Dot("a", 5.0, 0.5), Dot("b", 5.0, 0.5, True, "best")]),
        roc_plot("x", [("a", [(0.0, 0.0), (1.0, 1.0)])]),
        rank_matrix("x", ["a"], [("q", [None]), ("r", ["none"]), ("s", [12])]),
    ):
        assert not Tags(plot).open
        assert not re.search(r"\b(nan|inf)\b", plot)


def test_bars_and_points_stand_where_their_numbers_are() -> None:
    chart = bar_chart("x", [Bar("half", 0.5, 0.25, 1.0)])
    # by hand: 0 is at 210 and 1 at 590
    assert 'x="210" y="4" width="190"' in chart
    assert "M305 11H590" in chart
    matrix = rank_matrix("x", ["a", "b"], [("q", [1, None])])
    assert re.findall(r'class="cell (\w+)"[^>]*>([^<]*)<', matrix) == [("r1", "1"), ("miss", "–")]
    curve = roc_plot("x", [("a", [(0.0, 0.0), (0.5, 1.0), (1.0, 1.0)])])
    assert 'd="M44 290L184 10L324 10"' in curve
