"""``rag-tui eval``, ``runs`` and ``questions`` as a user types them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from rag_tui.cli.app import run
from rag_tui.engine.index import Index
from tests.conftest import ROOT

Command = Callable[..., tuple[str, str]]

DOCUMENTS = {
    "pets.md": "# Pets\n\nDogs are welcome on the ground floor.\n",
    "keys.md": "# Keys\n\nThe key opens the street door. A lost key costs thirty euros.\n",
    "food.md": "# Food\n\nThe kitchen is open to guests until ten.\n",
}
QUESTIONS = (
    {"id": "dog", "question": "Are dogs welcome?", "tags": ["easy"],
     "evidence": [{"file": "pets.md", "quote": "Dogs are welcome"}]},
    {"id": "key", "question": "What does a lost key cost?",
     "evidence": [{"file": "keys.md", "quote": "A lost key costs thirty euros."}]},
    {"id": "cook", "question": "May we cook at night [/b]?",
     "evidence": [{"file": "food.md", "heading": "Food"}]},
    {"id": "pool", "question": "Is there a pool?", "answerable": False},
)  # fmt: skip


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    write_questions(folder, QUESTIONS)
    return folder


def write_questions(folder: Path, rows: Any) -> None:
    lines = [json.dumps(row) for row in rows]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def rag_tui(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("RAG_TUI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RAG_TUI_MODELS__EMBEDDER", "hashing")

    def command(*arguments: object, code: int = 0) -> tuple[str, str]:
        got = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert got == code, f"{got}\n{out}\n{err}"
        return out, err

    return command


def evaluated(rag_tui: Command, *arguments: object, code: int = 0) -> dict[str, Any]:
    out, _ = rag_tui("eval", *arguments, "--no-rerank", "--json", code=code)
    told: dict[str, Any] = json.loads(out)
    return told


def test_the_table_holds_every_column_and_measure_and_what_to_keep_in_mind(
    house: Path, rag_tui: Command
) -> None:
    out, err = rag_tui("eval", house, "--no-rerank")
    header = next(line for line in out.splitlines() if line.startswith("column"))
    assert re.findall(r"\S+@\d+", header) == ["R@1", "R@3", "R@5", "RR@10", "nDCG@10"]
    rows = [line.split()[0] for line in out.splitlines()[4:7]]
    assert rows == ["vector", "bm25", "hybrid"]
    assert "4 questions: 3 judged, 0 without a label, 1 unanswerable" in out
    assert "against vector" in out
    assert "Traceback" not in err
    assert "[/b]" in out or "May we cook" not in out


def test_json_holds_the_numbers_with_which_the_table_was_made(
    house: Path, rag_tui: Command
) -> None:
    told = evaluated(rag_tui, house)
    bm25 = told["columns"][1]
    assert bm25["name"] == "bm25"
    by_id = {q["qid"]: q for q in told["questions"]}
    # by hand: only the chunk of pets.md has "dogs", only that of keys.md "lost", nobody "cook"
    assert [by_id[qid]["ranks"][1] for qid in ("dog", "key")] == [1, 1]
    values = [by_id[qid]["values"][1][0] for qid in ("dog", "key", "cook")]
    assert bm25["cells"][0]["interval"]["mean"] == pytest.approx(sum(values) / 3)
    assert bm25["cells"][0]["interval"]["n"] == 3
    assert (told["depth"], told["unit"]) == (100, "passage")
    assert bm25["separation"]["auc"]["n"] == 4
    assert {group["name"] for group in told["groups"] if group["kind"] == "tag"} == {"easy"}


def test_a_second_evaluation_asks_nothing_again_and_gives_the_same_numbers(
    house: Path, rag_tui: Command
) -> None:
    first = evaluated(rag_tui, house)
    out, err = rag_tui("eval", house, "--no-rerank", "--json")
    assert "12 lists were known" in err
    again = json.loads(out)
    assert again["columns"] == first["columns"]
    rows = [line for line in rag_tui("runs", "--folder", house)[0].splitlines() if " │ " in line]
    assert len(rows) == 2
    names = [line.split()[0] for line in rows]
    assert rag_tui("runs", "compare", *names, "--folder", house)[0] == "no change\n"


def test_measures_methods_columns_and_knobs_are_those_asked_for(
    house: Path, rag_tui: Command
) -> None:
    told = evaluated(rag_tui, house, "--methods", "bm25,vector", "--k", "1,2")
    assert [column["name"] for column in told["columns"]] == ["vector", "bm25"]
    assert told["measures"] == ["R@1", "R@2", "RR@10", "nDCG@10"]
    told = evaluated(
        rag_tui, house, "--measures", "AP,P@2", "--knob", "bm25.b=0.1",
        "--column", "mine=bm25:bm25.k1=0.5", "--column", "plain=bm25", "--depth", "7",
    )  # fmt: skip
    assert told["measures"] == ["AP", "P@2"]
    assert [column["name"] for column in told["columns"]] == ["mine", "plain"]
    assert (told["knobs"]["bm25.b"], told["depth"]) == (0.1, 7)


def test_what_cannot_be_is_refused_before_anything_is_indexed(
    house: Path, rag_tui: Command, tmp_path: Path
) -> None:
    for arguments, said in (
        (["--measures", "Q@3"], "Q@3"),
        (["--methods", "bm52"], "bm52"),
        (["--knob", "bm25.k9=1"], "bm25.k"),
        (["--fail-under", "bm52:R@1=0.5"], "bm52"),
        (["--fail-under", "bm25:Q@1=0.5"], "Q@1"),
        (["--save", "../x"], "../x"),
        (["--depth", "0"], "depth"),
        (["--fail-on-regression"], "--baseline"),
        (["--tolerance", "0.1"], "--fail-on-regression"),
        (["--markdown", "-", "--json"], "--markdown"),
        (["--questions", tmp_path / "none.jsonl"], "none.jsonl"),
    ):
        _, err = rag_tui("eval", house, "--no-rerank", *arguments, code=2)
        assert said in err
    _, err = rag_tui("eval", tmp_path / "nowhere", code=2)
    assert "nowhere" in err
    assert "questions" not in err
    assert not (tmp_path / "cache" / "indexes").exists()


def test_a_gate_that_is_met_ends_with_0_and_one_that_is_not_with_5(
    house: Path, rag_tui: Command
) -> None:
    gate = ["eval", house, "--no-rerank", "--fail-under"]
    _, err = rag_tui(*gate, "bm25:R@1=0.5")
    assert "met: bm25:R@1" in err
    _, err = rag_tui(*gate, "bm25:R@1=0.5", "--fail-under", "bm25:P@3=0.99", code=5)
    assert "NOT MET: bm25:P@3" in err
    assert "met: bm25:R@1" in err


def test_a_regression_against_a_kept_run_ends_with_5(house: Path, rag_tui: Command) -> None:
    evaluated(rag_tui, house, "--save", "before")
    against = ["--baseline", "before", "--fail-on-regression"]
    told = evaluated(rag_tui, house, *against)
    assert told["baseline"] == "run before"
    assert all(c["comparison"]["is_identical"] for c in told["columns"][0]["cells"])
    assert (
        "met: nothing lost against run before on 3 questions"
        in rag_tui("eval", house, "--no-rerank", *against)[1]
    )
    # a filter that leaves the documents of one question alone loses the others
    narrow = [*against, "--where", "path=pets.md", "--measures", "RR@10"]
    assert evaluated(rag_tui, house, *narrow)["columns"]  # three questions prove nothing
    _, err = rag_tui("eval", house, "--no-rerank", *narrow, "--tolerance", "0.1", code=5)
    assert "NOT MET: bm25:RR@10 lost" in err


def test_a_name_that_is_taken_is_refused_and_an_unknown_baseline_too(
    house: Path, rag_tui: Command
) -> None:
    evaluated(rag_tui, house, "--save", "before")
    assert "already" in rag_tui("eval", house, "--no-rerank", "--save", "before", code=2)[1]
    _, err = rag_tui("eval", house, "--no-rerank", "--baseline", "befor", code=1)
    assert "before" in err


def test_a_column_that_cannot_run_is_not_scored_and_ends_with_1(
    house: Path, rag_tui: Command
) -> None:
    out, _ = rag_tui(
        "eval", house, "--column", "dense=vector:search.embedder=no/such-model",
        "--column", "words=bm25", "--knob", "models.allow_download=false", code=1,
    )  # fmt: skip
    row = next(line for line in out.splitlines() if line.startswith("dense"))
    assert "not scored" in row
    assert "0.000" not in row
    assert "dense is not scored: failed for every question" in out


def test_two_runs_are_compared_question_by_question(house: Path, rag_tui: Command) -> None:
    rag_tui("eval", house, "--no-rerank", "--save", "all")
    rag_tui("eval", house, "--no-rerank", "--save", "pets", "--where", "path=pets.md")
    out, _ = rag_tui("runs", "compare", "all", "pets", "--folder", house, "--k", "1")
    assert "where: off → path=pets.md" in out
    line = next(line for line in out.splitlines() if line.startswith("bm25:"))
    assert line.startswith("bm25: 0 fixed, ")
    assert "broken" in line
    assert "What does a lost key cost?" in out
    told = json.loads(rag_tui("runs", "compare", "all", "pets", "--folder", house, "--json")[0])
    assert told["is_identical"] is False


def test_an_exported_run_has_the_same_values_in_ir_measures(
    house: Path, rag_tui: Command, tmp_path: Path
) -> None:
    told = evaluated(rag_tui, house, "--save", "x")
    trec, qrels = tmp_path / "x.trec", tmp_path / "x.qrels"
    rag_tui(
        "runs", "export", "x", "--column", "hybrid", "--trec", trec, "--qrels", qrels,
        "--folder", house,
    )  # fmt: skip
    names = [ir_measures.parse_measure(name) for name in told["measures"]]
    theirs = ir_measures.calc_aggregate(
        names,
        list(ir_measures.read_trec_qrels(str(qrels))),
        list(ir_measures.read_trec_run(str(trec))),
    )
    hybrid = next(column for column in told["columns"] if column["name"] == "hybrid")
    for name, cell in zip(names, hybrid["cells"], strict=True):
        assert cell["interval"]["mean"] == pytest.approx(theirs[name], abs=1e-6)


def test_another_system_is_a_column_beside_ours(
    house: Path, rag_tui: Command, tmp_path: Path
) -> None:
    other = tmp_path / "other.trec"
    other.write_text(
        "dog Q0 pets.md 1 3.5 theirs\nkey Q0 pets.md 1 2.0 theirs\nkey Q0 keys.md 2 1.0 theirs\n"
        "cook Q0 food.md 1 1.0 theirs\npool Q0 food.md 1 1.0 theirs\n"
    )
    told = evaluated(rag_tui, house, "--run", other, "--measures", "RR@10")
    theirs = told["columns"][-1]
    assert (theirs["name"], theirs["imported_from"]) == ("theirs", "other.trec")
    assert theirs["cells"][0]["interval"]["mean"] == pytest.approx((1 + 0.5 + 1) / 3)
    rag_tui("runs", "import", other, "--folder", house, "--save", "theirs")
    out, _ = rag_tui("runs", "show", "theirs", "--folder", house, "--measures", "RR@10")
    assert "0.833" in out


def test_kept_runs_are_renamed_deleted_and_damaged_ones_named(
    house: Path, rag_tui: Command, tmp_path: Path
) -> None:
    evaluated(rag_tui, house, "--save", "x")
    rag_tui("runs", "rename", "x", "y", "--folder", house)
    (place,) = (tmp_path / "cache" / "indexes").glob("*/runs")
    (place / "bad.json").write_text("{")
    out, err = rag_tui("runs", "list", "--folder", house, "--json")
    assert [head["name"] for head in json.loads(out)["runs"]] == ["y"]
    assert "'bad' is damaged" in err
    assert rag_tui("runs", "--folder", house, "--json", "list")[0] == out
    rag_tui("runs", "delete", "bad", "--folder", house)
    rag_tui("runs", "delete", "y", "--folder", house)
    assert "no kept runs" in rag_tui("runs", "--folder", house)[0]
    assert rag_tui("runs", "show", "y", "--folder", house, code=1)[1].startswith("error: There is")


def test_questions_are_checked_label_by_label(house: Path, rag_tui: Command) -> None:
    out, _ = rag_tui("questions", "check", house)
    assert "grade 1: keys.md:" in out
    assert "4 questions, 3 labels found, 0 not found, 0 without a label, 0 problems" in out
    lost = {"id": "gone", "question": "Where?", "evidence": [{"file": "pets.md", "quote": "cats"}]}
    write_questions(house, [*QUESTIONS, lost, {"id": "bare", "question": "What else?"}])
    out, _ = rag_tui("questions", "check", house, code=1)
    assert "NOT FOUND: pets.md" in out
    told = json.loads(rag_tui("questions", "check", house, "--json", code=1)[0])
    assert told["unlabelled"] == ["bare"]
    assert told["resolved"]["dog"]["places"][0]["file"] == "pets.md"


def test_labels_that_are_not_found_are_named_in_the_table(house: Path, rag_tui: Command) -> None:
    lost = {"id": "gone", "question": "Where?", "evidence": [{"file": "pets.md", "quote": "cats"}]}
    write_questions(house, [*QUESTIONS, lost])
    out, _ = rag_tui("eval", house, "--no-rerank")
    assert "5 questions: 3 judged" in out
    assert "label not found: gone: pets.md" in out
    # the parts are the whole
    assert "5 questions: 3 judged, 0 without a label, 1 whose labels are not found, 1 unan" in out


def test_a_run_compared_with_itself_by_two_columns_tells_nothing_of_the_others(
    house: Path, rag_tui: Command
) -> None:
    evaluated(rag_tui, house, "--save", "one")
    out, _ = rag_tui("runs", "compare", "one", "one", "--folder", house, "--column", "bm25=hybrid")
    assert "bm25 → hybrid" in out
    assert "Only in" not in out


def test_lines_that_no_document_can_have_are_refused_by_their_rule(
    house: Path, rag_tui: Command
) -> None:
    before = (house / "questions.jsonl").read_bytes()
    for lines in ("3-1", "0", "0-2", "x"):
        _, err = rag_tui(
            "questions", "add", "Which?", "--folder", house, "--file", "food.md",
            "--lines", lines, code=2,
        )  # fmt: skip
        assert f"'{lines}'" in err
        assert "counted from 1" in err
    assert (house / "questions.jsonl").read_bytes() == before


def test_a_run_may_be_called_like_a_list_that_is_not_asked_for(
    house: Path, rag_tui: Command, tmp_path: Path
) -> None:
    evaluated(rag_tui, house, "--save", "one")
    file = tmp_path / "their.trec"
    rag_tui("runs", "export", "one", "--folder", house, "--column", "bm25", "--trec", file)
    told = evaluated(rag_tui, house, "--methods", "vector", "--run", file)
    assert [column["name"] for column in told["columns"]] == ["vector", "bm25"]
    _, err = rag_tui("eval", house, "--methods", "bm25", "--run", file, code=2)
    assert "two columns called 'bm25'" in err


def test_a_run_file_that_is_not_there_is_named_as_one(
    house: Path, rag_tui: Command, tmp_path: Path
) -> None:
    _, err = rag_tui("eval", house, "--no-rerank", "--run", tmp_path / "no.trec", code=2)
    assert "no.trec" in err
    assert "question" not in err


def test_a_question_is_added_only_with_a_label_that_is_found(house: Path, rag_tui: Command) -> None:
    before = (house / "questions.jsonl").read_bytes()
    add = ["questions", "add", "When does the kitchen close?", "--folder", house]
    _, err = rag_tui(*add, "--file", "food.md", "--quote", "until eleven", code=2)
    assert "not found" in err
    assert "--file" in rag_tui(*add, code=2)[1]
    assert (house / "questions.jsonl").read_bytes() == before
    out, _ = rag_tui(*add, "--file", "food.md", "--quote", "until ten", "--tag", "kitchen")
    assert "food.md:" in out
    after = (house / "questions.jsonl").read_bytes()
    assert after.startswith(before)
    row = json.loads(after[len(before) :])
    assert row["question"] == "When does the kitchen close?"
    assert row["evidence"] == [{"file": "food.md", "quote": "until ten", "grade": 1}]
    assert row["tags"] == ["kitchen"]
    assert "already" in rag_tui(*add, "--unanswerable", code=2)[1]
    rag_tui("questions", "add", "Is there a sauna?", "--unanswerable", "--folder", house)
    assert "6 questions" in rag_tui("questions", "check", house)[0]


def test_labels_are_written_as_qrels(house: Path, rag_tui: Command, tmp_path: Path) -> None:
    rag_tui("questions", "qrels", tmp_path / "q.txt", "--folder", house)
    rows = [line.split() for line in (tmp_path / "q.txt").read_text().splitlines()]
    assert [(row[0], row[3]) for row in rows] == [("dog", "1"), ("key", "1"), ("cook", "1")]


def test_a_folder_in_beir_layout_works_as_given(tmp_path: Path, rag_tui: Command) -> None:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    corpus = [
        {"_id": str(n), "title": f"Title {n}", "text": text}
        for n, text in enumerate(("apples are red", "plums are blue", "pears are green"))
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "blue plums"}\n{"_id": "q2", "text": "what is green"}\n'
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\t1\t1\nq2\t2\t1\n")
    told = evaluated(rag_tui, folder, "--methods", "bm25")
    assert (told["unit"], told["n_judged"]) == ("document", 2)
    assert told["columns"][0]["cells"][0]["interval"]["mean"] == 1.0
    listed = json.loads(rag_tui("chunks", "--folder", folder, "--json")[0])
    names = {chunk["file"] for chunk in listed}
    assert names == {"corpus.jsonl#0", "corpus.jsonl#1", "corpus.jsonl#2"}


def test_a_judged_collection_gives_the_published_figure_and_that_of_ir_measures(
    shared: Path, rag_tui: Command, tmp_path: Path
) -> None:
    folder = shared / "data" / "ir" / "anthropic-docs-rag"
    told = evaluated(
        rag_tui, folder, "--methods", "bm25,hybrid", "--knob", "chunking.strategy=whole",
        "--knob", "bm25.analyzer=english", "--knob", "bm25.k1=0.9", "--knob", "bm25.b=0.4",
        "--measures", "nDCG@10,RR@10,R@10,R@100,AP", "--save", "x",
    )  # fmt: skip
    assert (told["n_judged"], told["unresolved"]) == (100, [])
    means = {c["name"]: [cell["interval"]["mean"] for cell in c["cells"]] for c in told["columns"]}
    # bm25s with another stop word list (baselines.json): 0.6276, 0.6901, 0.7392, 0.955
    assert means["bm25"][:4] == pytest.approx([0.6276, 0.6901, 0.7392, 0.955], abs=0.02)
    export = ["runs", "export", "x", "--folder", folder, "--column", "hybrid"]
    rag_tui(*export, "--trec", tmp_path / "run", "--qrels", tmp_path / "qrels")
    names = [ir_measures.parse_measure(name) for name in told["measures"]]
    theirs = ir_measures.calc_aggregate(
        names,
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run"))),
    )
    assert means["hybrid"] == pytest.approx([theirs[name] for name in names], abs=1e-6)


def test_a_report_holds_foreign_text_as_text(house: Path, rag_tui: Command, tmp_path: Path) -> None:
    write_questions(
        house,
        [{**QUESTIONS[0], "question": "dogs <script>alert(1)</script> | pipe"}, *QUESTIONS[1:]],
    )
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    rag_tui("eval", house, "--no-rerank", "--save", "x", "--html", page, "--markdown", text)
    assert "<script" not in page.read_text()
    assert "://" not in page.read_text()
    assert "<script" not in text.read_text()


def real_env(model_cache: Path, tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAG_TUI_", "ANTHROPIC_"))}
    return {
        **kept,
        "RAG_TUI_CACHE_DIR": str(model_cache),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "160",
    }


def test_the_demo_questions_are_measured_with_the_real_models(
    model_cache: Path, tmp_path: Path, guesthouse: Index
) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "rag_tui", "eval", "--k", "1,3", "--json",
            "--knob", "search.rerank_depth=4",
        ],
        capture_output=True, text=True, env=real_env(model_cache, tmp_path), cwd=ROOT,
        stdin=subprocess.DEVNULL, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["folder"] == str(guesthouse.folder)
    assert told["measures"][:2] == ["R@1", "R@3"]
    assert (told["n_judged"], told["n_unanswerable"], told["unresolved"]) == (18, 4, [])
    means = {c["name"]: [cell["interval"]["mean"] for cell in c["cells"]] for c in told["columns"]}
    assert list(means) == ["vector", "bm25", "hybrid", "reranked"]
    # what the demo corpus is made to show: filler words mislead BM25, the reranker mends it
    assert means["bm25"][0] < means["hybrid"][0] < means["reranked"][0]
    ranks = {q["qid"]: q["ranks"] for q in told["questions"]}
    assert ranks["q03"][0] > 3
    assert ranks["q03"][1] == 1
    assert ranks["q04"][:2] == [1, None]


def test_ctrl_c_keeps_and_shows_what_was_finished(
    model_cache: Path, tmp_path: Path, guesthouse: Index
) -> None:
    place = next((model_cache / "indexes").glob("corpus-*")) / "asked"
    known = set(place.glob("*")) if place.is_dir() else set()
    command = [sys.executable, "-m", "rag_tui", "eval", "--knob", "search.rerank_depth=3"]
    process = subprocess.Popen(
        command, env=real_env(model_cache, tmp_path), cwd=ROOT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip

    def n_new() -> int:
        return len(set(place.glob("*")) - known) if place.is_dir() else 0

    wanted = 1 if known else 4  # the reranked column's file comes last
    while n_new() < wanted:
        try:
            process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"ended by itself: {process.communicate()}")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted: what was asked is kept" in err
    assert "Traceback" not in err
    assert next(line for line in out.splitlines() if line.startswith("vector")).endswith("18")
    assert re.search(r"reranked: \d+ judged questions? without a list", out) or (
        "reranked is not scored: none of the labelled questions was asked" in out
    )
