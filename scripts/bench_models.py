"""Speed of embedding, reranking and vector search against the usual ways, in one run.

    HF_HUB_OFFLINE=1 python -m scripts.bench_models [--million] [--rounds 30]

Ratios of one run survive a busy or slow machine; absolute times do not. Both sides run on one
thread and by turns. CPU seconds are of this process, all threads together. The cross-encoder has
random weights in the shape of MiniLM-L6: speed does not depend on them."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core is compared with one core

import argparse
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_tui.engine.embedders.load import load_embedder
from rag_tui.engine.errors import Cancelled
from rag_tui.engine.events import CancelToken
from rag_tui.engine.models import resolve
from rag_tui.engine.precision import cpu_has_bfloat16
from rag_tui.engine.rerankers.base import Reranker, score_batches
from rag_tui.engine.rerankers.load import load_reranker
from rag_tui.engine.retrievers.dense import retrieve_dense
from rag_tui.engine.settings import DEFAULT_EMBEDDER
from scripts.measuring import Report, Times, Work, by_turns, one_core_busy, timed, times_faster

DIMENSIONS = 384
QUESTIONS = [f"Can I bring {n} dogs to the house near garden gate {n % 5}?" for n in range(30)]
WORDS = [
    "the", "dog", "key", "house", "garden", "kitchen", "gate", "opens", "at", "ten",
    "breakfast", "is", "served", "daily", "wifi", "password", "router", "behind", "shelf",
    "please", "leave", "towels", "bathroom", "floor", "pool", "closes", "window", "heating",
    "valve",
]  # fmt: skip
_MS = 1e3


def faster(what: str, slow: Times, fast: Times, goal: float, report: Report) -> None:
    """Say how many times faster, by CPU and wall time, the median over the rounds."""
    for name, a, b in (("CPU", slow.cpu, fast.cpu), ("wall", slow.wall, fast.wall)):
        ratio = times_faster(a, b)
        report.said(
            f"{what}, times faster, {name}", f"{ratio:.2f}", f">= {goal}", is_met=ratio >= goal
        )


def bench_queries(cache: Path, rounds: int, report: Report) -> None:
    """One question at a time, with and without another program that computes."""
    print(f"\nEncoding one question, {DEFAULT_EMBEDDER}")
    import torch
    from sentence_transformers import SentenceTransformer

    files = resolve(DEFAULT_EMBEDDER, "embedder", allow_download=False)
    ours = load_embedder(files, cache)
    theirs = SentenceTransformer(str(files.folder), device="cpu")
    works: dict[str, Work] = {
        "theirs": lambda n: theirs.encode_query(QUESTIONS[n % 30], show_progress_bar=False),
        "ours": lambda n: ours.embed_query(QUESTIONS[n % 30]),
    }
    torch.set_num_threads(1)
    times = by_turns(works, rounds)
    print(times["theirs"].line("sentence-transformers, 1 thread"))
    print(times["ours"].line(f"here ({ours.info.backend}), 1 thread"))
    faster("encoding a question", times["theirs"], times["ours"], 2.5, report)
    # The busy program comes and goes every few questions: the machine's other load hits both.
    torch.set_num_threads(os.cpu_count() or 1)
    quiet: dict[str, list[float]] = {name: [] for name in works}
    busy: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(max(2, rounds // 10)):
        for name, work in works.items():
            quiet[name] += timed(work, 10).wall
            with one_core_busy():
                busy[name] += timed(work, 10).wall
    print("  usual threads, wall p50 ms, quiet / one core busy:")
    for name in works:
        slower = float(np.median(busy[name]) / np.median(quiet[name]))
        a, b = np.median(quiet[name]) * _MS, np.median(busy[name]) * _MS
        print(f"    {name:8} {a:8.2f} {b:8.2f}  x {slower:.2f}")
        if name == "ours":
            what = "encoding a question, times slower with one core busy, wall"
            report.said(what, f"{slower:.2f}", "<= 2", is_met=slower <= 2)


def bench_bulk(cache: Path, passages: Sequence[str], rounds: int, report: Report) -> None:
    """Many passages of unlike lengths, as an index embeds them."""
    print(f"\nEmbedding {len(passages)} passages, float32, 1 thread each")
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    files = resolve(DEFAULT_EMBEDDER, "embedder", allow_download=False)
    ours = load_embedder(files, cache)
    theirs = SentenceTransformer(str(files.folder), device="cpu")
    works: dict[str, Work] = {
        "theirs": lambda _: theirs.encode_document(list(passages), batch_size=32),
        "ours": lambda _: ours.embed_documents(passages),
    }
    if cpu_has_bfloat16():
        reduced = load_embedder(files, cache, precision="bfloat16")
        works["bfloat16"] = lambda _: reduced.embed_documents(passages)
    else:
        print("  bfloat16 is not measured: this processor lacks it")
    times = by_turns(works, rounds)
    for name, one in times.items():
        print(one.line(name))
    faster("embedding in bulk, float32", times["theirs"], times["ours"], 1.1, report)
    if "bfloat16" in times:
        faster("embedding in bulk, bfloat16", times["theirs"], times["bfloat16"], 2.5, report)
    expected: Any = theirs.encode_document(list(passages))
    cosine = float((ours.embed_documents(passages) * expected).sum(axis=1).min())
    report.said("embedding, least cosine", f"{cosine:.6f}", ">= 0.99999", is_met=cosine >= 0.99999)


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


def bench_reranking(cache: Path, rounds: int, report: Report) -> None:
    """Twenty pairs: all of them, the first batch, and how soon a cancel is heard."""
    print("\nReranking 20 passages of 20 to 260 words, float32 cross-encoder of MiniLM-L6's shape")
    import torch
    from sentence_transformers import CrossEncoder

    torch.set_num_threads(1)
    folder = save_cross_encoder(cache / "cross-encoder")
    ours = load_reranker(resolve(str(folder), "reranker"), cache)
    theirs: Any = CrossEncoder(str(folder), device="cpu", activation_fn=torch.nn.Identity())
    rng = np.random.default_rng(0)
    passages = [" ".join(rng.choice(WORDS, size=int(n))) for n in rng.integers(20, 260, size=20)]
    question = "when does the pool close"
    pairs = [(question, passage) for passage in passages]
    works: dict[str, Work] = {
        "theirs": lambda _: theirs.predict(pairs, show_progress_bar=False),
        "ours": lambda _: list(ours.score(question, passages)),
    }
    times = by_turns(works, rounds)
    print(times["theirs"].line("CrossEncoder.predict, 1 thread"))
    print(times["ours"].line(f"here ({ours.info.backend}), 1 thread"))
    faster("reranking 20 pairs", times["theirs"], times["ours"], 1.5, report)
    gap = float(
        np.abs(np.array(list(ours.score(question, passages))) - theirs.predict(pairs)).max()
    )
    report.said(
        "reranking, largest difference of a score", f"{gap:.1e}", "<= 1e-5", is_met=gap <= 1e-5
    )
    shares, longest, heard = [], [], []
    for n in range(rounds):
        at = [perf_counter()]
        at += [perf_counter() for _ in score_batches(ours, question, passages)]
        shares.append((at[1] - at[0]) / (at[-1] - at[0]))
        longest.append(max(b - a for a, b in pairwise(at)))
        heard.append(
            cancel_seconds(ours, question, passages, (at[-1] - at[0]) * (n + 0.5) / rounds)
        )
    share, batch = float(np.median(shares)), float(np.median(longest)) * _MS
    report.said(
        "reranking, share of the time until the first scores",
        f"{share:.2f}",
        "< 0.5",
        is_met=share < 0.5,
    )
    median, worst = float(np.median(heard)) * _MS, max(heard) * _MS
    report.said(
        "reranking, ms from a cancel to its end, p50 / most", f"{median:.0f} / {worst:.0f}",
        f"<= the longest batch ({batch:.0f})", is_met=median <= batch,
    )  # fmt: skip


def cancel_seconds(ours: Reranker, question: str, passages: Sequence[str], after_s: float) -> float:
    """Wall seconds from a cancel, ``after_s`` after the start, to the end of the work."""
    token = CancelToken()
    cancelled_at = [float("inf")]

    def cancel() -> None:
        cancelled_at[0] = perf_counter()
        token.cancel()

    timer = Timer(after_s, cancel)
    timer.start()
    try:
        for _ in score_batches(ours, question, passages, cancel=token):
            pass
    except Cancelled:
        pass
    ended = perf_counter()
    timer.cancel()
    return max(0.0, ended - cancelled_at[0])


def random_rows(n: int, seed: int) -> npt.NDArray[np.float32]:
    """Unit vectors in random directions."""
    rows = np.random.default_rng(seed).standard_normal((n, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def bench_dense(
    vectors: npt.NDArray[np.float32], what: str, rounds: int, report: Report, *, most_ms: float = 0
) -> None:
    """Vector search against reading the matrix once, by turns."""
    n = len(vectors)
    print(f"\nVector search, {what}, {DIMENSIONS} dimensions, depth 50, one core")
    questions = random_rows(30, 1)
    ids = [f"c{i}" for i in range(n)]
    flat = vectors.reshape(-1)
    times = by_turns(
        {
            "read, dot product with itself": lambda _: np.dot(flat, flat),
            "read, maximum": lambda _: flat.max(),
            "retrieve_dense": lambda i: retrieve_dense(questions[i % 30], vectors, ids, depth=50),
        },
        rounds,
    )
    for name, one in times.items():
        print(one.line(name))
    found = times.pop("retrieve_dense")
    reading = min(min(one.wall) for one in times.values())
    print(f"  {vectors.nbytes / reading / 1e9:.1f} GB/s read by one core: {reading * _MS:.2f} ms")
    share = reading / min(found.wall)
    report.said(
        f"vectors, {what}, share of the read bandwidth", f"{share:.2f}", ">= 0.65",
        is_met=share >= 0.65,
    )  # fmt: skip
    p50, best = found.cpu_p50 * _MS, min(found.cpu) * _MS
    goal = f"<= {most_ms:g}" if most_ms else ""
    report.said(
        f"vectors, {what}, CPU ms p50 / best", f"{p50:.1f} / {best:.1f}", goal,
        is_met=best <= most_ms if most_ms else None,
    )  # fmt: skip


def bench_million(rounds: int, report: Report) -> None:
    """Vectors mapped from a file that the system has in memory."""
    n, part = 1_000_000, 50_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, DIMENSIONS))
        for at in range(0, n, part):
            file[at : at + part] = random_rows(part, at)
        file.flush()
        del file
        mapped = np.load(path, mmap_mode="r")
        bench_dense(mapped, f"{n:,} chunks mapped from a file", rounds, report, most_ms=120)


def run(
    cache: Path, rounds: int, report: Report, *, has_million: bool, passages: Sequence[str] = ()
) -> None:
    """All parts; without passages, made-up ones are embedded."""
    rng = np.random.default_rng(1)
    bulk = passages or [" ".join(rng.choice(WORDS, size=int(n))) for n in rng.integers(20, 200, 96)]
    bench_queries(cache, rounds, report)
    bench_bulk(cache, bulk, max(3, rounds // 8), report)
    bench_reranking(cache, max(3, rounds // 4), report)
    bench_dense(random_rows(100_000, 0), "100,000 chunks", rounds, report)
    if has_million:
        bench_million(max(3, rounds // 3), report)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--million", action="store_true", help="also 1.5 GB of random vectors")
    parser.add_argument("--rounds", type=int, default=30)
    chosen = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), chosen.rounds, report, has_million=chosen.million)
    print(f"\n{report.markdown()}")


if __name__ == "__main__":
    main()
