"""Speed of encoding questions, reranking and vector search against the usual ways, in one run.

    HF_HUB_OFFLINE=1 python -m scripts.bench_models [--million] [--rounds 30]

Ratios of one run survive a busy or slow machine; absolute times do not. CPU seconds are of this
process, all threads together. The cross-encoder has random weights in the shape of MiniLM-L6:
speed does not depend on them.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core is compared with one core

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_tui.engine.embedders.load import load_embedder
from rag_tui.engine.models import resolve
from rag_tui.engine.precision import cpu_has_bfloat16
from rag_tui.engine.rerankers.base import score_batches
from rag_tui.engine.rerankers.load import load_reranker
from rag_tui.engine.retrievers.dense import retrieve_dense
from rag_tui.engine.settings import DEFAULT_EMBEDDER

DIMENSIONS = 384
QUESTIONS = [f"Can I bring {n} dogs to the house near garden gate {n % 5}?" for n in range(30)]
WORDS = [
    "the", "dog", "key", "house", "garden", "kitchen", "gate", "opens", "at", "ten",
    "breakfast", "is", "served", "daily", "wifi", "password", "router", "behind", "shelf",
    "please", "leave", "towels", "bathroom", "floor", "pool", "closes", "window", "heating",
    "valve",
]  # fmt: skip


@dataclass(frozen=True)
class Times:
    """Seconds of each round."""

    wall: list[float]
    cpu: list[float]

    def line(self, name: str) -> str:
        wall = np.percentile(self.wall, [50, 95]) * 1e3
        cpu = np.percentile(self.cpu, [50, 95]) * 1e3
        return (
            f"  {name:<44} wall p50 {wall[0]:8.2f}  p95 {wall[1]:8.2f}   "
            f"CPU p50 {cpu[0]:8.2f}  p95 {cpu[1]:8.2f}  ms"
        )

    @property
    def wall_p50(self) -> float:
        return float(np.median(self.wall))

    @property
    def cpu_p50(self) -> float:
        return float(np.median(self.cpu))


def timed(work: Callable[[int], object], rounds: int) -> Times:
    """Run ``work`` once to warm up, then ``rounds`` times with the number of the round."""
    work(0)
    wall, cpu = [], []
    for n in range(rounds):
        started, used = perf_counter(), process_time()
        work(n)
        cpu.append(process_time() - used)
        wall.append(perf_counter() - started)
    return Times(wall, cpu)


@contextmanager
def one_core_busy() -> Iterator[None]:
    """A process that computes for nothing meanwhile."""
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


def said(what: str, value: float, goal: str, is_met: bool) -> None:
    print(f"  {'ok  ' if is_met else 'MISS'} {what}: {value:.2f} (goal {goal})")


def bench_queries(cache: Path, rounds: int) -> None:
    print(f"Encoding one question, {DEFAULT_EMBEDDER}")
    from sentence_transformers import SentenceTransformer

    files = resolve(DEFAULT_EMBEDDER, "embedder", allow_download=False)
    ours = load_embedder(files, cache)
    theirs = SentenceTransformer(str(files.folder), device="cpu")

    def own(n: int) -> object:
        return ours.embed_query(QUESTIONS[n % len(QUESTIONS)])

    def library(n: int) -> object:
        return theirs.encode_query(QUESTIONS[n % len(QUESTIONS)], show_progress_bar=False)

    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    slow, fast = timed(library, rounds), timed(own, rounds)
    print(slow.line("sentence-transformers"))
    print(fast.line(f"here ({ours.info.backend})"))
    with one_core_busy():
        slow_busy, fast_busy = timed(library, rounds), timed(own, rounds)
    print(slow_busy.line("sentence-transformers, one core busy"))
    print(fast_busy.line("here, one core busy"))
    for name, ratio in (
        ("wall", slow.wall_p50 / fast.wall_p50),
        ("CPU", slow.cpu_p50 / fast.cpu_p50),
    ):
        said(f"times faster, {name}", ratio, ">= 2.5", ratio >= 2.5)
    ratio = fast_busy.wall_p50 / fast.wall_p50
    said("times slower with one core busy, wall", ratio, "<= 2", ratio <= 2)
    if cpu_has_bfloat16():
        reduced = load_embedder(files, cache, precision="bfloat16")
        passages = [" ".join(WORDS * 6)] * 8
        exact = timed(lambda _: ours.embed_documents(passages), 5)
        rough = timed(lambda _: reduced.embed_documents(passages), 5)
        print(exact.line("8 passages, float32") + "\n" + rough.line("8 passages, bfloat16"))
    else:
        print("  bfloat16 is not measured: this processor lacks it")


def save_cross_encoder(folder: Path) -> Path:
    """Random weights in the shape of MiniLM-L6, as sentence-transformers saves them."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    files = resolve(DEFAULT_EMBEDDER, "embedder", allow_download=False)
    tokenizer = AutoTokenizer.from_pretrained(files.folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=384, num_hidden_layers=6,
        num_attention_heads=12, intermediate_size=1536, num_labels=1, initializer_range=0.05,
    )  # fmt: skip
    BertForSequenceClassification(config).eval().save_pretrained(folder)
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(folder)
    return folder


