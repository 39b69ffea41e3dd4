"""Measure BM25 against rank_bm25 and bm25s on real text, in one run. Nothing is asserted.

    python -m scripts.bench_bm25 DATA [N] [--queries 40] [--without rank_bm25 bm25s]

Reads all ``.md`` files and all ``corpus.jsonl`` under DATA, and makes N chunks (default 100,000) of
120 to 200 words: spans of 25 words that follow each other in the text, in random order. Prints the
cost and memory of building, and CPU milliseconds a query (p50 and p95), each competitor and ours
taking turns: ours with another k1 and b for every query. The tokens are those of the analyzer
``words``. Queries are 3 to 8 words of a random chunk (``mixed``), or only words that less than a
tenth of the chunks hold (``content``). ``identical`` counts queries whose first ten are those of
rank_bm25, score for score.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_tui.engine.analysis import WORDS
from rag_tui.engine.retrievers.postings import BM25Postings
from rag_tui.engine.topk import top_k
from rag_tui.engine.types import BM25Params, BM25Variant
from scripts.measuring import Report, times_faster

SPAN = 25
TOP = 10
VARIANTS: tuple[BM25Variant, ...] = ("okapi", "lucene", "bm25plus")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", type=Path)
    options.add_argument("n", type=int, nargs="?", default=100_000)
    options.add_argument("--queries", type=int, default=40)
    options.add_argument("--without", nargs="*", default=[], choices=["rank_bm25", "bm25s"])
    options.add_argument("--no-memory", action="store_true", help="skip the slow memory figures")
    given = options.parse_args()
    report = Report()
    run(
        given.data, given.n, given.queries,
        report=report, without=given.without, has_memory=not given.no_memory,
    )  # fmt: skip
    print(f"\n{report.markdown()}")


def run(
    data: Path,
    n: int,
    n_queries: int,
    *,
    report: Report,
    without: Sequence[str] = (),
    has_memory: bool = True,
) -> None:
    """Build with every library, then ask all of them the same queries."""
    rng = random.Random(7)
    started = time.process_time()
    chunks = make_chunks(data, n, rng)
    n_tokens = sum(map(len, chunks))
    print(f"{n:,} chunks, {n_tokens:,} tokens ({time.process_time() - started:.1f} s)")

    builders: dict[str, Callable[[], Any]] = {"ours": lambda: BM25Postings.build(chunks)}
    if "rank_bm25" not in without:
        from rank_bm25 import BM25Okapi

        builders["rank_bm25"] = lambda: BM25Okapi(chunks)
    if "bm25s" not in without:
        import bm25s

        def build_bm25s() -> Any:
            model = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy")
            model.index(chunks, show_progress=False)
            return model

        builders["bm25s"] = build_bm25s

    print("\nbuilding        CPU s    MB kept")
    made: dict[str, Any] = {}
    cost: dict[str, tuple[float, float]] = {}
    for name, build in builders.items():
        gc.collect()
        gc.disable()
        started = time.process_time()
        made[name] = build()
        spent = time.process_time() - started
        gc.enable()
        kept = memory(build) if has_memory else float("nan")
        cost[name] = (spent, kept)
        print(f"{name:12} {spent:8.2f} {kept:10.1f}", flush=True)

    for name, (goal_time, goal_memory) in {
        "rank_bm25": (1 / 1.3, 4.0),
        "bm25s": (1.6, 0.0),
    }.items():
        if name in cost:
            faster, smaller = (b / a for a, b in zip(cost["ours"], cost[name], strict=True))
            report.said(
                f"BM25 index, times faster to build than {name}, CPU", f"{faster:.2f}",
                f">= {goal_time:.2f}", is_met=faster >= goal_time,
            )  # fmt: skip
            report.said(
                f"BM25 index, times smaller than {name}, kept memory", f"{smaller:.1f}",
                f">= {goal_memory:g}" if goal_memory else "",
                is_met=smaller >= goal_memory if goal_memory else None,
            )  # fmt: skip
    postings: BM25Postings = made["ours"]
    for kind in ("mixed", "content"):
        queries = make_queries(chunks, postings, n_queries, kind, rng)
        measure(kind, queries, postings, made, report)


def make_chunks(data: Path, n: int, rng: random.Random) -> list[list[str]]:
    """Token lists; equal words are one object, as after reading an index."""
    spans: list[list[str]] = []
    words: dict[str, str] = {}
    for text in real_texts(data):
        tokens = [words.setdefault(token, token) for token in WORDS.tokens(text)]
        spans.extend(tokens[i : i + SPAN] for i in range(0, len(tokens) - SPAN + 1, SPAN))
    print(f"{len(spans):,} spans of real text, {len(words):,} different words")
    chunks = []
    for _ in range(n):
        size = rng.randint(120, 200)
        tokens = [token for span in rng.choices(spans, k=size // SPAN + 1) for token in span]
        chunks.append(tokens[:size])
    return chunks


def real_texts(data: Path) -> Iterator[str]:
    for path in sorted(data.rglob("*.md")):
        yield path.read_text(encoding="utf-8", errors="replace")
    for path in sorted(data.rglob("corpus.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield str(json.loads(line).get("text", ""))


def make_queries(
    chunks: list[list[str]], postings: BM25Postings, n: int, kind: str, rng: random.Random
) -> list[list[str]]:
    queries: list[list[str]] = []
    while len(queries) < n:
        pool = sorted(set(rng.choice(chunks)))
        if kind == "content":
            pool = [term for term in pool if postings.df(term) * 10 < postings.n_chunks]
        if len(pool) >= 8:
            queries.append(rng.sample(pool, rng.randint(3, 8)))
    return queries


def measure(
    kind: str,
    queries: list[list[str]],
    postings: BM25Postings,
    made: dict[str, Any],
    report: Report,
) -> None:
    rng = random.Random(3)
    spent: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        started = time.process_time()
        result = work(*arguments, **named)
        spent.setdefault(name, []).append((time.process_time() - started) * 1e3)
        return result

    def all_exact(query: list[str]) -> None:
        top_k(postings.scores(query, BM25Params())[0], TOP)

    n_identical = 0
    best = postings.rough.best
    # One round to fill what each side remembers, then the measured one.
    for is_measured in (False, True):
        spent.clear()
        for query in queries:
            k1, b = rng.uniform(0.5, 2), rng.uniform(0.2, 1)
            if "rank_bm25" in made and is_measured:
                library = made["rank_bm25"]
                library.k1, library.b = k1, b
                scores = timed("rank_bm25", library.get_scores, query)
                wanted = top_k(scores, TOP)
                found, ours = best(query, BM25Params("okapi", k1=k1, b=b), TOP)
                same = np.allclose(ours, scores[wanted], rtol=0, atol=1e-9)
                n_identical += int(same and found.tolist() == wanted.tolist())
            for variant in VARIANTS:
                params = BM25Params(variant, k1=k1, b=b)
                timed(f"ours {variant}, new k1 b", best, query, params, TOP)
            timed("ours, all exact", all_exact, query)
            if "bm25s" in made:
                retrieve = made["bm25s"].retrieve
                timed("bm25s retrieve", retrieve, [query], k=TOP, show_progress=False)
    print(f"\n{kind:28} p50 ms   p95 ms   rank_bm25 / this: p50, least", end="\n")
    base = spent.get("rank_bm25")
    for name, times in spent.items():
        ratio = ""
        if base:
            ratios = np.array(base) / np.array(times)
            ratio = f"{np.median(ratios):9.0f} {ratios.min():8.0f}"
        print(f"{name:26} {np.percentile(times, 50):8.3f} {np.percentile(times, 95):8.3f} {ratio}")
    if base:
        for variant in VARIANTS[:2]:
            gain = times_faster(base, spent[f"ours {variant}, new k1 b"])
            report.said(
                f"BM25 {variant}, {kind} words, new k1 and b, times faster than rank_bm25, CPU",
                f"{gain:.0f}", ">= 170", is_met=gain >= 170,
            )  # fmt: skip
        n = len(queries)
        report.said(
            f"BM25 okapi, {kind} words, first {TOP} those of rank_bm25", f"{n_identical} of {n}",
            "all", is_met=n_identical == n,
        )  # fmt: skip


def memory(build: Callable[[], Any]) -> float:
    """Megabytes that a built index keeps; the tokens it was given are not counted."""
    gc.collect()
    tracemalloc.start()
    made = build()
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del made
    return kept / 2**20


if __name__ == "__main__":
    main()
