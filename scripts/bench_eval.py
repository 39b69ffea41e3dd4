"""Evaluate judged collections and hold every figure against ir_measures.

    python scripts/bench_eval.py FOLDER [FOLDER ...] [--rerank]

Each folder has the layout of BEIR. Documents are not cut; BM25 is Lucene's with k1 0.9, b 0.4
and English stems, as the usual baselines have it. The run of every column is written in TREC's
format, read by ir_measures, and must give our figures to 1e-4.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import ir_measures

from rag_tui.config import load_settings
from rag_tui.engine.evaluation.evaluate import evaluate
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import resolve_all
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.trec import write_qrels, write_run
from rag_tui.engine.evaluation.types import EvalRun
from rag_tui.engine.index import Index
from rag_tui.engine.indexing import IndexReady, refresh_index
from rag_tui.engine.knobs import with_knobs
from rag_tui.engine.loading import Models

MEASURES = ("nDCG@10", "RR@10", "R@10", "R@100")
KNOBS = {"bm25.analyzer": "english", "bm25.k1": 0.9, "bm25.b": 0.4}
TOLERANCE = 1e-4


def bench(folder: Path, *, rerank: bool) -> bool:
    """Print one collection's figures; whether ours are those of ir_measures."""
    settings = load_settings(folder, {"chunking.strategy": "whole"})
    models = Models(settings.engine.models, settings.engine.cache_dir)
    started = time.perf_counter()
    index: Index | None = None
    for item in refresh_index(folder, settings.engine, models):
        if isinstance(item, IndexReady):
            index = item.index
    if index is None:
        raise SystemExit(f"no index of {folder}")
    indexed_s = time.perf_counter() - started
    questions = read_questions(folder, index=index)
    resolved = resolve_all(questions.questions, index)
    request = with_knobs(settings.request(""), {**KNOBS, "search.rerank": rerank})
    started = time.perf_counter()
    *_, run = evaluate(questions, request, index, models)
    asked_s = time.perf_counter() - started
    assert isinstance(run, EvalRun)
    started = time.perf_counter()
    table = score(run, resolved, MEASURES, questions.unit)
    scored_s = time.perf_counter() - started
    print(
        f"{folder.name}: {len(index.chunks):,} chunks, {table.n_judged:,} judged questions; "
        f"index {indexed_s:.1f} s, asking {asked_s:.1f} s, scoring {scored_s:.1f} s"
    )
    is_same = True
    names = [ir_measures.parse_measure(name) for name in MEASURES]
    with tempfile.TemporaryDirectory() as temporary:
        qrels, trec = Path(temporary) / "qrels", Path(temporary) / "run"
        write_qrels(qrels, resolved.values(), ids="record")
        judgements = list(ir_measures.read_trec_qrels(str(qrels)))
        for column, scores in zip(run.columns, table.columns, strict=True):
            write_run(trec, column, ids="record")
            lists = list(ir_measures.read_trec_run(str(trec)))
            theirs = ir_measures.calc_aggregate(names, judgements, lists)
            cells = []
            for name, cell in zip(names, scores.cells, strict=True):
                mean = cell.interval.mean if cell.interval is not None else float("nan")
                is_same &= abs(mean - theirs[name]) <= TOLERANCE
                cells.append(f"{name} {mean:.4f} ({theirs[name]:.4f})")
            print(f"  {scores.name:9} {'  '.join(cells)}  {scores.seconds:.1f} s")
    return is_same


def main(arguments: list[str]) -> int:
    """Exit 1 when a figure is not that of ir_measures."""
    folders = [Path(text) for text in arguments if not text.startswith("-")]
    if not folders:
        print(__doc__)
        return 2
    print("ours (ir_measures' on the exported run)")
    same = [bench(folder, rerank="--rerank" in arguments) for folder in folders]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