def bench_reranking(cache: Path, rounds: int) -> None:
    print("Reranking 20 passages of 20 to 260 words, float32 cross-encoder of MiniLM-L6's shape")
    import torch
    from sentence_transformers import CrossEncoder

    folder = save_cross_encoder(cache / "cross-encoder")
    ours = load_reranker(resolve(str(folder), "reranker"), cache)
    theirs: Any = CrossEncoder(str(folder), device="cpu", activation_fn=torch.nn.Identity())
    rng = np.random.default_rng(0)
    passages = [" ".join(rng.choice(WORDS, size=int(n))) for n in rng.integers(20, 260, size=20)]
    question = "when does the pool close"
    pairs = [(question, passage) for passage in passages]
    torch.set_num_threads(os.cpu_count() or 1)
    firsts: list[float] = []

    def own(_: int) -> list[float]:
        return list(ours.score(question, passages))

    slow = timed(lambda _: theirs.predict(pairs, show_progress_bar=False), rounds)
    fast = timed(own, rounds)
    for _ in range(rounds):
        started = perf_counter()
        next(score_batches(ours, question, passages))
        firsts.append(perf_counter() - started)
    print(slow.line("CrossEncoder.predict"))
    print(fast.line(f"here ({ours.info.backend})"))
    for name, ratio in (
        ("wall", slow.wall_p50 / fast.wall_p50),
        ("CPU", slow.cpu_p50 / fast.cpu_p50),
    ):
        said(f"times faster, {name}", ratio, ">= 1.5", ratio >= 1.5)
    share = float(np.median(firsts)) / fast.wall_p50
    said("share of the time until the first scores", share, "< 0.5", share < 0.5)
    gap = float(np.abs(np.array(own(0)) - theirs.predict(pairs)).max())
    said("largest difference of a score, x 1e-5", gap * 1e5, "<= 1", gap <= 1e-5)


def random_rows(n: int, seed: int) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((n, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def read_seconds(matrix: npt.NDArray[np.float32], rounds: int) -> float:
    """The fastest reading of the whole matrix by one core: a dot product with itself."""
    flat = matrix.reshape(-1)
    readers: list[Callable[[int], object]] = [
        lambda _: np.dot(flat, flat),
        lambda _: flat.max(),
    ]
    return min(min(timed(reader, rounds).wall) for reader in readers)


def bench_dense(rounds: int) -> None:
    n = 100_000
    print(f"Vector search, {n:,} chunks of {DIMENSIONS} dimensions, depth 50, one core")
    vectors = random_rows(n, 0)
    questions = random_rows(30, 1)
    ids = [f"c{i}" for i in range(n)]
    reading = read_seconds(vectors, rounds)
    found = timed(lambda i: retrieve_dense(questions[i % 30], vectors, ids, depth=50), rounds)
    print(f"  {vectors.nbytes / reading / 1e9:.1f} GB/s read by one core: {reading * 1e3:.2f} ms")
    print(found.line("retrieve_dense"))
    share = reading / min(found.wall)
    said("share of the read bandwidth (best round)", share, ">= 0.65", share >= 0.65)


def bench_million(rounds: int) -> None:
    n, part = 1_000_000, 50_000
    print(f"Vector search, {n:,} chunks mapped from a file, depth 50, one core")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, DIMENSIONS))
        for at in range(0, n, part):
            file[at : at + part] = random_rows(part, at)
        file.flush()
        del file
        vectors = np.load(path, mmap_mode="r")
        ids = [str(i) for i in range(n)]
        questions = random_rows(30, 1)
        reading = read_seconds(vectors, 5)
        found = timed(lambda i: retrieve_dense(questions[i % 30], vectors, ids, depth=50), rounds)
        print(f"  {vectors.nbytes / reading / 1e9:.1f} GB/s read by one core")
        print(found.line("retrieve_dense"))
        share = reading / min(found.wall)
        said("share of the read bandwidth (best round)", share, ">= 0.65", share >= 0.65)
        best = min(found.cpu) * 1e3
        said("CPU milliseconds, best round", best, "<= 120", best <= 120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="also 1.5 GB of random vectors")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", choices=("queries", "reranking", "dense"), default="")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        if chosen.only in ("", "queries"):
            bench_queries(cache, chosen.rounds)
        if chosen.only in ("", "reranking"):
            bench_reranking(cache, max(3, chosen.rounds // 6))
        if chosen.only in ("", "dense"):
            bench_dense(chosen.rounds)
        if chosen.million:
            bench_million(max(3, chosen.rounds // 3))


if __name__ == "__main__":
    main()
